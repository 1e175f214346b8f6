//! What RWKV-7 needs of rows, besides products.

use crate::backend::cpu;

/// `x ← 1/(1 + exp(−x))`, the logistic function, with an absolute error below 3e-7.
pub fn sigmoid(x: &mut [f32]) {
    cpu::sigmoid(x);
}

/// `x ← tanh(x)`, with an absolute error below 6e-7.
pub fn tanh(x: &mut [f32]) {
    cpu::tanh(x);
}

/// `y = (x − mean)/√(var + ε)·w + b` of every row of `x : [rows, n]`, for `w, b : [n]`, with the mean and the variance of each of
/// `groups` equal parts of the row. This is group normalization (Wu and He, arXiv 1803.08494); with one group, layer
/// normalization.
///
/// # Panics
///
/// Panics if the lengths do not fit.
#[track_caller]
pub fn group_norm(x: &[f32], groups: usize, weight: &[f32], bias: &[f32], epsilon: f32, y: &mut [f32]) {
    let n = weight.len();
    assert!(n > 0 && bias.len() == n, "group_norm: a bias of {} elements for a weight of {n}", bias.len());
    assert!(groups > 0 && n.is_multiple_of(groups), "group_norm: {groups} groups of {n} elements");
    assert!(x.len() == y.len() && x.len().is_multiple_of(n), "group_norm: {} values in rows of {n}", x.len());
    cpu::group_norm(x, n / groups, weight, bias, epsilon, y);
}

/// `x ← exp(−e^(−1/2)·sigmoid(x))`: the decay of RWKV-7, between 0.545 and 1.
pub fn wkv7_decay(x: &mut [f32]) {
    cpu::wkv7_decay(x);
}

/// New rows of one sequence for the recurrence of RWKV-7 (Peng et al., arXiv 2503.14456, Section 4.1). Of each head, with `S : [head_dim
/// of keys, head_dim of values]`, the transpose of the paper's state:
///
/// ```text
/// S ← diag(w)·S − (a ⊙ κ)·(κᵀ·S) + k·vᵀ
/// y = Sᵀ·r
/// ```
///
/// All rows are `[rows, heads, head_dim]`.
#[derive(Clone, Copy, Debug)]
pub struct Wkv7<'a> {
    /// Heads.
    pub heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// `w`, the [decay](wkv7_decay).
    pub decay: &'a [f32],
    /// `r`, what is read.
    pub receptance: &'a [f32],
    /// `k`, under which a value is added: the replacement key.
    pub key: &'a [f32],
    /// `v`, the value.
    pub value: &'a [f32],
    /// `κ`, what is removed: a key of norm 1 in each head.
    pub removal: &'a [f32],
    /// `a`, how much of it: the in-context learning rate.
    pub rate: &'a [f32],
}

impl Wkv7<'_> {
    /// Runs all rows in order: changes the state, `[heads, head_dim of keys, head_dim of values]`, and writes `y`. A row's result does
    /// not depend on how many rows run at once.
    ///
    /// # Panics
    ///
    /// Panics if heads or their dimension are 0, or if lengths do not fit.
    #[track_caller]
    pub fn run(self, state: &mut [f32], out: &mut [f32]) {
        let Self { heads, head_dim, decay, receptance, key, value, removal, rate } = self;
        assert!(heads > 0 && head_dim > 0, "{heads} heads of dimension {head_dim}");
        cpu::Wkv7 { heads, head_dim, decay, receptance, key, value, removal, rate, out, state }.run();
    }
}

#[cfg(test)]
mod tests;
