//! A vector under every member's noise.

use super::{PairNoise, wide};
use crate::arithmetic::integer::Rounding;
use crate::ops::integer::IntegerMembers;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, TensorMetadata};

pub(crate) fn perturbed_vector<B: Backend>(
    vector: IntTensor<B>,
    noise: IntTensor<B>,
    members: IntegerMembers,
) -> IntTensor<B> {
    let dtype = vector.dtype();
    B::int_cast(PairNoise::<B>::new(noise, members).vector(wide::<B>(vector), Rounding::Floor), dtype.into())
}
