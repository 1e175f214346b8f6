//! A chain of perturbed linear layers for rows of any members: what a policy does at every step of an episode.

use super::dense_linear::strip_rows;
use super::dots::{DotRows, Out, dots};
use super::epilogue::LowRankEpilogue;
use super::product::{Product, for_vectors, load_some};
use super::tile::{Epilogue, MAX_COLUMNS, Packed, Panels, Strided, Tile, TileArea, multiply};
use crate::rollout::layer::ChainActivation;
use crate::simd::{Kernel, Simd, dispatch};
use crate::work::profile::{self, Component};

/// Rows of one pair whose projections share the loads of a factor.
const MAX_RUN: usize = 14;

/// The member that a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainRow {
    /// The slot that holds the noise of its pair.
    pub slot: u32,
    /// Whether it is the pair's second member, whose noise is subtracted.
    pub minus: bool,
}

/// One layer, ready for use: `y = f(x·W + n + b)`, where `n` is what the member's noise makes of `x`.
pub(crate) struct ChainSlices {
    pub d_input: usize,
    pub d_output: usize,
    pub packed: Packed,
    pub noise: ChainNoise,
    pub scale: f32,
    /// Where the biases of both members begin there, `[2, d_output]`.
    pub biases: Option<usize>,
    pub activation: ChainActivation,
}

/// The noise of a weight, by where it begins in a slot's noise.
#[derive(Clone, Copy)]
pub(crate) enum ChainNoise {
    /// `n = t·A`, `t = s·c·x·B : [rows, rank]`, for `B : [rank, d_input]` and `A : [rank, d_output]`.
    LowRank { rank: usize, b: usize, a: usize },
    /// `n = s·σ·t`, `t = x·ε : [rows, d_output]`, for `ε : [d_input, d_output]`.
    Dense { epsilon: usize },
}

/// What the layers are run on.
pub(crate) struct ChainForward<'a> {
    pub layers: &'a [ChainSlices],
    /// `[slots, noise_len]`, with slack behind for loads of whole vectors.
    pub noise: &'a [f32],
    pub noise_len: usize,
    pub rows: &'a [ChainRow],
    /// `[rows, d_input]` of the first layer.
    pub x: &'a [f32],
    /// `[rows, t_width]` of the layer where that is widest.
    pub t: &'a mut [f32],
    /// Two of `[rows, d_output]` of the widest layer.
    pub hidden: [&'a mut [f32]; 2],
    /// `[rows, d_output]` of the last layer.
    pub y: &'a mut [f32],
    pub traced: bool,
}

/// Runs all layers, one after the other.
///
/// # Panics
///
/// Panics if a buffer is too short, that of the noise for a row's slot included.
pub(crate) fn chain_forward(forward: ChainForward) {
    dispatch(forward);
}

impl Kernel for ChainForward<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { layers, noise, noise_len, rows, x, t, hidden: [mut from, mut to], y, traced } = self;
        let last = layers.len() - 1;
        for (index, layer) in layers.iter().enumerate() {
            let x = if index == 0 { x } else { &*from };
            let y = if index == last { &mut *y } else { &mut *to };
            let (x, y) = (&x[..rows.len() * layer.d_input], &mut y[..rows.len() * layer.d_output]);
            let t = &mut t[..rows.len() * layer.t_width()];
            let pairs = SlotNoise { values: noise, len: noise_len, rows };
            // SAFETY: the processor has the instruction set by this function's contract; `y` was cut to the rows.
            unsafe {
                let span = profile::fine(traced, Component::LowRankPart, 4 * t.len());
                layer.project::<S>(&pairs, x, t);
                drop(span);
                let _span = profile::fine(traced, Component::BaseProduct, 4 * y.len());
                layer.multiply::<S>(&pairs, x, t, y);
            }
            if layer.activation == ChainActivation::Tanh {
                // The same function as the tensor operation's, so that both give the same bits.
                y.iter_mut().for_each(|value| *value = value.tanh());
            }
            std::mem::swap(&mut from, &mut to);
        }
    }
}

/// The noise of every row's member.
struct SlotNoise<'a> {
    values: &'a [f32],
    len: usize,
    rows: &'a [ChainRow],
}

impl SlotNoise<'_> {
    #[inline(always)]
    fn of(&self, row: usize) -> &[f32] {
        &self.values[self.rows[row].slot as usize * self.len..][..self.len]
    }

    /// `len` elements of the row's noise from `element` on, and slack for a vector behind.
    #[inline(always)]
    fn with_slack(&self, row: usize, element: usize, len: usize) -> &[f32] {
        &self.values[self.rows[row].slot as usize * self.len + element..][..len + MAX_COLUMNS]
    }
}

impl ChainSlices {
    /// Columns of `t`.
    pub(crate) fn t_width(&self) -> usize {
        match self.noise {
            ChainNoise::LowRank { rank, .. } => rank,
            ChainNoise::Dense { .. } => self.d_output,
        }
    }

    /// `t` of all rows; consecutive rows of one pair together.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set `S`.
    #[inline(always)]
    unsafe fn project<S: Simd>(&self, noise: &SlotNoise, x: &[f32], t: &mut [f32]) {
        let (rows, width) = (noise.rows, self.t_width());
        if width == 0 {
            return; // without noise there is nothing to project onto
        }
        let mut row = 0;
        while row < rows.len() {
            let slot = rows[row].slot;
            let run = rows[row..].iter().take(MAX_RUN).take_while(|next| next.slot == slot).count();
            let x = &x[row * self.d_input..][..run * self.d_input];
            let t = &mut t[row * width..][..run * width];
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe {
                match self.noise {
                    ChainNoise::LowRank { rank, b, .. } => {
                        let b = &noise.of(row)[b..][..rank * self.d_input];
                        self.dots::<S>(&rows[row..row + run], x, b, t);
                    }
                    ChainNoise::Dense { epsilon } => {
                        let epsilon = noise.with_slack(row, epsilon, self.d_input * self.d_output);
                        self.noise_product::<S>(x, epsilon, t);
                    }
                }
            }
            row += run;
        }
    }

