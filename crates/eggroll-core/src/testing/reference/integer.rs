//! Scalar oracle of integer arithmetic: each formula as it stands, in 64 bits; a member at a time.

use crate::arithmetic::integer::transformer::{
    EXP2_DIGITS, LARGEST_LOGIT, LOG2, ROTARY_BITS, Rotations, WEIGHTS, attention_shift, attention_weight, exp2_256ths,
    gelu, head_shift, log2_256ths, product_shift,
};
use crate::arithmetic::integer::{INT8_LIMIT, Rounding, Votes, exp2_sixteenths, log2_sixteenths, product_divisor};

fn clip(value: i64) -> i8 {
    value.clamp(-i64::from(INT8_LIMIT), i64::from(INT8_LIMIT)) as i8
}

/// `a / b` to nearest, halves away from zero.
pub fn divide(a: i64, b: i64) -> i64 {
    a.signum() * ((2 * a.abs() + b) / (2 * b))
}

fn shift(a: i64, bits: u32) -> i64 {
    divide(a, 1 << bits)
}

/// `round(127·v / max |v|)`
pub fn rescale(values: &[i64]) -> Vec<i8> {
    let largest = values.iter().map(|value| value.abs()).max().unwrap_or(0).max(1);
    values.iter().map(|value| divide(127 * value, largest) as i8).collect()
}

fn dot(a: &[i8], b: impl IntoIterator<Item = i8>) -> i64 {
    a.iter().zip(b).map(|(a, b)| i64::from(*a) * i64::from(b)).sum()
}

/// One member's noise of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct MemberNoise<'a> {
    /// Of a matrix `B : [rank, d_input]`, `A : [rank, d_output]`; of a vector `[2, n]`.
    pub values: &'a [i8],
    /// Columns of the factors.
    pub rank: usize,
    /// 4 + sigma shift.
    pub shift: u32,
    /// +1 or −1.
    pub sign: i64,
}

impl MemberNoise<'_> {
    /// The added noise, from the product of its factors.
    fn of_product(&self, product: i64, bits: u32, rounding: Rounding) -> i64 {
        match rounding {
            Rounding::Floor => (self.sign * product) >> bits,
            Rounding::Nearest => self.sign * shift(product, bits),
        }
    }

    /// The noise added to the product of a row, for the factors `F` and `G`, row after row.
    fn of_row(&self, x: &[i8], [from, to]: [&[i8]; 2], o: usize, rounding: Rounding) -> i64 {
        let columns = to.len() / self.rank;
        let term = |k: usize| {
            let projection = dot(x, from[k * x.len()..(k + 1) * x.len()].iter().copied());
            let projection = if rounding == Rounding::Nearest { shift(projection, 4) } else { projection };
            projection * i64::from(to[k * columns + o])
        };
        let bits = if rounding == Rounding::Nearest { self.shift - 4 } else { self.shift };
        self.of_product((0..self.rank).map(term).sum(), bits, rounding)
    }
}

/// One row of [`linear`](crate::ops::integer::linear), under a member's bias.
pub fn linear(
    x: &[i8],
    weight: &[i8],
    noise: Option<MemberNoise>,
    bias: Option<&[i8]>,
    activate: bool,
    rounding: Rounding,
) -> Vec<i8> {
    let d_output = weight.len() / x.len();
    let output = |o: usize| {
        let mut sum = dot(x, weight.iter().copied().skip(o).step_by(d_output));
        if let Some(noise) = &noise {
            let (b, a) = noise.values.split_at(noise.rank * x.len());
            sum += noise.of_row(x, [b, a], o, rounding);
        }
        let scaled = match rounding {
            Rounding::Floor => sum.div_euclid(i64::from(product_divisor(x.len()))),
            Rounding::Nearest => shift(sum, product_shift(x.len())),
        };
        let y = clip(scaled + bias.map_or(0, |bias| i64::from(bias[o])));
        if activate { gelu(y) } else { y }
    };
    (0..d_output).map(output).collect()
}

/// One row of [`head`](crate::ops::integer::head).
pub fn head(x: &[i8], embedding: &[i8], noise: Option<MemberNoise>) -> Vec<i32> {
    let output = |(token, row): (usize, &[i8])| {
        let mut sum = dot(x, row.iter().copied());
        if let Some(noise) = &noise {
            let (b, a) = noise.values.split_at(noise.rank * embedding.len() / x.len());
            sum += noise.of_row(x, [a, b], token, Rounding::Nearest);
        }
        shift(sum, head_shift(x.len())).clamp(-i64::from(LARGEST_LOGIT), i64::from(LARGEST_LOGIT)) as i32
    };
    embedding.chunks(x.len()).enumerate().map(output).collect()
}

