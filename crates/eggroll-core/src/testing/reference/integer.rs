//! Scalar oracle of integer arithmetic: each formula as it stands, in 64 bits; a member at a time.

use crate::arithmetic::integer::{INT8_LIMIT, Votes, exp2_sixteenths, log2_sixteenths, product_divisor};

fn clip(value: i64) -> i8 {
    value.clamp(-i64::from(INT8_LIMIT), i64::from(INT8_LIMIT)) as i8
}

fn dot(a: impl Iterator<Item = i8>, b: impl Iterator<Item = i8>) -> i64 {
    a.zip(b).map(|(a, b)| i64::from(a) * i64::from(b)).sum()
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
    fn factor(&self, offset: usize, len: usize, k: usize) -> impl Iterator<Item = i8> {
        self.values[offset + k * len..offset + (k + 1) * len].iter().copied()
    }
}

/// One row of [`linear`](crate::ops::integer::linear).
pub fn linear(x: &[i8], weight: &[i8], noise: Option<MemberNoise>) -> Vec<i8> {
    let (d_input, d_output) = (x.len(), weight.len() / x.len());
    let output = |o: usize| {
        let column = weight.iter().copied().skip(o).step_by(d_output);
        let mut sum = dot(x.iter().copied(), column);
        if let Some(noise) = noise {
            let product: i64 = (0..noise.rank)
                .map(|k| {
                    let a = i64::from(noise.values[noise.rank * d_input + k * d_output + o]);
                    dot(x.iter().copied(), noise.factor(0, d_input, k)) * noise.sign * a
                })
                .sum();
            sum += product >> noise.shift;
        }
        clip(sum.div_euclid(i64::from(product_divisor(d_input))))
    };
    (0..d_output).map(output).collect()
}

/// One row of [`embedding`](crate::ops::integer::embedding).
pub fn embedding(token: usize, weight: &[i8], width: usize, noise: Option<MemberNoise>) -> Vec<i8> {
    let vocab = weight.len() / width;
    let element = |o: usize| {
        let mut value = i64::from(weight[token * width + o]);
        if let Some(noise) = noise {
            let product: i64 = (0..noise.rank)
                .map(|k| {
                    let b = i64::from(noise.values[k * vocab + token]);
                    b * noise.sign * i64::from(noise.values[noise.rank * vocab + k * width + o])
                })
                .sum();
            value += product >> noise.shift;
        }
        clip(value)
    };
    (0..width).map(element).collect()
}

/// A vector as a member sees it: `clip(θ + ⌊s·n₀·n₁ / 2^shift⌋)`.
pub fn vector(vector: &[i8], noise: Option<MemberNoise>) -> Vec<i8> {
    let n = vector.len();
    let element = |i: usize| {
        let shift = noise.map_or(0, |noise| {
            (i64::from(noise.values[i]) * i64::from(noise.values[n + i]) * noise.sign) >> noise.shift
        });
        clip(i64::from(vector[i]) + shift)
    };
    (0..n).map(element).collect()
}

/// One row of [`layer_norm`](crate::ops::integer::layer_norm) under a member's weight.
pub fn layer_norm(x: &[i8], weight: &[i8]) -> Vec<i8> {
    let magnitude: i64 = x.iter().map(|x| i64::from(*x).abs()).sum();
    let mean = magnitude.max(1) / x.len() as i64;
    let element = |(x, w): (&i8, &i8)| {
        let numerator = i64::from(*x) * i64::from(*w);
        match (mean, numerator) {
            (0, 0) => -1,
            (0, _) => -2,
            _ => clip(numerator.div_euclid(mean)),
        }
    };
    x.iter().zip(weight).map(element).collect()
}

/// `clip(Σ values)`
pub fn add(values: &[i8]) -> i8 {
    clip(values.iter().map(|value| i64::from(*value)).sum())
}

/// One step of a minimal GRU: the new state. `product(gate, v)` is `v·U` for gate 0 (forget) and 1 (candidate).
pub fn gru_step(
    inputs: [&[i8]; 2],
    state: &[i8],
    biases: [&[i8]; 2],
    product: impl Fn(usize, &[i8]) -> Vec<i8>,
) -> Vec<i8> {
    let gate = |g: usize, product: Vec<i8>| -> Vec<i64> {
        let sum = |i: usize| i64::from(add(&[inputs[g][i], product[i], biases[g][i]]));
        (0..state.len()).map(sum).collect()
    };
    let forget = gate(0, product(0, state));
    let gated: Vec<i8> = forget.iter().zip(state).map(|(f, h)| (((f + 127) * i64::from(*h)) >> 8) as i8).collect();
    let candidate = gate(1, product(1, &gated));
    let step =
        |i: usize| state[i].wrapping_add((((forget[i] + 127) * (candidate[i] - i64::from(state[i]))) >> 8) as i8);
    (0..state.len()).map(step).collect()
}

/// The log-likelihood of one target in sixteenths of a bit.
pub fn log_likelihood(logits: &[i8], target: usize) -> i32 {
    let q = |logit: i8| (i32::from(logit) + 128) as u32;
    let sum = logits.iter().map(|logit| exp2_sixteenths(q(*logit))).sum();
    q(logits[target]) as i32 - log2_sixteenths(sum)
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

/// A weight after its vote.
pub fn step(weight: i8, vote: i64, limit: i32) -> i8 {
    match vote {
        vote if vote.abs() < i64::from(limit) => weight,
        vote if vote > 0 => clip(i64::from(weight) + 1),
        _ => clip(i64::from(weight) - 1),
    }
}
