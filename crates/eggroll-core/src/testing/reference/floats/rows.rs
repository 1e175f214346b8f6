//! Operations between layers, and losses.

use crate::ops::rows::{Activation, CausalAttention};

/// `½·erfc(−x/√2)`, by the midpoints of an integral of the density.
fn normal_distribution(x: f64) -> f64 {
    let (steps, far) = (200_000, 12.0);
    let width = (x + far) / f64::from(steps);
    let density = |i: i32| {
        let z = -far + (f64::from(i) + 0.5) * width;
        (-0.5 * z * z).exp()
    };
    width * (0..steps).map(density).sum::<f64>() / (2.0 * std::f64::consts::PI).sqrt()
}

pub(crate) fn activation(function: Activation, x: f64) -> f64 {
    match function {
        Activation::Gelu => x * normal_distribution(x),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
    }
}

/// `x / √(mean(x²) + epsilon)`, row by row.
pub(crate) fn rms_normalized(x: &[f64], width: usize, epsilon: f64) -> Vec<f64> {
    let row = |x: &[f64]| {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / width as f64;
        x.iter().map(|x| x / (mean + epsilon).sqrt()).collect::<Vec<f64>>()
    };
    x.chunks(width).flat_map(row).collect()
}

/// `h ← (1 − f)·kept·h + f·candidate` with `f = σ(forget)`, one step after the other: `[batch, steps, width]`.
pub(crate) fn gated_recurrence(
    [forget, candidate]: [&[f64]; 2],
    kept: &[f64],
    state: &[f64],
    [batch, steps, width]: [usize; 3],
) -> Vec<f64> {
    let mut states = vec![0.0; batch * steps * width];
    for b in 0..batch {
        let mut h = state[b * width..][..width].to_vec();
        for t in 0..steps {
            for (c, h) in h.iter_mut().enumerate() {
                let at = (b * steps + t) * width + c;
                let f = 1.0 / (1.0 + (-forget[at]).exp());
                *h = (1.0 - f) * kept[b * steps + t] * *h + f * candidate[at];
                states[at] = *h;
            }
        }
    }
    states
}

/// Softmax attention to the last `window` steps, one step after the other: `[batch, steps, width]`.
pub(crate) fn causal_attention(
    operands: [&[f64]; 3],
    [batch, steps, width]: [usize; 3],
    attention: CausalAttention,
) -> Vec<f64> {
    let [query, key, value] = operands;
    let CausalAttention { heads, window, rotary } = attention;
    let d = width / heads;
    let turned = |x: &[f64], step: usize| -> Vec<f64> {
        let Some(base) = rotary else { return x.to_vec() };
        let angle = |i: usize| step as f64 * f64::from(base).powf(-2.0 * i as f64 / d as f64);
        let (first, second) = x.split_at(d / 2);
        let one = |i: usize| first[i] * angle(i).cos() - second[i] * angle(i).sin();
        let other = |i: usize| second[i] * angle(i).cos() + first[i] * angle(i).sin();
        (0..d / 2).map(one).chain((0..d / 2).map(other)).collect()
    };
    let mut out = vec![0.0; batch * steps * width];
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        let at = |step: usize| (b * steps + step) * width + h * d;
        for t in 0..steps {
            let q = turned(&query[at(t)..][..d], t);
            let seen = (t + 1).saturating_sub(window)..t + 1;
            let score = |s: usize| {
                let k = turned(&key[at(s)..][..d], s);
                (q.iter().zip(&k).map(|(q, k)| q * k).sum::<f64>() / (d as f64).sqrt()).exp()
            };
            let scores: Vec<f64> = seen.clone().map(score).collect();
            let sum: f64 = scores.iter().sum();
            for (s, score) in seen.zip(&scores) {
                for i in 0..d {
                    out[at(t) + i] += score / sum * value[at(s) + i];
                }
            }
        }
    }
    out
}

/// The mean of `ln Σ exp(logits) − logits[target]` over the rows of each member.
pub(crate) fn cross_entropy(logits: &[f64], targets: &[i64], classes: usize) -> Vec<f64> {
    let row = |(row, target): (&[f64], &i64)| {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|logit| (logit - largest).exp()).sum();
        sum.ln() + largest - row[*target as usize]
    };
    let member = |logits: &[f64]| logits.chunks(classes).zip(targets).map(row).sum::<f64>() / targets.len() as f64;
    logits.chunks(classes * targets.len()).map(member).collect()
}
