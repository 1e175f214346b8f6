//! Operands of perturbed operations: noise of matrices and vectors, members, biases.

use super::source::{NoiseSource, SourcePrimitive};
use crate::rng::key::{NoiseKey, PairRange};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType};
use burn::tensor::Tensor;

/// Noise of a matrix as a product of factors, `c·B·Aᵀ` with `B : [d_input, rank]`, `A : [d_output, rank]`.
///
/// The stream of a pair holds `B` as `[rank, d_input]` and then `A` as `[rank, d_output]`. So the first
/// columns of a higher rank differ from the columns of a lower one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowRankNoise {
    /// Address of the draw.
    pub key: NoiseKey,
    /// Columns of the factors.
    pub rank: usize,
    /// `c = σ/√rank`.
    pub scale: f32,
    /// Whether the operation's matrix is the transpose of the parameter; see [`transposed`](Self::transposed).
    pub transposed: bool,
    /// Whether the factors' signs stand for them, `c·sign(B)·sign(A)ᵀ`: for estimates only.
    pub signs: bool,
}

impl LowRankNoise {
    /// Noise of standard deviation `sigma` for each element of the product.
    pub fn new(key: NoiseKey, rank: usize, sigma: f64) -> Self {
        Self { key, rank, scale: (sigma / (rank as f64).sqrt()) as f32, transposed: false, signs: false }
    }

    /// The same noise for a linear operation whose weight is the transpose of the parameter: `c·A·Bᵀ`, with the factors of
    /// the stream swapped. For a parameter with both uses, such as an embedding with a tied output layer.
    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    /// Starts of the operation's factors in a pair's stream: the factor that multiplies inputs, `[rank, d_input]`, and the other,
    /// `[rank, d_output]`.
    pub(crate) fn starts(&self, [d_input, d_output]: [usize; 2]) -> [usize; 2] {
        if self.transposed { [self.rank * d_output, 0] } else { [0, self.rank * d_input] }
    }
}

/// Noise of independent elements, `σ·ε`. The stream of a pair holds `ε` in the parameter's row-major order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseNoise {
    /// Address of the draw.
    pub key: NoiseKey,
    /// `σ`.
    pub scale: f32,
    /// Whether the operation's matrix is the transpose of the parameter; see [`transposed`](Self::transposed).
    pub transposed: bool,
}

impl DenseNoise {
    /// Noise of standard deviation `sigma`.
    pub fn new(key: NoiseKey, sigma: f64) -> Self {
        Self { key, scale: sigma as f32, transposed: false }
    }

    /// The same noise for a linear operation whose weight is the transpose of the parameter: `σ·εᵀ`.
    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }
}

/// Noise of a matrix, of either kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixNoise {
    /// A product of factors.
    LowRank(LowRankNoise),
    /// Independent elements.
    Dense(DenseNoise),
}

impl MatrixNoise {
    /// Elements of one pair's noise of a matrix of this shape.
    pub fn elements(&self, [d_input, d_output]: [usize; 2]) -> usize {
        match self {
            Self::LowRank(noise) => noise.rank * (d_input + d_output),
            Self::Dense(_) => d_input * d_output,
        }
    }

    /// Address of the draw.
    pub fn key(&self) -> NoiseKey {
        match self {
            Self::LowRank(noise) => noise.key,
            Self::Dense(noise) => noise.key,
        }
    }

    /// Factor of the noise.
    pub fn scale(&self) -> f32 {
        match self {
            Self::LowRank(noise) => noise.scale,
            Self::Dense(noise) => noise.scale,
        }
    }

    /// Whether the operation's matrix is the transpose of the parameter.
    pub(crate) fn is_transposed(&self) -> bool {
        match self {
            Self::LowRank(noise) => noise.transposed,
            Self::Dense(noise) => noise.transposed,
        }
    }
}

/// Share of a row's squared length below which its component outside the span of earlier rows counts as rounding.
pub(crate) const DEPENDENT: f32 = 1e-8;

/// Whether every member brings its own input rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRows {
    /// `x : [members · rows, d_input]`
    PerMember,
    /// `x : [rows, d_input]`, the same rows for all: `x·W` is computed once.
    Shared,
}

/// The bias of a perturbed linear operation.
#[expect(clippy::large_enum_variant, reason = "an argument, not kept in numbers")]
pub enum LinearBias {
    /// No bias.
    None,
    /// The same bias for all members, `[d_output]`.
    Plain(Tensor<1>),
    /// A bias `[d_output]` perturbed as a vector.
    Perturbed(Tensor<1>, DenseNoise, NoiseSource),
}

impl LinearBias {
    pub(crate) fn into_primitive(self) -> BiasPrimitive<Dispatch> {
        match self {
            Self::None => BiasPrimitive::None,
            Self::Plain(bias) => BiasPrimitive::Plain(bias.into_dispatch()),
            Self::Perturbed(bias, noise, source) => {
                BiasPrimitive::Perturbed(bias.into_dispatch(), noise, source.into_primitive())
            }
        }
    }

    pub(super) fn dims(&self) -> Option<[usize; 1]> {
        match self {
            Self::None => None,
            Self::Plain(bias) | Self::Perturbed(bias, ..) => Some(bias.dims()),
        }
    }
}

/// [`LinearBias`] for backends.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "cube"))]
pub enum BiasPrimitive<B: Backend> {
    /// No bias.
    None,
    /// The same bias for all members.
    Plain(FloatTensor<B>),
    /// A perturbed bias.
    Perturbed(FloatTensor<B>, DenseNoise, #[extension_type] SourcePrimitive<B>),
}

/// Operands of a perturbed linear operation apart from its tensors and its noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearMembers {
    /// The members.
    pub pairs: PairRange,
    /// Whether they share their input.
    pub input: InputRows,
}

impl LinearMembers {
    /// Rows of one member in an input of `rows` rows.
    pub(crate) fn rows_per_member(&self, rows: usize) -> usize {
        match self.input {
            InputRows::PerMember => rows / self.pairs.members().max(1),
            InputRows::Shared => rows,
        }
    }
}

/// A function of single elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x·Φ(x)`
    Gelu,
    /// `1/(1 + exp(−x))`
    Sigmoid,
    /// `x/(1 + exp(−x))`
    Silu,
    /// `tanh(x)`
    Tanh,
}

/// Settings of [`causal_attention`](super::causal_attention).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CausalAttention {
    /// Heads, of `width / heads` elements each.
    pub heads: usize,
    /// Largest number of steps that a step sees, including itself; at least 1.
    pub window: usize,
    /// The base `θ` of rotary positions (Su et al., "RoFormer", arXiv 2104.09864). The elements `i` and `i + d/2` of a head of size `d` turn by
    /// the angle `step·θ^(−2i/d)`. Without it, steps have no position.
    pub rotary: Option<f32>,
}

#[track_caller]
pub(crate) fn check_causal_attention(shapes: [[usize; 3]; 3], attention: &CausalAttention) {
    let [query, key, value] = shapes;
    assert!(query == key && query == value, "causal attention: queries, keys and values {shapes:?} differ");
    let CausalAttention { heads, window, rotary } = *attention;
    let parts = if rotary.is_some() { heads.saturating_mul(2) } else { heads };
    assert!(
        heads > 0 && query[2] > 0 && query[2].is_multiple_of(parts),
        "causal attention: a width of {} is not {heads} heads{}",
        query[2],
        if rotary.is_some() { " of an even size, which rotary positions ask for" } else { "" }
    );
    assert!(window > 0, "causal attention: a window of {window} steps");
}
