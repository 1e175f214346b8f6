//! The cache of attention between calls, for a sequence that grows by one position at a time.

use burn::tensor::Tensor;

/// A tensor that is kept from call to call, as [`burn::nn::cache::TensorCache`]; empty until the first.
///
/// Inside `evaluate` it holds the rows of all members.
#[derive(Clone, Debug)]
pub struct TensorCache<const D: usize> {
    value: Option<Tensor<D>>,
}

impl<const D: usize> TensorCache<D> {
    /// An empty cache.
    pub fn empty() -> Self {
        Self { value: None }
    }

    /// The first call applies `f` to all positions of `input`; later calls only to the last, and append the result along
    /// `axis`.
    pub(crate) fn append(
        &mut self,
        input: Tensor<3>,
        axis: usize,
        f: impl FnOnce(Tensor<3>) -> Tensor<D>,
    ) -> Tensor<D> {
        let value = match self.value.take() {
            None => f(input),
            Some(kept) => {
                let [_, positions, _] = input.dims();
                Tensor::cat(vec![kept, f(input.slice_dim(1, positions - 1..positions))], axis)
            }
        };
        self.value.insert(value).clone()
    }

    /// `f` of the first `input`, kept for later calls.
    pub(crate) fn keep(&mut self, input: Tensor<3>, f: impl FnOnce(Tensor<3>) -> Tensor<D>) -> Tensor<D> {
        self.value.get_or_insert_with(|| f(input)).clone()
    }
}
