//! Scalar oracle of the integer transformer: each formula as it stands, in 64 bits; a member at a time.

use super::integer::MemberNoise;
use crate::arithmetic::integer::INT8_LIMIT;
use crate::arithmetic::integer::transformer::{
    EXP2_DIGITS, LARGEST_LOGIT, LOG2, ROTARY_BITS, Rotations, WEIGHTS, attention_shift, attention_weight, exp2_256ths,
    gelu, head_shift, log2_256ths, product_shift,
};

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

fn dot(a: &[i8], b: impl IntoIterator<Item = i8>) -> i64 {
    a.iter().zip(b).map(|(a, b)| i64::from(*a) * i64::from(b)).sum()
}

/// What noise adds to a product: `s·round(Σ_k round(x·F_k / 16)·G_k[o] / 2^σ)` for the factors `F` and `G`, row after row.
fn low_rank(x: &[i8], noise: &MemberNoise, [from, to]: [&[i8]; 2], o: usize) -> i64 {
    let columns = to.len() / noise.rank;
    let term = |k: usize| {
        let projection = dot(x, from[k * x.len()..(k + 1) * x.len()].iter().copied());
        shift(projection, 4) * i64::from(to[k * columns + o])
    };
    noise.sign * shift((0..noise.rank).map(term).sum(), noise.shift - 4)
}

/// One row of [`linear`](crate::ops::integer::transformer::linear), under a member's bias.
pub fn linear(x: &[i8], weight: &[i8], noise: Option<MemberNoise>, bias: Option<&[i8]>, activate: bool) -> Vec<i8> {
    let d_output = weight.len() / x.len();
    let output = |o: usize| {
        let mut sum = dot(x, weight.iter().copied().skip(o).step_by(d_output));
        if let Some(noise) = &noise {
            let (b, a) = noise.values.split_at(noise.rank * x.len());
            sum += low_rank(x, noise, [b, a], o);
        }
        let y = clip(shift(sum, product_shift(x.len())) + bias.map_or(0, |bias| i64::from(bias[o])));
        if activate { gelu(y) } else { y }
    };
    (0..d_output).map(output).collect()
}

/// One row of [`head`](crate::ops::integer::transformer::head).
pub fn head(x: &[i8], embedding: &[i8], noise: Option<MemberNoise>) -> Vec<i32> {
    let output = |(token, row): (usize, &[i8])| {
        let mut sum = dot(x, row.iter().copied());
        if let Some(noise) = &noise {
            let (b, a) = noise.values.split_at(noise.rank * embedding.len() / x.len());
            sum += low_rank(x, noise, [a, b], token);
        }
        shift(sum, head_shift(x.len())).clamp(-i64::from(LARGEST_LOGIT), i64::from(LARGEST_LOGIT)) as i32
    };
    embedding.chunks(x.len()).enumerate().map(output).collect()
}

/// A vector as a member sees it: `clip(θ + s·round(n₀·n₁ / 2^shift))`.
pub fn vector(vector: &[i8], noise: Option<MemberNoise>) -> Vec<i8> {
    let n = vector.len();
    let element = |i: usize| {
        let by = noise.map_or(0, |noise| {
            noise.sign * shift(i64::from(noise.values[i]) * i64::from(noise.values[n + i]), noise.shift)
        });
        clip(i64::from(vector[i]) + by)
    };
    (0..n).map(element).collect()
}

/// `round(127·v / max |v|)`
pub fn rescale(values: &[i64]) -> Vec<i8> {
    let largest = values.iter().map(|value| value.abs()).max().unwrap_or(0).max(1);
    values.iter().map(|value| divide(127 * value, largest) as i8).collect()
}

/// One row of [`embedding`](crate::ops::integer::transformer::embedding), under a member's bias.
pub fn embedding(token: usize, weight: &[i8], noise: Option<MemberNoise>, bias: &[i8]) -> Vec<i8> {
    let (width, vocab) = (bias.len(), weight.len() / bias.len());
    let element = |i: usize| {
        let by = noise.map_or(0, |noise| {
            let (b, a) = noise.values.split_at(noise.rank * vocab);
            let term = |k: usize| i64::from(b[k * vocab + token]) * i64::from(a[k * width + i]);
            noise.sign * shift((0..noise.rank).map(term).sum(), noise.shift)
        });
        i64::from(weight[token * width + i]) + by + i64::from(bias[i])
    };
    rescale(&(0..width).map(element).collect::<Vec<_>>())
}

/// One row of [`norm`](crate::ops::integer::transformer::norm), under a member's gain and bias.
pub fn norm(x: &[i8], gain: &[i8], bias: &[i8]) -> Vec<i8> {
    let mean = divide(x.iter().map(|x| i64::from(*x).abs()).sum(), x.len() as i64).max(1);
    let element = |i: usize| clip(divide(i64::from(x[i]) * i64::from(gain[i]), mean) + i64::from(bias[i]));
    (0..x.len()).map(element).collect()
}

/// One row of [`add`](crate::ops::integer::transformer::add).
pub fn add(x: &[i8], y: &[i8]) -> Vec<i8> {
    rescale(&x.iter().zip(y).map(|(x, y)| i64::from(*x) + i64::from(*y)).collect::<Vec<_>>())
}

/// One head of one row of [`rotary`](crate::ops::integer::transformer::rotary).
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

/// One head of one row of [`attention`](crate::ops::integer::transformer::attention): the keys and values are those it may see, `[context,
/// d_head]`.
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

/// What a target costs in 1/256 bit: the summand of [`log_likelihood`](crate::ops::integer::transformer::log_likelihood), negated.
pub fn loss(logits: &[i32], target: usize) -> i32 {
    let largest = *logits.iter().max().expect("a class");
    let sum = logits.iter().map(|logit| exp2_256ths(largest - logit, &EXP2_DIGITS)).sum();
    log2_256ths(sum, &LOG2) + largest - logits[target]
}
