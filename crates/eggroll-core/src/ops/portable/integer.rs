//! Integer operations by ordinary integer tensor operations.

use crate::integer::Votes;
use crate::key::{NoiseKey, PairRange};
use crate::ops::integer::{GatePrimitive, IntegerNoisePrimitive};
use burn::backend::Backend;
use burn::backend::tensor::IntTensor;

macro_rules! pending { ($($name:ident($($arg:ident: $ty:ty),*)),* $(,)?) => { $(pub(crate) fn $name<B: Backend>($($arg: $ty),*) -> IntTensor<B> { $(let _ = $arg;)* unimplemented!() })* } }
pending! {
    noise(like: &IntTensor<B>, key: NoiseKey, pairs: PairRange, elements: usize),
    linear(x: IntTensor<B>, weight: IntTensor<B>, noise: IntegerNoisePrimitive<B>),
    embedding(tokens: IntTensor<B>, weight: IntTensor<B>, noise: IntegerNoisePrimitive<B>),
    layer_norm(x: IntTensor<B>, weight: IntTensor<B>, noise: IntegerNoisePrimitive<B>),
    add(terms: &[IntTensor<B>]),
    gru(state: IntTensor<B>, starts: IntTensor<B>, forget: GatePrimitive<B>, candidate: GatePrimitive<B>),
    log_likelihood(logits: IntTensor<B>, targets: IntTensor<B>, members: usize),
    update(parameter: IntTensor<B>, noise: IntTensor<B>, scores: IntTensor<B>, rank: usize, votes: Votes, limit: i32),
}
