//! `y = x·W + b + s·c·(x·B)·Aᵀ` without ever forming the perturbed weight.

use super::dots::{DotRows, Out, dots};
use super::epilogue::LowRankEpilogue;
use super::linear::{BiasSlice, LinearSlices};
use super::low_rank_block::{MAX_PAIRS, PairBlock, Prepared};
use super::low_rank_shared::Shared;
use super::product::for_vectors;
use super::scratch::with_scratch;
use super::source::SourceSlice;
use super::tile::{Epilogue, MAX_COLUMNS, Packed, Strided, Tile, TileArea, multiply};
use crate::ops::LowRankNoise;
use crate::simd::{Kernel, Simd, dispatch};
use crate::work::profile::{self, Component};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Floats of noise that one task of the shared form holds: about a first-level cache, together with four rows of `x`.
const SHARED_NOISE: usize = 16 * 1024;

/// Writes every element of `y : [members · rows, d_output]`.
pub(crate) fn low_rank_linear(
    op: &LinearSlices,
    noise: &LowRankNoise,
    source: SourceSlice,
    y: &mut [MaybeUninit<f32>],
) {
    if y.is_empty() {
        return;
    }
    let packed = op.shared.is_none().then(|| op.packed());
    let factors = (op.d_input + op.d_output) * noise.rank;
    let step = match op.shared {
        Some(_) => (SHARED_NOISE / factors.max(1)).clamp(1, MAX_PAIRS / 2),
        None => op.pairs_per_task(factors),
    };
    let pair_len = 2 * op.rows * op.d_output;
    let traced = profile::enabled();
    y.par_chunks_mut(step * pair_len).enumerate().for_each(|(task, y)| {
        let first = op.pairs.first + (task * step) as u32;
        let block = PairBlock { op, noise, source, factors, first, pairs: y.len() / pair_len, traced };
        with_scratch(block.scratch_len(), |scratch| match (op.shared, &packed) {
            (None, Some(packed)) => {
                let x = &op.x[task * step * 2 * op.rows * op.d_input..];
                dispatch(PerMember { block, x, packed, scratch, y });
            }
            (Some(shared), _) => dispatch(Shared { block, shared, scratch, y }),
            (None, None) => unreachable!("separate rows have a packed weight"),
        });
    });
}

struct PerMember<'a> {
    block: PairBlock<'a>,
    x: &'a [f32],
    packed: &'a Packed,
    scratch: &'a mut [f32],
    y: &'a mut [MaybeUninit<f32>],
}

impl Kernel for PerMember<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { block, x, packed, scratch, y } = self;
        let (op, rank) = (block.op, block.noise.rank);
        let Prepared { t, factors, biases, .. } = block.prepare(scratch);
        let pair_rows = 2 * op.rows;
        let span = profile::task(block.traced, Component::LowRankPart, 4 * t.len());
        for p in 0..block.pairs {
            let t = &mut t[p * pair_rows * rank..(p + 1) * pair_rows * rank]; // [2 · rows, rank]
            let x = DotRows { values: &x[p * pair_rows * op.d_input..], stride: op.d_input, count: pair_rows };
            let b = DotRows { values: block.parts(factors[p])[0], stride: op.d_input, count: rank };
            let out = Out { values: &mut *t, row: rank, column: 1 };
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe { dots::<S>(op.d_input, x, b, block.noise.scale, out) };
            for t in &mut t[op.rows * rank..] {
                *t = -*t;
            }
        }
        drop(span);
        let _span = profile::task(block.traced, Component::BaseProduct, 4 * y.len());
        let mut epilogue = AddLowRank::new(&block, t, &factors, biases, y);
        let x = Strided { values: x, row: op.d_input, depth: 1 };
        // SAFETY: the processor has the instruction set by this function's contract; the epilogue was made for the block's rows.
        unsafe { multiply::<S, _>(block.rows(), op.d_output, op.d_input, x, packed.panels(), &mut epilogue) };
    }
}

/// The member of a row, for rows asked in rising order: no division in the loop.
#[derive(Default)]
struct Cursor {
    member: usize,
    end: usize,
}

impl Cursor {
    #[inline(always)]
    fn at(&mut self, row: usize, rows: usize) -> usize {
        if row == 0 {
            *self = Self { member: 0, end: rows };
        }
        while row >= self.end {
            self.member += 1;
            self.end += rows;
        }
        self.member
    }
}

/// Adds `t·Aᵀ` and the bias to a tile of `x·W` and writes it to `y`, for a block's rows.
struct AddLowRank {
    rank: usize,
    d_output: usize,
    rows: usize,
    member: Cursor,
    /// The second factor of every pair.
    a: [*const f32; MAX_PAIRS],
    t: *const f32,
    bias: Option<*const f32>,
    y: *mut f32,
}

impl AddLowRank {
    /// # Panics
    ///
    /// Panics unless everything is as large as the block.
    #[inline(always)]
    fn new(
        block: &PairBlock,
        t: &[f32],
        factors: &[&[f32]; MAX_PAIRS],
        biases: &[f32],
        y: &mut [MaybeUninit<f32>],
    ) -> Self {
        let (rank, op, members) = (block.noise.rank, block.op, 2 * block.pairs);
        let has_bias = !matches!(op.bias, BiasSlice::None);
        assert!(t.len() >= block.rows() * rank && y.len() >= block.rows() * op.d_output, "rows of a block");
        assert!(!has_bias || biases.len() >= members * op.d_output + MAX_COLUMNS, "biases of a block");
        let mut a = [std::ptr::null(); MAX_PAIRS];
        for (a, factors) in a.iter_mut().zip(&factors[..block.pairs]) {
            *a = block.parts(factors)[1].as_ptr();
        }
        Self {
            rank,
            d_output: op.d_output,
            rows: op.rows,
            member: Cursor::default(),
            a,
            t: t.as_ptr(),
            bias: has_bias.then_some(biases.as_ptr()),
            y: y.as_mut_ptr().cast(),
        }
    }
}

impl Epilogue for AddLowRank {
    #[inline(always)]
    unsafe fn finish<S: Simd>(&mut self, place: TileArea, tile: &Tile) {
        for r in 0..place.rows {
            let row = place.row + r;
            let member = self.member.at(row, self.rows);
            let (rank, d_output, bias) = (self.rank, self.d_output, self.bias);
            // SAFETY: the place lies inside the block by this function's contract, and all pointers are to as much as the block has:
            // `new` has seen to it.
            unsafe {
                let source = tile.row(r);
                let end = LowRankEpilogue {
                    rank,
                    t: self.t.add(row * rank),
                    step: 1,
                    a: self.a.get_unchecked(member / 2).add(place.column),
                    d_output,
                    bias: bias.map(|bias| bias.add(member * d_output + place.column)),
                };
                let y = self.y.add(row * d_output + place.column);
                for_vectors!(S, place.columns, y, |c, lanes| end.add_to::<S>(S::load(source.add(c)), c, lanes));
            }
        }
    }
}
