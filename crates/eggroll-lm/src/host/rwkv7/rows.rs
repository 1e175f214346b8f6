//! Operations on rows, `[rows, hidden_size]`, between products.

use super::super::decoder::Sequence;
use super::state::Rwkv7State;
use eggroll_core::transformer::Activations;

/// For each row, the row before it in its sequence minus the row; stores the last rows of the sequences in `last`.
pub(super) fn shift(
    x: &[f32],
    width: usize,
    sequences: &mut [Sequence<'_, Rwkv7State>],
    last: impl Fn(&mut Rwkv7State) -> &mut Vec<f32>,
    difference: &mut Vec<f32>,
) {
    difference.resize(x.len(), 0.0);
    let (mut x, mut difference) = (x, difference.as_mut_slice());
    for sequence in sequences {
        let size = sequence.tokens.len() * width;
        let (own, others) = x.split_at(size);
        let (target, rest) = std::mem::take(&mut difference).split_at_mut(size);
        (x, difference) = (others, rest);
        let last = last(sequence.state);
        let before = last.iter().chain(own);
        target.iter_mut().zip(before.zip(own)).for_each(|(target, (before, x))| *target = before - x);
        if let Some(row) = own.chunks_exact(width).next_back() {
            last.copy_from_slice(row);
        }
    }
}

/// `x + difference ⊙ mix` of all rows.
pub(super) fn mixed(input: &mut Activations, x: &[f32], difference: &[f32], mix: &[f32]) {
    let width = mix.len();
    input.fill(x.len() / width, width, |out| {
        let rows = x.chunks_exact(width).zip(difference.chunks_exact(width));
        for (out, (x, difference)) in out.chunks_exact_mut(width).zip(rows) {
            for ((out, mix), (x, difference)) in out.iter_mut().zip(mix).zip(x.iter().zip(difference)) {
                *out = x + difference * mix;
            }
        }
    });
}

/// The keys of time mixing: what each row removes, `k ⊙ k_k` divided by its norm in each head, and what it adds,
/// `k ← k ⊙ (1 + (a − 1) ⊙ k_a)`.
pub(super) fn keys(k: &mut [f32], a: &[f32], k_k: &[f32], k_a: &[f32], head_dim: usize, removal: &mut [f32]) {
    let width = k_k.len();
    let rows = k.chunks_exact_mut(width).zip(a.chunks_exact(width));
    for ((k, a), removal) in rows.zip(removal.chunks_exact_mut(width)) {
        for ((removal, k), k_k) in removal.iter_mut().zip(&*k).zip(k_k) {
            *removal = k * k_k;
        }
        for head in removal.chunks_exact_mut(head_dim) {
            let inverse = 1.0 / dot(head, head).sqrt().max(1e-12);
            head.iter_mut().for_each(|x| *x *= inverse);
        }
        for ((k, a), k_a) in k.iter_mut().zip(a).zip(k_a) {
            *k += *k * (a - 1.0) * k_a;
        }
    }
}

/// The contribution of a row's own value, `(r·(k ⊙ r_k))·v` in each head, and the gate.
pub(super) struct Own<'a> {
    pub r: &'a [f32],
    pub k: &'a [f32],
    pub v: &'a [f32],
    pub r_k: &'a [f32],
    pub g: &'a [f32],
    pub head_dim: usize,
}

impl Own<'_> {
    /// `y ← (y + (r·(k ⊙ r_k))·v) ⊙ g`
    pub fn add(&self, y: &mut [f32]) {
        let (dim, heads) = (self.head_dim, self.r_k.len() / self.head_dim);
        for (head, y) in y.chunks_exact_mut(dim).enumerate() {
            let [r, k, v, g] = [self.r, self.k, self.v, self.g].map(|rows| &rows[head * dim..][..dim]);
            let r_k = &self.r_k[head % heads * dim..][..dim];
            let weight = sum(dim, |i| r[i] * k[i] * r_k[i]);
            for ((y, v), g) in y.iter_mut().zip(v).zip(g) {
                *y = (*y + weight * v) * g;
            }
        }
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum(a.len(), |i| a[i] * b[i])
}

/// `Σ f(i)` for `i < len`, in eight sums side by side, which the compiler keeps in vectors.
#[inline(always)]
fn sum(len: usize, f: impl Fn(usize) -> f32) -> f32 {
    const SUMS: usize = 8;
    let mut sums = [0.0f32; SUMS];
    let whole = len - len % SUMS;
    for start in (0..whole).step_by(SUMS) {
        for (k, sum) in sums.iter_mut().enumerate() {
            *sum += f(start + k);
        }
    }
    (whole..len).map(f).sum::<f32>() + sums.iter().sum::<f32>()
}
