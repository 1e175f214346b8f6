//! The safety net: a small population, batched and one by one.

use super::error::GraphError;
use super::tensors::GraphTensors;
use super::trace::parameters;
use burn::backend::{DispatchTensor, TensorMetadata};
use burn::module::Module;
use burn::tensor::{DType, Shape, Tensor, TensorData};
use eggroll_core::scope::Perturbation;
use eggroll_core::{EggrollConfig, MaterializedNoise, PairRange, ParameterTable, Role, TableError};
use std::sync::Arc;

/// Pairs of the population.
const PAIRS: u32 = 2;
/// Its members.
pub(super) const MEMBERS: usize = 2 * PAIRS as usize;
/// Noise scale: large enough to be seen behind rounding, in the range of usual weights.
const SIGMA: f64 = 0.05;
/// Largest error of the batched forward as a share of the noise's effect; rows under a wrong member's weights are off by all of
/// it.
const SHARE: f64 = 0.02;
/// Roundings that are allowed, in units of the largest output.
const ROUNDINGS: f64 = 64.0;

/// Compares `batched`, which runs inside a scope on rows of [`MEMBERS`] members, with `forward` of their models one by one.
pub(super) fn verify<M: Module, X: GraphTensors, Y: GraphTensors>(
    model: &M,
    example: X,
    forward: &dyn Fn(&M, X) -> Y,
    batched: impl Fn(&M, X) -> Result<Vec<DispatchTensor>, GraphError>,
) -> Result<(), GraphError> {
    let model = model.valid();
    // `no_grad()` may change after the trace.
    let trained = model.clone().set_require_grad(true);
    match compare(&model, example.clone(), forward, &batched) {
        Err(GraphError::Table(TableError::NothingActive { .. })) => {
            compare(&trained, example, forward, &batched).map(drop)
        }
        Ok(AnyFrozen(true)) => match compare(&trained, example, forward, &batched) {
            Err(error @ GraphError::Differs { .. }) => Err(error),
            // Recording refuses a use when its parameter is trained.
            _ => Ok(()),
        },
        compared => compared.map(drop),
    }
}

/// Whether a model has parameters that get no noise.
struct AnyFrozen(bool);

fn compare<M: Module, X: GraphTensors, Y: GraphTensors>(
    model: &M,
    example: X,
    forward: &dyn Fn(&M, X) -> Y,
    batched: &impl Fn(&M, X) -> Result<Vec<DispatchTensor>, GraphError>,
) -> Result<AnyFrozen, GraphError> {
    let noiser = EggrollConfig::new().init().expect("rank 1");
    let table = ParameterTable::new(model, &noiser, &[]).map_err(GraphError::Table)?;
    let any_frozen = AnyFrozen(table.entries().iter().any(|entry| entry.role == Role::Frozen));
    let perturbation = Perturbation {
        noiser: Arc::new(noiser),
        table: Arc::new(table),
        seed: 0,
        generation: 0,
        sigma: SIGMA,
        held: Arc::new(MaterializedNoise::default()),
    };
    let members = folded(example.clone());
    let (found, _) = perturbation.run(PairRange::new(0, PAIRS), || batched(model, members));
    let found = numbers(found?);
    let plain = numbers(forward(model, example.clone()).parts());
    let mut expected: Vec<Vec<f64>> = vec![Vec::new(); found.len()];
    let mut effects = vec![0.0f64; found.len()];
    // `valid` makes its own running states.
    for member in (0..PAIRS).flat_map(|pair| perturbation.materialize(&model.valid(), pair)) {
        let outputs = numbers(forward(&member, example.clone()).parts());
        for (output, values) in outputs.into_iter().enumerate() {
            effects[output] = effects[output].max(largest_difference(&values, &plain[output]));
            expected[output].extend(values);
        }
    }
    for (output, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let (difference, effect) = (largest_difference(found, expected), effects[output]);
        let largest = expected.iter().filter(|value| value.is_finite()).fold(0.0f64, |a, b| a.max(b.abs()));
        let tolerance = SHARE * effect + ROUNDINGS * epsilon(model) * largest;
        if found.len() != expected.len() || difference > tolerance {
            return Err(GraphError::Differs { output, difference, effect });
        }
    }
    Ok(any_frozen)
}

/// Every tensor's rows for every member.
fn folded<X: GraphTensors>(example: X) -> X {
    let parts: Vec<DispatchTensor> = example.parts();
    let folded: Vec<DispatchTensor> = parts.into_iter().map(repeat_rows).collect();
    X::rebuild(&mut folded.into_iter())
}

fn repeat_rows(tensor: DispatchTensor) -> DispatchTensor {
    use burn::backend::Dispatch;
    use burn::backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
    let dtype = tensor.dtype();
    if dtype.is_float() {
        Dispatch::float_repeat_dim(tensor, 0, MEMBERS)
    } else if dtype.is_bool() {
        Dispatch::bool_repeat_dim(tensor, 0, MEMBERS)
    } else {
        Dispatch::int_repeat_dim(tensor, 0, MEMBERS)
    }
}

/// The values of every float tensor; empty for others, which a rounding may change completely.
fn numbers(tensors: Vec<DispatchTensor>) -> Vec<Vec<f64>> {
    let values = |tensor: DispatchTensor| {
        if !tensor.dtype().is_float() {
            return Vec::new();
        }
        let elements = tensor.shape().num_elements();
        let data: TensorData = Tensor::<1>::from_dispatch(flat(tensor, elements)).cast(DType::F32).into_data();
        data.iter::<f64>().collect()
    };
    tensors.into_iter().map(values).collect()
}

fn flat(tensor: DispatchTensor, elements: usize) -> DispatchTensor {
    use burn::backend::Dispatch;
    use burn::backend::ops::FloatTensorOps;
    Dispatch::float_reshape(tensor, Shape::new([elements]))
}

/// Infinite where only one of two values is a number.
fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    let difference = |(a, b): (&f64, &f64)| match (a.is_finite(), b.is_finite()) {
        (true, true) => (a - b).abs(),
        (false, false) => 0.0,
        _ => f64::INFINITY,
    };
    a.iter().zip(b).map(difference).fold(0.0, f64::max)
}

/// Rounding of the coarsest type among the parameters.
fn epsilon<M: Module>(model: &M) -> f64 {
    let of = |dtype| match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => f64::from(f32::EPSILON),
    };
    let floats = parameters(model).into_iter().filter(|parameter| parameter.is_perturbed);
    floats.map(|parameter| of(parameter.value.dtype())).fold(0.0, f64::max)
}
