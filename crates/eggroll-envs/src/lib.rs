#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod acrobot;
mod bandit;
mod cart_pole;
mod environment;
mod episodes;
mod hill;
mod key;
mod memory;
mod mountain_car;
mod mountain_car_continuous;
#[cfg(feature = "mujoco")]
pub mod mujoco;
mod number;
mod pendulum;
mod rows;

pub use acrobot::Acrobot;
pub use bandit::Bandit;
pub use cart_pole::CartPole;
pub use environment::{ActionSpace, HostTransition, TensorEnvironment, Transition};
pub use episodes::{EndOfEpisode, Episodes};
pub use key::EpisodeKey;
pub use memory::Memory;
pub use mountain_car::MountainCar;
pub use mountain_car_continuous::MountainCarContinuous;
pub use pendulum::Pendulum;
