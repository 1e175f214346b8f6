//! `y = x·W + n`, where `n = s·c·(x·B)·Aᵀ` is what the low-rank noise of a row's member makes of the row.

use super::bf16::HalfProduct;
use super::epilogue::{MatrixEpilogue, RowNoise};
use super::int8::{Bytes, PanelBlocks};
use super::matrix::Matrix;
use super::quantized::{Blocks, Quantized};
use super::rows::PackedRows;
use crate::backend::cpu::dots::{DotRows, Out, dots};
use crate::backend::cpu::integer::{self, COLUMNS, IntegerTiles, MixedKernel, dispatch_mixed};
use crate::backend::cpu::tile::{Epilogue, Strided, Tile, TileArea, multiply};
use crate::simd::Simd;

/// Rows of one pair that are projected together.
const MAX_RUN: usize = 64;

/// A product of rows with a packed weight.
pub(crate) struct MatrixProduct<'a> {
    pub matrix: &'a Matrix,
    pub d_input: usize,
    pub d_output: usize,
    /// `[rows, d_input]`
    pub x: &'a [f32],
    /// The same rows in the format of the weight; any for float32.
    pub packed: &'a PackedRows,
    pub noise: Option<RowNoise<'a>>,
    /// `x·B` times sign and scale, `[rows, rank]`, to be written.
    pub t: &'a mut Vec<f32>,
    /// `[rows, d_output]`
    pub y: &'a mut [f32],
    /// Whether the product is added to what is there.
    pub add: bool,
}

impl MatrixProduct<'_> {
    /// Runs it.
    ///
    /// # Panics
    ///
    /// Panics if lengths do not fit, or if the rows are not in the format of the weight.
    pub(crate) fn run(self) {
        let rows = self.x.len() / self.d_input;
        assert!(self.x.len() == rows * self.d_input, "rows of a product");
        assert!(self.y.len() == rows * self.d_output, "the target of a product");
        if let Some(noise) = &self.noise {
            let each = noise.rank * (self.d_input + self.d_output);
            let slots = noise.rows.iter().map(|row| row.slot as usize + 1).max().unwrap_or(0);
            assert!(noise.rows.len() == rows && noise.factors.len() >= slots * each, "the noise of a product");
        }
        if let PackedRows::Int8(x) = self.packed {
            let whole = rows.next_multiple_of(integer::ROWS);
            let fits = x.stride == self.d_input.next_multiple_of(4)
                && x.rows() == whole
                && x.scales.len() == whole * self.d_input.div_ceil(x.form().size());
            assert!(fits, "quantized rows of a product");
        }
        dispatch_mixed(self);
    }

    /// `t = s·c·x·B : [rows, rank]`
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set `S`.
    #[inline(always)]
    unsafe fn project<S: Simd>(&mut self) {
        let Some(RowNoise { rows, factors, rank, scale }) = self.noise else { return };
        let each = rank * (self.d_input + self.d_output);
        self.t.resize(rows.len() * rank, 0.0);
        let mut row = 0;
        while row < rows.len() {
            let slot = rows[row].slot;
            let run = rows[row..].iter().take(MAX_RUN).take_while(|next| next.slot == slot).count();
            let x = DotRows { values: &self.x[row * self.d_input..], stride: self.d_input, count: run };
            let b = DotRows { values: &factors[slot as usize * each..], stride: self.d_input, count: rank };
            let t = &mut self.t[row * rank..][..run * rank];
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe { dots::<S>(self.d_input, x, b, scale, Out { values: &mut *t, row: rank, column: 1 }) };
            for (row, t) in rows[row..].iter().zip(t.chunks_exact_mut(rank)) {
                if row.minus {
                    t.iter_mut().for_each(|t| *t = -*t);
                }
            }
            row += run;
        }
    }
}

