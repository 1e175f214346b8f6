//! The members of one chunk.

use burn::tensor::kind::Basic;
use burn::tensor::{DType, Int, Tensor};
use eggroll_core::PairRange;
use eggroll_core::ops::member_cross_entropy;

/// The members of one chunk: a handle to fold the population into the leading axis and out again.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_train::Members;
///
/// let members = Members::new(0, 3);
/// let x = Tensor::<1>::from_floats([1.0, 3.0], &Device::flex());
/// let all = members.expand(x); // [1, 3, 1, 3, 1, 3]
/// assert_eq!(members.mean(all).into_data().try_to_vec::<f32>().unwrap(), [2.0, 2.0, 2.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members {
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Members {
    /// Members `first .. first + count` of a population.
    pub fn new(first: usize, count: usize) -> Self {
        Self { first, count }
    }

    /// Index of the chunk's first member in the population.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Number of members in the chunk.
    pub fn count(&self) -> usize {
        self.count
    }

    pub(super) fn pairs(&self) -> PairRange {
        PairRange::new((self.first / 2) as u32, (self.count / 2) as u32)
    }

    /// Repeats shared rows for every member: `[rows, ...]` to `[members · rows, ...]`, member-major.
    ///
    /// A first layer needs no expanded input: see `forward_shared`.
    pub fn expand<const D: usize, K: Basic>(&self, rows: Tensor<D, K>) -> Tensor<D, K> {
        rows.repeat_dim(0, self.count)
    }

    /// The chunk's rows of what has a row for every member of the whole population: `[population, ...]` to `[members, ...]`.
    pub fn rows<const D: usize, K: Basic>(&self, all: Tensor<D, K>) -> Tensor<D, K> {
        all.slice_dim(0, self.first..self.first + self.count)
    }

    /// Mean cross-entropy of every member against targets that all share, in nats; see [`member_cross_entropy`].
    ///
    /// # Shapes
    ///
    /// - logits: `[members · rows, classes]`, targets: `[rows]`, not expanded
    /// - output: `[members]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, with both.
    #[track_caller]
    pub fn cross_entropy(&self, logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
        member_cross_entropy(logits, targets, self.count)
    }

    /// Mean over everything that belongs to each member: `[members · rows, ...]` to `[members]`.
    ///
    /// # Panics
    ///
    /// Panics if the leading axis is not a multiple of the members.
    #[track_caller]
    pub fn mean<const D: usize>(&self, values: Tensor<D>) -> Tensor<1> {
        let dims = values.dims();
        assert!(
            dims[0].is_multiple_of(self.count),
            "mean over members: the leading axis of {dims:?} is not a multiple of {} members",
            self.count
        );
        let values = values.cast(DType::F32);
        let each = dims.iter().product::<usize>() / self.count;
        values.reshape([self.count, each]).mean_dim(1).reshape([self.count])
    }
}
