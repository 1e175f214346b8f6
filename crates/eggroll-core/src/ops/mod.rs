//! Perturbed operations: the backend extension trait, and the functions on [`Tensor`] that users of this crate call.
//!
//! Every function takes a [`PairRange`]: the members of consecutive antithetic pairs. The population is folded
//! into the leading axis, member-major: row block `m` belongs to member `m` of the range.

mod cross_entropy;
mod dense_linear;
mod entry_sum;
mod estimate;
pub mod explicit;
pub mod integer;
mod low_rank_linear;
mod noise;
mod patches;
mod perturbed_embedding;
mod perturbed_vector;
pub(crate) mod portable;
mod row_projection;
mod source;
mod sparse;

pub use crate::key::PairRange;
pub use cross_entropy::member_cross_entropy;
pub use dense_linear::dense_linear;
pub use estimate::{dense_estimate, low_rank_estimate};
pub use low_rank_linear::low_rank_linear;
pub use noise::noise;
pub use patches::{Window, patches};
pub use perturbed_embedding::perturbed_embedding;
pub use perturbed_vector::perturbed_vector;
pub use row_projection::row_projection;
pub use source::{NoiseSource, SourcePrimitive, table_start};
pub(crate) use source::{TABLE_ADDRESS, loudness};
#[cfg(feature = "cube")]
pub(crate) use source::{TABLE_STEP, table_runs};
pub use sparse::{SparseNoise, sparse_embedding, sparse_entries, sparse_estimate, sparse_linear};

use crate::key::NoiseKey;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, ExtensionType, backend_extension};
#[cfg(feature = "cube")]
use burn::tensor::Shape;
use burn::tensor::Tensor;

/// Noise of a matrix as a product of factors, `c·B·Aᵀ` with `B : [d_input, rank]`, `A : [d_output, rank]`.
///
/// The stream of a pair holds `B` as `[rank, d_input]` and then `A` as `[rank, d_output]`, so that the first
/// columns of a higher rank are not those of a lower one.
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

    /// The same noise for a linear operation whose weight is the transpose of the parameter: `c·A·Bᵀ`, the factors of the
    /// stream in swapped parts. For a parameter that is used both ways, as an embedding and as the output layer tied to it.
    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    /// Where the factors of the operation's matrix begin in a pair's stream: the one that inputs are projected on, `[rank, d_input]`,
    /// and the other, `[rank, d_output]`.
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

    /// What the noise is multiplied by.
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

/// Share of a row's squared length below which what is left of it outside the span of the rows before is rounding.
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

/// [`LinearBias`] as backends see it.
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

/// What a perturbed linear operation needs beside its tensors and its noise.
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

/// Perturbed operations of a backend.
///
/// The defaults are composed of ordinary operations on the device and hold the noise of the call's members in
/// memory; backends override them with kernels that do not. Checks of shapes stand in the public functions of
/// [`ops`](crate::ops); backends whose kernels work on slices of memory check every call again.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    NdArray: cfg(feature = "ndarray"),
    Cube: cfg(feature = "cube"),
    Fusion: cfg(feature = "cube"),
    Autodiff,
)]
pub trait PerturbedOps: Backend {
    /// See [`low_rank_linear`].
    #[fusion(dtype = x, shape = linear_shape(x, weight, members))]
    fn low_rank_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        #[extension_type] bias: BiasPrimitive<Self>,
        noise: LowRankNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        members: LinearMembers,
    ) -> FloatTensor<Self> {
        portable::low_rank_linear::<Self>(x, weight, bias, noise, source, members)
    }

    /// See [`dense_linear`].
    #[fusion(dtype = x, shape = linear_shape(x, weight, members))]
    fn dense_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        #[extension_type] bias: BiasPrimitive<Self>,
        noise: DenseNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        members: LinearMembers,
    ) -> FloatTensor<Self> {
        portable::dense_linear::<Self>(x, weight, bias, noise, source, members)
    }

    /// See [`perturbed_embedding`].
    #[fusion(dtype = weight, shape = embedding_shape(weight, indices, members))]
    fn perturbed_embedding(
        weight: FloatTensor<Self>,
        indices: IntTensor<Self>,
        noise: MatrixNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        members: LinearMembers,
    ) -> FloatTensor<Self> {
        portable::perturbed_embedding::<Self>(weight, indices, noise, source, members)
    }

    /// See [`patches`].
    #[fusion(dtype = images, shape = patches_shape(images, window))]
    fn patches(images: FloatTensor<Self>, window: Window, input: InputRows) -> FloatTensor<Self> {
        let _ = input; // what is the same for all members needs no special care here
        portable::patches::<Self>(images, window)
    }

    /// See [`perturbed_vector`].
    #[fusion(dtype = vector, shape = Shape::new([pairs.members(), vector[0]]))]
    fn perturbed_vector(
        vector: FloatTensor<Self>,
        noise: DenseNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        pairs: PairRange,
    ) -> FloatTensor<Self> {
        portable::perturbed_vector::<Self>(vector, noise, source, pairs)
    }

    /// See [`low_rank_estimate`].
    #[fusion(dtype = weights, shape = Shape::new([*d_input, *d_output]))]
    fn low_rank_estimate(
        weights: FloatTensor<Self>,
        noise: LowRankNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        first_pair: u32,
        d_input: usize,
        d_output: usize,
    ) -> FloatTensor<Self> {
        portable::low_rank_estimate::<Self>(weights, noise, source, first_pair, [d_input, d_output])
    }

    /// See [`dense_estimate`].
    #[fusion(dtype = weights, shape = Shape::new([*elements]))]
    fn dense_estimate(
        weights: FloatTensor<Self>,
        noise: DenseNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        first_pair: u32,
        elements: usize,
    ) -> FloatTensor<Self> {
        portable::dense_estimate::<Self>(weights, noise, source, first_pair, elements)
    }

    /// See [`noise`]; `like` gives device and type.
    #[fusion(dtype = like, shape = Shape::new([pairs.count as usize, *elements]))]
    fn noise(like: FloatTensor<Self>, key: NoiseKey, pairs: PairRange, elements: usize) -> FloatTensor<Self> {
        portable::noise::<Self>(key, pairs, elements, &like)
    }

    /// See [`row_projection`].
    #[fusion(dtype = gradient, shape = gradient.clone())]
    fn row_projection(gradient: FloatTensor<Self>, x: FloatTensor<Self>) -> FloatTensor<Self> {
        portable::row_projection::<Self>(gradient, x)
    }

    /// See [`member_cross_entropy`].
    #[fusion(dtype = logits, shape = Shape::new([*members]))]
    fn member_cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>, members: usize) -> FloatTensor<Self> {
        portable::member_cross_entropy::<Self>(logits, targets, members)
    }
}

