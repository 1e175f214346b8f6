//! The bodies, and how a policy moves them.

use clap::ValueEnum;
use eggroll::rl::mujoco::{HalfCheetah, Hopper, Humanoid, Walker2d};
use eggroll::rl::{EpisodeKey, HostEnvironment, HostTask, StepResult};
use serde::{Deserialize, Serialize};

/// MuJoCo's bodies by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BodyName {
    #[default]
    HalfCheetah,
    Hopper,
    #[value(name = "walker2d")]
    #[serde(rename = "walker2d")]
    Walker2d,
    Humanoid,
}

impl BodyName {
    pub fn title(self) -> &'static str {
        match self {
            Self::HalfCheetah => "HalfCheetah",
            Self::Hopper => "Hopper",
            Self::Walker2d => "Walker2d",
            Self::Humanoid => "Humanoid",
        }
    }
}

/// A body at rest, from which episodes begin.
pub trait Body: HostEnvironment + Clone + Send + Sync {
    /// Numbers of an observation and of an action.
    const SIZES: (usize, usize);
    /// Reward of a step for not falling.
    const SURVIVAL: f64;

    fn begin(&self, key: EpisodeKey) -> Self;

    fn numbers(state: &Self::State) -> &[f64];

    /// An action of as many torques.
    fn torques(torque: impl FnMut(usize) -> f64) -> Self::Action;
}

macro_rules! body {
    ($name:ident, $inputs:literal, $outputs:literal, strongest: $strongest:literal, survival: $survival:literal) => {
        impl Body for $name {
            const SIZES: (usize, usize) = ($inputs, $outputs);
            const SURVIVAL: f64 = $survival;

            fn begin(&self, key: EpisodeKey) -> Self {
                self.episode(key)
            }

            fn numbers(state: &[f64; $inputs]) -> &[f64] {
                state
            }

            fn torques(mut torque: impl FnMut(usize) -> f64) -> [f64; $outputs] {
                std::array::from_fn(|i| $strongest * torque(i))
            }
        }
    };
}

body!(HalfCheetah, 17, 6, strongest: 1.0, survival: 0.0);
body!(Hopper, 11, 3, strongest: 1.0, survival: 1.0);
body!(Walker2d, 17, 6, strongest: 1.0, survival: 1.0);
body!(Humanoid, 348, 17, strongest: 0.4, survival: 5.0);

/// Torques are `tanh` of the outputs, as shares of the strongest.
#[derive(Clone, Debug)]
pub struct Running<B> {
    pub body: B,
    /// Whether a step that does not fall has its reward.
    pub survival: bool,
}

impl<B: Body> HostTask for Running<B> {
    type Environment = B;

    fn observation_size(&self) -> usize {
        B::SIZES.0
    }

    fn begin(&self, key: EpisodeKey) -> B {
        self.body.begin(key)
    }

    fn observe(&self, state: &B::State, observation: &mut [f32]) {
        observation.iter_mut().zip(B::numbers(state)).for_each(|(seen, value)| *seen = *value as f32);
    }

    fn act(&self, outputs: &[f32]) -> B::Action {
        B::torques(|i| f64::from(outputs[i].tanh()))
    }

    fn reward(&self, step: &StepResult<B::State>) -> f64 {
        let survived = if self.survival || step.done { 0.0 } else { B::SURVIVAL };
        step.reward - survived
    }
}
