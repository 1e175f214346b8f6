//! `y = x·W + b + s·c·(x·B)·Aᵀ` without ever forming the perturbed weight.

use super::dots::{Out, Rows, dots};
use super::linear::{BiasSlice, LinearSlices, SharedRows};
use super::product::{Product, for_vectors, load_some};
use super::scratch::with_scratch;
use super::source::Source;
use super::tile::{Epilogue, MAX_COLUMNS, Packed, Panels, Place, Strided, Tile, multiply};
use crate::ops::LowRankNoise;
use crate::profile::{self, Component};
use crate::rng::fill_noise;
use crate::simd::{Kernel, Simd, dispatch};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Writes every element of `y : [members · rows, d_output]`.
pub(crate) fn low_rank_linear(op: &LinearSlices, noise: &LowRankNoise, source: Source, y: &mut [MaybeUninit<f32>]) {
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
        let block = Block { op, noise, source, factors, first, pairs: y.len() / pair_len, traced };
        with_scratch(block.scratch_len(), |scratch| match (op.shared, &packed) {
            (None, Some(packed)) => {
                let x = &op.x[task * step * 2 * op.rows * op.d_input..];
                dispatch(PerMember { block, x, packed, scratch, y });
            }
            (Some(shared), _) => dispatch(Shared { block, shared, scratch, y }),
            (None, None) => unreachable!("rows of their own have a packed weight"),
        });
    });
}

/// Floats of noise that one task of the shared form holds: about a first-level cache, beside four rows of `x`.
const SHARED_NOISE: usize = 16 * 1024;

/// Pairs of a task at most.
const MAX_PAIRS: usize = 32;

/// Consecutive pairs that one task works on.
struct Block<'a> {
    op: &'a LinearSlices<'a>,
    noise: &'a LowRankNoise,
    source: Source<'a>,
    /// Floats of one pair's factors.
    factors: usize,
    first: u32,
    pairs: usize,
    traced: bool,
}

impl Block<'_> {
    fn rows(&self) -> usize {
        self.pairs * 2 * self.op.rows
    }

    /// `x·B`, bias of every member, and factors if they are not held; loads of a tile's last vector may run past the end of
    /// a bias.
    fn scratch_len(&self) -> usize {
        let drawn = if self.source.writes(self.noise.key) { self.factors } else { 0 };
        self.pairs * (drawn + 2 * self.op.d_output) + self.rows() * self.noise.rank + MAX_COLUMNS
    }

    /// Where `B` and `A` begin in a pair's factors.
    fn starts(&self) -> [usize; 2] {
        self.noise.starts([self.op.d_input, self.op.d_output])
    }

    /// `B`, `[rank, d_input]`, and `A`, `[rank, d_output]`, of a pair's factors.
    fn parts<'f>(&self, factors: &'f [f32]) -> [&'f [f32]; 2] {
        let (sides, starts) = ([self.op.d_input, self.op.d_output], self.starts());
        [0, 1].map(|part| &factors[starts[part]..][..self.noise.rank * sides[part]])
    }

    /// Finds or draws the factors, and the biases.
    fn prepare<'s>(&'s self, scratch: &'s mut [f32]) -> Prepared<'s> {
        let drawn = if self.source.writes(self.noise.key) { self.factors } else { 0 };
        let _span = profile::task(self.traced, Component::Noise, 4 * self.pairs * (drawn + self.op.bias.drawn()));
        let (t, rest) = scratch.split_at_mut(self.rows() * self.noise.rank);
        let (drawn_factors, biases) = rest.split_at_mut(self.pairs * drawn);
        let mut factors: [&[f32]; MAX_PAIRS] = [&[]; MAX_PAIRS];
        let mut room = drawn_factors.chunks_exact_mut(self.factors);
        for (p, factors) in factors[..self.pairs].iter_mut().enumerate() {
            let pair = self.first + p as u32;
            match self.source.held(self.noise.key, pair, self.factors) {
                Some(held) => *factors = held,
                None => fill_noise(self.noise.key, pair, 0, room.next().expect("room for what is not held")),
            }
        }
        let drawn_factors: &'s [f32] = drawn_factors;
        let not_held = factors[..self.pairs].iter_mut().filter(|factors| factors.is_empty());
        not_held.zip(drawn_factors.chunks_exact(self.factors)).for_each(|(factors, drawn)| *factors = drawn);
        let together = match self.source {
            Source::Drawn => Some(drawn_factors),
            _ => self.source.held_together(self.noise.key, self.first, self.pairs, self.factors),
        };
        if !matches!(self.op.bias, BiasSlice::None) {
            let members = biases.chunks_exact_mut(2 * self.op.d_output).take(self.pairs);
            for (p, bias) in members.enumerate() {
                self.op.bias.fill_pair(self.first + p as u32, bias);
            }
        }
        Prepared { t, factors, together, biases }
    }
}

