//! Integer operations: every implementation gives the oracle's bits.

mod add;
mod attention;
mod embedding;
mod gru;
mod linear;
mod log_likelihood;
mod noise;
mod norm;
mod part_votes;
mod perturbed_vector;
mod update;

use super::{Implementation, implementations};
use crate::arithmetic::integer::{Rounding, Votes};
use crate::ops::integer::portable;
use crate::ops::integer::{self as ops, Gate, IntegerNoise, Vector, bias_primitive, integer_type, primitive};
use crate::rng::integer::fill_integers;
use crate::rng::key::{NoiseKey, PairRange};
use crate::rng::philox::philox4x32;
use crate::testing::reference::integer::{self as oracle, MemberNoise};
use burn::backend::Dispatch;
use burn::tensor::{DType, Int, Tensor, TensorData};

/// One size for each path:
/// - 1: one unit, one lane;
/// - 19: below a tile and a vector of any width; rows are odd, so that every second one starts inside a word;
/// - 64: a tile, whole words and whole vectors, without a rest;
/// - 257: more than a tile, than the units of a cube, and than a group of noise, by one.
const SIZES: [usize; 4] = [1, 19, 64, 257];
const RANKS: [usize; 2] = [1, 4];
const ROUNDINGS: [Rounding; 2] = [Rounding::Floor, Rounding::Nearest];
/// Rank and sigma shift of noise: one factor, and several with noise that is scaled down. Kernels are given the shift
/// as a number.
const NOISES: [(usize, u32); 2] = [(1, 0), (4, 4)];

/// No noise, and that of so many pairs by [`NOISES`]: pairs, rank, sigma shift.
fn noises(pairs: u32) -> [Option<(u32, usize, u32)>; 3] {
    let [a, b] = NOISES.map(|(rank, sigma_shift)| Some((pairs, rank, sigma_shift)));
    [None, a, b]
}

/// Deterministic values in `−largest..=largest`.
fn integers(len: usize, largest: i8, salt: u32) -> Vec<i8> {
    let span = 2 * u32::from(largest.unsigned_abs()) + 1;
    let value = |i| (philox4x32([i, salt, 1, u32::MAX], [0; 2])[0] % span) as i32 - i32::from(largest);
    (0..len as u32).map(|i| value(i) as i8).collect()
}

fn transposed(values: &[i8], columns: usize) -> Vec<i8> {
    let rows = values.len() / columns;
    (0..values.len()).map(|at| values[at % rows * columns + at / rows]).collect()
}

/// Noise of one parameter on the host: held from `first_held` on, used for `pairs`.
#[derive(Clone)]
struct HostNoise {
    values: Vec<i8>,
    elements: usize,
    first_held: u32,
    rank: usize,
    sigma_shift: u32,
    pairs: PairRange,
}

impl HostNoise {
    /// Noise of `pairs` and of one pair more on each side.
    fn new(salt: u32, elements: usize, rank: usize, sigma_shift: u32, pairs: PairRange) -> Self {
        let first_held = pairs.first - 1;
        let mut values = vec![0; (pairs.count as usize + 2) * elements];
        for (pair, values) in values.chunks_mut(elements).enumerate() {
            fill_integers(NoiseKey::new(17, salt, 3), first_held + pair as u32, values);
        }
        Self { values, elements, first_held, rank, sigma_shift, pairs }
    }

    /// The same noise for the pairs after these.
    fn shifted(&self) -> Self {
        Self { pairs: PairRange::new(self.pairs.first + 1, self.pairs.count), ..self.clone() }
    }

    fn on(&self, on: &Implementation) -> IntegerNoise {
        let rows = self.values.len() / self.elements;
        let noise = on.ints(&self.values, [rows, self.elements]);
        let Self { first_held: first_pair, rank, sigma_shift, pairs, .. } = *self;
        IntegerNoise { noise, first_pair, rank, sigma_shift, pairs }
    }

    /// As [`HostNoise::on`], in memory that was transposed.
    fn strided_on(&self, on: &Implementation) -> IntegerNoise {
        let rows = self.values.len() / self.elements;
        let noise = on.ints(&transposed(&self.values, self.elements), [self.elements, rows]).transpose();
        IntegerNoise { noise, ..self.on(on) }
    }

    /// What the oracle needs of a member.
    fn member(&self, m: usize) -> MemberNoise<'_> {
        let row = (self.pairs.first - self.first_held) as usize + m / 2;
        MemberNoise {
            values: &self.values[row * self.elements..(row + 1) * self.elements],
            rank: self.rank,
            shift: 4 + self.sigma_shift,
            sign: if m.is_multiple_of(2) { 1 } else { -1 },
        }
    }
}

