//! Networks that act.

use crate::carried::Carried;
use burn::tensor::{Device, Tensor};

/// A network that acts: any Burn module wrapped by [`feed_forward`], or a type that implements this.
pub trait Policy {
    /// What it remembers, with a row for every environment: `()` for policies that remember nothing.
    type State: Carried;

    /// What it remembers at the beginning of an episode.
    fn initial_state(&self, rows: usize, device: &Device) -> Self::State;

    /// Scores or numbers of actions, and what to remember.
    ///
    /// # Shapes
    ///
    /// - observations: `[rows, observation_size]`; inside `evaluate` rows are `members · episodes`, member-major
    /// - output: `[rows, outputs]`
    fn forward(&self, observations: Tensor<2>, state: Self::State) -> (Tensor<2>, Self::State);
}

/// A policy without memory; made by [`feed_forward`].
#[derive(Clone, Copy, Debug)]
pub struct FeedForward<F>(F);

/// A policy that is a function of what it sees.
pub fn feed_forward<F: Fn(Tensor<2>) -> Tensor<2>>(forward: F) -> FeedForward<F> {
    FeedForward(forward)
}

impl<F: Fn(Tensor<2>) -> Tensor<2>> Policy for FeedForward<F> {
    type State = ();

    fn initial_state(&self, _rows: usize, _device: &Device) {}

    fn forward(&self, observations: Tensor<2>, (): ()) -> (Tensor<2>, ()) {
        ((self.0)(observations), ())
    }
}
