//! A chain of perturbed linear layers for rows of any members: what a policy does at every step of an episode.

use super::linear::{for_vectors, load_some};
use super::tile::{Epilogue, Out, Packed, Place, Rows, Strided, Tile, dots, multiply};
use crate::chain::{ChainActivation, ChainRow};
use crate::simd::{Kernel, Simd, dispatch};

/// Rows of one member and its twin whose projections share the loads of a factor.
const MAX_RUN: usize = 4;

/// One layer, ready for use: `y = f(x·W + t·A + b)`, `t = s·c·x·B`.
pub(crate) struct ChainSlices {
    pub d_input: usize,
    pub d_output: usize,
    pub packed: Packed,
    pub rank: usize,
    pub scale: f32,
    /// Where the factors begin in a slot's noise: `B : [rank, d_input]`, `A : [rank, d_output]`.
    pub factors: [usize; 2],
    /// Where the biases of both members begin there, `[2, d_output]`.
    pub biases: Option<usize>,
    pub activation: ChainActivation,
}

/// What the layers are run on.
pub(crate) struct ChainForward<'a> {
    pub layers: &'a [ChainSlices],
    /// `[slots, noise_len]`
    pub noise: &'a [f32],
    pub noise_len: usize,
    pub rows: &'a [ChainRow],
    /// `[rows, d_input]` of the first layer.
    pub x: &'a [f32],
    /// `[rows, rank]` of the highest rank.
    pub t: &'a mut [f32],
    /// Two of `[rows, d_output]` of the widest layer.
    pub hidden: [&'a mut [f32]; 2],
    /// `[rows, d_output]` of the last layer.
    pub y: &'a mut [f32],
}

/// Runs all layers, one after the other.
///
/// # Panics
///
/// Panics if a buffer is too short.
pub(crate) fn chain_forward(forward: ChainForward) {
    dispatch(forward);
}

impl Kernel for ChainForward<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { layers, noise, noise_len, rows, x, t, hidden: [mut from, mut to], y } = self;
        let last = layers.len() - 1;
        for (index, layer) in layers.iter().enumerate() {
            let x = if index == 0 { x } else { &*from };
            let y = if index == last { &mut *y } else { &mut *to };
            let (x, y) = (&x[..rows.len() * layer.d_input], &mut y[..rows.len() * layer.d_output]);
            let t = &mut t[..rows.len() * layer.rank];
            let pairs = Noise { values: noise, len: noise_len, rows };
            // SAFETY: the processor has the instruction set by this function's contract; the slices hold the rows.
            unsafe {
                layer.project::<S>(&pairs, x, t);
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
struct Noise<'a> {
    values: &'a [f32],
    len: usize,
    rows: &'a [ChainRow],
}

impl Noise<'_> {
    #[inline(always)]
    fn of(&self, row: usize) -> &[f32] {
        let slot = self.rows[row].slot as usize;
        &self.values[slot * self.len..(slot + 1) * self.len]
    }
}

impl ChainSlices {
    /// `t = s·c·x·B : [rows, rank]`
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set `S`; `x` and `t` must hold all rows.
    #[inline(always)]
    unsafe fn project<S: Simd>(&self, noise: &Noise, x: &[f32], t: &mut [f32]) {
        let rows = noise.rows;
        let mut row = 0;
        while row < rows.len() {
            let slot = rows[row].slot;
            let run = rows[row..].iter().take(MAX_RUN).take_while(|next| next.slot == slot).count();
            let b = &noise.of(row)[self.factors[0]..][..self.rank * self.d_input];
            let x = Rows { pointer: x[row * self.d_input..].as_ptr(), stride: self.d_input, count: run };
            let b = Rows { pointer: b.as_ptr(), stride: self.d_input, count: self.rank };
            let out = Out { pointer: t[row * self.rank..].as_mut_ptr(), row: self.rank, column: 1 };
            // SAFETY: `x` and `t` hold `run` rows from here on, the factor was cut to size.
            unsafe { dots::<S>(self.d_input, x, b, self.scale, out) };
            for (row, t) in (row..row + run).zip(t[row * self.rank..].chunks_exact_mut(self.rank)) {
                if rows[row].minus {
                    t.iter_mut().for_each(|t| *t = -*t);
                }
            }
            row += run;
        }
    }

    /// `y = f(x·W + t·A + b)`, but for an activation that has no vector form.
    ///
    /// # Safety
    ///
    /// As [`project`](Self::project).
    #[inline(always)]
    unsafe fn multiply<S: Simd>(&self, noise: &Noise, x: &[f32], t: &[f32], y: &mut [f32]) {
        let rows = noise.rows.len();
        let mut epilogue = Finish { layer: self, noise, t, y: y.as_mut_ptr() };
        let x = Strided { pointer: x.as_ptr(), row: self.d_input, depth: 1 };
        // SAFETY: `x` and `y` hold the rows; `W` was packed for this instruction set.
        unsafe { multiply::<S, _>(rows, self.d_output, self.d_input, x, self.packed.panels(), &mut epilogue) };
    }
}

/// Makes `f(x·W + t·A + b)` of a tile of `x·W`.
struct Finish<'a> {
    layer: &'a ChainSlices,
    noise: &'a Noise<'a>,
    t: &'a [f32],
    y: *mut f32,
}

impl Epilogue for Finish<'_> {
    #[inline(always)]
    unsafe fn finish<S: Simd>(&mut self, place: Place, tile: &Tile) {
        let (rank, d_output) = (self.layer.rank, self.layer.d_output);
        let relu = self.layer.activation == ChainActivation::Relu;
        for r in 0..place.rows {
            let row = place.row + r;
            let noise = self.noise.of(row);
            let a = noise[self.layer.factors[1]..][..rank * d_output].as_ptr();
            let member = usize::from(self.noise.rows[row].minus);
            let bias = self.layer.biases.map(|at| noise[at + member * d_output..][..d_output].as_ptr());
            let t = self.t[row * rank..][..rank].as_ptr();
            // SAFETY: the row of `y` is inside it, as the place is inside the product; `a`, `t` and the bias were cut to size.
            unsafe {
                let source = tile.row(r);
                let a = a.add(place.column);
                let bias = bias.map(|bias| bias.add(place.column));
                let y = self.y.add(row * d_output + place.column);
                for_vectors::<S>(place.columns, y, |c, lanes| {
                    let mut sum = S::load(source.add(c));
                    for k in 0..rank {
                        sum = S::fma(S::splat(*t.add(k)), load_some::<S>(a.add(k * d_output + c), lanes), sum);
                    }
                    if let Some(bias) = bias {
                        sum = S::add(sum, load_some::<S>(bias.add(c), lanes));
                    }
                    if relu { S::max(sum, S::splat(0.0)) } else { sum }
                });
            }
        }
    }
}
