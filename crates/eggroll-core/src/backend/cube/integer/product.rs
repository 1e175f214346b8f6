//! Products of tiles in shared memory, which the perturbed product and the update have in common.

use super::geometry::{ProductTile, WORDS};
use super::packed_int8::multiply;
use cubecl::prelude::*;

/// A unit's elements of a tile: rows `down + side·i`, columns `across + side·j`.
#[cube]
pub(crate) fn zeros(#[comptime] tile: ProductTile) -> Array<i32> {
    let mut sums = Array::<i32>::new(comptime!(tile.rows_each * tile.columns_each));
    #[unroll]
    for i in 0..comptime!(tile.rows_each * tile.columns_each) {
        sums[i] = 0i32;
    }
    sums
}

/// `sums += a·b` for `a : [rows, WORDS]`, `b : [WORDS, columns]`.
#[cube]
pub(crate) fn multiply_tiles(
    a: &Shared<[i32]>,
    b: &Shared<[i32]>,
    sums: &mut Array<i32>,
    #[comptime] tile: ProductTile,
) {
    let across = UNIT_POS as usize % tile.side;
    let down = UNIT_POS as usize / tile.side;
    #[unroll]
    for w in 0..WORDS {
        #[unroll]
        for r in 0..tile.rows_each {
            let factor = a[(comptime!(r * tile.side) + down) * WORDS + w];
            #[unroll]
            for c in 0..tile.columns_each {
                let other = b[comptime!(w * tile.columns() + c * tile.side) + across];
                let at = comptime!(r * tile.columns_each + c);
                sums[at] = multiply(factor, other, sums[at], tile.packing);
            }
        }
    }
}
