//! Physics that is written once: on columns of a batch, on the floats of one environment, and as programs for kernels.

use super::number::{Flag, Number};
use super::states::{check, columns, flat, joined, none_ended, row};
use crate::{HostTransition, TensorEnvironment, Transition};
use burn::tensor::Tensor;
use eggroll_core::device_rollout::{Dynamics, Symbol, SymbolicStep};

/// What follows a step.
pub struct Step<N: Number, const STATE: usize> {
    /// The next state.
    pub state: [N; STATE],
    /// The reward.
    pub reward: N,
    /// Whether the episode has ended by itself; `None` where none does.
    pub ended: Option<N::Flag>,
}

/// The physics of an environment with states of `STATE` numbers, of which policies see `SEEN`, and actions of one number.
pub trait Physics<const STATE: usize, const SEEN: usize> {
    /// The observation of a state.
    fn observation<N: Number>(state: [N; STATE]) -> [N; SEEN];

    /// One step.
    fn transition<N: Number>(state: [N; STATE], action: N) -> Step<N, STATE>;
}

/// [`TensorEnvironment::observe`]
pub fn observe<P: Physics<STATE, SEEN>, const STATE: usize, const SEEN: usize>(state: Tensor<2>) -> Tensor<2> {
    joined(P::observation(columns(&state)))
}

/// [`TensorEnvironment::step`]
#[track_caller]
pub fn step<P, const STATE: usize, const SEEN: usize>(
    environment: &P,
    state: Tensor<2>,
    actions: Tensor<2>,
) -> Transition
where
    P: Physics<STATE, SEEN> + TensorEnvironment,
{
    check(environment, &state, &actions);
    let ([environments, _], device) = (state.dims(), state.device());
    let Step { state, reward, ended } = P::transition(columns(&state), actions);
    let terminated = ended.map_or_else(|| none_ended(environments, &device), flat);
    Transition { state: joined(state), reward: flat(reward), terminated }
}

/// [`TensorEnvironment::observe_host`]
#[inline]
pub fn observe_host<P: Physics<STATE, SEEN>, const STATE: usize, const SEEN: usize>(
    state: &[f32],
    observation: &mut [f32],
) {
    *row(observation) = P::observation(std::array::from_fn(|i| state[i]));
}

/// [`TensorEnvironment::step_host`]
#[inline]
#[track_caller]
pub fn step_host<P: Physics<STATE, SEEN>, const STATE: usize, const SEEN: usize>(
    state: &mut [f32],
    action: &[f32],
) -> HostTransition {
    let state: &mut [f32; STATE] = row(state);
    let next = P::transition(*state, action[0]);
    *state = next.state;
    HostTransition { reward: next.reward, terminated: next.ended.unwrap_or(false) }
}

/// [`TensorEnvironment::dynamics`]
pub fn dynamics<P: Physics<STATE, SEEN>, const STATE: usize, const SEEN: usize>() -> Option<Dynamics> {
    let numbers = |state: &[Symbol]| -> [Symbol; STATE] { std::array::from_fn(|i| state[i].clone()) };
    Some(Dynamics::trace(
        [STATE, 1],
        |state| P::observation(numbers(state)).into(),
        |state, action| {
            let Step { state, reward, ended } = P::transition(numbers(state), action[0].clone());
            let ended = ended.map_or_else(|| reward.filled(0.0), Flag::number);
            SymbolicStep { state: state.into(), reward, ended }
        },
    ))
}
