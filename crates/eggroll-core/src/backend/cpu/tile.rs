//! The inner loop of matrix products on the CPU: a register tile of `x·W`.
//!
//! Each output element is one chain of fused multiply-adds along the depth, whatever tile it falls into. That is
//! why chunks and shards give the same bits.

use crate::simd::Simd;
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Rows of the largest register tile of any instruction set.
const MAX_ROWS: usize = 14;
/// Columns of the largest register tile of any instruction set: two vectors of 16.
pub(crate) const MAX_COLUMNS: usize = 32;

/// Depth steps at a time in a tile of one vector.
const UNROLL: usize = 4;

/// A finished register tile, row after row, `stride` columns each.
#[repr(align(64))]
pub(crate) struct Tile {
    values: [f32; MAX_ROWS * MAX_COLUMNS],
    stride: usize,
}

impl Tile {
    /// An empty tile.
    pub(crate) const fn new() -> Self {
        Self { values: [0.0; MAX_ROWS * MAX_COLUMNS], stride: MAX_COLUMNS }
    }

    /// Sums of integers as floats, `sums·x·w` with a scale for each row and each column, added to what is there if `add`.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set `S`.
    #[inline(always)]
    pub(crate) unsafe fn take_integers<S: Simd, const R: usize>(
        &mut self,
        sums: &[[i32; MAX_COLUMNS]; R],
        x: &[f32],
        w: &[f32; MAX_COLUMNS],
        add: bool,
    ) {
        const { assert!(R <= MAX_ROWS) };
        self.stride = MAX_COLUMNS;
        for (r, (sums, x)) in sums.iter().zip(x).enumerate() {
            let row = &mut self.values[r * MAX_COLUMNS..][..MAX_COLUMNS];
            for c in (0..MAX_COLUMNS).step_by(S::LANES) {
                // SAFETY: a row of sums, of scales and of the tile hold as many columns, a multiple of the lanes.
                unsafe {
                    let sum = S::from_i32(S::to_bits(S::load(sums.as_ptr().add(c).cast())));
                    let scale = S::mul(S::splat(*x), S::load(w.as_ptr().add(c)));
                    let to = row.as_mut_ptr().add(c);
                    S::store(to, if add { S::mul_add(sum, scale, S::load(to)) } else { S::mul(sum, scale) });
                }
            }
        }
    }

    /// Pointer to rows of [`MAX_COLUMNS`] values each, to be written.
    #[inline(always)]
    pub(crate) fn rows(&mut self) -> *mut f32 {
        self.stride = MAX_COLUMNS;
        self.values.as_mut_ptr()
    }

    /// Pointer to the first of `stride` values of a row.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> *const f32 {
        self.values[row * self.stride..].as_ptr()
    }
}

/// Where a tile lies in the product.
#[derive(Clone, Copy)]
pub(crate) struct TileArea {
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

/// What becomes of a finished tile.
pub(crate) trait Epilogue {
    /// Takes the tile at `place`; columns from `place.columns` on are padding.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set `S`, and `place` must lie inside the product that the epilogue was made for.
    unsafe fn finish<S: Simd>(&mut self, place: TileArea, tile: &Tile);
}

/// A matrix in memory by strides, in elements.
#[derive(Clone, Copy)]
pub(crate) struct Strided<'a> {
    pub values: &'a [f32],
    pub row: usize,
    pub depth: usize,
}

/// Where a run in memory ends that has `counts` elements along each of two axes, `strides` apart; `None` if no memory could hold it.
#[inline(always)]
pub(crate) fn end(counts: [usize; 2], strides: [usize; 2]) -> Option<usize> {
    if counts[0] == 0 || counts[1] == 0 {
        return Some(0);
    }
    let last = [0, 1].map(|axis| (counts[axis] - 1).checked_mul(strides[axis]));
    last[0]?.checked_add(last[1]?)?.checked_add(1)
}

