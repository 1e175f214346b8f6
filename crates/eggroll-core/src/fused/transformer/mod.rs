//! Transformer operations on rows of any members, on the host and without tensors, for the language models of
//! `eggroll-lm`.
//!
//! Rows of activations are `[rows, width]`, of any number of sequences of any members. The base product of all rows is one product with a weight
//! that is packed once ([`PackedMatrix`]), in float32, bfloat16 or int8. The product of a row with its member's low-rank noise is added in
//! float32 ([`Factors`]). All other operations treat each row independently of its neighbors: results do not depend on how sequences are batched.

mod activations;
mod factors;
mod key_values;
mod matrix;
mod precision;
mod rwkv7;

pub use crate::backend::cpu::ChainRow as MemberRow;
pub use activations::Activations;
pub use factors::Factors;
pub use key_values::{AttentionScores, KeyValues};
pub use matrix::PackedMatrix;
pub use precision::Precision;
pub use rwkv7::{Wkv7, group_norm, sigmoid, tanh, wkv7_decay};

use crate::backend::cpu;

/// `ln Σ exp(x)` of a row of logits; NaN if an element is NaN or +∞.
///
/// # Example
///
/// ```
/// let logits = [1.0, 2.0, 3.0];
/// let log_probability = logits[2] - eggroll_core::transformer::log_sum_exp(&logits);
/// assert!((log_probability - 0.665241f32.ln()).abs() < 1e-5);
/// ```
pub fn log_sum_exp(logits: &[f32]) -> f32 {
    if logits.iter().any(|logit| logit.is_nan()) {
        return f32::NAN;
    }
    cpu::log_sum_exp(logits)
}

/// The index of the largest of a row of logits, the first of equal ones. `None` of a row that is empty or has a NaN.
pub fn argmax(logits: &[f32]) -> Option<usize> {
    if logits.iter().fold(false, |found, logit| found | logit.is_nan()) {
        return None;
    }
    // Integers ordered as the numbers are: their maximum takes vector instructions. Read twice, the order gives the bits back.
    let ordered = |bits: i32| bits ^ ((bits >> 31) & i32::MAX);
    let largest = logits.iter().map(|logit| ordered(logit.to_bits() as i32)).max()?;
    let largest = f32::from_bits(ordered(largest) as u32);
    logits.iter().position(|logit| *logit == largest)
}

/// Rotary position embedding of rows `[rows, heads, head_dim]` in place (Su et al., arXiv 2104.09864). The pair `(x[i], x[i + half])` of
/// a head, `half = head_dim/2`, is turned by the angle of the row's position. `cosines` and `sines` are `[positions, half]`.
///
/// # Panics
///
/// Panics if lengths do not fit, or if a position is not in the tables.
#[track_caller]
pub fn rotary(x: &mut [f32], heads: usize, positions: &[u32], cosines: &[f32], sines: &[f32], half: usize) {
    let (values, rows) = (x.len(), positions.len());
    assert!(
        values == rows * heads * 2 * half,
        "rotary: {values} values for {rows} rows of {heads} heads of {}",
        2 * half
    );
    let last = positions.iter().max().map_or(0, |last| *last as usize + 1);
    let known = cosines.len().min(sines.len()) / half.max(1);
    assert!(last <= known, "rotary: position {} of tables for {known} positions", last.max(1) - 1);
    cpu::rotary(x, heads, positions, cosines, sines, half);
}

/// `y = x·w / √(mean(x²) + ε)` of every row of `x : [rows, n]`, for a weight `[n]`: RMSNorm, as [`Activations::rms_norm`].
///
/// # Panics
///
/// Panics if `x` is not made of rows as long as the weight, or `y` has another length.
#[track_caller]
pub fn rms_norm(x: &[f32], weight: &[f32], epsilon: f32, y: &mut [f32]) {
    let (values, n) = (x.len(), weight.len());
    assert!(
        n > 0 && values.is_multiple_of(n) && y.len() == values,
        "rms_norm: {values} values in rows of {n}, {} wanted",
        y.len()
    );
    cpu::rms_norm(x, weight, epsilon, y);
}

#[cfg(test)]
mod tests;
