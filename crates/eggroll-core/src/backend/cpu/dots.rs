//! Dot products of rows with rows: products whose second matrix is transposed.

use super::tile::end;
use crate::simd::{Kernel, Simd};

/// Dot products of all rows of two matrices.
pub(crate) struct Dots<'a> {
    pub depth: usize,
    pub x: DotRows<'a>,
    pub v: DotRows<'a>,
    pub out: Out<'a>,
}

impl Kernel for Dots<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: the processor has the instruction set by this function's contract.
        unsafe { dots::<S>(self.depth, self.x, self.v, 1.0, self.out) }
    }
}

/// Dot products of every row of `x` with every row of `v`, times `scale`: `out[i·out.row + j·out.column]`.
///
/// # Panics
///
/// Panics if `x`, `v` or `out` are too short.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
pub(crate) unsafe fn dots<S: Simd>(depth: usize, x: DotRows, v: DotRows, scale: f32, out: Out) {
    assert!(x.hold(depth) && v.hold(depth), "rows of dot products");
    assert!(
        end([x.count, v.count], [out.row, out.column]).is_some_and(|end| end <= out.values.len()),
        "places of dot products"
    );
    let target = out.values.as_mut_ptr();
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
            // SAFETY: rows, vectors and places are inside what was found long enough.
            unsafe {
                let (x, v) = (x.from(i), v.from(j));
                let out = Places {
                    pointer: target.wrapping_add(i * out.row + j * out.column),
                    row: out.row,
                    column: out.column,
                };
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
pub(crate) struct DotRows<'a> {
    pub values: &'a [f32],
    pub stride: usize,
    pub count: usize,
}

impl DotRows<'_> {
    #[inline(always)]
    fn hold(&self, depth: usize) -> bool {
        end([self.count, depth], [self.stride, 1]).is_some_and(|end| end <= self.values.len())
    }

    #[inline(always)]
    fn from(&self, row: usize) -> Vectors {
        Vectors { pointer: self.values.as_ptr().wrapping_add(row * self.stride), row: self.stride }
    }
}

/// Where dot products go.
pub(crate) struct Out<'a> {
    pub values: &'a mut [f32],
    pub row: usize,
    pub column: usize,
}

/// Where the rows of a tile begin.
#[derive(Clone, Copy)]
struct Vectors {
    pointer: *const f32,
    row: usize,
}

/// Where the dot products of a tile go.
#[derive(Clone, Copy)]
struct Places {
    pointer: *mut f32,
    row: usize,
    column: usize,
}

/// # Safety
///
/// The processor must have the instruction set `S`. `x` must point at `R` and `v` at `V` rows of `depth` elements, `out` at
/// `R·V` places.
#[inline(always)]
unsafe fn dot_tile<S: Simd, const R: usize, const V: usize>(
    depth: usize,
    x: Vectors,
    v: Vectors,
    scale: f32,
    out: Places,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [[S::splat(0.0); V]; R];
        let whole = depth / S::LANES * S::LANES;
        let mut k = 0;
        while k < whole {
            let mut columns = [S::splat(0.0); V];
            for (j, column) in columns.iter_mut().enumerate() {
                *column = S::load(v.pointer.add(j * v.row + k));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = S::load(x.pointer.add(i * x.row + k));
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = S::mul_add(x, column, *sum);
                }
            }
            k += S::LANES;
        }
        for (i, sums) in sums.iter().enumerate() {
            for (j, sum) in sums.iter().enumerate() {
                let mut sum = S::sum(*sum);
                for k in whole..depth {
                    let (x, v) = (*x.pointer.add(i * x.row + k), *v.pointer.add(j * v.row + k));
                    sum = S::scalar_mul_add(x, v, sum);
                }
                *out.pointer.add(i * out.row + j * out.column) = sum * scale;
            }
        }
    }
}
