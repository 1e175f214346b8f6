//! Networks that act.

use crate::TensorEnvironment;
use burn::module::ParamId;
use burn::nn::activation::Activation;
use burn::tensor::{Device, Tensor};
use eggroll_core::MemberState;
use eggroll_core::device_rollout::{ChainActivation, ChainLayer};
use eggroll_nn::{Linear, Mlp};
use eggroll_train::Population;

/// A network that acts: observations in, action scores or actions out.
///
/// [`feed_forward`] makes one of any closure. A policy that remembers has a state, with a row for every environment.
pub trait Policy: Sync {
    /// Its state from step to step: tensors with a row for every environment, or `()`.
    type State: MemberState;

    /// The state before the first step.
    fn initial_state(&self, rows: usize, device: &Device) -> Self::State;

    /// Its outputs for observations.
    ///
    /// # Shapes
    ///
    /// - observations: `[rows, observation_size]`
    /// - output: `[rows, outputs]`
    fn forward(&self, observations: Tensor<2>, state: Self::State) -> (Tensor<2>, Self::State);

    /// The layers, if it is nothing but a chain of them: such a policy runs fused, without tensors.
    fn layers(&self) -> Option<Vec<PolicyLayer<'_>>> {
        None
    }
}

/// One layer of a policy that is a chain.
#[derive(Clone, Copy, Debug)]
pub struct PolicyLayer<'a> {
    /// The layer.
    pub linear: &'a Linear,
    /// Its activation: [`Relu`](Activation::Relu), [`Tanh`](Activation::Tanh), or nothing; another one is not fused.
    pub activation: Option<&'a Activation>,
}

/// The layers of a chain, or `None` for an activation that a chain does not have.
pub(super) fn chain_layers<'a>(layers: &[PolicyLayer<'a>]) -> Option<Vec<ChainLayer<'a>>> {
    let layer = |layer: &PolicyLayer<'a>| {
        let activation = match layer.activation {
            None => ChainActivation::Identity,
            Some(Activation::Relu(_)) => ChainActivation::Relu,
            Some(Activation::Tanh(_)) => ChainActivation::Tanh,
            Some(_) => return None,
        };
        Some(ChainLayer { weight: &layer.linear.weight, bias: layer.linear.bias.as_ref(), activation })
    };
    layers.iter().map(layer).collect()
}

/// Notes that these layers were evaluated, with their perturbed parameters.
pub(super) fn note_layers(population: &Population, layers: &[ChainLayer], parameters: &[ParamId]) {
    population.note_used(parameters);
    for layer in layers {
        population.note_field(layer.weight);
        layer.bias.into_iter().for_each(|bias| population.note_field(bias));
    }
}

/// Panics unless a policy of this shape fits the environment.
#[track_caller]
pub(super) fn check_shape<E: TensorEnvironment>(environment: &E, found: [usize; 2]) {
    let expected = [environment.observation_size(), environment.actions().outputs()];
    let name = environment.name();
    assert!(found == expected, "rollout: a policy from {found:?} where {name} needs {expected:?}");
}

/// A policy without memory; made by [`feed_forward`].
#[derive(Clone, Copy, Debug)]
pub struct FeedForward<F>(F);

/// A policy of a closure from observations to outputs.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_nn::LinearConfig;
/// use eggroll_rl::{CartPole, EvaluationConfig, RolloutConfig, feed_forward};
///
/// let model = LinearConfig::new(4, 2).init(&Device::flex());
/// let rollouts = RolloutConfig::new().init(CartPole::new()).expect("a head for two actions");
/// let episodes = rollouts.evaluate_model(&feed_forward(|x| model.forward(x)), &EvaluationConfig::new(10), &Device::flex());
/// assert_eq!(episodes.returns().len(), 10);
/// ```
pub fn feed_forward<F: Fn(Tensor<2>) -> Tensor<2> + Sync>(forward: F) -> FeedForward<F> {
    FeedForward(forward)
}

impl<F: Fn(Tensor<2>) -> Tensor<2> + Sync> Policy for FeedForward<F> {
    type State = ();

    fn initial_state(&self, _rows: usize, _device: &Device) {}

    fn forward(&self, observations: Tensor<2>, (): ()) -> (Tensor<2>, ()) {
        ((self.0)(observations), ())
    }
}

impl Policy for Mlp {
    type State = ();

    fn initial_state(&self, _rows: usize, _device: &Device) {}

    fn forward(&self, observations: Tensor<2>, (): ()) -> (Tensor<2>, ()) {
        (Mlp::forward(self, observations), ())
    }

    fn layers(&self) -> Option<Vec<PolicyLayer<'_>>> {
        let last = self.layers.len() - 1;
        let layer = |(index, linear)| PolicyLayer { linear, activation: (index < last).then_some(&self.activation) };
        Some(self.layers.iter().enumerate().map(layer).collect())
    }
}