/// One row of [`embedding`](crate::ops::integer::embedding), under a member's bias.
pub fn embedding(
    token: usize,
    weight: &[i8],
    width: usize,
    noise: Option<MemberNoise>,
    bias: Option<&[i8]>,
    rounding: Rounding,
) -> Vec<i8> {
    let vocab = weight.len() / width;
    let element = |i: usize| {
        let by = noise.map_or(0, |noise| {
            let (b, a) = noise.values.split_at(noise.rank * vocab);
            let term = |k: usize| i64::from(b[k * vocab + token]) * i64::from(a[k * width + i]);
            noise.of_product((0..noise.rank).map(term).sum(), noise.shift, rounding)
        });
        i64::from(weight[token * width + i]) + by + bias.map_or(0, |bias| i64::from(bias[i]))
    };
    of_sums(&(0..width).map(element).collect::<Vec<_>>(), rounding)
}

/// A row of sums, made int8.
fn of_sums(sums: &[i64], rounding: Rounding) -> Vec<i8> {
    match rounding {
        Rounding::Floor => sums.iter().map(|sum| clip(*sum)).collect(),
        Rounding::Nearest => rescale(sums),
    }
}

/// A vector under a member's noise: `clip(θ + ⌊s·n₀·n₁ / 2^shift⌋)`, or `clip(θ + s·round(n₀·n₁ / 2^shift))`.
pub fn vector(vector: &[i8], noise: Option<MemberNoise>, rounding: Rounding) -> Vec<i8> {
    let n = vector.len();
    let element = |i: usize| {
        let by = noise.map_or(0, |noise| {
            let product = i64::from(noise.values[i]) * i64::from(noise.values[n + i]);
            noise.of_product(product, noise.shift, rounding)
        });
        clip(i64::from(vector[i]) + by)
    };
    (0..n).map(element).collect()
}

/// One row of [`norm`](crate::ops::integer::norm), under a member's gain and bias.
pub fn norm(x: &[i8], gain: &[i8], bias: Option<&[i8]>, rounding: Rounding) -> Vec<i8> {
    let (magnitude, n): (i64, _) = (x.iter().map(|x| i64::from(*x).abs()).sum(), x.len() as i64);
    let element = |i: usize| {
        let numerator = i64::from(x[i]) * i64::from(gain[i]);
        let quotient = match (rounding, magnitude.max(1) / n) {
            (Rounding::Nearest, _) => divide(numerator, divide(magnitude, n).max(1)),
            (Rounding::Floor, 0) if numerator == 0 => -1,
            (Rounding::Floor, 0) => -2,
            (Rounding::Floor, mean) => numerator.div_euclid(mean),
        };
        clip(quotient + bias.map_or(0, |bias| i64::from(bias[i])))
    };
    (0..x.len()).map(element).collect()
}

/// One row of [`add`](crate::ops::integer::add).
pub fn add(a: &[i8], b: &[i8], rounding: Rounding) -> Vec<i8> {
    of_sums(&a.iter().zip(b).map(|(a, b)| i64::from(*a) + i64::from(*b)).collect::<Vec<_>>(), rounding)
}

/// One step of a minimal GRU: the new state. `product(gate, v)` is `v·U` for gate 0 (forget) and 1 (candidate).
pub fn gru_step(
    inputs: [&[i8]; 2],
    state: &[i8],
    biases: [&[i8]; 2],
    product: impl Fn(usize, &[i8]) -> Vec<i8>,
) -> Vec<i8> {
    let gate = |g: usize, product: Vec<i8>| -> Vec<i64> {
        let sum = |i: usize| i64::from(inputs[g][i]) + i64::from(product[i]) + i64::from(biases[g][i]);
        (0..state.len()).map(|i| i64::from(clip(sum(i)))).collect()
    };
    let forget = gate(0, product(0, state));
    let gated: Vec<i8> = forget.iter().zip(state).map(|(f, h)| (((f + 127) * i64::from(*h)) >> 8) as i8).collect();
    let candidate = gate(1, product(1, &gated));
    let step =
        |i: usize| state[i].wrapping_add((((forget[i] + 127) * (candidate[i] - i64::from(state[i]))) >> 8) as i8);
    (0..state.len()).map(step).collect()
}

