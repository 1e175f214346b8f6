//! Operands of integer operations, for users and for backends, and their checks.

use crate::arithmetic::integer::transformer::MAX_NOISE_DEPTH;
use crate::arithmetic::integer::{MAX_SIGMA_SHIFT, Rounding};
use crate::ops::checks::{check_pairs, len, low_rank_elements};
use crate::rng::key::PairRange;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Dispatch, ExtensionType};
use burn::tensor::{Int, Tensor};

/// Largest depth of a product whose sum fits int32.
pub(crate) const MAX_DEPTH: usize = 1 << 16;

/// The noise of one integer parameter, held for a noise epoch, and the pairs of a call.
#[derive(Clone, Debug)]
pub struct IntegerNoise {
    /// `[held pairs, elements]`: of a matrix `B` as `[rank, d_input]`, then `A` as `[rank, d_output]`; of a vector two factors
    /// `[2, n]`.
    pub noise: Tensor<2, Int>,
    /// The pair of the first row.
    pub first_pair: u32,
    /// Columns of the factors of a matrix.
    pub rank: usize,
    /// `σ = 2^−sigma_shift`
    pub sigma_shift: u32,
    /// The members.
    pub pairs: PairRange,
}

/// Properties of stored noise, apart from its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerMembers {
    /// Rows of the held noise before the first pair.
    pub skip: usize,
    /// Columns of the factors of a matrix.
    pub rank: usize,
    /// Bits that a product of noise is shifted down by: 4 + sigma shift.
    pub shift: u32,
    /// The members.
    pub pairs: PairRange,
}

/// [`IntegerNoise`] for backends.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "cube"))]
pub enum IntegerNoisePrimitive<B: Backend> {
    /// The plain operation.
    None,
    /// Members under noise.
    Held(IntTensor<B>, IntegerMembers),
}

/// One gate of a GRU for backends.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "cube"))]
pub struct GatePrimitive<B: Backend> {
    /// `x·W` for all rows: `[members · steps, width]`
    pub input: IntTensor<B>,
    /// `[width, width]`
    pub weight: IntTensor<B>,
    /// Noise of the weight.
    #[extension_type]
    pub weight_noise: IntegerNoisePrimitive<B>,
    /// `[width]`
    pub bias: IntTensor<B>,
    /// Noise of the bias.
    #[extension_type]
    pub bias_noise: IntegerNoisePrimitive<B>,
}

impl IntegerNoise {
    fn into_primitive(self) -> IntegerNoisePrimitive<Dispatch> {
        let members = self.members();
        IntegerNoisePrimitive::Held(self.noise.into_dispatch(), members)
    }

    pub(super) fn members(&self) -> IntegerMembers {
        IntegerMembers {
            skip: (self.pairs.first - self.first_pair) as usize,
            rank: self.rank,
            shift: crate::arithmetic::integer::FIXED_POINT + self.sigma_shift,
            pairs: self.pairs,
        }
    }

    /// Panics if the noise does not have `elements` elements for each pair, or does not fit `rows` rows.
    #[track_caller]
    pub(super) fn check(&self, operation: &str, elements: usize, rows: usize) {
        let ([held, each], members) = (self.noise.dims(), self.pairs.members());
        let end = u64::from(self.first_pair) + held as u64;
        assert!(
            each == elements
                && self.first_pair <= self.pairs.first
                && u64::from(self.pairs.first) + u64::from(self.pairs.count) <= end,
            "{operation}: the noise {:?} of pairs {}..{end} is not that of pairs {}..{} with {elements} elements",
            self.noise.dims(),
            self.first_pair,
            self.pairs.first,
            u64::from(self.pairs.first) + u64::from(self.pairs.count),
        );
        assert!(
            self.sigma_shift <= MAX_SIGMA_SHIFT,
            "{operation}: a sigma shift of {} is above {MAX_SIGMA_SHIFT}",
            self.sigma_shift
        );
        assert!(
            members > 0 && rows.is_multiple_of(members),
            "{operation}: {rows} rows are not a multiple of {members} members"
        );
        check_pairs(operation, self.pairs);
    }

    /// As [`check`](Self::check), of a matrix.
    #[track_caller]
    pub(super) fn check_matrix(&self, operation: &str, shape: [usize; 2], rows: usize) {
        self.check(operation, low_rank_elements(operation, self.rank, shape), rows);
    }
}

