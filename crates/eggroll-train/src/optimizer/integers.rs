//! An optimizer on the votes of integers: a float accumulator of every weight decides when the weight moves by one.

use burn::optim::{Optimizer, RecordState, StateSink, StateSource, join_path};
use burn::tensor::{Device, Tensor};
use eggroll_core::integer::INT8_LIMIT;

/// The steps of `optimizer` add up in accumulators; the integers are the accumulated parameters, rounded to the
/// nearest.
#[derive(Clone)]
pub(super) struct Integers<O> {
    /// Without weight decay: that would be the accumulators'.
    pub optimizer: O,
    /// λ of matrices.
    pub weight_decay: f64,
}

pub(super) struct IntegersState<O: Optimizer, const D: usize> {
    steps: O::State<D>,
    /// The remainder of the accumulator.
    rest: Tensor<D>,
}

impl<O: Optimizer, const D: usize> Clone for IntegersState<O, D> {
    fn clone(&self) -> Self {
        Self { steps: self.steps.clone(), rest: self.rest.clone() }
    }
}

const STEPS: &str = "steps";
const REST: &str = "rest";

impl<O: Optimizer, const D: usize> RecordState for IntegersState<O, D> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        self.steps.state_flatten(&join_path(prefix, STEPS), out);
        out.push_tensor(prefix, REST, self.rest.to_data());
    }

    fn state_unflatten(prefix: &str, src: &mut StateSource, device: &Device) -> Option<Self> {
        let steps = RecordState::state_unflatten(&join_path(prefix, STEPS), src, device)?;
        let rest = Tensor::from_data(src.take_tensor(prefix, REST)?, device);
        Some(Self { steps, rest })
    }
}

impl<O: Optimizer> Optimizer for Integers<O> {
    type State<const D: usize> = IntegersState<O, D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weight: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<IntegersState<O, D>>,
    ) -> (Tensor<D>, Option<IntegersState<O, D>>) {
        let (rest, steps) = match state {
            None => (weight.zeros_like(), None),
            Some(IntegersState { steps, rest }) => (rest, Some(steps)),
        };
        let (sum, steps) = self.optimizer.step(rate, rest, gradient, steps);
        // Vectors do not decay.
        let decays = D > 1 && self.weight_decay > 0.0;
        let sum = if decays { sum - weight.clone() * (rate * self.weight_decay) } else { sum };
        // 1 from one half on, −1 from minus one half on, else 0.
        let unit = (sum.clone() * 2.0).trunc().clamp(-1.0, 1.0);
        let moved = (weight + unit.clone()).clamp(-INT8_LIMIT, INT8_LIMIT);
        (moved, steps.map(|steps| IntegersState { steps, rest: sum - unit }))
    }

    fn to_device<const D: usize>(state: IntegersState<O, D>, device: &Device) -> IntegersState<O, D> {
        IntegersState { steps: O::to_device(state.steps, device), rest: state.rest.to_device(device) }
    }
}