/// One head of one row of [`rotary`](crate::ops::integer::rotary).
pub fn rotary(x: &[i8], position: usize) -> Vec<i8> {
    let half = x.len() / 2;
    let Rotations { cos, sin } = Rotations::new(position, 1, x.len());
    let turned = |i: usize| {
        let (j, other) = (i % half, i64::from(x[(i + half) % x.len()]));
        let other = if i < half { -other } else { other };
        shift(i64::from(x[i]) * i64::from(cos[j]) + other * i64::from(sin[j]), ROTARY_BITS)
    };
    rescale(&(0..x.len()).map(turned).collect::<Vec<_>>())
}

/// One head of one row of [`attention`](crate::ops::integer::attention), with the keys and values that it may see,
/// `[context, d_head]`.
pub fn attention(query: &[i8], keys: &[i8], values: &[i8]) -> Vec<i8> {
    let d = query.len();
    let scores: Vec<i64> = keys.chunks(d).map(|key| dot(query, key.iter().copied())).collect();
    let largest = scores.iter().max().copied().unwrap_or(0);
    let weight = |score: &i64| attention_weight(shift(largest - score, attention_shift(d)) as i32, &WEIGHTS);
    let weights: Vec<i64> = scores.iter().map(|score| i64::from(weight(score))).collect();
    let value = |c: usize| {
        let sum = weights.iter().zip(values.chunks(d)).map(|(weight, value)| weight * i64::from(value[c])).sum();
        divide(sum, weights.iter().sum()) as i8
    };
    (0..d).map(value).collect()
}

/// The log-likelihood of one target in sixteenths of a bit.
pub fn log_likelihood(logits: &[i8], target: usize) -> i32 {
    let q = |logit: i8| (i32::from(logit) + 128) as u32;
    let sum = logits.iter().map(|logit| exp2_sixteenths(q(*logit))).sum();
    q(logits[target]) as i32 - log2_sixteenths(sum)
}

/// The log-likelihood of one target in 1/256 bit.
pub fn fine_log_likelihood(logits: &[i32], target: usize) -> i32 {
    let largest = *logits.iter().max().expect("a class");
    let sum = logits.iter().map(|logit| exp2_256ths(largest - logit, &EXP2_DIGITS)).sum();
    logits[target] - largest - log2_256ths(sum, &LOG2)
}

/// `Z` of a parameter: of a matrix for `rank > 0`, of a vector for rank 0. `noise : [pairs, …]`.
pub fn votes(noise: &[i8], scores: &[i8], shape: [usize; 2], rank: usize, votes: Votes) -> Vec<i64> {
    let [d_input, d_output] = shape;
    let each = noise.len() / scores.len();
    let value = |v: i8| match votes {
        Votes::Values => i64::from(v),
        Votes::Signs => i64::from(v.signum()),
    };
    let mut sum = vec![0; d_input * d_output];
    for (noise, score) in noise.chunks(each).zip(scores) {
        for (at, sum) in sum.iter_mut().enumerate() {
            let (i, o) = (at / d_output, at % d_output);
            let vote: i64 = if rank == 0 {
                value(noise[at]) * value(noise[d_input * d_output + at])
            } else {
                let b = |k| value(noise[k * d_input + i]);
                let a = |k| value(noise[rank * d_input + k * d_output + o]);
                (0..rank).map(|k| b(k) * a(k)).sum()
            };
            *sum += i64::from(*score) * vote;
        }
    }
    sum
}

/// The inputs of a weight by part.
#[derive(Clone, Debug)]
pub enum PartRows {
    /// Rows of `x·W`, one after the other.
    Rows(Vec<i8>),
    /// Rows of `x·Wᵀ`.
    Transposed(Vec<i8>),
    /// Rows of `W` that are looked up.
    Indices(Vec<usize>),
}

