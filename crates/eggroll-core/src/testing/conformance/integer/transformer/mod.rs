//! Operations of the integer transformer: every implementation gives the oracle's bits.

mod attention;
mod linear;
mod rows;

use super::{Held, found, integers, members, with_portable_devices};
use crate::ops::integer::transformer::portable;
use crate::ops::integer::transformer::{self as ops, Vector};
use crate::ops::integer::{IntegerNoise, primitive};
use crate::rng::key::PairRange;
use crate::testing::conformance::Implementation;
use crate::testing::reference::integer_transformer as oracle;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// A vector parameter on the host.
struct HostVector {
    values: Vec<i8>,
    noise: Option<Held>,
}

impl HostVector {
    /// Values up to `largest` around `middle`.
    fn new(n: usize, (middle, largest): (i8, i8), noise: Option<(u32, u32)>, salt: u32) -> Self {
        let values =
            integers(n, largest, salt).into_iter().map(|value| value.saturating_add(middle).max(-127)).collect();
        let noise = noise.map(|(pairs, sigma_shift)| Held::new(salt, 2 * n, 1, sigma_shift, PairRange::new(5, pairs)));
        Self { values, noise }
    }

    fn on(&self, on: &Implementation) -> Vector {
        let values = on.ints(&self.values, [self.values.len()]);
        Vector { values, noise: self.noise.as_ref().map(|noise| noise.on(on)) }
    }

    /// As a member sees it.
    fn of(&self, member: usize) -> Vec<i8> {
        oracle::vector(&self.values, self.noise.as_ref().map(|noise| noise.member(member)))
    }
}

/// The functions of [`crate::ops::integer::transformer`], or the portable defaults in their place.
impl Implementation {
    fn transformer_linear(
        &self,
        x: Tensor<2, Int>,
        weight: Tensor<2, Int>,
        noise: Option<IntegerNoise>,
        bias: Option<Vector>,
        activate: bool,
    ) -> Tensor<2, Int> {
        if !self.portable {
            return ops::linear(x, weight, noise, bias, activate);
        }
        let (x, weight, noise) = (x.into_dispatch(), weight.into_dispatch(), primitive(noise));
        Tensor::from_dispatch(portable::linear::<Dispatch>(
            x,
            weight,
            noise,
            bias.map(Vector::into_primitive),
            activate,
        ))
    }

    fn transformer_head(&self, x: Tensor<2, Int>, embedding: Tensor<2, Int>, noise: Option<IntegerNoise>) -> Vec<i32> {
        let logits = if self.portable {
            let (x, embedding) = (x.into_dispatch(), embedding.into_dispatch());
            Tensor::<2, Int>::from_dispatch(portable::head::<Dispatch>(x, embedding, primitive(noise)))
        } else {
            ops::head(x, embedding, noise)
        };
        logits.into_data().try_to_vec().expect("an I32 tensor")
    }

    fn transformer_embedding(
        &self,
        tokens: Tensor<1, Int>,
        weight: Tensor<2, Int>,
        noise: Option<IntegerNoise>,
        bias: Vector,
    ) -> Tensor<2, Int> {
        if !self.portable {
            return ops::embedding(tokens, weight, noise, bias);
        }
        let (tokens, weight, noise) = (tokens.into_dispatch(), weight.into_dispatch(), primitive(noise));
        Tensor::from_dispatch(portable::embedding::<Dispatch>(tokens, weight, noise, bias.into_primitive()))
    }

    fn transformer_norm(&self, x: Tensor<2, Int>, gain: Vector, bias: Vector) -> Tensor<2, Int> {
        if !self.portable {
            return ops::norm(x, gain, bias);
        }
        let (gain, bias) = (gain.into_primitive(), bias.into_primitive());
        Tensor::from_dispatch(portable::norm::<Dispatch>(x.into_dispatch(), gain, bias))
    }

    fn transformer_add(&self, x: Tensor<2, Int>, y: Tensor<2, Int>) -> Tensor<2, Int> {
        if !self.portable {
            return ops::add(x, y);
        }
        Tensor::from_dispatch(portable::add::<Dispatch>(x.into_dispatch(), y.into_dispatch()))
    }

    fn transformer_rotary(&self, x: Tensor<2, Int>, steps: usize, first: usize, heads: usize) -> Tensor<2, Int> {
        if !self.portable {
            return ops::rotary(x, steps, first, heads);
        }
        Tensor::from_dispatch(portable::rotary::<Dispatch>(x.into_dispatch(), steps, first, heads))
    }

    fn transformer_attention(&self, query: Tensor<2, Int>, held: [Tensor<3, Int>; 2], heads: usize) -> Tensor<2, Int> {
        let [keys, values] = held;
        if !self.portable {
            return ops::attention(query, keys, values, heads);
        }
        let (query, keys, values) = (query.into_dispatch(), keys.into_dispatch(), values.into_dispatch());
        Tensor::from_dispatch(portable::attention::<Dispatch>(query, keys, values, heads))
    }

    fn transformer_log_likelihood(&self, logits: Tensor<2, Int>, targets: Tensor<1, Int>, members: usize) -> Vec<i32> {
        let likelihoods = if self.portable {
            let (logits, targets) = (logits.into_dispatch(), targets.into_dispatch());
            Tensor::<1, Int>::from_dispatch(portable::log_likelihood::<Dispatch>(logits, targets, members))
        } else {
            ops::log_likelihood(logits, targets, members)
        };
        likelihoods.into_data().try_to_vec().expect("an I32 tensor")
    }
}
