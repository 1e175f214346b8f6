//! The safety net: a small population, batched and one by one.

use super::error::GraphError;
use super::rows::{self, MEMBERS};
use super::tensors::GraphTensors;
use super::trace::parameters;
use burn::backend::{DispatchTensor, TensorMetadata};
use burn::module::Module;
use burn::tensor::DType;
use eggroll_core::scope::Perturbation;
use eggroll_core::{EggrollConfig, MaterializedNoise, PairRange, ParameterTable, Role, TableError};
use std::sync::Arc;

/// Pairs of the population.
const PAIRS: u32 = (MEMBERS / 2) as u32;
/// Noise scale: large enough to be seen behind rounding, in the range of usual weights; larger for half precision, whose roundings are.
const SIGMA: f64 = 0.05;
const HALF_SIGMA: f64 = 0.2;
/// Largest error of the batched forward as a share of the noise's effect; rows under a wrong member's weights are off by all of
/// it.
const SHARE: f64 = 0.02;
/// Roundings that are allowed, in units of the largest output: few sums of half precision have more than 16.
const ROUNDINGS: f64 = 64.0;
const HALF_ROUNDINGS: f64 = 16.0;
/// Share of integers that a rounding may change, for example the index of the largest of nearly equal values.
const CHANGED: f64 = 0.05;
const HALF_CHANGED: f64 = 0.25;

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
    let epsilon = epsilon(model);
    let is_half = epsilon > f64::from(f32::EPSILON);
    let perturbation = Perturbation {
        noiser: Arc::new(noiser),
        table: Arc::new(table),
        seed: 0,
        generation: 0,
        sigma: if is_half { HALF_SIGMA } else { SIGMA },
        held: Arc::new(MaterializedNoise::default()),
    };
    let rows = rows::of_members(example.parts());
    let rebuilt = |parts: Vec<DispatchTensor>| X::rebuild(&mut parts.into_iter());
    let all = rebuilt(rows::folded(&rows));
    let (found, _) = perturbation.run(PairRange::new(0, PAIRS), || batched(model, all));
    let found = numbers(found?);
    let mut expected: Vec<Vec<f64>> = vec![Vec::new(); found.len()];
    let mut plain = expected.clone();
    // `valid` makes its own running states.
    let members = (0..PAIRS).flat_map(|pair| perturbation.materialize(&model.valid(), pair));
    for (member, rows) in members.zip(&rows) {
        for (all, model) in [(&mut expected, &member), (&mut plain, model)] {
            let outputs = numbers(forward(model, rebuilt(rows.clone())).parts());
            all.iter_mut().zip(outputs).for_each(|(all, output)| all.extend(output.values));
        }
    }
    for (output, (found, (expected, plain))) in found.iter().zip(expected.iter().zip(&plain)).enumerate() {
        let compared = if found.is_float { largest_difference } else { share_of_changes };
        let (difference, effect) = (compared(&found.values, expected), compared(expected, plain));
        let largest = expected.iter().filter(|value| value.is_finite()).fold(0.0f64, |a, b| a.max(b.abs()));
        let roundings = if is_half { HALF_ROUNDINGS } else { ROUNDINGS };
        let tolerance = match found.is_float {
            true => SHARE * effect + roundings * epsilon * largest,
            // One may always be on an edge.
            false => (if is_half { HALF_CHANGED } else { CHANGED }).max(1.0 / expected.len() as f64),
        };
        if found.values.len() != expected.len() || difference > tolerance {
            return Err(GraphError::Differs { output, difference, effect });
        }
    }
    Ok(any_frozen)
}

/// An output.
struct Numbers {
    is_float: bool,
    values: Vec<f64>,
}

fn numbers(tensors: Vec<DispatchTensor>) -> Vec<Numbers> {
    tensors
        .into_iter()
        .map(|tensor| Numbers { is_float: tensor.dtype().is_float(), values: rows::values(tensor) })
        .collect()
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

/// Share of the values that are not equal.
fn share_of_changes(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).filter(|(a, b)| a != b).count() as f64 / a.len().max(1) as f64
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
