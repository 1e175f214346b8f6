//! The two inner loops of every matrix product on the CPU: a register tile of `x·W`, and dot products of rows.
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
    pub(crate) fn new() -> Self {
        Self { values: [0.0; MAX_ROWS * MAX_COLUMNS], stride: MAX_COLUMNS }
    }

    /// Pointer to the first of `stride` values of a row.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> *const f32 {
        self.values[row * self.stride..].as_ptr()
    }
}

/// Where a tile lies in the product.
#[derive(Clone, Copy)]
pub(crate) struct Place {
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
    /// The processor must have the instruction set `S`.
    unsafe fn finish<S: Simd>(&mut self, place: Place, tile: &Tile);
}

/// A matrix in memory by strides, in elements.
#[derive(Clone, Copy)]
pub(crate) struct Strided {
    pub pointer: *const f32,
    pub row: usize,
    pub depth: usize,
}

/// `rows × columns` product of `x` and `panels`, tile by tile; columns outside, so that one panel of `W` stays in
/// the first-level cache while the rows pass.
///
/// # Safety
///
/// The processor must have the instruction set `S`, `x` must hold `rows × depth` elements, and `panels` must be
/// readable as [`Panels`] says.
#[inline(always)]
pub(crate) unsafe fn multiply<S: Simd, E: Epilogue>(
    rows: usize,
    columns: usize,
    depth: usize,
    x: Strided,
    panels: Panels,
    epilogue: &mut E,
) {
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
            // SAFETY: the tile lies inside the product; strides by contract.
            unsafe {
                let x = Strided { pointer: x.pointer.add(row * x.row), ..x };
                let panel = panels.at(column);
                if wide {
                    tile_of::<S, 2>(step, depth, x, panel, &mut tile);
                } else {
                    tile_of::<S, 1>(step, depth, x, panel, &mut tile);
                }
                epilogue.finish::<S>(Place { row, rows: step, column, columns: width }, &tile);
            }
            row += step;
        }
        column += width;
    }
}

/// Where the columns of `W` from a tile's first column on are found: column `c` of the first row is at
/// `pointer + ⌊c / block⌋·block_stride + c mod block`.
#[derive(Clone, Copy)]
pub(crate) struct Panels {
    pub pointer: *const f32,
    /// Columns side by side: tiles begin inside a block, and end there unless it is the last.
    pub block: usize,
    /// Elements from one block to the next.
    pub block_stride: usize,
    /// Elements from one row to the next; `None` if rows are packed to the tile's width.
    pub row: Option<usize>,
}

impl Panels {
    /// A row-major matrix as it is.
    pub(crate) fn of_rows(matrix: &[f32], columns: usize) -> Self {
        Self { pointer: matrix.as_ptr(), block: usize::MAX, block_stride: 0, row: Some(columns) }
    }

    /// Blocks of [`MAX_COLUMNS`] columns, `depth` rows each, one after the other.
    pub(crate) fn of_blocks(blocks: &[f32], depth: usize) -> Self {
        let block_stride = MAX_COLUMNS * depth;
        Self { pointer: blocks.as_ptr(), block: MAX_COLUMNS, block_stride, row: Some(MAX_COLUMNS) }
    }

    #[inline(always)]
    unsafe fn at(&self, column: usize) -> Strided {
        let offset = column / self.block * self.block_stride + column % self.block;
        // SAFETY: the column lies inside the matrix.
        Strided { pointer: unsafe { self.pointer.add(offset) }, row: self.row.unwrap_or(0), depth: 0 }
    }
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
/// As [`multiply`].
#[inline(always)]
unsafe fn tile_of<S: Simd, const V: usize>(rows: usize, depth: usize, x: Strided, panel: Strided, tile: &mut Tile) {
    // SAFETY: by this function's contract. An instruction set only meets row counts up to its `ROWS`.
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
/// As [`multiply`].
#[inline(always)]
unsafe fn tile_exact<S: Simd, const R: usize, const V: usize>(
    depth: usize,
    x: Strided,
    panel: Strided,
    tile: &mut Tile,
) {
    if R > S::ROWS {
        return;
    }
    let panel_row = if panel.row == 0 { V * S::LANES } else { panel.row };
    // SAFETY: by this function's contract.
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
                    sums[0] = S::fma(S::splat(*row.add(step * x.depth)), *column, sums[0]);
                }
            }
            w = w.add(UNROLL * panel_row);
            xs = xs.add(UNROLL * x.depth);
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
                    *sum = S::fma(x, column, *sum);
                }
            }
            w = w.add(panel_row);
            xs = xs.add(x.depth);
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
        // SAFETY: every panel has written all its rows.
        unsafe { values.set_len(len) };
        Self { values, depth }
    }

    /// The panels, for [`multiply`].
    pub(crate) fn panels(&self) -> Panels {
        Panels { pointer: self.values.as_ptr(), block: 1, block_stride: self.depth, row: None }
    }
}

