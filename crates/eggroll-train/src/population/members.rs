//! The members of one chunk.

use burn::tensor::kind::Basic;
use burn::tensor::{DType, Int, Tensor};
use eggroll_core::ops::{member_cross_entropy, repeated, row_cross_entropy};
use eggroll_core::{PairRange, scope};

/// The members of one chunk: a handle to fold the population into the leading axis and out again.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_train::MemberChunk;
///
/// let members = MemberChunk::new(0, 3);
/// let x = Tensor::<1>::from_floats([1.0, 3.0], &Device::flex());
/// let all = members.repeat(x); // [1, 3, 1, 3, 1, 3]
/// assert_eq!(members.mean(all).into_data().try_to_vec::<f32>().unwrap(), [2.0, 2.0, 2.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberChunk {
    pub(super) first: usize,
    pub(super) count: usize,
}

impl MemberChunk {
    /// Members `first .. first + count` of a population.
    pub fn new(first: usize, count: usize) -> Self {
        Self { first, count }
    }

    /// Index of the chunk's first member in the population.
    pub fn first(&self) -> usize {
        scope::note_members_asked();
        self.first
    }

    /// Number of members in the chunk.
    pub fn count(&self) -> usize {
        self.count
    }

    pub(super) fn pairs(&self) -> PairRange {
        PairRange::new((self.first / 2) as u32, (self.count / 2) as u32)
    }

    /// Repeats rows that all members share, as a batch: `[rows, ...]` to `[members · rows, ...]`, member-major.
    ///
    /// Linear layers, embeddings and convolutions need no repeated input at the beginning of a model: their `forward_shared` computes
    /// shared results once.
    pub fn repeat<const D: usize, K: Basic>(&self, rows: Tensor<D, K>) -> Tensor<D, K> {
        self.assume_repeated(repeated(rows, self.count))
    }

    /// The chunk's rows of a tensor with a row for every member of the population: `[population, ...]` to `[members, ...]`.
    pub fn rows<const D: usize, K: Basic>(&self, all: Tensor<D, K>) -> Tensor<D, K> {
        scope::note_members_asked();
        self.assume_repeated(all.slice_dim(0, self.first..self.first + self.count))
    }

    /// States that rows already belong to the members, member-major, `[members · rows, ...]`, and returns them. For rows that
    /// differ between members and were made without [`repeat`](Self::repeat) and [`rows`](Self::rows). Inside `evaluate`,
    /// `forward` refuses rows without such a statement. Otherwise shared rows whose number is a multiple of the members would be
    /// dealt out to them.
    ///
    /// # Panics
    ///
    /// Panics if the leading axis is not a multiple of the members.
    #[track_caller]
    pub fn assume_repeated<const D: usize, K: Basic>(&self, rows: Tensor<D, K>) -> Tensor<D, K> {
        let dims = rows.dims();
        self.check("assume_repeated", &dims);
        scope::note_rows(dims[0]);
        rows
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

    /// Cross-entropy of every row of every member, in nats: a score for every [part](crate::Credit#parts), each of which is a row; see
    /// [`row_cross_entropy`].
    ///
    /// # Shapes
    ///
    /// - logits: `[members · rows, classes]`, targets: `[rows]`, not expanded
    /// - output: `[members, rows]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, with both.
    #[track_caller]
    pub fn row_cross_entropy(&self, logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<2> {
        row_cross_entropy(logits, targets, self.count)
    }

    /// Cross-entropy of every token of every member, in nats: a score for every [part](crate::Credit#parts), in order of time.
    ///
    /// # Shapes
    ///
    /// - logits: `[members · sequences, steps, classes]`, targets: `[sequences, steps]`, not expanded
    /// - output: `[members, sequences, steps]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, with both.
    #[track_caller]
    pub fn token_cross_entropy(&self, logits: Tensor<3>, targets: Tensor<2, Int>) -> Tensor<3> {
        let ([rows, steps, classes], [sequences, own]) = (logits.dims(), targets.dims());
        assert!(
            rows == self.count * sequences && steps == own,
            "token cross-entropy: logits {:?} do not fit targets {:?} of {} members: expected [members · sequences, steps, classes] and \
             [sequences, steps]",
            logits.dims(),
            targets.dims(),
            self.count
        );
        let losses = row_cross_entropy(logits.reshape([rows * steps, classes]), targets.flatten(0, 1), self.count);
        losses.reshape([self.count, sequences, steps])
    }

    /// Share of every member's rows whose largest logit is at the target: accuracy, from 0 to 1.
    ///
    /// # Shapes
    ///
    /// - logits: `[members · rows, classes]`, targets: `[rows]`, not repeated
    /// - output: `[members]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, with both.
    #[track_caller]
    pub fn accuracy(&self, logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
        let ([rows, _], [own]) = (logits.dims(), targets.dims());
        assert!(
            own > 0 && rows == self.count * own,
            "accuracy over members: logits {:?} do not fit {own} targets of {} members: targets are not repeated",
            logits.dims(),
            self.count
        );
        let found = logits.argmax(1).reshape([self.count, own]); // [members, rows]
        let targets = targets.reshape([1, own]).cast(found.dtype());
        let hits = found.equal(targets.repeat_dim(0, self.count));
        hits.float().cast(DType::F32).mean_dim(1).reshape([self.count])
    }

    /// Mean squared error of every member against targets that all share: the mean of `(y − t)²` over a member's elements.
    ///
    /// # Shapes
    ///
    /// - predictions: `[members · rows, ...]`, targets: `[rows, ...]`, not repeated
    /// - output: `[members]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, with both.
    #[track_caller]
    pub fn mse<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>) -> Tensor<1> {
        let (found, own) = (predictions.dims(), targets.dims());
        assert!(
            found[0] == self.count * own[0] && found[1..] == own[1..],
            "mse over members: predictions {found:?} do not fit targets {own:?} of {} members: targets are not repeated",
            self.count
        );
        let targets = targets.repeat_dim(0, self.count);
        self.mean((predictions - targets).square())
    }

    /// Mean over everything that belongs to each member: `[members · rows, ...]` to `[members]`.
    ///
    /// # Panics
    ///
    /// Panics if the leading axis is not a multiple of the members, or if there are no values.
    #[track_caller]
    pub fn mean<const D: usize>(&self, values: Tensor<D>) -> Tensor<1> {
        self.each("mean", values).mean_dim(1).reshape([self.count])
    }

    /// Sum over everything that belongs to each member: `[members · rows, ...]` to `[members]`.
    ///
    /// # Panics
    ///
    /// Panics if the leading axis is not a multiple of the members, or if there are no values.
    #[track_caller]
    pub fn sum<const D: usize>(&self, values: Tensor<D>) -> Tensor<1> {
        self.each("sum", values).sum_dim(1).reshape([self.count])
    }

    /// A row of values for each member, in f32.
    #[track_caller]
    fn each<const D: usize>(&self, name: &str, values: Tensor<D>) -> Tensor<2> {
        let dims = values.dims();
        self.check(name, &dims);
        let each = dims.iter().product::<usize>() / self.count;
        assert!(each > 0, "{name} over members: the shape {dims:?} has no values: give every member at least one");
        values.cast(DType::F32).reshape([self.count, each])
    }

    #[track_caller]
    fn check(&self, name: &str, dims: &[usize]) {
        assert!(
            dims[0].is_multiple_of(self.count),
            "{name} over members: the leading axis of {dims:?} is not a multiple of {} members",
            self.count
        );
    }
}
