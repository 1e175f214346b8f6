//! How a policy plays the environment.

use eggroll::rl::mujoco::HalfCheetah;
use eggroll::rl::{EpisodeKey, HostTask};

/// Numbers of an observation and of an action.
pub const SIZES: (usize, usize) = (17, 6);

/// Torques are `tanh` of the outputs.
#[derive(Clone, Debug)]
pub struct Running(pub HalfCheetah);

impl HostTask for Running {
    type Environment = HalfCheetah;

    fn observation_size(&self) -> usize {
        SIZES.0
    }

    fn begin(&self, key: EpisodeKey) -> HalfCheetah {
        self.0.episode(key)
    }

    fn observe(&self, state: &[f64; SIZES.0], observation: &mut [f32]) {
        observation.iter_mut().zip(state).for_each(|(seen, value)| *seen = *value as f32);
    }

    fn act(&self, outputs: &[f32]) -> [f64; SIZES.1] {
        std::array::from_fn(|i| f64::from(outputs[i].tanh()))
    }
}