/// Panics if the noise does not fit a parameter of this shape, with one pair for each score.
#[track_caller]
pub(super) fn check_votes(
    operation: &str,
    noise: &Tensor<2, Int>,
    scores: &Tensor<1, Int>,
    rank: usize,
    shape: &[usize],
) {
    let elements = match (rank, shape) {
        (0, shape) => 2 * len(operation, shape),
        (rank, &[d_input, d_output]) => low_rank_elements(operation, rank, [d_input, d_output]),
        _ => panic!("{operation}: noise of rank {rank} is for matrices, not for {shape:?}"),
    };
    assert!(
        noise.dims() == [scores.dims()[0], elements],
        "{operation}: the noise {:?} does not fit {} scores and the parameter {shape:?} at rank {rank}",
        noise.dims(),
        scores.dims()[0]
    );
}

pub(crate) fn primitive(noise: Option<IntegerNoise>) -> IntegerNoisePrimitive<Dispatch> {
    noise.map_or(IntegerNoisePrimitive::None, IntegerNoise::into_primitive)
}

/// A vector parameter and its noise.
#[derive(Clone, Debug)]
pub struct Vector {
    /// `[n]`
    pub values: Tensor<1, Int>,
    /// Its noise.
    pub noise: Option<IntegerNoise>,
}

/// [`Vector`] for backends.
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
    /// `[n]`, added to every row.
    Plain(IntTensor<B>),
    /// `[n]` and the noise of members.
    Perturbed(IntTensor<B>, IntTensor<B>, IntegerMembers),
}

impl<B: Backend> IntegerBias<B> {
    /// The vector, if there is one.
    pub(crate) fn into_vector(self) -> Option<VectorPrimitive<B>> {
        match self {
            Self::None => None,
            Self::Plain(values) => Some(VectorPrimitive { values, noise: IntegerNoisePrimitive::None }),
            Self::Perturbed(values, noise, members) => {
                Some(VectorPrimitive { values, noise: IntegerNoisePrimitive::Held(noise, members) })
            }
        }
    }
}

impl Vector {
    #[track_caller]
    pub(super) fn check(&self, operation: &str, name: &str, n: usize, rows: usize) {
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
        Some(Vector { values, noise: None }) => IntegerBias::Plain(values.into_dispatch()),
        Some(Vector { values, noise: Some(noise) }) => {
            let members = noise.members();
            IntegerBias::Perturbed(values.into_dispatch(), noise.noise.into_dispatch(), members)
        }
    }
}

/// Panics unless the noise is for a matrix and, with [`Rounding::Nearest`], its sums of products over `depth` values fit int32.
#[track_caller]
pub(super) fn check_matrix(
    operation: &str,
    noise: Option<&IntegerNoise>,
    shape: [usize; 2],
    rows: usize,
    depth: usize,
    rounding: Rounding,
) {
    let Some(noise) = noise else { return };
    noise.check_matrix(operation, shape, rows);
    let (rank, most) = (noise.rank, MAX_NOISE_DEPTH / depth);
    assert!(
        rounding == Rounding::Floor || (1..=most).contains(&rank),
        "{operation}: noise of rank {rank} over {depth} values: int32 holds the sums of a rank from 1 to {most}"
    );
}

/// Panics unless a bias, if there is one, fits rows of the output and the members of the other noise.
#[track_caller]
pub(super) fn check_bias(
    operation: &str,
    bias: Option<&Vector>,
    noise: Option<&IntegerNoise>,
    [rows, n]: [usize; 2],
    rounding: Rounding,
) {
    let Some(bias) = bias else { return };
    assert!(rounding == Rounding::Nearest, "{operation}: there is no bias with {rounding:?}");
    bias.check(operation, "bias", n, rows);
    if let [Some(a), Some(b)] = [noise, bias.noise.as_ref()] {
        let (a, b) = (a.pairs.members(), b.pairs.members());
        assert!(a == b, "{operation}: noise of {a} members and noise of {b}");
    }
}

/// Panics unless the rows form whole sequences and their width whole heads.
#[track_caller]
pub(super) fn check_heads(operation: &str, [rows, width]: [usize; 2], steps: usize, heads: usize) {
    assert!(
        heads > 0
            && width > 0
            && width.is_multiple_of(heads)
            && (width / heads).is_multiple_of(2)
            && width / heads <= MAX_DEPTH,
        "{operation}: rows of {width} do not fit {heads} heads of an even size, at most {MAX_DEPTH}"
    );
    assert!(
        steps > 0 && rows.is_multiple_of(steps),
        "{operation}: {rows} rows are not whole sequences of {steps} steps"
    );
}