impl MixedKernel for MatrixProduct<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd, I: IntegerTiles>(mut self) {
        let rows = self.x.len() / self.d_input;
        // SAFETY: the processor has the instruction sets by this function's contract; `y` and the noise were found to hold all rows.
        unsafe {
            self.project::<S>();
            let mut finish = MatrixEpilogue {
                noise: self.noise,
                t: self.t,
                d_input: self.d_input,
                d_output: self.d_output,
                y: self.y.as_mut_ptr(),
                add: self.add,
            };
            match (self.matrix, self.packed) {
                (Matrix::F32(packed), _) => {
                    let x = Strided { values: self.x, row: self.d_input, depth: 1 };
                    multiply::<S, _>(rows, self.d_output, self.d_input, x, packed.panels(), &mut finish);
                }
                (Matrix::Bf16(weight), PackedRows::Bf16(x)) => {
                    HalfProduct { rows, x, weight, finish: &mut finish }.run();
                }
                (Matrix::Int8(form, blocks), PackedRows::Int8(x)) if *form == x.form() => {
                    multiply_blocks::<S, I>(rows, Bytes::new(blocks), x, &mut finish);
                }
                (Matrix::Int4(weight), PackedRows::Int8(x)) if x.form() == Blocks::Plain => {
                    multiply_blocks::<S, I>(rows, weight.unpacking(), x, &mut finish);
                }
                _ => panic!("rows of a product in another format than its weight"),
            }
        }
    }
}

/// The product of all rows with a weight in blocks.
///
/// # Safety
///
/// The processor must have the instruction sets, `x` must hold tiles for all rows, and `finish` must have been made for the product.
#[inline(always)]
unsafe fn multiply_blocks<S: Simd, I: IntegerTiles>(
    rows: usize,
    mut blocks: impl PanelBlocks,
    x: &Quantized,
    finish: &mut MatrixEpilogue,
) {
    let steps = x.form().size().min(finish.d_input).div_ceil(4);
    // SAFETY: by this function's contract.
    unsafe {
        match I::are_filled(rows, steps) {
            true => multiply_integers::<S, I>(rows, &mut blocks, x, finish),
            false => multiply_integers::<S, I::Rest>(rows, &mut blocks, x, finish),
        }
    }
}

/// The product of all rows, a panel of the weight in the first-level cache while the rows pass.
///
/// # Safety
///
/// As [`multiply_blocks`].
#[inline(always)]
unsafe fn multiply_integers<S: Simd, I: IntegerTiles>(
    rows: usize,
    blocks: &mut impl PanelBlocks,
    x: &Quantized,
    finish: &mut MatrixEpilogue,
) {
    let mut sums: [integer::Tile; integer::TILES] = [[[0; COLUMNS]; integer::ROWS]; integer::TILES];
    let mut tiles = [const { Tile::new() }; integer::TILES];
    let (size, columns) = (x.form().size(), finish.d_output);
    // SAFETY: by this function's contract; no code of others runs before the end.
    unsafe { I::begin() };
    for (panel, column) in (0..columns).step_by(COLUMNS).enumerate() {
        blocks.open(panel);
        for row in (0..rows).step_by(integer::TILES * integer::ROWS) {
            let count = (rows - row).div_ceil(integer::ROWS).min(integer::TILES);
            let (sums, tiles) = (&mut sums[..count], &mut tiles[..count]);
            for index in 0..blocks.count() {
                let (weight, scales) = blocks.block(index);
                // SAFETY: by this function's contract; tiles have begun.
                unsafe { weight.tiles::<I>(&x.bytes[row * x.stride + index * size..], x.stride, sums) };
                let x = &x.scales[index * x.rows() + row..][..count * integer::ROWS];
                for ((tile, sums), x) in tiles.iter_mut().zip(sums.iter()).zip(x.chunks_exact(integer::ROWS)) {
                    // SAFETY: by this function's contract.
                    unsafe { tile.take_integers::<S, { integer::ROWS }>(sums, x, scales, index > 0) };
                }
            }
            for (index, tile) in tiles.iter().enumerate() {
                let row = row + index * integer::ROWS;
                let rows = integer::ROWS.min(rows - row);
                let place = TileArea { row, rows, column, columns: COLUMNS.min(columns - column) };
                // SAFETY: by this function's contract; the place lies inside the product.
                unsafe { finish.finish::<S>(place, tile) };
            }
        }
    }
    // SAFETY: by this function's contract.
    unsafe { I::end() };
}