/// Dot products of every row of `x` with every row of `v`, times `scale`: `out[i·out_row + j·out_column]`.
///
/// # Safety
///
/// The processor must have the instruction set `S`; `x` must hold `rows × depth` and `v` `vectors × depth`
/// elements with unit stride along the depth, `out` all the positions written.
#[inline(always)]
pub(crate) unsafe fn dots<S: Simd>(depth: usize, x: Rows, v: Rows, scale: f32, out: Out) {
    let mut i = 0;
    while i < x.count {
        let rows = match x.count - i {
            4.. => 4,
            2.. => 2,
            _ => 1,
        };
        let mut j = 0;
        while j < v.count {
            let vectors = if v.count - j >= 4 { 4 } else { 1 };
            // SAFETY: rows and vectors stay inside their matrices.
            unsafe {
                let (x, v) = (x.skip(i), v.skip(j));
                let out = Out { pointer: out.pointer.add(i * out.row + j * out.column), ..out };
                match (rows, vectors) {
                    (4, 4) => dot_tile::<S, 4, 4>(depth, x, v, scale, out),
                    (4, _) => dot_tile::<S, 4, 1>(depth, x, v, scale, out),
                    (2, 4) => dot_tile::<S, 2, 4>(depth, x, v, scale, out),
                    (2, _) => dot_tile::<S, 2, 1>(depth, x, v, scale, out),
                    (_, 4) => dot_tile::<S, 1, 4>(depth, x, v, scale, out),
                    _ => dot_tile::<S, 1, 1>(depth, x, v, scale, out),
                }
            }
            j += vectors;
        }
        i += rows;
    }
}

/// Rows of one matrix, contiguous along the depth.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub pointer: *const f32,
    pub stride: usize,
    pub count: usize,
}

impl Rows {
    #[inline(always)]
    unsafe fn skip(self, rows: usize) -> Self {
        // SAFETY: the caller stays inside the matrix.
        Self { pointer: unsafe { self.pointer.add(rows * self.stride) }, ..self }
    }
}

/// Where dot products go.
#[derive(Clone, Copy)]
pub(crate) struct Out {
    pub pointer: *mut f32,
    pub row: usize,
    pub column: usize,
}

/// # Safety
///
/// As [`dots`].
#[inline(always)]
unsafe fn dot_tile<S: Simd, const R: usize, const V: usize>(depth: usize, x: Rows, v: Rows, scale: f32, out: Out) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [[S::splat(0.0); V]; R];
        let whole = depth / S::LANES * S::LANES;
        let mut k = 0;
        while k < whole {
            let mut columns = [S::splat(0.0); V];
            for (j, column) in columns.iter_mut().enumerate() {
                *column = S::load(v.pointer.add(j * v.stride + k));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = S::load(x.pointer.add(i * x.stride + k));
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = S::fma(x, column, *sum);
                }
            }
            k += S::LANES;
        }
        for (i, sums) in sums.iter().enumerate() {
            for (j, sum) in sums.iter().enumerate() {
                let mut sum = S::sum(*sum);
                for k in whole..depth {
                    let (x, v) = (*x.pointer.add(i * x.stride + k), *v.pointer.add(j * v.stride + k));
                    sum = x.mul_add(v, sum);
                }
                *out.pointer.add(i * out.row + j * out.column) = sum * scale;
            }
        }
    }
}
