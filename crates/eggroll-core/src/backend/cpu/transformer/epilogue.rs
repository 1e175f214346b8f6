//! What becomes of the tiles of a product: the noise of each row's member is added, and the rows are written.

use crate::backend::cpu::chain::ChainRow;
use crate::backend::cpu::epilogue::LowRankEpilogue;
use crate::backend::cpu::product::{for_vectors, load_some};
use crate::backend::cpu::tile::{Epilogue, Tile, TileArea};
use crate::simd::Simd;

/// The noise of rows of several members.
#[derive(Clone, Copy)]
pub(crate) struct RowNoise<'a> {
    /// The member of each row.
    pub rows: &'a [ChainRow],
    /// `[slots, rank·(d_input + d_output)]`: `B : [rank, d_input]`, then `A : [rank, d_output]`.
    pub factors: &'a [f32],
    pub rank: usize,
    pub scale: f32,
}

/// Adds what the noise makes of the rows of a tile, and writes them.
pub(super) struct MatrixEpilogue<'a> {
    pub noise: Option<RowNoise<'a>>,
    pub t: &'a [f32],
    pub d_input: usize,
    pub d_output: usize,
    pub y: *mut f32,
    pub add: bool,
}

impl Epilogue for MatrixEpilogue<'_> {
    #[inline(always)]
    unsafe fn finish<S: Simd>(&mut self, place: TileArea, tile: &Tile) {
        let Self { d_input, d_output, add, .. } = *self;
        for r in 0..place.rows {
            let row = place.row + r;
            // Not by map(): a closure is a call here, which forgets the registers of vectors.
            let (t, a): (&[f32], &[f32]) = match self.noise {
                None => (&[], &[]),
                Some(RowNoise { rows, factors, rank, .. }) => {
                    let at = rows[row].slot as usize * rank * (d_input + d_output) + rank * d_input;
                    (&self.t[row * rank..][..rank], &factors[at..][..rank * d_output][place.column..])
                }
            };
            let (rank, t, a) = (t.len(), t.as_ptr(), a.as_ptr());
            let end = LowRankEpilogue { rank, t, step: 1, a, d_output, bias: None };
            // SAFETY: the place lies inside the product by this function's contract, and so in the rows of `y`; `a` was cut to size, and
            // holds as many columns from the place's first one on for each of its `rank` rows.
            unsafe {
                let source = tile.row(r);
                let y = self.y.add(row * d_output + place.column);
                for_vectors!(S, place.columns, y, |c, lanes| {
                    let sum = end.add_to::<S>(S::load(source.add(c)), c, lanes);
                    if add { S::add(load_some::<S>(y.add(c), lanes), sum) } else { sum }
                });
            }
        }
    }
}
