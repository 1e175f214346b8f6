//! Operands of the integer transformer, as users and as backends see them, and what they must be.

use crate::arithmetic::integer::transformer::MAX_NOISE_DEPTH;
use crate::ops::integer::{IntegerMembers, IntegerNoise, IntegerNoisePrimitive, MAX_DEPTH, primitive};
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Dispatch, ExtensionType};
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

/// Panics unless noise is that of a matrix, for rows of `depth` values.
#[track_caller]
pub(super) fn check_matrix(
    operation: &str,
    noise: Option<&IntegerNoise>,
    shape: [usize; 2],
    rows: usize,
    depth: usize,
) {
    let Some(noise) = noise else { return };
    noise.check_matrix(operation, shape, rows);
    let (rank, most) = (noise.rank, MAX_NOISE_DEPTH / depth);
    assert!(
        (1..=most).contains(&rank),
        "{operation}: noise of rank {rank} over {depth} values: int32 holds the sums of a rank from 1 to {most}"
    );
}

/// Panics unless rows are those of whole sequences, and their width that of whole heads.
#[track_caller]
pub(crate) fn check_heads(operation: &str, [rows, width]: [usize; 2], steps: usize, heads: usize) {
    assert!(
        heads > 0
            && width > 0
            && width.is_multiple_of(heads)
            && (width / heads).is_multiple_of(2)
            && width / heads <= MAX_DEPTH,
        "{operation}: rows of {width} are not those of {heads} heads of an even size, at most {MAX_DEPTH}"
    );
    assert!(
        steps > 0 && rows.is_multiple_of(steps),
        "{operation}: {rows} rows are not whole sequences of {steps} steps"
    );
}

/// Panics if two kinds of noise are those of different numbers of members.
#[track_caller]
pub(super) fn check_same_members(operation: &str, noise: [Option<&IntegerNoise>; 2]) {
    if let [Some(a), Some(b)] = noise {
        let (a, b) = (a.pairs.members(), b.pairs.members());
        assert!(a == b, "{operation}: noise of {a} members and noise of {b}");
    }
}