/// The votes of every weight if each part votes on its own row: votes `[rows, pairs]`. They are multiplied by a power of two, so the result is exact.
pub fn part_votes(
    noise: &[i8],
    votes: &[i8],
    given: &PartRows,
    [d_input, d_output]: [usize; 2],
    rank: usize,
    kind: Votes,
) -> Vec<f64> {
    let each = rank * (d_input + d_output);
    let pairs = noise.len() / each;
    let value = |at: usize| match kind {
        Votes::Values => i64::from(noise[at]),
        Votes::Signs => i64::from(noise[at].signum()),
    };
    // Column k of the pairs' factors: of B for input i, of A for output o.
    let b = |k: usize, i: usize| value(k / rank * each + k % rank * d_input + i);
    let a = |k: usize, o: usize| value(k / rank * each + rank * d_input + k % rank * d_output + o);
    let (rows, width) = match given {
        PartRows::Rows(x) => (x.len() / d_input, d_output),
        PartRows::Transposed(x) => (x.len() / d_output, d_input),
        PartRows::Indices(indices) => (indices.len(), d_output),
    };
    let columns = pairs * rank;
    let mut seen = vec![0; rows * columns];
    for (at, seen) in seen.iter_mut().enumerate() {
        let (row, k) = (at / columns, at % columns);
        *seen = match given {
            PartRows::Rows(x) => (0..d_input).map(|i| i64::from(x[row * d_input + i]) * b(k, i)).sum(),
            PartRows::Transposed(x) => (0..d_output).map(|o| i64::from(x[row * d_output + o]) * a(k, o)).sum(),
            PartRows::Indices(indices) => b(k, indices[row]),
        };
    }
    let (seen, unit) = narrowed(&seen, 128);
    let other = |k: usize, at: usize| if let PartRows::Transposed(_) = given { b(k, at) } else { a(k, at) };
    let mut sums = vec![0; rows * width];
    for (at, sum) in sums.iter_mut().enumerate() {
        let row = at / width;
        let term = |k: usize| i64::from(votes[row * pairs + k / rank]) * seen[row * columns + k] * other(k, at % width);
        *sum = (0..columns).map(term).sum();
    }
    let mut all = vec![0; d_input * d_output];
    let scale = match given {
        PartRows::Indices(indices) => {
            let (sums, more) = narrowed(&sums, 128);
            for (at, sum) in sums.iter().enumerate() {
                all[indices[at / width] * d_output + at % width] += sum;
            }
            unit * more
        }
        PartRows::Rows(x) | PartRows::Transposed(x) => {
            let depth = x.len() / rows;
            let square =
                |row: usize| x[row * depth..(row + 1) * depth].iter().map(|v| i64::from(*v).pow(2)).sum::<i64>();
            let squares: Vec<i64> = (0..rows).map(square).collect();
            let nonzero = squares.iter().filter(|square| **square > 0).count().max(1) as i64;
            let mean = squares.iter().sum::<i64>() / nonzero;
            let share = |square: i64| if square == 0 { 0 } else { ((16 * mean + square / 2) / square).clamp(1, 127) };
            let (sums, wide) = narrowed(&sums, 32_768);
            let weighed = sums.into_iter().enumerate().map(|(at, sum)| sum * share(squares[at / width]));
            let (parts, narrow) = narrowed(&weighed.collect::<Vec<_>>(), 128);
            for (at, part) in parts.iter().enumerate() {
                let (row, column) = (at / width, at % width);
                for (from, x) in x[row * depth..(row + 1) * depth].iter().enumerate() {
                    let [i, o] = if let PartRows::Rows(_) = given { [from, column] } else { [column, from] };
                    all[i * d_output + o] += i64::from(*x) * part;
                }
            }
            unit * wide * narrow / f64::from(1 << (16 * mean).max(1).ilog2())
        }
    };
    all.into_iter().map(|sum| sum as f64 * scale).collect()
}

/// The values divided by the least power of two that leaves none above `most`, halves rounded up; and that power.
fn narrowed(values: &[i64], most: i64) -> (Vec<i64>, f64) {
    let largest = values.iter().map(|value| value.abs()).max().unwrap_or(0);
    let bits = (0..).find(|bits| largest <= most << bits).expect("some power is enough");
    let narrow = |value: &i64| if bits == 0 { *value } else { (value + (1 << (bits - 1))) >> bits };
    (values.iter().map(narrow).collect(), f64::from(1 << bits))
}

/// A weight after its vote.
pub fn step(weight: i8, vote: i64, limit: i32) -> i8 {
    match vote {
        vote if vote.abs() < i64::from(limit) => weight,
        vote if vote > 0 => clip(i64::from(weight) + 1),
        _ => clip(i64::from(weight) - 1),
    }
}
