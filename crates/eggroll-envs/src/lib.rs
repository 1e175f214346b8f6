#![doc = include_str!("../README.md")]

mod environments;
#[cfg(feature = "mujoco")]
pub mod mujoco;

pub use environments::{
    Acrobot, ActionSpace, Bandit, CartPole, EndOfEpisode, EpisodeKey, Episodes, HostTransition, Memory, MountainCar,
    MountainCarContinuous, Pendulum, TensorEnvironment, Transition,
};