/// A vector parameter on the host.
struct HostVector {
    values: Vec<i8>,
    noise: Option<HostNoise>,
}

impl HostVector {
    /// Values up to `largest` around `middle`.
    fn new(n: usize, (middle, largest): (i8, i8), noise: Option<(u32, u32)>, salt: u32) -> Self {
        let values =
            integers(n, largest, salt).into_iter().map(|value| value.saturating_add(middle).max(-127)).collect();
        let noise =
            noise.map(|(pairs, sigma_shift)| HostNoise::new(salt, 2 * n, 1, sigma_shift, PairRange::new(5, pairs)));
        Self { values, noise }
    }

    fn on(&self, on: &Implementation) -> Vector {
        let values = on.ints(&self.values, [self.values.len()]);
        Vector { values, noise: self.noise.as_ref().map(|noise| noise.on(on)) }
    }

    /// As a member sees it.
    fn of(&self, member: usize, rounding: Rounding) -> Vec<i8> {
        oracle::vector(&self.values, self.noise.as_ref().map(|noise| noise.member(member)), rounding)
    }
}

/// All implementations, and the portable defaults on devices, which run there where a kernel cannot.
fn with_portable_devices() -> Vec<Implementation> {
    let all = implementations().into_iter();
    #[cfg(feature = "cube")]
    let all = {
        let devices = if std::env::var_os(crate::simd::VARIABLE).is_none() { super::devices() } else { Vec::new() };
        let chosen = devices.into_iter().filter(|on| super::is_chosen(on.name));
        all.chain(chosen.map(|on| Implementation { portable: true, ..on }))
    };
    all.collect()
}

fn members(noise: Option<&HostNoise>) -> usize {
    noise.map_or(1, |noise| noise.pairs.members())
}

/// Values as the oracle has them.
fn found<const D: usize>(tensor: Tensor<D, Int>) -> Vec<i8> {
    let values: Vec<i64> = tensor.into_data().iter().collect();
    values.into_iter().map(|value| i8::try_from(value).expect("an int8 value")).collect()
}

/// The functions of [`crate::ops::integer`], or the portable defaults in their place.
impl Implementation {
    fn ints<const D: usize>(&self, values: &[i8], shape: [usize; D]) -> Tensor<D, Int> {
        Tensor::from_data(TensorData::new(values.to_vec(), shape), (&self.device, integer_type(&self.device)))
    }

    /// Values of type I32.
    fn wide<const D: usize>(&self, values: &[i32], shape: [usize; D]) -> Tensor<D, Int> {
        Tensor::from_data(TensorData::new(values.to_vec(), shape), (&self.device, DType::I32))
    }