    /// `t = s·c·x·B : [run, rank]`
    ///
    /// # Safety
    ///
    /// As [`project`](Self::project).
    #[inline(always)]
    unsafe fn dots<S: Simd>(&self, rows: &[ChainRow], x: &[f32], b: &[f32], t: &mut [f32]) {
        let rank = self.t_width();
        let x = DotRows { values: x, stride: self.d_input, count: rows.len() };
        let b = DotRows { values: b, stride: self.d_input, count: rank };
        // SAFETY: the processor has the instruction set by this function's contract.
        unsafe { dots::<S>(self.d_input, x, b, self.scale, Out { values: &mut *t, row: rank, column: 1 }) };
        for (row, t) in rows.iter().zip(t.chunks_exact_mut(rank)) {
            if row.minus {
                t.iter_mut().for_each(|t| *t = -*t);
            }
        }
    }

    /// `t = x·ε : [run, d_output]`, strip by strip as in a single operation, so that sums round alike.
    ///
    /// # Safety
    ///
    /// As [`project`](Self::project).
    #[inline(always)]
    unsafe fn noise_product<S: Simd>(&self, x: &[f32], epsilon: &[f32], t: &mut [f32]) {
        let (d_input, d_output) = (self.d_input, self.d_output);
        let strip = strip_rows([d_input, d_output]);
        t.fill(0.0);
        for first in (0..d_input).step_by(strip) {
            let depth = strip.min(d_input - first);
            let product = Product {
                rows: t.len() / d_output,
                columns: d_output,
                depth,
                x: Strided { values: &x[first..], row: d_input, depth: 1 },
                panels: Panels::of_rows(&epsilon[first * d_output..], d_output),
                target: &mut *t,
                add: true,
            };
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe { product.run::<S>() };
        }
    }

    /// `y = f(x·W + n + b)`, but for an activation that has no vector form.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set `S`; `y` must hold all rows.
    #[inline(always)]
    unsafe fn multiply<S: Simd>(&self, noise: &SlotNoise, x: &[f32], t: &[f32], y: &mut [f32]) {
        let rows = noise.rows.len();
        let mut epilogue = ChainEpilogue { layer: self, noise, t, y: y.as_mut_ptr() };
        let x = Strided { values: x, row: self.d_input, depth: 1 };
        // SAFETY: the processor has the instruction set, and `y`, which the epilogue writes to, the rows, by this function's contract.
        unsafe { multiply::<S, _>(rows, self.d_output, self.d_input, x, self.packed.panels(), &mut epilogue) };
    }
}

/// `max(x, 0)`; NaN stays NaN, as in the tensor operation, and −0 becomes 0.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn rectified<S: Simd>(x: S::F) -> S::F {
    // SAFETY: by this function's contract.
    unsafe { S::add(S::max(S::splat(0.0), x), S::splat(0.0)) }
}

/// Makes `f(x·W + n + b)` of a tile of `x·W`, for as many rows as `y` has.
struct ChainEpilogue<'a> {
    layer: &'a ChainSlices,
    noise: &'a SlotNoise<'a>,
    t: &'a [f32],
    y: *mut f32,
}

impl Epilogue for ChainEpilogue<'_> {
    #[inline(always)]
    unsafe fn finish<S: Simd>(&mut self, place: TileArea, tile: &Tile) {
        let (layer, d_output) = (self.layer, self.layer.d_output);
        let relu = layer.activation == ChainActivation::Relu;
        for r in 0..place.rows {
            let row = place.row + r;
            let noise = self.noise.of(row);
            let minus = self.noise.rows[row].minus;
            let column = |values: &[f32]| values[..d_output][place.column..].as_ptr();
            let bias = layer.biases.map(|at| column(&noise[at + usize::from(minus) * d_output..]));
            let t = &self.t[row * layer.t_width()..][..layer.t_width()];
            let (rank, a) = match layer.noise {
                ChainNoise::LowRank { rank: 0, .. } | ChainNoise::Dense { .. } => (0, std::ptr::null()),
                ChainNoise::LowRank { rank, a, .. } => (rank, noise[a..][..rank * d_output][place.column..].as_ptr()),
            };
            let end = LowRankEpilogue { rank, t: t.as_ptr(), step: 1, a, d_output, bias };
            // SAFETY: the place lies inside the product by this function's contract, and so in the rows of `y`; `a`, `t` and the bias are
            // slices cut to size, from the place's first column on.
            unsafe {
                let source = tile.row(r);
                let y = self.y.add(row * d_output + place.column);
                match layer.noise {
                    ChainNoise::LowRank { .. } => {
                        for_vectors!(S, place.columns, y, |c, lanes| {
                            let sum = end.add_to::<S>(S::load(source.add(c)), c, lanes);
                            if relu { rectified::<S>(sum) } else { sum }
                        });
                    }
                    ChainNoise::Dense { .. } => {
                        let scale = S::splat(if minus { -layer.scale } else { layer.scale });
                        let t = column(t);
                        for_vectors!(S, place.columns, y, |c, lanes| {
                            // Two roundings, as in a single operation.
                            let noise = S::mul(scale, load_some::<S>(t.add(c), lanes));
                            let sum = end.add_to::<S>(S::add(S::load(source.add(c)), noise), c, lanes);
                            if relu { rectified::<S>(sum) } else { sum }
                        });
                    }
                }
            }
        }
    }
}
