//! An orthonormal basis of rows on the device. Each row depends on those before it, so one cube does all of it in one launch:
//! classical Gram–Schmidt, twice for stability, the overlaps of a row with all earlier ones side by side.

use super::geometry::{BasisTile, TERMS};
use super::reduce::{Fold, fold_lanes};
use crate::ops::DEPENDENT;
use cubecl::prelude::*;

/// Writes `basis : [rows, width]` from `x`; a row that depends on those before it becomes a row of zeros.
#[cube(launch)]
pub(crate) fn row_basis_kernel<F: Float>(
    x: &[F],
    basis: &mut [f32],
    rows: usize,
    width: usize,
    x_row: usize,
    x_column: usize,
    #[comptime] tile: BasisTile,
    #[define(F)] _dtype: ElemType,
) {
    let mut shared = Shared::<[f32]>::new_slice(comptime!(tile.shared_len()));
    let mut overlaps = Shared::<[f32]>::new_slice(tile.capacity);
    let mut row = 0usize.runtime();
    while row < rows {
        // A unit owns every so many columns: it alone writes them, so only the overlaps need barriers.
        let mut norm = 0.0f32;
        let mut column = UNIT_POS as usize;
        while column < width {
            let value = f32::cast_from(x[row * x_row + column * x_column]);
            basis[row * width + column] = value;
            norm += value * value;
            column += comptime!(tile.units as usize);
        }
        let norm = fold_lanes(&mut shared, norm, comptime!(tile.whole()), Fold::Sum);
        let mut left = norm;
        #[unroll]
        for _ in 0..2 {
            sync_storage();
            overlap_with_earlier(&*basis, &mut overlaps, &mut shared, row, width, tile);
            sync_storage();
            left = take_overlaps(basis, &overlaps, row, width, tile);
            left = fold_lanes(&mut shared, left, comptime!(tile.whole()), Fold::Sum);
        }
        // Also false for NaN and for a row of zeros.
        let keep = left > norm * DEPENDENT;
        let scale = 1.0f32 / left.sqrt();
        let mut column = UNIT_POS as usize;
        while column < width {
            let at = row * width + column;
            basis[at] = select(keep, basis[at] * scale, 0.0f32);
            column += comptime!(tile.units as usize);
        }
        row += 1usize;
    }
}

/// `overlaps[j] = basis[j]·basis[row]` for the rows before `row`, a run of units for each.
#[cube]
fn overlap_with_earlier(
    basis: &[f32],
    overlaps: &mut Shared<[f32]>,
    shared: &mut Shared<[f32]>,
    row: usize,
    width: usize,
    #[comptime] tile: BasisTile,
) {
    let lane = UNIT_POS as usize % tile.lanes.count;
    let mut first = 0usize.runtime();
    while first < row {
        let earlier = first + UNIT_POS as usize / tile.lanes.count;
        let mut sum = 0.0f32;
        if earlier < row {
            let mut column = lane;
            while column < width {
                #[unroll]
                for step in 0..TERMS {
                    let at = column + comptime!(step * tile.lanes.count);
                    if at < width {
                        sum += basis[earlier * width + at] * basis[row * width + at];
                    }
                }
                column += comptime!(TERMS * tile.lanes.count);
            }
        }
        let sum = fold_lanes(shared, sum, tile.lanes, Fold::Sum);
        if earlier < row && lane == 0usize {
            overlaps[earlier] = sum;
        }
        first += comptime!(tile.runs());
    }
}

/// `basis[row] −= Σ_j overlaps[j]·basis[j]`; this unit's share of the squared length of what is left.
#[cube]
fn take_overlaps(
    basis: &mut [f32],
    overlaps: &Shared<[f32]>,
    row: usize,
    width: usize,
    #[comptime] tile: BasisTile,
) -> f32 {
    let mut left = 0.0f32;
    let mut column = UNIT_POS as usize;
    while column < width {
        let mut value = basis[row * width + column];
        let mut earlier = 0usize.runtime();
        while earlier < row {
            #[unroll]
            for step in 0..TERMS {
                if earlier + step < row {
                    value -= overlaps[earlier + step] * basis[(earlier + step) * width + column];
                }
            }
            earlier += TERMS;
        }
        basis[row * width + column] = value;
        left += value * value;
        column += comptime!(tile.units as usize);
    }
    left
}
