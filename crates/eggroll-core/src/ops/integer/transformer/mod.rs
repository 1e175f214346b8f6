//! Operations of the integer transformer: int8 activations, int32 sums, and rounding to nearest in place of the floors of the recurrent
//! model, so that what noise adds to the members of a pair is exactly antithetic.
//!
//! Members are folded into the leading axis as in [`crate::ops`]; without [`IntegerNoise`] an operation is the plain one. `round` rounds to
//! nearest, halves away from zero; `2^h(n)` is about `√n` ([`half_log2`](crate::integer::half_log2)). The formulas are in
//! [`crate::reference::integer_transformer`].

mod add;
mod attention;
mod embedding;
mod head;
mod linear;
mod log_likelihood;
mod norm;
mod rotary;

pub use add::add;
pub use attention::attention;
pub use embedding::embedding;
pub use head::head;
pub use linear::linear;
pub use log_likelihood::log_likelihood;
pub use norm::norm;
pub use rotary::rotary;

use super::{IntegerNoise, IntegerNoisePrimitive, primitive};
use crate::integer::transformer::MAX_NOISE_DEPTH;
use crate::ops::portable::integer::transformer as portable;
use burn::backend::tensor::IntTensor;
use burn::backend::{Autodiff, Backend, Dispatch, ExtensionType, backend_extension};
#[cfg(feature = "cube")]
use burn::tensor::{DType, Shape};
use burn::tensor::{Int, Tensor};

/// A vector parameter and its noise.
#[derive(Clone, Debug)]
pub struct Vector {
    /// `[n]`
    pub values: Tensor<1, Int>,
    /// Its noise.
    pub noise: Option<IntegerNoise>,
}

/// [`Vector`] as backends see it.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "cube"))]
pub struct VectorPrimitive<B: Backend> {
    /// `[n]`
    pub values: IntTensor<B>,
    /// Its noise.
    #[extension_type]
    pub noise: IntegerNoisePrimitive<B>,
}

/// A bias that may be missing.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "cube"))]
pub enum IntegerBias<B: Backend> {
    /// None.
    None,
    /// Added to every row.
    Vector(IntTensor<B>, #[extension_type] IntegerNoisePrimitive<B>),
}

/// Operations of the integer transformer on a backend: all exact, so that all backends agree bit for bit.
///
/// The defaults are composed of ordinary integer operations on the device.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    NdArray: cfg(feature = "ndarray"),
    Cube: cfg(feature = "cube"),
    Fusion: cfg(feature = "cube"),
    Autodiff,
)]
pub trait IntegerTransformerOps: Backend {
    /// See [`linear`].
    #[fusion(dtype = weight, shape = Shape::new([x[0], weight[1]]))]
    fn integer_transformer_linear(
        x: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
        #[extension_type] bias: IntegerBias<Self>,
        activate: bool,
    ) -> IntTensor<Self> {
        portable::linear::<Self>(x, weight, noise, bias, activate)
    }

    /// See [`head`].
    #[fusion(dtype = DType::I32, shape = Shape::new([x[0], embedding[0]]))]
    fn integer_transformer_head(
        x: IntTensor<Self>,
        embedding: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::head::<Self>(x, embedding, noise)
    }

    /// See [`embedding`].
    #[fusion(dtype = weight, shape = Shape::new([tokens[0], weight[1]]))]
    fn integer_transformer_embedding(
        tokens: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
        #[extension_type] bias: VectorPrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::embedding::<Self>(tokens, weight, noise, bias)
    }

    /// See [`norm`].
    #[fusion(dtype = x, shape = x)]
    fn integer_transformer_norm(
        x: IntTensor<Self>,
        #[extension_type] gain: VectorPrimitive<Self>,
        #[extension_type] bias: VectorPrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::norm::<Self>(x, gain, bias)
    }

    /// See [`add`].
    #[fusion(dtype = x, shape = x)]
    fn integer_transformer_add(x: IntTensor<Self>, y: IntTensor<Self>) -> IntTensor<Self> {
        portable::add::<Self>(x, y)
    }

    /// See [`rotary`].
    #[fusion(dtype = x, shape = x)]
    fn integer_transformer_rotary(
        x: IntTensor<Self>,
        steps: usize,
        first_position: usize,
        heads: usize,
    ) -> IntTensor<Self> {
        portable::rotary::<Self>(x, steps, first_position, heads)
    }

    /// See [`attention`].
    #[fusion(dtype = query, shape = query)]
    fn integer_transformer_attention(
        query: IntTensor<Self>,
        keys: IntTensor<Self>,
        values: IntTensor<Self>,
        heads: usize,
    ) -> IntTensor<Self> {
        portable::attention::<Self>(query, keys, values, heads)
    }

    /// See [`log_likelihood`].
    #[fusion(dtype = DType::I32, shape = Shape::new([*members]))]
    fn integer_transformer_log_likelihood(
        logits: IntTensor<Self>,
        targets: IntTensor<Self>,
        members: usize,
    ) -> IntTensor<Self> {
        portable::log_likelihood::<Self>(logits, targets, members)
    }
}

/// The portable defaults on the inner backend's integers.
impl<B, C> IntegerTransformerOps for Autodiff<B, C>
where
    B: IntegerTransformerOps,
    C: burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy,
{
}

/// The portable defaults on devices.
#[cfg(feature = "cube")]
impl IntegerTransformerOps for burn_cubecl::CubeBackend {}

impl Vector {
    #[track_caller]
    fn check(&self, operation: &str, name: &str, n: usize, rows: usize) {
        let found = self.values.dims();
        assert!(found == [n], "{operation}: the {name} {found:?} does not fit rows of {n}");
        if let Some(noise) = &self.noise {
            noise.check(operation, 2 * n, rows);
        }
    }

    pub(crate) fn into_primitive(self) -> VectorPrimitive<Dispatch> {
        VectorPrimitive { values: self.values.into_dispatch(), noise: primitive(self.noise) }
    }
}

pub(crate) fn bias_primitive(bias: Option<Vector>) -> IntegerBias<Dispatch> {
    match bias {
        None => IntegerBias::None,
        Some(bias) => IntegerBias::Vector(bias.values.into_dispatch(), primitive(bias.noise)),
    }
}

/// Panics unless noise is that of a matrix, for rows of `depth` values.
#[track_caller]
fn check_matrix(
    operation: &str,
    noise: Option<&IntegerNoise>,
    [d_input, d_output]: [usize; 2],
    rows: usize,
    depth: usize,
) {
    let Some(noise) = noise else { return };
    noise.check(operation, noise.rank * (d_input + d_output), rows);
    let rank = noise.rank;
    assert!(
        rank > 0 && rank * depth <= MAX_NOISE_DEPTH,
        "{operation}: noise of rank {rank} over {depth} values: int32 holds the sums of a rank from 1 to {}",
        MAX_NOISE_DEPTH / depth
    );
}

/// Sequences of as many rows, whose width is that of whole heads.
#[track_caller]
fn check_heads(operation: &str, [rows, width]: [usize; 2], steps: usize, heads: usize) {
    assert!(
        heads > 0 && width > 0 && width.is_multiple_of(heads) && (width / heads).is_multiple_of(2),
        "{operation}: rows of {width} are not those of {heads} heads of an even size"
    );
    assert!(
        steps > 0 && rows.is_multiple_of(steps),
        "{operation}: {rows} rows are not whole sequences of {steps} steps"
    );
}