/// What a task works with.
struct Prepared<'s> {
    /// `x·B`, to be written.
    t: &'s mut [f32],
    /// Both factors of every pair.
    factors: [&'s [f32]; MAX_PAIRS],
    /// The same, one pair after the other, if they are in memory like that.
    together: Option<&'s [f32]>,
    /// `[members, d_output]`, with slack behind.
    biases: &'s [f32],
}

struct PerMember<'a> {
    block: Block<'a>,
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
            let x = Rows { values: &x[p * pair_rows * op.d_input..], stride: op.d_input, count: pair_rows };
            let b = Rows { values: block.parts(factors[p])[0], stride: op.d_input, count: rank };
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
        block: &Block,
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
    unsafe fn finish<S: Simd>(&mut self, place: Place, tile: &Tile) {
        for r in 0..place.rows {
            let row = place.row + r;
            let member = self.member.at(row, self.rows);
            let (rank, d_output, bias) = (self.rank, self.d_output, self.bias);
            // SAFETY: the place lies inside the block by this function's contract, and all pointers are to as much as the block has:
            // `new` has seen to it. Vectors of the bias may end in the slack behind.
            unsafe {
                let source = tile.row(r);
                let t = self.t.add(row * rank);
                let a = self.a.get_unchecked(member / 2).add(place.column);
                let bias = bias.map(|bias| bias.add(member * d_output + place.column));
                let y = self.y.add(row * d_output + place.column);
                for_vectors::<S>(place.columns, y, |c, lanes| {
                    let mut sum = S::load(source.add(c));
                    for k in 0..rank {
                        let a = load_some::<S>(a.add(k * d_output + c), lanes);
                        sum = S::fma(S::splat(*t.add(k)), a, sum);
                    }
                    match bias {
                        Some(bias) => S::add(sum, S::load(bias.add(c))),
                        None => sum,
                    }
                });
            }
        }
    }
}

struct Shared<'a> {
    block: Block<'a>,
    shared: &'a SharedRows,
    scratch: &'a mut [f32],
    y: &'a mut [MaybeUninit<f32>],
}

