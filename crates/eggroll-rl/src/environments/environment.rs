//! The trait of environments, its actions and its transitions.

use crate::EpisodeKey;
use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use eggroll_core::device_rollout::Dynamics;

/// A batch of environments that lives on the device of the policy.
///
/// The state of an environment is a row of `state_size` floats, and nothing else: time limits, returns and the end of episodes are
/// kept by whoever runs it. An environment is written on tensors, without a read to the host: [`observe`](Self::observe) and
/// [`step`](Self::step). It may have a second form of the same physics, on one row of plain floats, for the fused rollouts on CPUs:
/// [`observe_host`](Self::observe_host) and [`step_host`](Self::step_host), with [`has_host_form`](Self::has_host_form). All environments
/// of this crate have both; on the backend Flex they give the same bits, others round sines and cosines differently.
///
/// A terminal state may be stepped on, as frozen environments are whose transitions nobody looks at: it gives no reward that means
/// anything, but no panic either.
///
/// Actions are floats too: of a [`Discrete`](ActionSpace::Discrete) space one column that holds the index.
pub trait TensorEnvironment: Send + Sync {
    /// Its name, with its version, as `CartPole-v1`.
    fn name(&self) -> &'static str;

    /// Floats of a state.
    fn state_size(&self) -> usize;

    /// Floats of an observation.
    fn observation_size(&self) -> usize;

    /// The actions that it takes.
    fn actions(&self) -> ActionSpace;

    /// Steps after which an episode is cut off.
    fn time_limit(&self) -> usize;

    /// Mean return of 100 episodes from which on the task counts as solved, if there is a usual one.
    fn solved_at(&self) -> Option<f32> {
        None
    }

    /// States of new episodes, one for each key: `[keys, state_size]`. Made on the host, so that they are the same everywhere.
    ///
    /// # Panics
    ///
    /// Panics if states have no floats.
    #[track_caller]
    fn reset(&self, keys: &[EpisodeKey], device: &Device) -> Tensor<2> {
        let size = self.state_size();
        assert!(size > 0, "{}: state_size must be at least 1, not 0", self.name());
        let mut states = vec![0.0; keys.len() * size];
        for (key, state) in keys.iter().zip(states.chunks_exact_mut(size)) {
            self.reset_host(*key, state);
        }
        Tensor::from_data(TensorData::new(states, [keys.len(), size]), device)
    }

    /// The observation of the policy.
    ///
    /// # Shapes
    ///
    /// - state: `[environments, state_size]`
    /// - output: `[environments, observation_size]`
    fn observe(&self, state: Tensor<2>) -> Tensor<2>;

    /// One step of all environments.
    ///
    /// # Shapes
    ///
    /// - state: `[environments, state_size]`, actions: `[environments, action_size]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, with both.
    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition;

    /// The state of a new episode.
    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]);

    /// The same physics as programs, from which a kernel is made: then rollouts on devices run in it, some hundred steps a launch. `None` runs
    /// them on tensors, launch after launch. All environments of this crate have programs but those for policies that
    /// remember.
    fn dynamics(&self) -> Option<Dynamics> {
        None
    }

    /// Whether [`observe_host`](Self::observe_host) and [`step_host`](Self::step_host) are written for speed, so that rollouts on CPUs
    /// use them. As provided they are not: they run [`observe`](Self::observe) and [`step`](Self::step) on tensors of one row.
    fn has_host_form(&self) -> bool {
        false
    }

    /// The observation of one environment: `state_size` floats to `observation_size`.
    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        observation.copy_from_slice(&values(self.observe(row(state))));
    }

    /// One step of one environment, `state_size` floats, with an action of `action_size`.
    ///
    /// # Panics
    ///
    /// Panics if there are fewer floats.
    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        let Transition { state: next, reward, terminated } = self.step(row(&state[..self.state_size()]), row(action));
        state[..self.state_size()].copy_from_slice(&values(next));
        HostTransition { reward: reward.into_scalar(), terminated: terminated.into_scalar() }
    }
}

/// `[1, values]`
fn row(values: &[f32]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [1, values.len()]), &Device::default())
}

fn values(row: Tensor<2>) -> Vec<f32> {
    row.cast(DType::F32).into_data().try_to_vec().expect("cast to f32")
}

/// The actions of an environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActionSpace {
    /// One of `0 .. n`, as one float.
    Discrete(usize),
    /// `size` numbers between bounds.
    Continuous {
        /// Numbers of an action.
        size: usize,
        /// Smallest value.
        low: f32,
        /// Largest value.
        high: f32,
    },
}

impl ActionSpace {
    /// Floats of an action.
    pub const fn size(&self) -> usize {
        match *self {
            Self::Discrete(_) => 1,
            Self::Continuous { size, .. } => size,
        }
    }

    /// Whether there is an action: a lower bound up to the upper one, and not both infinite on one side.
    pub(crate) fn has_values(&self) -> bool {
        match *self {
            Self::Discrete(actions) => actions > 0,
            Self::Continuous { low, high, .. } => low <= high && low < f32::INFINITY && high > f32::NEG_INFINITY,
        }
    }

    /// Whether the middle between the bounds and the width are numbers.
    pub(crate) fn is_bounded(&self) -> bool {
        match *self {
            Self::Discrete(_) => true,
            Self::Continuous { low, high, .. } => (low + high).is_finite() && (high - low).is_finite(),
        }
    }

    /// Outputs of a policy: a score for each discrete action, or the action's numbers.
    pub fn outputs(&self) -> usize {
        match *self {
            Self::Discrete(actions) => actions,
            Self::Continuous { size, .. } => size,
        }
    }
}

/// The result of a step of a batch.
#[derive(Clone, Debug)]
pub struct Transition {
    /// `[environments, state_size]`
    pub state: Tensor<2>,
    /// `[environments]`
    pub reward: Tensor<1>,
    /// Whether the episode has ended by itself, time limits aside: `[environments]`
    pub terminated: Tensor<1, Bool>,
}

/// The result of a step of one environment, other than its state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostTransition {
    /// The reward.
    pub reward: f32,
    /// Whether the episode has ended by itself.
    pub terminated: bool,
}