    /// Indices or flags, of the device's own integer type.
    fn indices(&self, values: &[i32]) -> Tensor<1, Int> {
        Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), &self.device)
    }

    fn integer_linear(
        &self,
        x: Tensor<2, Int>,
        weight: Tensor<2, Int>,
        noise: Option<IntegerNoise>,
        bias: Option<Vector>,
        (activate, rounding): (bool, Rounding),
    ) -> Tensor<2, Int> {
        if !self.portable {
            return ops::linear(x, weight, noise, bias, activate, rounding);
        }
        let (x, weight, noise, bias) =
            (x.into_dispatch(), weight.into_dispatch(), primitive(noise), bias_primitive(bias));
        Tensor::from_dispatch(portable::linear::<Dispatch>(x, weight, noise, bias, activate, rounding))
    }

    fn integer_head(&self, x: Tensor<2, Int>, embedding: Tensor<2, Int>, noise: Option<IntegerNoise>) -> Vec<i32> {
        let logits = if self.portable {
            let (x, embedding) = (x.into_dispatch(), embedding.into_dispatch());
            Tensor::<2, Int>::from_dispatch(portable::head::<Dispatch>(x, embedding, primitive(noise)))
        } else {
            ops::head(x, embedding, noise)
        };
        logits.into_data().try_to_vec().expect("an I32 tensor")
    }

    fn integer_embedding(
        &self,
        tokens: Tensor<1, Int>,
        weight: Tensor<2, Int>,
        noise: Option<IntegerNoise>,
        bias: Option<Vector>,
        rounding: Rounding,
    ) -> Tensor<2, Int> {
        if !self.portable {
            return ops::embedding(tokens, weight, noise, bias, rounding);
        }
        let (tokens, weight, noise, bias) =
            (tokens.into_dispatch(), weight.into_dispatch(), primitive(noise), bias_primitive(bias));
        Tensor::from_dispatch(portable::embedding::<Dispatch>(tokens, weight, noise, bias, rounding))
    }

    fn integer_norm(
        &self,
        x: Tensor<2, Int>,
        gain: Vector,
        bias: Option<Vector>,
        rounding: Rounding,
    ) -> Tensor<2, Int> {
        if !self.portable {
            return ops::norm(x, gain, bias, rounding);
        }
        let (gain, bias) = (gain.into_primitive(), bias_primitive(bias));
        Tensor::from_dispatch(portable::norm::<Dispatch>(x.into_dispatch(), gain, bias, rounding))
    }

    fn integer_add<const D: usize>(&self, a: Tensor<D, Int>, b: Tensor<D, Int>, rounding: Rounding) -> Tensor<D, Int> {
        if !self.portable {
            return ops::add(a, b, rounding);
        }
        Tensor::from_dispatch(portable::add::<Dispatch>(a.into_dispatch(), b.into_dispatch(), rounding))
    }

    fn integer_gru(
        &self,
        state: Tensor<2, Int>,
        starts: Tensor<1, Int>,
        forget: Gate,
        candidate: Gate,
    ) -> Tensor<2, Int> {
        if !self.portable {
            return ops::gru(state, starts, forget, candidate);
        }
        let (state, starts) = (state.into_dispatch(), starts.into_dispatch());
        let (forget, candidate) = (forget.into_primitive(), candidate.into_primitive());
        Tensor::from_dispatch(portable::gru::<Dispatch>(state, starts, forget, candidate))
    }

    fn integer_rotary(&self, x: Tensor<2, Int>, steps: usize, first: usize, heads: usize) -> Tensor<2, Int> {
        if !self.portable {
            return ops::rotary(x, steps, first, heads);
        }
        Tensor::from_dispatch(portable::rotary::<Dispatch>(x.into_dispatch(), steps, first, heads))
    }

    fn integer_attention(&self, query: Tensor<2, Int>, held: [Tensor<3, Int>; 2], heads: usize) -> Tensor<2, Int> {
        let [keys, values] = held;
        if !self.portable {
            return ops::attention(query, keys, values, heads);
        }
        let (query, keys, values) = (query.into_dispatch(), keys.into_dispatch(), values.into_dispatch());
        Tensor::from_dispatch(portable::attention::<Dispatch>(query, keys, values, heads))
    }

    fn integer_log_likelihood(
        &self,
        logits: Tensor<2, Int>,
        targets: Tensor<1, Int>,
        members: usize,
        rounding: Rounding,
    ) -> Vec<i32> {
        let likelihoods = if self.portable {
            let (logits, targets) = (logits.into_dispatch(), targets.into_dispatch());
            Tensor::<1, Int>::from_dispatch(portable::log_likelihood::<Dispatch>(logits, targets, members, rounding))
        } else {
            ops::log_likelihood(logits, targets, members, rounding)
        };
        likelihoods.into_data().try_to_vec().expect("an I32 tensor")
    }

    fn integer_update<const D: usize>(
        &self,
        parameter: Tensor<D, Int>,
        noise: Tensor<2, Int>,
        scores: Tensor<1, Int>,
        (rank, votes, limit): (usize, Votes, i32),
    ) -> Tensor<D, Int> {
        if !self.portable {
            return ops::update(parameter, noise, scores, rank, votes, limit);
        }
        let (parameter, noise, scores) = (parameter.into_dispatch(), noise.into_dispatch(), scores.into_dispatch());
        Tensor::from_dispatch(portable::update::<Dispatch>(parameter, noise, scores, rank, votes, limit))
    }

    fn integer_sum_votes(
        &self,
        noise: Tensor<2, Int>,
        scores: Tensor<1, Int>,
        (rank, votes): (usize, Votes),
        shape: [usize; 2],
    ) -> Vec<i32> {
        let sums = if self.portable {
            let (noise, scores) = (noise.into_dispatch(), scores.into_dispatch());
            Tensor::<2, Int>::from_dispatch(portable::sum_votes::<Dispatch>(noise, scores, rank, votes, shape))
        } else if rank == 0 {
            ops::sum_votes(noise, scores, rank, votes, [shape[1]]).reshape(shape)
        } else {
            ops::sum_votes(noise, scores, rank, votes, shape)
        };
        sums.into_data().try_to_vec().expect("an I32 tensor")
    }

    fn integer_noise(&self, key: NoiseKey, pairs: PairRange, elements: usize) -> Tensor<2, Int> {
        if !self.portable {
            return ops::noise(key, pairs, elements, &self.device);
        }
        let like = self.ints(&[0], [1]).into_dispatch();
        Tensor::from_dispatch(portable::noise::<Dispatch>(&like, key, pairs, elements))
    }
}
