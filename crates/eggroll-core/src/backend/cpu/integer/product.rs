//! Packed weights and products of unsigned rows with them: a tile at a time, finished in registers' reach.

use super::simd::{IntegerKernel, IntegerSimd, dispatch};
use super::{NoiseSlice, sign};
use crate::integer::{Divisor, FIXED_POINT, product_divisor};
use std::mem::MaybeUninit;

/// Rows of a tile.
pub(super) const ROWS: usize = 8;
/// Columns of a tile: two vectors of AVX-512.
pub(super) const COLUMNS: usize = 32;
/// Bytes of one step of a panel.
pub(super) const LINE: usize = 4 * COLUMNS;
/// Sums of one row of a tile.
pub(super) type Sums = [i32; COLUMNS];
/// Sums of a tile.
pub(super) type Tile = [Sums; ROWS];
/// One row of a tile, finished.
pub(super) type Row = [i8; COLUMNS];

/// What turns signed values into the unsigned ones that products take; corrected by the sums of columns.
pub(super) const OFFSET: u8 = 0x80;

/// A matrix of int8 in panels of [`COLUMNS`] columns, `[panels, steps, COLUMNS, 4]`, padded with zeros.
pub(super) struct Packed {
    lines: Vec<Line>,
    /// `128·Σ_k w[k][c]`, what the offset of the rows adds.
    corrections: Vec<Sums>,
    /// Four rows each.
    pub(super) steps: usize,
    pub(super) columns: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([[i8; 4]; COLUMNS]);

impl Packed {
    /// Packs the matrix whose row `k` is `row(k)`.
    pub(super) fn new<'a>(depth: usize, columns: usize, row: impl Fn(usize) -> &'a [i8]) -> Self {
        let (steps, panels) = (depth.div_ceil(4), columns.div_ceil(COLUMNS));
        let lines = vec![Line([[0; 4]; COLUMNS]); steps * panels];
        let mut packed = Self { lines, corrections: vec![[0; COLUMNS]; panels], steps, columns };
        dispatch(Pack { packed: &mut packed, depth, row });
        packed
    }

    #[inline(always)]
    fn pack<'a>(&mut self, depth: usize, row: impl Fn(usize) -> &'a [i8]) {
        let Self { lines, corrections, steps, columns } = self;
        let (steps, columns) = (*steps, *columns);
        let zeros = vec![0; columns];
        for step in 0..steps {
            let rows: [&[i8]; 4] =
                std::array::from_fn(|k| if 4 * step + k < depth { row(4 * step + k) } else { &zeros });
            for (panel, corrections) in corrections.iter_mut().enumerate() {
                let part = panel * COLUMNS..columns.min((panel + 1) * COLUMNS);
                let [r0, r1, r2, r3] = rows.map(|row| load(&row[part.clone()]));
                let line = &mut lines[panel * steps + step].0;
                for c in 0..COLUMNS {
                    line[c] = [r0[c], r1[c], r2[c], r3[c]];
                    let sum = i16::from(r0[c]) + i16::from(r1[c]) + i16::from(r2[c]) + i16::from(r3[c]);
                    corrections[c] += 128 * i32::from(sum);
                }
            }
        }
    }

    /// Bytes of an unsigned row.
    pub(super) fn row_bytes(&self) -> usize {
        4 * self.steps
    }

    pub(super) fn panels(&self) -> usize {
        self.corrections.len()
    }

    /// Columns of a panel that exist.
    pub(super) fn width(&self, panel: usize) -> usize {
        COLUMNS.min(self.columns - panel * COLUMNS)
    }

    /// The product of a tile of rows with a panel.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set; `x` must hold [`ROWS`] rows of [`row_bytes`](Self::row_bytes).
    #[inline(always)]
    pub(super) unsafe fn tile<S: IntegerSimd>(&self, x: &[u8], panel: usize, sums: &mut Tile) {
        debug_assert!(x.len() >= ROWS * self.row_bytes());
        let lines = self.lines[panel * self.steps..].as_ptr();
        let corrections = &self.corrections[panel];
        // SAFETY: by this function's contract; the panel has as many lines as steps.
        unsafe { S::tile(x.as_ptr(), self.row_bytes(), self.steps, lines.cast(), corrections, sums) };
    }
}

struct Pack<'a, F> {
    packed: &'a mut Packed,
    depth: usize,
    row: F,
}

impl<'a, F: Fn(usize) -> &'a [i8]> IntegerKernel for Pack<'_, F> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        self.packed.pack(self.depth, self.row);
    }
}

/// Makes a row unsigned; what is behind it is multiplied by zeros.
#[inline(always)]
pub(super) fn offset(row: &[i8], to: &mut [u8]) {
    for (to, value) in to.iter_mut().zip(row) {
        *to = *value as u8 ^ OFFSET;
    }
}

/// The low-rank noise of a product `[d_input, d_output]`.
#[derive(Clone, Copy)]
pub(super) struct LowRank<'a> {
    noise: NoiseSlice<'a>,
    d_input: usize,
    d_output: usize,
}

