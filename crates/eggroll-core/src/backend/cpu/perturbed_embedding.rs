//! Rows of perturbed matrices, `W[k] + s·c·B[k]·Aᵀ` or `W[k] + s·σ·ε[k]`. Noise is drawn for rows that are looked up only, and
//! once for a pair, however often its members look a row up.

use super::scratch::reuse;
use super::source::SourceSlice;
use crate::ops::{MatrixNoise, PairRange};
use crate::rng::normal::GROUP;
use crate::work::profile::{self, Component};
use rayon::prelude::*;
use std::cell::Cell;

/// Floats of the output that one task writes at least.
const TASK: usize = 4096;
/// The slot of a row that no member of the pair has looked up.
const NONE: u32 = u32::MAX;

/// Operands of a perturbed embedding.
pub(crate) struct EmbeddingSlices<'a> {
    /// `[count, d_model]`
    pub weight: &'a [f32],
    /// `[members · rows]`, or `[rows]` if shared; each below `count`.
    pub indices: &'a [usize],
    pub shared: bool,
    /// `[count, d_model]`
    pub shape: [usize; 2],
    /// Rows of one member.
    pub rows: usize,
    pub pairs: PairRange,
}

thread_local! {
    static BUFFERS: Cell<Buffers> = const { Cell::new(Buffers::new()) };
}

/// Writes `y : [members · rows, d_model]`.
pub(crate) fn perturbed_embedding(op: &EmbeddingSlices, noise: MatrixNoise, source: SourceSlice, y: &mut [f32]) {
    if y.is_empty() {
        return;
    }
    let pair_len = 2 * op.rows * op.shape[1];
    let step = (TASK / pair_len).max(1);
    let traced = profile::enabled();
    y.par_chunks_mut(step * pair_len).enumerate().for_each(|(task, y)| {
        let _span = profile::task(traced, Component::LowRankPart, 4 * y.len());
        reuse(&BUFFERS, |buffers| {
            for (p, y) in y.chunks_exact_mut(pair_len).enumerate() {
                let p = task * step + p;
                let indices = if op.shared { op.indices } else { &op.indices[p * 2 * op.rows..][..2 * op.rows] };
                let stream = PairStream { noise, source, pair: op.pairs.first + p as u32, shape: op.shape };
                Pair { op, indices, stream }.write(buffers, y);
            }
        });
    });
}

/// What a thread keeps from call to call.
#[derive(Default)]
struct Buffers {
    /// By row of the matrix: which of `deltas` is its noise.
    slots: Vec<u32>,
    /// `[slots in use, d_model]`
    deltas: Vec<f32>,
    /// Factors of one pair.
    a: Vec<f32>,
    b: Vec<f32>,
}

impl Buffers {
    const fn new() -> Self {
        Self { slots: Vec::new(), deltas: Vec::new(), a: Vec::new(), b: Vec::new() }
    }
}

/// One pair, and the indices that its members look up: the indices of both members, or shared ones.
struct Pair<'a> {
    op: &'a EmbeddingSlices<'a>,
    indices: &'a [usize],
    stream: PairStream<'a>,
}

impl Pair<'_> {
    /// Writes `y : [2 · rows, d_model]`.
    fn write(&self, buffers: &mut Buffers, y: &mut [f32]) {
        let [count, d_model] = self.op.shape;
        if buffers.slots.len() < count {
            buffers.slots.resize(count, NONE);
        }
        buffers.deltas.clear();
        self.stream.bring_factors(self.indices.len(), buffers);
        for (row, y) in y.chunks_exact_mut(d_model).enumerate() {
            let index = self.indices[if self.op.shared { row % self.op.rows } else { row }];
            let slot = self.slot(index, buffers);
            let delta = &buffers.deltas[slot * d_model..][..d_model];
            let weight = &self.op.weight[index * d_model..][..d_model];
            let rows = y.iter_mut().zip(weight).zip(delta);
            if row < self.op.rows {
                rows.for_each(|((y, weight), delta)| *y = weight + delta);
            } else {
                rows.for_each(|((y, weight), delta)| *y = weight - delta);
            }
        }
        self.indices.iter().for_each(|index| buffers.slots[*index] = NONE);
    }

    /// The slot of a row's noise, made now if the pair has not looked the row up before.
    fn slot(&self, index: usize, buffers: &mut Buffers) -> usize {
        if buffers.slots[index] == NONE {
            let start = buffers.deltas.len();
            let slot = start / self.op.shape[1];
            buffers.slots[index] = slot as u32;
            buffers.deltas.resize(start + self.op.shape[1], 0.0);
            let Buffers { deltas, a, b, .. } = buffers;
            self.stream.delta(index, a, b, &mut deltas[start..]);
        }
        buffers.slots[index] as usize
    }
}

/// One pair's noise of the matrix.
struct PairStream<'a> {
    noise: MatrixNoise,
    source: SourceSlice<'a>,
    pair: u32,
    shape: [usize; 2],
}

impl PairStream<'_> {
    fn fill(&self, start: usize, out: &mut [f32]) {
        self.source.fill(self.noise.key(), self.pair, self.noise.elements(self.shape), start, out);
    }

    /// Brings `A`, and all of `B` if `looked_up` rows, one after the other, would cost as much. A single element is a group of the
    /// stream.
    fn bring_factors(&self, looked_up: usize, buffers: &mut Buffers) {
        let MatrixNoise::LowRank(noise) = self.noise else {
            return;
        };
        let [count, d_model] = self.shape;
        buffers.a.resize(noise.rank * d_model, 0.0);
        self.fill(noise.rank * count, &mut buffers.a);
        let all = self.source.writes(self.noise.key()) && count <= GROUP * looked_up;
        buffers.b.resize(if all { noise.rank * count } else { 0 }, 0.0);
        self.fill(0, &mut buffers.b);
    }

    /// The scaled noise of row `index`, for sign +1.
    fn delta(&self, index: usize, a: &[f32], b: &[f32], out: &mut [f32]) {
        let ([count, d_model], scale) = (self.shape, self.noise.scale());
        if let MatrixNoise::Dense(_) = self.noise {
            self.fill(index * d_model, out);
            out.iter_mut().for_each(|out| *out *= scale);
            return;
        }
        out.fill(0.0);
        for (k, a) in a.chunks_exact(d_model).enumerate() {
            let element = k * count + index;
            let mut factor = [0.0];
            match b.get(element) {
                Some(drawn) => factor = [*drawn],
                None => self.fill(element, &mut factor),
            }
            let factor = scale * factor[0];
            out.iter_mut().zip(a).for_each(|(out, a)| *out += factor * a);
        }
    }
}