/// `rows × columns` product of `x` and `panels`, tile by tile. Columns are the outer loop, so that one panel of
/// `W` stays in the first-level cache while the rows pass.
///
/// # Panics
///
/// Panics if `x` or `panels` are too short.
///
/// # Safety
///
/// The processor must have the instruction set `S`, and `epilogue` must have been made for a product of at least `rows × columns`.
#[inline(always)]
pub(crate) unsafe fn multiply<S: Simd, E: Epilogue>(
    rows: usize,
    columns: usize,
    depth: usize,
    x: Strided,
    panels: Panels,
    epilogue: &mut E,
) {
    assert!(end([rows, depth], [x.row, x.depth]).is_some_and(|end| end <= x.values.len()), "rows of a product");
    assert!(panels.end::<S>(columns, depth).is_some_and(|end| end <= panels.values.len()), "columns of a product");
    let mut tile = Tile::new();
    let mut column = 0;
    while column < columns {
        let left = columns - column;
        let wide = left > S::LANES;
        tile.stride = if wide { 2 * S::LANES } else { S::LANES };
        let width = left.min(tile.stride);
        let mut row = 0;
        while row < rows {
            let step = tile_rows::<S>(rows - row);
            // SAFETY: the tile lies inside the product, whose rows and columns were found inside `x` and `panels`.
            unsafe {
                let x = Cursor { pointer: x.values.as_ptr().wrapping_add(row * x.row), row: x.row, depth: x.depth };
                let panel = panels.at(column);
                if wide {
                    tile_of::<S, 2>(step, depth, x, panel, &mut tile);
                } else {
                    tile_of::<S, 1>(step, depth, x, panel, &mut tile);
                }
                epilogue.finish::<S>(TileArea { row, rows: step, column, columns: width }, &tile);
            }
            row += step;
        }
        column += width;
    }
}

/// Where the columns of `W` from a tile's first column on are found: column `c` of the first row is at
/// `pointer + ⌊c / block⌋·block_stride + c mod block`.
///
/// Tiles load whole vectors: behind a row-major matrix there has to be slack for one.
#[derive(Clone, Copy)]
pub(crate) struct Panels<'a> {
    values: &'a [f32],
    /// Columns side by side: tiles begin inside a block, and end there unless it is the last.
    block: usize,
    /// Elements from one block to the next.
    block_stride: usize,
    /// Elements from one row to the next; `None` if rows are packed to the tile's width.
    row: Option<usize>,
}

impl<'a> Panels<'a> {
    /// A row-major matrix as it is.
    #[inline(always)]
    pub(crate) fn of_rows(matrix: &'a [f32], columns: usize) -> Self {
        Self { values: matrix, block: usize::MAX, block_stride: 0, row: Some(columns) }
    }

    /// Blocks of [`MAX_COLUMNS`] columns, `depth` rows each, one after the other.
    #[inline(always)]
    pub(crate) fn of_blocks(blocks: &'a [f32], depth: usize) -> Self {
        let block_stride = MAX_COLUMNS * depth;
        Self { values: blocks, block: MAX_COLUMNS, block_stride, row: Some(MAX_COLUMNS) }
    }

    /// Where the first row of a column is.
    #[inline(always)]
    fn offset(&self, column: usize) -> Option<usize> {
        (column / self.block).checked_mul(self.block_stride)?.checked_add(column % self.block)
    }

    /// End of the last load; tiles are contiguous.
    #[inline(always)]
    fn end<S: Simd>(&self, columns: usize, depth: usize) -> Option<usize> {
        if columns == 0 || depth == 0 {
            return Some(0);
        }
        let last = (columns - 1) / (2 * S::LANES) * (2 * S::LANES);
        let width = (columns - last).next_multiple_of(S::LANES);
        self.offset(last)?.checked_add(end([depth, width], [self.row.unwrap_or(width), 1])?)
    }

    #[inline(always)]
    fn at(&self, column: usize) -> Cursor {
        let offset = column / self.block * self.block_stride + column % self.block;
        Cursor { pointer: self.values.as_ptr().wrapping_add(offset), row: self.row.unwrap_or(0), depth: 0 }
    }
}

/// Where a tile begins in a matrix.
#[derive(Clone, Copy)]
struct Cursor {
    pointer: *const f32,
    row: usize,
    depth: usize,
}