impl<'a> LowRank<'a> {
    pub(super) fn new(noise: NoiseSlice<'a>, d_input: usize, d_output: usize) -> Self {
        Self { noise, d_input, d_output }
    }

    pub(super) fn rank(&self) -> usize {
        self.noise.members.rank
    }

    /// `128·Σ B` of a member, one for each column: what the offset of the rows adds to a projection.
    #[inline(always)]
    pub(super) fn projection_offsets(&self, member: usize, offsets: &mut [i32]) {
        let b = self.noise.of(member).chunks_exact(self.d_input);
        for (offset, b) in offsets.iter_mut().zip(b) {
            *offset = 128 * b.iter().map(|b| i32::from(*b)).sum::<i32>();
        }
    }

    /// `s·x·B` of a member's row.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    pub(super) unsafe fn project<S: IntegerSimd>(&self, member: usize, x: &[u8], offsets: &[i32], t: &mut [i32]) {
        let b = self.noise.of(member).chunks_exact(self.d_input);
        for ((t, b), offset) in t.iter_mut().zip(b).zip(offsets) {
            // SAFETY: by this function's contract; both slices hold `d_input` values.
            *t = sign(member) * (unsafe { S::dot(x[..self.d_input].as_ptr(), b.as_ptr(), self.d_input) } - offset);
        }
    }

    /// What a member's noise adds to a row of sums, from column `first` on.
    #[inline(always)]
    pub(super) fn term<'t>(&self, member: usize, t: &'t [i32], first: usize, width: usize) -> Term<'t>
    where
        'a: 't,
    {
        let a = &self.noise.of(member)[self.rank() * self.d_input + first..];
        debug_assert!(a.len() >= (t.len() - 1) * self.d_output + width);
        Term { t, a, stride: self.d_output, width, shift: self.noise.members.shift }
    }
}

/// `⌊t·Aᵀ / 2^shift⌋` for some columns of a row.
#[derive(Clone, Copy)]
pub(super) struct Term<'a> {
    /// `s·x·B`: `[rank]`
    pub(super) t: &'a [i32],
    /// `A` from the first column on; its rows are `stride` apart.
    pub(super) a: &'a [i8],
    pub(super) stride: usize,
    /// Columns that exist.
    pub(super) width: usize,
    pub(super) shift: u32,
}

/// `clip(⌊(sums + ⌊t·A / 2^shift⌋) / divisor⌋)` of one row of a tile.
#[inline(always)]
pub(super) fn finish(sums: &Sums, term: Option<Term>, scale: &Scale) -> Row {
    let mut sums = *sums;
    if let Some(Term { t, a, stride, width, shift }) = term {
        let mut products = [0i32; COLUMNS];
        for (k, t) in t.iter().enumerate() {
            let a = load(&a[k * stride..][..width]);
            for (product, a) in products.iter_mut().zip(a) {
                *product = product.wrapping_add(t.wrapping_mul(i32::from(a)));
            }
        }
        for (sum, product) in sums.iter_mut().zip(products) {
            *sum = sum.wrapping_add(product >> shift);
        }
    }
    scale.divide(&sums)
}

/// At most a panel's columns, zeros behind the last.
#[inline(always)]
pub(super) fn load(values: &[i8]) -> Row {
    values.first_chunk().copied().unwrap_or_else(|| {
        let mut row = [0; COLUMNS];
        row[..values.len()].copy_from_slice(values);
        row
    })
}

/// Writes a row's first columns, as many as `to` has: without a call for whole rows.
#[inline(always)]
pub(super) fn store(row: &Row, to: &mut [i8]) {
    match to.first_chunk_mut() {
        Some(to) => *to = *row,
        None => to.copy_from_slice(&row[..to.len()]),
    }
}

/// [`store`] to memory that was not written before.
#[inline(always)]
pub(super) fn write(row: &Row, to: &mut [MaybeUninit<i8>]) {
    match to.first_chunk_mut() {
        Some(to) => *to = row.map(MaybeUninit::new),
        None => {
            let len = to.len();
            to.write_copy_of_slice(&row[..len]);
        }
    }
}

/// What a product over `d_input` values is divided by, and clipped.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    /// By multiplication.
    Fast(Divisor),
    /// By division: above 16,383 values.
    Plain(i32),
}

impl Scale {
    pub(super) fn new(d_input: usize) -> Self {
        match d_input.isqrt() {
            root if root < Divisor::LIMIT => Self::Fast(Divisor::new(root, FIXED_POINT)),
            _ => Self::Plain(product_divisor(d_input)),
        }
    }

    #[inline(always)]
    fn divide(&self, sums: &Sums) -> Row {
        match self {
            Self::Fast(divisor) => {
                let mut row = [0; COLUMNS];
                for (value, sum) in row.iter_mut().zip(sums) {
                    *value = divisor.divide(*sum);
                }
                row
            }
            Self::Plain(divisor) => sums.map(|sum| crate::integer::divide_plainly(sum, *divisor)),
        }
    }
}
