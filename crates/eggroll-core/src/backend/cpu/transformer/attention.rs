//! Causal attention of a sequence's new rows over its keys and values.

use super::pointwise::largest;
use crate::backend::cpu::activation::{Element, Tanh};
use crate::backend::cpu::exp::exp;
use crate::backend::cpu::product::{Product, for_vectors, load_some};
use crate::backend::cpu::tile::{MAX_COLUMNS, Panels, Strided};
use crate::simd::{Kernel, Simd, dispatch};

/// New rows that are taken together: later ones see more keys.
const BLOCK: usize = 28;

/// Attention of one layer.
pub(crate) struct Attend<'a> {
    /// `[rows, heads, head_dim]`
    pub queries: &'a [f32],
    /// Of each head of keys: blocks of 32 positions, `[head_dim, 32]` each.
    pub keys: &'a [f32],
    /// Of each head of values: `[capacity, head_dim]`, with slack for a vector behind all.
    pub values: &'a [f32],
    /// Positions that a head of keys has place for: whole blocks.
    pub capacity: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    /// Position of the first new row. Keys and values of all positions up to the last new row are stored.
    pub first: usize,
    /// Largest number of positions that a row sees, including its own.
    pub window: usize,
    /// Factor of `q·k`.
    pub scale: f32,
    /// `c` of scores `c·tanh(scale·q·k/c)`.
    pub cap: Option<f32>,
    /// Room for probabilities.
    pub scratch: &'a mut Vec<f32>,
    /// `[rows, heads, head_dim]`
    pub out: &'a mut [f32],
}

impl Attend<'_> {
    /// Runs it.
    pub(crate) fn run(self) {
        dispatch(self);
    }
}

impl Kernel for Attend<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self {
            queries,
            keys,
            values,
            capacity,
            heads,
            kv_heads,
            head_dim,
            first,
            window,
            scale,
            cap,
            scratch,
            out,
        } = self;
        let (width, group) = (heads * head_dim, heads / kv_heads);
        let rows = queries.len() / width;
        // The heads of one row share keys: with one row, they are the rows of the products.
        let together = if rows == 1 { group } else { 1 };
        let stride = if rows == 1 { head_dim } else { width };
        for start in (0..rows).step_by(BLOCK) {
            let count = if rows == 1 { group } else { BLOCK.min(rows - start) };
            let seen = first + (start + count).min(rows); // keys up to the last row
            scratch.resize(count * seen + count * head_dim, 0.0);
            let (scores, sums) = scratch.split_at_mut(count * seen);
            for head in (0..heads).step_by(together) {
                let kv_head = head / group;
                let at = start * width + head * head_dim;
                let product = Product {
                    rows: count,
                    columns: seen,
                    depth: head_dim,
                    x: Strided { values: &queries[at..], row: stride, depth: 1 },
                    panels: Panels::of_blocks(&keys[kv_head * capacity * head_dim..], head_dim),
                    target: scores,
                    add: false,
                };
                // SAFETY: the processor has the instruction set by this function's contract.
                unsafe { product.run::<S>() };
                for (row, scores) in scores.chunks_exact_mut(seen).enumerate() {
                    let visible = if rows == 1 { seen } else { first + start + row + 1 };
                    let (scores, later) = scores.split_at_mut(visible);
                    let (earlier, scores) = scores.split_at_mut(visible.saturating_sub(window));
                    // SAFETY: the processor has the instruction set by this function's contract.
                    unsafe {
                        match cap {
                            None => softmax::<S>(scores, scale),
                            Some(cap) => {
                                capped::<S>(scores, scale, cap);
                                softmax::<S>(scores, 1.0);
                            }
                        }
                    }
                    earlier.fill(0.0);
                    later.fill(0.0);
                }
                let product = Product {
                    rows: count,
                    columns: head_dim,
                    depth: seen,
                    x: Strided { values: scores, row: seen, depth: 1 },
                    panels: Panels::of_rows(&values[kv_head * capacity * head_dim..], head_dim),
                    target: sums,
                    add: false,
                };
                // SAFETY: the processor has the instruction set by this function's contract.
                unsafe { product.run::<S>() };
                for (row, sums) in sums.chunks_exact(head_dim).enumerate() {
                    out[at + row * stride..][..head_dim].copy_from_slice(sums);
                }
            }
        }
    }
}

/// Writes keys and values of new positions from `first` on, `[rows, heads, head_dim]` each, to where [`Attend`] reads them.
///
/// # Panics
///
/// Panics if there is no room for them.
pub(crate) fn place(
    [keys, values]: [&[f32]; 2],
    [heads, head_dim, capacity]: [usize; 3],
    first: usize,
    [to_keys, to_values]: [&mut [f32]; 2],
) {
    let width = heads * head_dim;
    for (row, (keys, values)) in keys.chunks_exact(width).zip(values.chunks_exact(width)).enumerate() {
        let position = first + row;
        let (block, lane) = (position / MAX_COLUMNS, position % MAX_COLUMNS);
        for (head, (key, value)) in keys.chunks_exact(head_dim).zip(values.chunks_exact(head_dim)).enumerate() {
            let start = head * capacity * head_dim;
            let block = &mut to_keys[start + block * MAX_COLUMNS * head_dim..][..MAX_COLUMNS * head_dim];
            for (column, key) in block.chunks_exact_mut(MAX_COLUMNS).zip(key) {
                column[lane] = *key;
            }
            to_values[start + position * head_dim..][..head_dim].copy_from_slice(value);
        }
    }
}

/// `x ← cap·tanh(scale·x/cap)`
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn capped<S: Simd>(x: &mut [f32], scale: f32, cap: f32) {
    let (len, values) = (x.len(), x.as_mut_ptr());
    // SAFETY: the processor has the instruction set by this function's contract; whole vectors end inside, the last part is loaded and
    // stored by count.
    unsafe {
        let (inner, outer) = (S::splat(scale / cap), S::splat(cap));
        let mut c = 0;
        while c + S::LANES <= len {
            let y = Tanh::of::<S>(S::mul(S::load(values.add(c)), inner));
            S::store(values.add(c), S::mul(y, outer));
            c += S::LANES;
        }
        if c < len {
            let y = Tanh::of::<S>(S::mul(S::load_first(values.add(c), len - c), inner));
            S::store_first(values.add(c), S::mul(y, outer), len - c);
        }
    }
}

/// `softmax(scale·x)` in place.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn softmax<S: Simd>(x: &mut [f32], scale: f32) {
    let len = x.len();
    let values = x.as_mut_ptr();
    // SAFETY: the processor has the instruction set by this function's contract; whole vectors end inside, the last part is loaded and
    // stored by count.
    unsafe {
        let largest = largest::<S>(x);
        let (scale, shift) = (S::splat(scale), S::splat(-largest * scale));
        // Loops, not closures: a closure of this size is not inlined, and its vectors go through memory.
        let mut sum = S::splat(0.0);
        let mut c = 0;
        while c + S::LANES <= len {
            let e = exp::<S>(S::mul_add(S::load(values.add(c)), scale, shift));
            S::store(values.add(c), e);
            sum = S::add(sum, e);
            c += S::LANES;
        }
        if c < len {
            let e = exp::<S>(S::mul_add(S::load_first(values.add(c), len - c), scale, shift));
            S::store_first(values.add(c), e, len - c);
            // Lanes behind the last element are no part of the sum.
            sum = S::add(sum, S::load_first(values.add(c), len - c));
        }
        let inverse = S::splat(1.0 / S::sum(sum));
        for_vectors!(S, len, values, |c, lanes| S::mul(load_some::<S>(values.add(c), lanes), inverse));
    }
}