impl Kernel for Shared<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { block, shared, scratch, y } = self;
        let (op, rank) = (block.op, block.noise.rank);
        let Prepared { t, factors, together, biases } = block.prepare(scratch);
        let _span = profile::task(block.traced, Component::LowRankPart, 4 * (t.len() + y.len()));
        // One call for all pairs where their vectors are evenly spaced, else one for each pair.
        let (calls, vectors, stride) = match (rank, together) {
            (1, Some(_)) => (1, block.pairs, block.factors),
            _ => (block.pairs, rank, op.d_input),
        };
        for (call, factors) in factors[..calls].iter().enumerate() {
            let b = match (rank, together) {
                (1, Some(together)) => &together[block.starts()[0]..],
                _ => block.parts(factors)[0],
            };
            let t = &mut t[call * vectors * op.rows..][..vectors * op.rows]; // [vectors, rows]
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe {
                match &shared.columns {
                    None => {
                        let x = Rows { values: op.x, stride: op.d_input, count: op.rows };
                        let b = Rows { values: b, stride, count: vectors };
                        dots::<S>(op.d_input, x, b, block.noise.scale, Out { values: t, row: 1, column: op.rows });
                    }
                    Some(columns) => {
                        let product = Product {
                            rows: vectors,
                            columns: op.rows,
                            depth: op.d_input,
                            x: Strided { values: b, row: stride, depth: 1 },
                            panels: Panels::of_rows(columns, op.rows),
                            target: &mut *t,
                            add: false,
                        };
                        product.run::<S>();
                        t.iter_mut().for_each(|t| *t *= block.noise.scale);
                    }
                }
            }
        }
        let half = op.rows * op.d_output;
        let base = &shared.product[..half];
        for (p, y) in y.chunks_exact_mut(2 * half).enumerate() {
            let (plus, minus) = y.split_at_mut(half);
            let a = block.parts(factors[p])[1];
            let t = &t[p * rank * op.rows..][..rank * op.rows];
            let bias = match op.bias {
                BiasSlice::None => None,
                _ => Some(&biases[2 * p * op.d_output..][..2 * op.d_output]),
            };
            // One member after the other: two streams a power of two apart would stall each other's stores.
            for (member, y) in [plus, minus].into_iter().enumerate() {
                for row in 0..op.rows {
                    let at = row * op.d_output;
                    // SAFETY: the processor has the instruction set by this function's contract; `base` and `y` were cut to `rows`
                    // rows, the bias to two, `a` to `rank` and `t` to `rank` of one element for each row.
                    unsafe {
                        let seen = SharedRow {
                            rank,
                            rows: op.rows,
                            d_output: op.d_output,
                            a: a.as_ptr(),
                            t: t.as_ptr().add(row),
                            sign: if member == 0 { 1.0 } else { -1.0 },
                            base: base.as_ptr().add(at),
                            bias: bias.map(|bias| bias.as_ptr().add(member * op.d_output)),
                        };
                        seen.write::<S>(y.as_mut_ptr().cast::<f32>().add(at));
                    }
                }
            }
        }
    }
}

/// One shared row as one member sees it.
struct SharedRow {
    rank: usize,
    rows: usize,
    d_output: usize,
    a: *const f32,
    t: *const f32,
    sign: f32,
    base: *const f32,
    bias: Option<*const f32>,
}

impl SharedRow {
    /// `y = base + s·Σ_k t_k·A_k + bias`.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set `S`; pointers must hold a row.
    #[inline(always)]
    unsafe fn write<S: Simd>(&self, y: *mut f32) {
        let whole = self.d_output / S::LANES * S::LANES;
        // SAFETY: by this function's contract; the last, short vector is loaded and stored by count.
        unsafe {
            let mut c = 0;
            while c < whole {
                S::store(y.add(c), self.vector::<S>(c, S::LANES));
                c += S::LANES;
            }
            let left = self.d_output - whole;
            if left > 0 {
                let last = self.vector::<S>(c, left);
                S::store_first(y.add(c), last, left);
            }
        }
    }

    /// # Safety
    ///
    /// As [`write`](Self::write).
    #[inline(always)]
    unsafe fn vector<S: Simd>(&self, c: usize, lanes: usize) -> S::F {
        // SAFETY: by this function's contract.
        unsafe {
            let mut sum = load_some::<S>(self.base.add(c), lanes);
            for k in 0..self.rank {
                let t = S::splat(self.sign * *self.t.add(k * self.rows));
                sum = S::fma(t, load_some::<S>(self.a.add(k * self.d_output + c), lanes), sum);
            }
            match self.bias {
                Some(bias) => S::add(sum, load_some::<S>(bias.add(c), lanes)),
                None => sum,
            }
        }
    }
}
