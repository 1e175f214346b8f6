//! A plain matrix product to memory, and what epilogues that write to memory share.

use super::tile::{Epilogue, Panels, Strided, Tile, TileArea, end, multiply};
use crate::simd::{Kernel, Simd};

/// `for_vectors!(S, columns, target, |c, lanes| value)` stores `value` at `target` for each vector of a row of `columns`. `c` is the
/// vector's first column; the last vector has fewer than all `lanes` if the row ends inside it.
///
/// A macro, because a closure is a separate function that is not compiled for the instruction set. If the compiler does not inline it, as
/// in builds with one codegen unit and without LTO, every operation on vectors becomes a call.
///
/// # Safety
///
/// For an `unsafe` block: the processor must have the instruction set `S`, and `target` must hold `columns` elements.
macro_rules! for_vectors {
    ($S:ident, $columns:expr, $target:expr, |$c:ident, $lanes:ident| $value:expr) => {{
        let (columns, target, mut $c) = ($columns, $target, 0);
        while $c + $S::LANES <= columns {
            let $lanes = $S::LANES;
            $S::store(target.add($c), $value);
            $c += $S::LANES;
        }
        if $c < columns {
            let $lanes = columns - $c;
            $S::store_first(target.add($c), $value, $lanes);
        }
    }};
}
pub(crate) use for_vectors;

/// A plain product written, or added, to memory.
///
/// It panics where it runs if a matrix is too short.
pub(crate) struct Product<'a> {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub x: Strided<'a>,
    pub panels: Panels<'a>,
    /// `[rows, columns]`
    pub target: &'a mut [f32],
    /// Whether the product is added to what is there.
    pub add: bool,
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { rows, columns, depth, x, panels, target, add } = self;
        assert!(end([rows, columns], [columns, 1]).is_some_and(|end| end <= target.len()), "the target of a product");
        let mut target = OutputMatrix { pointer: target.as_mut_ptr(), stride: columns, add };
        // SAFETY: the processor has the instruction set by this function's contract; the target was found to hold the product.
        unsafe { multiply::<S, _>(rows, columns, depth, x, panels, &mut target) }
    }
}

/// An output matrix that tiles are written to, or added to: as many rows as the product has, `stride` columns each.
struct OutputMatrix {
    pointer: *mut f32,
    stride: usize,
    add: bool,
}

impl Epilogue for OutputMatrix {
    #[inline(always)]
    unsafe fn finish<S: Simd>(&mut self, place: TileArea, tile: &Tile) {
        for r in 0..place.rows {
            // SAFETY: the place lies inside the product by this function's contract, and so inside the matrix; a tile's row holds
            // as many vectors as the place has columns.
            unsafe {
                let target = self.pointer.add((place.row + r) * self.stride + place.column);
                let source = tile.row(r);
                let add = self.add;
                let columns = place.columns;
                for_vectors!(S, columns, target, |c, lanes| {
                    let value = S::load(source.add(c));
                    if add { S::add(load_some::<S>(target.add(c), lanes), value) } else { value }
                });
            }
        }
    }
}

/// Loads `lanes` elements; a plain load where that is all of them.
///
/// # Safety
///
/// The processor must have the instruction set `S`; `source` must hold `lanes` elements.
#[inline(always)]
pub(crate) unsafe fn load_some<S: Simd>(source: *const f32, lanes: usize) -> S::F {
    // SAFETY: by this function's contract.
    unsafe { if lanes == S::LANES { S::load(source) } else { S::load_first(source, lanes) } }
}