#[inline(always)]
fn tile_rows<S: Simd>(left: usize) -> usize {
    if left >= S::ROWS {
        return S::ROWS;
    }
    match left {
        12.. => 12,
        8.. => 8,
        6.. => 6,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// # Safety
///
/// The processor must have the instruction set `S`, `x` must be at `rows` rows of `depth` elements, and `panel` at `depth` rows of
/// `V` vectors.
#[inline(always)]
unsafe fn tile_of<S: Simd, const V: usize>(rows: usize, depth: usize, x: Cursor, panel: Cursor, tile: &mut Tile) {
    // SAFETY: by this function's contract, for `rows` as [`tile_rows`] gives them: every count has its arm.
    unsafe {
        match rows {
            14 => tile_exact::<S, 14, V>(depth, x, panel, tile),
            12 => tile_exact::<S, 12, V>(depth, x, panel, tile),
            8 => tile_exact::<S, 8, V>(depth, x, panel, tile),
            6 => tile_exact::<S, 6, V>(depth, x, panel, tile),
            4 => tile_exact::<S, 4, V>(depth, x, panel, tile),
            2 => tile_exact::<S, 2, V>(depth, x, panel, tile),
            _ => tile_exact::<S, 1, V>(depth, x, panel, tile),
        }
    }
}

/// # Safety
///
/// As [`tile_of`], for `R` rows.
#[inline(always)]
unsafe fn tile_exact<S: Simd, const R: usize, const V: usize>(depth: usize, x: Cursor, panel: Cursor, tile: &mut Tile) {
    if R > S::ROWS {
        return;
    }
    let panel_row = if panel.row == 0 { V * S::LANES } else { panel.row };
    // SAFETY: by this function's contract; `R × V` vectors fit into a tile, which is of the largest of all instruction sets.
    unsafe {
        let mut sums = [[S::splat(0.0); V]; R];
        let mut w = panel.pointer;
        let mut xs = x.pointer;
        let mut left = depth;
        // A narrow tile has registers to spare: several steps share the address of a row.
        while V == 1 && left >= UNROLL {
            let columns: [S::F; UNROLL] = std::array::from_fn(|step| S::load(w.add(step * panel_row)));
            for (r, sums) in sums.iter_mut().enumerate() {
                let row = xs.add(r * x.row);
                for (step, column) in columns.iter().enumerate() {
                    sums[0] = S::mul_add(S::splat(*row.add(step * x.depth)), *column, sums[0]);
                }
            }
            w = w.wrapping_add(UNROLL * panel_row);
            xs = xs.wrapping_add(UNROLL * x.depth);
            left -= UNROLL;
        }
        for _ in 0..left {
            let mut columns = [S::splat(0.0); V];
            for (v, column) in columns.iter_mut().enumerate() {
                *column = S::load(w.add(v * S::LANES));
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = S::splat(*xs.add(r * x.row));
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = S::mul_add(x, column, *sum);
                }
            }
            w = w.wrapping_add(panel_row);
            xs = xs.wrapping_add(x.depth);
        }
        for (r, sums) in sums.iter().enumerate() {
            for (v, sum) in sums.iter().enumerate() {
                S::store(tile.values.as_mut_ptr().add((r * V + v) * S::LANES), *sum);
            }
        }
    }
}

/// A row-major matrix rearranged so that the microkernel reads it front to back; short panels are padded with zeros.
pub(crate) struct Packed {
    values: Vec<f32>,
    depth: usize,
}

impl Packed {
    /// Packs `w` of shape `[depth, columns]` for `S`, panels side by side on all threads.
    pub(crate) fn new<S: Simd>(w: &[f32], depth: usize, columns: usize) -> Self {
        let len = depth * columns.next_multiple_of(S::LANES);
        let mut values = Vec::with_capacity(len);
        let panels = values.spare_capacity_mut()[..len].par_chunks_mut((2 * S::LANES * depth).max(1));
        panels.enumerate().for_each(|(panel, to)| {
            let column = panel * 2 * S::LANES;
            let stride = to.len() / depth;
            let width = stride.min(columns - column);
            for (row, to) in to.chunks_exact_mut(stride).enumerate() {
                let start = row * columns + column;
                to[..width].write_copy_of_slice(&w[start..start + width]);
                to[width..].fill(MaybeUninit::new(0.0));
            }
        });
        // SAFETY: the capacity is there; every panel has written its `depth` rows of `stride` elements, which is all of it.
        unsafe { values.set_len(len) };
        Self { values, depth }
    }

    /// The panels, for [`multiply`].
    pub(crate) fn panels(&self) -> Panels<'_> {
        Panels { values: &self.values, block: 1, block_stride: self.depth, row: None }
    }
}
