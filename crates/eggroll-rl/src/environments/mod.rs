//! Environments as batched tensors: the trait, one file for each environment, and batches of episodes.

mod acrobot;
mod bandit;
mod cart_pole;
mod environment;
mod episode_key;
mod episodes;
mod hill;
mod memory;
mod mountain_car;
mod mountain_car_continuous;
mod number;
mod pendulum;
mod physics;
pub(crate) mod states;

pub use acrobot::Acrobot;
pub use bandit::Bandit;
pub use cart_pole::CartPole;
pub use environment::{ActionSpace, HostTransition, TensorEnvironment, Transition};
pub use episode_key::EpisodeKey;
pub use episodes::{EndOfEpisode, Episodes};
pub use memory::Memory;
pub use mountain_car::MountainCar;
pub use mountain_car_continuous::MountainCarContinuous;
pub use number::{Flag, Number, Numbers};
pub use pendulum::Pendulum;
pub use physics::{Physics, Step};