/// Shape of the output of a linear operation, for backends that run it later.
#[cfg(feature = "cube")]
fn linear_shape(x: &Shape, weight: &Shape, members: &LinearMembers) -> Shape {
    Shape::new([members.pairs.members() * members.rows_per_member(x[0]), weight[1]])
}

/// Shape of the output of an embedding, for backends that run it later.
#[cfg(feature = "cube")]
fn embedding_shape(weight: &Shape, indices: &Shape, members: &LinearMembers) -> Shape {
    Shape::new([members.pairs.members() * members.rows_per_member(indices[0]), weight[1]])
}

/// Shape of patches, for backends that cut them out later.
#[cfg(feature = "cube")]
fn patches_shape(images: &Shape, window: &Window) -> Shape {
    let [height, width] = window.positions([images[2], images[3]]);
    Shape::new([images[0] * height * width, images[1] * window.size()])
}

/// The portable defaults: no gradient flows through noise, so Burn's autodiff decorator needs no more.
impl<B, C> PerturbedOps for Autodiff<B, C>
where
    B: PerturbedOps,
    C: burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy,
{
}

impl LinearBias {
    pub(crate) fn into_primitive(self) -> BiasPrimitive<burn::backend::Dispatch> {
        match self {
            Self::None => BiasPrimitive::None,
            Self::Plain(bias) => BiasPrimitive::Plain(bias.into_dispatch()),
            Self::Perturbed(bias, noise, source) => {
                BiasPrimitive::Perturbed(bias.into_dispatch(), noise, source.into_primitive())
            }
        }
    }

    fn dims(&self) -> Option<[usize; 1]> {
        match self {
            Self::None => None,
            Self::Plain(bias) | Self::Perturbed(bias, ..) => Some(bias.dims()),
        }
    }
}

/// Panics with the shapes if the operands of a perturbed linear do not fit.
#[track_caller]
fn check_linear(x: &Tensor<2>, weight: &Tensor<2>, bias: &LinearBias, members: &LinearMembers) {
    let ([rows, width], [d_input, d_output]) = (x.dims(), weight.dims());
    assert!(
        width == d_input,
        "perturbed linear: the input {:?} does not fit the weight {:?}: {width} columns, but {d_input} rows",
        x.dims(),
        weight.dims()
    );
    if let Some(bias) = bias.dims() {
        assert!(bias == [d_output], "perturbed linear: the bias {bias:?} does not fit the weight {:?}", weight.dims());
    }
    if let LinearBias::Perturbed(_, _, source) = bias {
        source.check(members.pairs, d_output);
    }
    let count = members.pairs.members();
    assert!(count > 0, "perturbed linear: no members");
    assert!(
        members.input == InputRows::Shared || rows % count == 0,
        "perturbed linear: the {rows} rows of the input {:?} are not a multiple of {count} members; \
         expand shared rows to every member, or use the shared form",
        x.dims()
    );
}
