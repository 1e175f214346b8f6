//! State of members from one generation to the next, for example of a recurrent model.

use burn::tensor::Tensor;
use burn::tensor::kind::Basic;
use std::ops::Range;

/// Per-member state that splits and joins by member range.
pub trait MemberState: Clone + Send + Sync {
    /// Whether it has rows.
    const HAS_ROWS: bool = true;

    /// The rows of some members.
    fn rows(&self, members: Range<usize>) -> Self;

    /// The rows of all chunks, in order.
    fn join(chunks: Vec<Self>) -> Self;
}

/// Nothing.
impl MemberState for () {
    const HAS_ROWS: bool = false;

    fn rows(&self, _members: Range<usize>) -> Self {}

    fn join(_chunks: Vec<Self>) -> Self {}
}

/// `[members, …]`
impl<const D: usize, K: Basic> MemberState for Tensor<D, K>
where
    Self: Clone + Send + Sync,
{
    fn rows(&self, members: Range<usize>) -> Self {
        self.clone().slice_dim(0, members)
    }

    fn join(chunks: Vec<Self>) -> Self {
        Tensor::cat(chunks, 0)
    }
}

/// One state after the other, for example of the layers of a model.
impl<T: MemberState> MemberState for Vec<T> {
    fn rows(&self, members: Range<usize>) -> Self {
        self.iter().map(|part| part.rows(members.clone())).collect()
    }

    fn join(chunks: Vec<Self>) -> Self {
        let mut parts: Vec<Vec<T>> = Vec::new();
        for chunk in chunks {
            parts.resize_with(chunk.len(), Vec::new);
            for (part, value) in parts.iter_mut().zip(chunk) {
                part.push(value);
            }
        }
        parts.into_iter().map(T::join).collect()
    }
}
