//! Integer-only modules of Q-EGGROLL: int8 weights and activations, int32 sums, no floating point.
//!
//! Parameters are Burn integer tensors in ordinary modules, so records, visitors and device moves work. Inside `evaluate`
//! every member computes with its own weights; outside, the modules are plain. Values are fixed point: 16 is 1.0.
//! [`eggroll_core::ops::integer`] has the formulas.
//!
//! # References
//!
//! Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652.

mod embedding;
mod gru;
mod layer_norm;
mod linear;
mod mlp;
mod model;
mod state;
pub mod transformer;

pub use embedding::{Embedding, EmbeddingConfig};
pub use gru::{MinimalGru, MinimalGruConfig};
pub use layer_norm::{LayerNorm, LayerNormConfig};
pub use linear::{Linear, LinearConfig};
pub use mlp::{Mlp, MlpConfig};
pub use model::{EggBlock, EggModel, EggModelConfig};
pub use state::{EggState, SavedState};

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Distribution, Int, Tensor};
use eggroll_core::integer::{FIXED_POINT, INT8_LIMIT};
use eggroll_core::ops::integer::IntegerNoise;
/// The type of integer parameters on a device, and the score of models. Recurrent models round by [`Rounding::Floor`] and score in
/// sixteenths of a bit; the [transformer] rounds by [`Rounding::Nearest`] and scores in 1/256 bit.
pub use eggroll_core::ops::integer::{Rounding, integer_type, log_likelihood};
use eggroll_core::scope::{self, ActiveParameter, IntegerInput};

/// A matrix of `round(16·N(0, 1))`, clipped; the device's generator, seeded by `Device::seed`.
fn normal_matrix(shape: [usize; 2], device: &Device) -> Param<Tensor<2, Int>> {
    let one = f64::from(1 << FIXED_POINT);
    let values =
        Tensor::<2>::random(shape, Distribution::Normal(0.0, one), device).round().clamp(-INT8_LIMIT, INT8_LIMIT);
    parameter(values.int(), device)
}

/// A vector of one value.
fn constant_vector(len: usize, value: i32, device: &Device) -> Param<Tensor<1, Int>> {
    parameter(Tensor::full([len], value, device), device)
}

fn parameter<const D: usize>(values: Tensor<D, Int>, device: &Device) -> Param<Tensor<D, Int>> {
    Param::initialized(ParamId::new(), values.cast(integer_type(device)))
}

/// The current noise of a parameter on this thread, if any, and the handle that notes its inputs.
#[track_caller]
fn perturbed<const D: usize>(parameter: &Param<Tensor<D, Int>>, rows: usize) -> Perturbed {
    let active = scope::active(parameter);
    if let Some(active) = &active {
        active.check_rows(rows);
    }
    Perturbed { noise: active.as_ref().and_then(ActiveParameter::integer_noise), active }
}

/// A parameter under an operation.
struct Perturbed {
    noise: Option<IntegerNoise>,
    active: Option<ActiveParameter>,
}

impl Perturbed {
    /// Notes the operation's input, if that is asked for.
    fn given(&self, input: impl FnOnce() -> IntegerInput) {
        if let Some(active) = &self.active {
            active.note_integers(input);
        }
    }

    /// Returns the operation's output, with the rows that the scope moves.
    fn made(self, y: Tensor<2, Int>) -> Tensor<2, Int> {
        match self.active {
            Some(active) => active.moved_integers(y),
            None => y,
        }
    }
}

/// The current noise of a vector on this thread, if any.
#[track_caller]
fn vector_noise(parameter: &Param<Tensor<1, Int>>, rows: usize) -> Option<IntegerNoise> {
    let vector = perturbed(parameter, rows);
    vector.given(|| IntegerInput::Other);
    vector.noise
}
