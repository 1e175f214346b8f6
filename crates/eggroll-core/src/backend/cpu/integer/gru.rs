//! The recurrence of the minimal GRU: a block of sequences goes through all steps while their states stay in cache.

use super::noise::{NoiseSlice, VectorSlices, rows_of_member};
use super::product::{LowRank, Packed, offset};
use super::simd::{IntegerKernel, IntegerSimd, dispatch};
use super::tile::{COLUMNS, OFFSET, ROWS, Scale, Tile, load, store};
use crate::arithmetic::integer::Rounding;
use crate::backend::cpu::scratch::reuse;
use rayon::prelude::*;
use std::cell::Cell;

/// Sequences of a block.
const BLOCK: usize = 2 * ROWS;

/// One gate on slices.
pub(crate) struct GateSlices<'a> {
    /// `x·W`: `[sequences · steps, width]`
    pub(crate) input: &'a [i8],
    /// `[width, width]`
    pub(crate) weight: &'a [i8],
    pub(crate) weight_noise: Option<NoiseSlice<'a>>,
    /// `[width]`
    pub(crate) bias: VectorSlices<'a>,
}

/// Writes `out : [sequences · steps, width]` from `state : [sequences, width]`, the sequences of the first member first; `starts : [sequences · steps]`.
pub(crate) fn gru(state: &[i8], starts: &[bool], gates: [GateSlices; 2], out: &mut [i8]) {
    let width = gates[0].bias.values.len();
    let sequences = state.len() / width;
    let steps = starts.len() / sequences;
    if steps == 0 {
        return;
    }
    let noises = gates.each_ref().map(|gate| gate.weight_noise.or(gate.bias.noise));
    let each = rows_of_member(noises, sequences);
    let gates = gates.map(|gate| PackedGate {
        input: gate.input,
        recurrent: Packed::new(width, width, |k| &gate.weight[k * width..(k + 1) * width]),
        low_rank: gate.weight_noise.map(|noise| LowRank::new(noise, [width; 2], Rounding::Floor)),
        bias: gate.bias,
    });
    let scale = Scale::new(width);
    out.par_chunks_mut(BLOCK * steps * width).enumerate().for_each(|(block, out)| {
        let first = block * BLOCK;
        let count = out.len() / (steps * width);
        let state = &state[first * width..(first + count) * width];
        let block = SequenceBlock { first, count, each, steps, width, state, starts, gates: &gates, scale, out };
        // The scratch outside: closures inside would not be compiled for the instruction set.
        reuse(&SCRATCH, |scratch| dispatch(GruTask { block, scratch }));
    });
}

struct PackedGate<'a> {
    input: &'a [i8],
    recurrent: Packed,
    low_rank: Option<LowRank<'a>>,
    bias: VectorSlices<'a>,
}

struct SequenceBlock<'a> {
    /// First sequence.
    first: usize,
    count: usize,
    /// Sequences of a member.
    each: usize,
    steps: usize,
    width: usize,
    /// `[count, width]`
    state: &'a [i8],
    /// Of all sequences.
    starts: &'a [bool],
    gates: &'a [PackedGate<'a>; 2],
    scale: Scale,
    /// `[count · steps, width]`
    out: &'a mut [i8],
}

/// What a block works on; buffers of whole tiles of sequences.
#[derive(Default)]
struct GruScratch {
    /// `h`: `[BLOCK, width]`
    state: Vec<i8>,
    /// `f`: `[BLOCK, width]`
    forget: Vec<i8>,
    /// Biases of both gates as the members see them, `[BLOCK, width]`.
    biases: [Vec<i8>; 2],
    /// `h` and `g`, unsigned: `[BLOCK, row bytes]`
    unsigned: [Vec<u8>; 2],
    /// Offsets of the projections of both gates: `[BLOCK, rank]`.
    offsets: [Vec<i32>; 2],
    /// `s·x·B`: `[BLOCK, rank]`
    t: Vec<i32>,
}

