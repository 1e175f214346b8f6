//! `y = x·W + b + s·σ·x·ε` (OpenES), with ε drawn in strips that live in the first-level cache.

use super::dots::{DotRows, Dots, Out};
use super::linear::{BiasSlice, LinearSlices};
use super::product::Product;
use super::scratch::with_scratch;
use super::source::SourceSlice;
use super::tile::{MAX_COLUMNS, Packed, Panels, Strided};
use crate::ops::DenseNoise;
use crate::simd::dispatch;
use crate::work::profile::{self, Component};
use rayon::prelude::*;

/// Floats of noise drawn at a time.
const STRIP: usize = 4096;

/// Rows of a parameter whose noise is used at a time: sums over them are rounded alike wherever noise is dense.
pub(crate) fn strip_rows([rows, columns]: [usize; 2]) -> usize {
    (STRIP / columns.max(1)).clamp(1, rows.max(1))
}

/// Writes `y : [members · rows, d_output]`.
pub(crate) fn dense_linear(op: &LinearSlices, noise: &DenseNoise, source: SourceSlice, y: &mut [f32]) {
    if y.is_empty() {
        return;
    }
    let packed = op.shared.is_none().then(|| op.packed());
    let pair_len = 2 * op.rows * op.d_output;
    let traced = profile::enabled();
    y.par_chunks_mut(pair_len).enumerate().for_each(|(p, y)| {
        let pair = op.pairs.first + p as u32;
        let (x, rows) = match op.shared {
            Some(_) => (op.x, op.rows),
            None => (&op.x[p * 2 * op.rows * op.d_input..], 2 * op.rows),
        };
        let task = DenseTask { op, noise, source, pair, x, rows, traced };
        with_scratch(task.scratch_len(), |scratch| {
            let (strip, rest) = scratch.split_at_mut(task.strip_len());
            let (delta, bias) = rest.split_at_mut(rows * op.d_output);
            if noise.transposed {
                task.transposed_noise_product(strip, delta);
            } else {
                task.noise_product(strip, delta);
            }
            op.bias.fill_pair(pair, bias);
            match (op.shared, &packed) {
                (None, Some(packed)) => task.base(packed, y),
                (shared, _) => {
                    let base = shared.map_or(&[][..], |shared| &shared.product);
                    y.chunks_exact_mut(y.len() / 2).for_each(|y| y.copy_from_slice(base));
                }
            }
            task.combine(delta, bias, y);
        });
    });
}

/// One pair: its rows of `x`, or the shared ones.
struct DenseTask<'a> {
    op: &'a LinearSlices<'a>,
    noise: &'a DenseNoise,
    source: SourceSlice<'a>,
    pair: u32,
    x: &'a [f32],
    rows: usize,
    traced: bool,
}

impl DenseTask<'_> {
    /// Rows and columns of the parameter: the weight, or what it is the transpose of.
    fn parameter(&self) -> [usize; 2] {
        let (d_input, d_output) = (self.op.d_input, self.op.d_output);
        if self.noise.transposed { [d_output, d_input] } else { [d_input, d_output] }
    }

    /// Rows of the parameter whose noise is drawn at a time.
    fn strip_rows(&self) -> usize {
        strip_rows(self.parameter())
    }

    fn strip_len(&self) -> usize {
        self.strip_rows() * self.parameter()[1] + MAX_COLUMNS
    }

    fn scratch_len(&self) -> usize {
        self.strip_len() + (self.rows + 2) * self.op.d_output
    }

    /// `delta = x·ε : [rows, d_output]`.
    fn noise_product(&self, strip: &mut [f32], delta: &mut [f32]) {
        let (d_input, d_output) = (self.op.d_input, self.op.d_output);
        let _span = profile::task(self.traced, Component::LowRankPart, 4 * delta.len());
        delta.fill(0.0);
        for first in (0..d_input).step_by(self.strip_rows()) {
            let depth = self.strip_rows().min(d_input - first);
            let drawn = &mut strip[..depth * d_output]; // [depth, d_output]
            let span = profile::fine(self.traced, Component::Noise, 4 * drawn.len());
            self.source.fill(self.noise.key, self.pair, d_input * d_output, first * d_output, drawn);
            drop(span);
            dispatch(Product {
                rows: self.rows,
                columns: d_output,
                depth,
                x: Strided { values: &self.x[first..], row: d_input, depth: 1 },
                panels: Panels::of_rows(strip, d_output),
                target: delta,
                add: true,
            });
        }
    }

    /// `delta = x·εᵀ : [rows, d_output]`, for `ε : [d_output, d_input]`.
    fn transposed_noise_product(&self, strip: &mut [f32], delta: &mut [f32]) {
        let (d_input, d_output) = (self.op.d_input, self.op.d_output);
        let _span = profile::task(self.traced, Component::LowRankPart, 4 * delta.len());
        for first in (0..d_output).step_by(self.strip_rows()) {
            let columns = self.strip_rows().min(d_output - first);
            let drawn = &mut strip[..columns * d_input]; // [columns, d_input]
            let span = profile::fine(self.traced, Component::Noise, 4 * drawn.len());
            self.source.fill(self.noise.key, self.pair, d_input * d_output, first * d_input, drawn);
            drop(span);
            dispatch(Dots {
                depth: d_input,
                x: DotRows { values: self.x, stride: d_input, count: self.rows },
                v: DotRows { values: strip, stride: d_input, count: columns },
                out: Out { values: &mut delta[first..], row: d_output, column: 1 },
            });
        }
    }

    /// `y = x·W` for the pair's own rows.
    fn base(&self, packed: &Packed, y: &mut [f32]) {
        let (d_input, d_output) = (self.op.d_input, self.op.d_output);
        let _span = profile::task(self.traced, Component::BaseProduct, 4 * y.len());
        dispatch(Product {
            rows: self.rows,
            columns: d_output,
            depth: d_input,
            x: Strided { values: self.x, row: d_input, depth: 1 },
            panels: packed.panels(),
            target: y,
            add: false,
        });
    }

    /// `y ← y ± σ·delta + bias`.
    fn combine(&self, delta: &[f32], bias: &[f32], y: &mut [f32]) {
        let d_output = self.op.d_output;
        let half = self.op.rows * d_output;
        let _span = profile::task(self.traced, Component::LowRankPart, 4 * y.len());
        for (member, y) in y.chunks_exact_mut(half).enumerate() {
            let scale = if member == 0 { self.noise.scale } else { -self.noise.scale };
            let delta = &delta[(member * half).min(delta.len() - half)..];
            for (y, delta) in y.iter_mut().zip(delta) {
                *y += scale * delta;
            }
            if !matches!(self.op.bias, BiasSlice::None) {
                let bias = &bias[member * d_output..(member + 1) * d_output];
                for row in y.chunks_exact_mut(d_output) {
                    row.iter_mut().zip(bias).for_each(|(y, b)| *y += b);
                }
            }
        }
    }
}
