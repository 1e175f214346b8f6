//! Packed weights and products of unsigned rows with them: a tile at a time, finished in registers' reach.

use super::noise::{NoiseSlice, sign};
use super::simd::{IntegerKernel, IntegerSimd, IntegerTiles, dispatch};
use super::tile::{COLUMNS, OFFSET, ROWS, Sums, Term, Terms, Tile, load};
use crate::arithmetic::integer::{FIXED_POINT, Rounding, shift_rounded};
use std::slice::ChunksExact;

/// A matrix of int8 in panels of [`COLUMNS`] columns, `[panels, steps, COLUMNS, 4]`, padded with zeros.
pub(in crate::backend::cpu) struct Packed {
    lines: Vec<Int8Line>,
    /// `−128·Σ_k w[k][c]`: sums begin with what the offset of the rows will add.
    starts: Vec<Sums>,
    /// Four rows each.
    pub(super) steps: usize,
    pub(super) columns: usize,
}

/// One step of a panel: four rows of every column.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Int8Line(pub [[i8; 4]; COLUMNS]);

/// A panel of a packed matrix.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) struct Panel<'a> {
    lines: &'a [Int8Line],
    starts: &'a Sums,
}

impl<'a> Panel<'a> {
    /// Of its steps, and what sums begin with.
    #[inline(always)]
    pub(super) fn new(lines: &'a [Int8Line], starts: &'a Sums) -> Self {
        Self { lines, starts }
    }

    /// Bytes of an unsigned row.
    #[inline(always)]
    fn row_bytes(&self) -> usize {
        4 * self.lines.len()
    }

    /// The product of a tile of rows, the first [`ROWS`] of `x`, with the panel.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    unsafe fn tile<S: IntegerSimd>(self, x: &[u8], sums: &mut Tile) {
        let stride = self.row_bytes();
        let x = self.rows_of(x, stride, 1);
        // SAFETY: the processor has the instruction set by this function's contract; `x` was cut to the rows and the steps.
        unsafe { S::tile(x.as_ptr(), stride, self.lines.len(), self.lines.as_ptr().cast(), self.starts, sums) };
    }

    /// [`tile`](Self::tile) of tiles one below the other, of the beginnings of longer rows, `stride` bytes apart.
    ///
    /// # Safety
    ///
    /// As [`tile`](Self::tile), and after [`IntegerTiles::begin`].
    #[inline(always)]
    pub(in crate::backend::cpu) unsafe fn tiles<S: IntegerTiles>(self, x: &[u8], stride: usize, sums: &mut [Tile]) {
        let x = self.rows_of(x, stride, sums.len());
        // SAFETY: the processor has the instruction set by this function's contract; `x` was cut to the rows and the steps.
        unsafe { S::tiles(x.as_ptr(), stride, self.lines.len(), self.lines.as_ptr().cast(), self.starts, sums) };
    }

    /// Rows of tiles.
    ///
    /// # Panics
    ///
    /// Panics if there are fewer rows, or they are shorter than the panel is deep.
    #[inline(always)]
    fn rows_of<'x>(&self, x: &'x [u8], stride: usize, tiles: usize) -> &'x [u8] {
        assert!(stride >= self.row_bytes() && tiles > 0, "rows of a product of integers");
        &x[..(tiles * ROWS - 1) * stride + self.row_bytes()]
    }
}

impl Packed {
    /// Packs the matrix whose row `k` is `row(k)`.
    pub(in crate::backend::cpu) fn new<'a>(depth: usize, columns: usize, row: impl Fn(usize) -> &'a [i8]) -> Self {
        let (steps, panels) = (depth.div_ceil(4), columns.div_ceil(COLUMNS));
        let lines = vec![Int8Line([[0; 4]; COLUMNS]); steps * panels];
        let mut packed = Self { lines, starts: vec![[0; COLUMNS]; panels], steps, columns };
        dispatch(Pack { packed: &mut packed, depth, row });
        packed
    }

    #[inline(always)]
    fn pack<'a>(&mut self, depth: usize, row: impl Fn(usize) -> &'a [i8]) {
        let Self { lines, starts, steps, columns } = self;
        let (steps, columns) = (*steps, *columns);
        let zeros = vec![0; columns];
        for step in 0..steps {
            let rows: [&[i8]; 4] =
                std::array::from_fn(|k| if 4 * step + k < depth { row(4 * step + k) } else { &zeros });
            for (panel, starts) in starts.iter_mut().enumerate() {
                let part = panel * COLUMNS..columns.min((panel + 1) * COLUMNS);
                let [r0, r1, r2, r3] = rows.map(|row| load(&row[part.clone()]));
                let line = &mut lines[panel * steps + step].0;
                for c in 0..COLUMNS {
                    line[c] = [r0[c], r1[c], r2[c], r3[c]];
                    let sum = i16::from(r0[c]) + i16::from(r1[c]) + i16::from(r2[c]) + i16::from(r3[c]);
                    starts[c] -= 128 * i32::from(sum);
                }
            }
        }
    }

    /// Columns.
    pub(in crate::backend::cpu) fn columns(&self) -> usize {
        self.columns
    }

    /// The integer of a row and column.
    #[inline(always)]
    pub(in crate::backend::cpu) fn value(&self, row: usize, column: usize) -> i8 {
        self.lines[column / COLUMNS * self.steps + row / 4].0[column % COLUMNS][row % 4]
    }

    /// Sets the integer of a row and column.
    pub(in crate::backend::cpu) fn set(&mut self, row: usize, column: usize, value: i8) {
        let place = &mut self.lines[column / COLUMNS * self.steps + row / 4].0[column % COLUMNS][row % 4];
        self.starts[column / COLUMNS][column % COLUMNS] -= 128 * (i32::from(value) - i32::from(*place));
        *place = value;
    }

    /// Bytes of an unsigned row.
    pub(in crate::backend::cpu) fn row_bytes(&self) -> usize {
        4 * self.steps
    }

    /// Number of integers that differ between two matrices of the same shape.
    pub(in crate::backend::cpu) fn differing(&self, other: &Self) -> usize {
        let of_line = |(a, b): (&Int8Line, &Int8Line)| {
            a.0.as_flattened().iter().zip(b.0.as_flattened()).filter(|(a, b)| a != b).count()
        };
        self.lines.iter().zip(&other.lines).map(of_line).sum()
    }

    pub(in crate::backend::cpu) fn panels(&self) -> usize {
        self.starts.len()
    }

    /// Columns of a panel that exist.
    pub(in crate::backend::cpu) fn width(&self, panel: usize) -> usize {
        COLUMNS.min(self.columns - panel * COLUMNS)
    }

    /// A panel.
    #[inline(always)]
    pub(in crate::backend::cpu) fn panel(&self, panel: usize) -> Panel<'_> {
        Panel::new(&self.lines[panel * self.steps..][..self.steps], &self.starts[panel])
    }

    /// The product of a tile of rows, the first [`ROWS`] of `x`, with a panel.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    pub(super) unsafe fn tile<S: IntegerSimd>(&self, x: &[u8], panel: usize, sums: &mut Tile) {
        // SAFETY: by this function's contract.
        unsafe { self.panel(panel).tile::<S>(x, sums) };
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