thread_local! {
    static SCRATCH: Cell<GruScratch> = Cell::default();
}

struct GruTask<'a> {
    block: SequenceBlock<'a>,
    scratch: &'a mut GruScratch,
}

impl IntegerKernel for GruTask<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let Self { mut block, scratch } = self;
        block.prepare(scratch);
        for step in 0..block.steps {
            block.start(scratch, step);
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe {
                block.forget::<S>(scratch, step);
                block.candidate::<S>(scratch, step);
            }
        }
    }
}

impl SequenceBlock<'_> {
    fn prepare(&self, scratch: &mut GruScratch) {
        let (count, width) = (self.count, self.width);
        let GruScratch { state, forget, biases, unsigned, offsets, t } = scratch;
        for buffer in [state, forget].into_iter().chain(&mut *biases) {
            buffer.resize(BLOCK * width, 0);
        }
        scratch.state[..count * width].copy_from_slice(self.state);
        for (g, gate) in self.gates.iter().enumerate() {
            let rank = gate.rank();
            unsigned[g].resize(BLOCK * gate.recurrent.row_bytes(), 0);
            offsets[g].resize(BLOCK * rank, 0);
            t.resize(t.len().max(BLOCK * rank), 0);
            for m in 0..count {
                gate.bias.of(self.member(m), Rounding::Floor, &mut biases[g][m * width..(m + 1) * width]);
                if let Some(low_rank) = &gate.low_rank {
                    low_rank.projection_offsets(self.member(m), &mut offsets[g][m * rank..(m + 1) * rank]);
                }
            }
        }
        let bytes = self.gates[0].recurrent.row_bytes();
        for (state, unsigned) in scratch.state.chunks_exact(width).zip(unsigned[0].chunks_exact_mut(bytes)) {
            offset(state, unsigned);
        }
    }

    /// The member that reads a sequence of the block.
    #[inline(always)]
    fn member(&self, m: usize) -> usize {
        (self.first + m) / self.each
    }

    /// Forgets the states of sequences that start anew.
    #[inline(always)]
    fn start(&self, scratch: &mut GruScratch, step: usize) {
        let (width, bytes) = (self.width, self.gates[0].recurrent.row_bytes());
        for m in 0..self.count {
            if self.starts[(self.first + m) * self.steps + step] {
                scratch.state[m * width..(m + 1) * width].fill(0);
                scratch.unsigned[0][m * bytes..(m + 1) * bytes].fill(OFFSET);
            }
        }
    }

    /// `f`, and `g` from it.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    unsafe fn forget<S: IntegerSimd>(&self, scratch: &mut GruScratch, step: usize) {
        let GruScratch { state, forget, biases, unsigned: [unsigned_state, unsigned_gated], offsets, t } = scratch;
        let (width, bytes) = (self.width, self.gates[0].recurrent.row_bytes());
        let finish = |m: usize, first: usize, columns: usize, sums: &[i16; COLUMNS]| {
            let at = m * width + first;
            let state = load(&state[at..at + columns]);
            let mut f = [0; COLUMNS];
            let mut g = [0; COLUMNS];
            for c in 0..COLUMNS {
                let value = sums[c].clamp(-127, 127);
                f[c] = value as i8;
                g[c] = (((value + 127) * i16::from(state[c])) >> 8) as i8 ^ OFFSET as i8;
            }
            store(&f, &mut forget[at..at + columns]);
            store(&g, as_signed(&mut unsigned_gated[m * bytes + first..][..columns]));
        };
        // SAFETY: the processor has the instruction set by this function's contract.
        unsafe { self.gate::<S>(0, step, unsigned_state, &offsets[0], &biases[0], t, finish) };
    }

    /// `c`, and the new state from it.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    unsafe fn candidate<S: IntegerSimd>(&mut self, scratch: &mut GruScratch, step: usize) {
        let GruScratch { state, forget, biases, unsigned: [unsigned_state, unsigned_gated], offsets, t } = scratch;
        let (width, bytes, steps) = (self.width, self.gates[0].recurrent.row_bytes(), self.steps);
        let out = std::mem::take(&mut self.out);
        let finish = |m: usize, first: usize, columns: usize, sums: &[i16; COLUMNS]| {
            let at = m * width + first;
            let (old, f) = (load(&state[at..at + columns]), load(&forget[at..at + columns]));
            let mut new = [0i8; COLUMNS];
            for c in 0..COLUMNS {
                let difference = sums[c].clamp(-127, 127) - i16::from(old[c]);
                // The product has 17 bits: its upper part, of both factors moved up by 8 bits together.
                let (gate, difference) = ((i16::from(f[c]) + 127) << 7, difference << 1);
                let gated = ((i32::from(gate) * i32::from(difference)) >> 16) as i16;
                new[c] = old[c].wrapping_add(gated as i8);
            }
            store(&new, &mut state[at..at + columns]);
            let mut unsigned = new;
            for value in &mut unsigned {
                *value ^= OFFSET as i8;
            }
            store(&unsigned, as_signed(&mut unsigned_state[m * bytes + first..][..columns]));
            store(&new, &mut out[(m * steps + step) * width + first..][..columns]);
        };
        // SAFETY: the processor has the instruction set by this function's contract.
        unsafe { self.gate::<S>(1, step, unsigned_gated, &offsets[1], &biases[1], t, finish) };
        self.out = out;
    }

    /// Calls `finish(member, first column, columns, x·W + v·U + b)` for all sequences and panels of a gate.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "parts of the scratch, borrowed apart")]
    unsafe fn gate<S: IntegerSimd>(
        &self,
        g: usize,
        step: usize,
        unsigned: &[u8],
        offsets: &[i32],
        biases: &[i8],
        t: &mut [i32],
        mut finish: impl FnMut(usize, usize, usize, &[i16; COLUMNS]),
    ) {
        let (gate, width) = (&self.gates[g], self.width);
        let (rank, bytes) = (gate.rank(), gate.recurrent.row_bytes());
        if let Some(low_rank) = &gate.low_rank {
            for m in 0..self.count {
                let (x, run) = (&unsigned[m * bytes..], m * rank..(m + 1) * rank);
                // SAFETY: the processor has the instruction set by this function's contract.
                unsafe { low_rank.project::<S>(self.member(m), x, &offsets[run.clone()], &mut t[run]) };
            }
        }
        let mut sums: Tile = [[0; COLUMNS]; ROWS];
        for panel in 0..gate.recurrent.panels() {
            let (first, columns) = (panel * COLUMNS, gate.recurrent.width(panel));
            for tile in (0..self.count).step_by(ROWS) {
                // SAFETY: the processor has the instruction set by this function's contract.
                unsafe { gate.recurrent.tile::<S>(&unsigned[tile * bytes..], panel, &mut sums) };
                for (r, sums) in sums.iter().enumerate().take(self.count - tile) {
                    let m = tile + r;
                    let t = &t[m * rank..(m + 1) * rank];
                    let term = gate.low_rank.as_ref().map(|low_rank| low_rank.term(self.member(m), t, first, columns));
                    // SAFETY: the processor has the instruction set by this function's contract.
                    let product = unsafe { S::finish(sums, term, &self.scale) };
                    let row = ((self.first + m) * self.steps + step) * width + first;
                    let (input, bias) =
                        (load(&gate.input[row..row + columns]), load(&biases[m * width + first..][..columns]));
                    let sum = |c: usize| i16::from(product[c]) + i16::from(input[c]) + i16::from(bias[c]);
                    finish(m, first, columns, &std::array::from_fn(sum));
                }
            }
        }
    }
}

impl PackedGate<'_> {
    fn rank(&self) -> usize {
        self.low_rank.map_or(0, |low_rank| low_rank.rank())
    }
}

fn as_signed(bytes: &mut [u8]) -> &mut [i8] {
    // SAFETY: the same size and alignment, and every bit pattern is a value.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}
