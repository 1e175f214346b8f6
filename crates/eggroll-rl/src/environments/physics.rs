//! Physics that is written once: on columns of a batch, on the floats of one environment, and as programs for kernels.

use super::number::{Flag, Number, Numbers};
use super::states::{check, check_row, columns, flat, joined, none_ended};
use crate::{ActionSpace, EpisodeKey, HostTransition, TensorEnvironment, Transition};
use burn::tensor::Tensor;
use eggroll_core::device_rollout::{Dynamics, Symbol, SymbolicStep};

/// What follows a step.
pub struct Step<N: Number, State> {
    /// The next state.
    pub state: State,
    /// The reward.
    pub reward: N,
    /// Whether the episode has ended by itself; `None` where none does.
    pub ended: Option<N::Flag>,
}

/// An environment by its physics, for actions of one number. Written once over [`Number`], it is a [`TensorEnvironment`] with all three
/// forms:
///
/// - batches of tensors on any device
/// - rows of floats on CPUs
/// - one kernel for whole episodes on devices
///
/// All three do the same operations in the same order, so that the two on a CPU have the same bits.
///
/// # Example
///
/// ```
/// use eggroll_rl::{ActionSpace, EpisodeKey, Number, Physics, Step, TensorEnvironment};
///
/// /// A mass on a line that is pushed: to be kept near 0.
/// #[derive(Clone, Debug)]
/// struct Mass;
///
/// impl Physics for Mass {
///     type State<N: Number> = [N; 2]; // position, speed
///     type Seen<N: Number> = [N; 2];
///     const NAME: &'static str = "Mass-v0";
///     const ACTIONS: ActionSpace = ActionSpace::Continuous { size: 1, low: -1.0, high: 1.0 };
///     const TIME_LIMIT: usize = 50;
///
///     fn start(key: EpisodeKey) -> [f32; 2] {
///         [key.uniform_in(-1.0, 1.0, 0, 0), 0.0]
///     }
///
///     fn observation<N: Number>(state: [N; 2]) -> [N; 2] {
///         state
///     }
///
///     fn transition<N: Number>([position, speed]: [N; 2], push: N) -> Step<N, [N; 2]> {
///         let speed = speed + push * 0.1;
///         let position = position + speed.clone() * 0.1;
///         let distance = position.clone().abs();
///         Step { reward: distance.clone() * -1.0, ended: Some(distance.greater(2.0)), state: [position, speed] }
///     }
/// }
///
/// let mut state = [0.5, 0.0];
/// assert_eq!(Mass.step_host(&mut state, &[0.0]).reward, -0.5);
/// ```
pub trait Physics: Send + Sync {
    /// Numbers of a state.
    type State<N: Number>: Numbers<N>;
    /// Numbers of an observation.
    type Seen<N: Number>: Numbers<N>;

    /// [`TensorEnvironment::name`]
    const NAME: &'static str;
    /// [`TensorEnvironment::actions`], of one number each: others do not compile.
    const ACTIONS: ActionSpace;
    /// [`TensorEnvironment::time_limit`]
    const TIME_LIMIT: usize;
    /// [`TensorEnvironment::solved_at`]
    const SOLVED_AT: Option<f32> = None;
    /// Whether policies see the state as it is, so that batches need not be taken apart and put together.
    const SEES_STATE: bool = false;

    /// The state of a new episode: [`EpisodeKey::uniform_in`] draws numbers.
    fn start(key: EpisodeKey) -> Self::State<f32>;

    /// The observation of a state.
    fn observation<N: Number>(state: Self::State<N>) -> Self::Seen<N>;

    /// One step.
    fn transition<N: Number>(state: Self::State<N>, action: N) -> Step<N, Self::State<N>>;
}

impl<P: Physics> TensorEnvironment for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn state_size(&self) -> usize {
        P::State::<f32>::COUNT
    }

    fn observation_size(&self) -> usize {
        P::Seen::<f32>::COUNT
    }

    fn actions(&self) -> ActionSpace {
        const { assert!(P::ACTIONS.size() == 1, "actions of `Physics` are one number: implement `TensorEnvironment`") };
        P::ACTIONS
    }

    fn time_limit(&self) -> usize {
        P::TIME_LIMIT
    }

    fn solved_at(&self) -> Option<f32> {
        P::SOLVED_AT
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        if P::SEES_STATE { state } else { joined(P::observation(columns(&state))) }
    }

    #[track_caller]
    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        check(self, &state, &actions);
        let ([environments, _], device) = (state.dims(), state.device());
        let Step { state, reward, ended } = P::transition(columns(&state), actions);
        let terminated = ended.map_or_else(|| none_ended(environments, &device), flat);
        Transition { state: joined(state), reward: flat(reward), terminated }
    }

    #[track_caller]
    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        check_row(state, self.state_size());
        state.copy_from_slice(P::start(key).as_ref());
    }

    #[inline]
    fn has_host_form(&self) -> bool {
        true
    }

    #[track_caller]
    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        check_row(observation, self.observation_size());
        observation.copy_from_slice(P::observation(P::State::<f32>::from_fn(|place| state[place])).as_ref());
    }

    #[inline]
    #[track_caller]
    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        check_row(state, self.state_size());
        let next = P::transition(P::State::<f32>::from_fn(|place| state[place]), action[0]);
        state.copy_from_slice(next.state.as_ref());
        HostTransition { reward: next.reward, terminated: next.ended.unwrap_or(false) }
    }

    fn dynamics(&self) -> Option<Dynamics> {
        let numbers = |state: &[Symbol]| P::State::<Symbol>::from_fn(|place| state[place].clone());
        Some(Dynamics::trace(
            [P::State::<f32>::COUNT, 1],
            |state| P::observation(numbers(state)).into(),
            |state, action| {
                let Step { state, reward, ended } = P::transition(numbers(state), action[0].clone());
                let ended = ended.map_or_else(|| reward.filled(0.0), Flag::number);
                SymbolicStep { state: state.into(), reward, ended }
            },
        ))
    }
}