/// `128·Σ v`: what the offset of the rows adds to a product with these values.
#[inline(always)]
pub(super) fn correction(values: &[i8]) -> i32 {
    // A loop: a closure would not be compiled for the instruction set.
    let mut sum = 0;
    for value in values {
        sum += i32::from(*value);
    }
    128 * sum
}

/// The low-rank noise of a product: a row goes through the factors that start at `from`, and by those at `to` to the columns.
#[derive(Clone, Copy)]
pub(super) struct LowRank<'a> {
    noise: NoiseSlice<'a>,
    from: usize,
    to: usize,
    depth: usize,
    columns: usize,
    rounding: Rounding,
}

impl<'a> LowRank<'a> {
    /// Of a product with a matrix `[depth, columns]`.
    pub(super) fn new(noise: NoiseSlice<'a>, [depth, columns]: [usize; 2], rounding: Rounding) -> Self {
        Self { noise, from: 0, to: noise.members.rank * depth, depth, columns, rounding }
    }

    /// Of a product with the transpose of a matrix `[columns, depth]`.
    pub(super) fn of_transpose(noise: NoiseSlice<'a>, [columns, depth]: [usize; 2], rounding: Rounding) -> Self {
        Self { noise, from: noise.members.rank * columns, to: 0, depth, columns, rounding }
    }

    pub(super) fn rank(&self) -> usize {
        self.noise.members.rank
    }

    #[inline(always)]
    fn factors(&self, member: usize) -> ChunksExact<'a, i8> {
        self.noise.of(member)[self.from..][..self.rank() * self.depth].chunks_exact(self.depth)
    }

    /// `128·Σ F` of a member, one for each column: what the offset of the rows adds to a projection.
    #[inline(always)]
    pub(super) fn projection_offsets(&self, member: usize, offsets: &mut [i32]) {
        for (offset, factor) in offsets.iter_mut().zip(self.factors(member)) {
            *offset = correction(factor);
        }
    }

    /// A member's row projected, `s·x·F` or `round(x·F / 16)`: `[rank]`.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    pub(super) unsafe fn project<S: IntegerSimd>(&self, member: usize, x: &[u8], offsets: &[i32], t: &mut [i32]) {
        for ((t, factor), offset) in t.iter_mut().zip(self.factors(member)).zip(offsets) {
            // SAFETY: the processor has the instruction set by this function's contract; `x` is cut to `depth` values, a factor has as many.
            let dot = unsafe { S::dot(x[..self.depth].as_ptr(), factor.as_ptr(), self.depth) } - offset;
            *t = match self.rounding {
                Rounding::Floor => sign(member) * dot,
                Rounding::Nearest => shift_rounded(dot, FIXED_POINT),
            };
        }
    }

    /// What a member's noise adds to a row of sums, from column `first` on, for `t : [rank]`.
    #[inline(always)]
    pub(super) fn term<'t>(&self, member: usize, t: &'t [i32], first: usize, width: usize) -> Term<'t>
    where
        'a: 't,
    {
        let to = &self.noise.of(member)[self.to + first..];
        let shift = match self.rounding {
            Rounding::Floor => self.noise.members.shift,
            Rounding::Nearest => self.noise.members.shift - FIXED_POINT,
        };
        Term::new(t, to, self.columns, width, shift)
    }

    /// [`term`](Self::term) of rows of a member, for `t : [rows, rank]`.
    #[inline(always)]
    pub(super) fn terms<'t>(&self, member: usize, t: &'t [i32], first: usize, width: usize) -> Terms<'t>
    where
        'a: 't,
    {
        Terms::new(t, self.term(member, &t[..self.rank()], first, width), sign(member))
    }
}
