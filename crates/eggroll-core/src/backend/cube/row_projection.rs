//! An orthonormal basis of rows on the device: classical Gram–Schmidt, twice for stability, by panels of rows.
//!
//! Rows of a panel depend on each other, so one cube works on it. What a panel takes of the panels before it is the work of many
//! cubes: overlaps by row, then differences by column. Both sum in f32, whatever Burn's products round to: TF32 would leave more of a
//! dependent row than [`DEPENDENT`].

use super::geometry::{BasisTile, OVERLAPS, PANEL, TERMS};
use super::reduce::{Fold, fold_lanes};
use crate::ops::DEPENDENT;
use cubecl::prelude::*;

/// How a panel becomes orthonormal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// There are no panels before it: both times at once.
    Alone,
    /// The first time, without what the panels before it have.
    First,
    /// The second time: its rows are nearly orthonormal already.
    Second,
}

/// The rows of one panel, and where rows of `x` are in memory.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Panel {
    /// The first of its rows.
    pub first: usize,
    pub rows: usize,
    pub width: usize,
    pub x_row: usize,
    pub x_column: usize,
}

/// Makes the panel's rows of `basis : [rows, width]` orthonormal among themselves; a row that depends on those before it becomes a row
/// of zeros.
#[cube(launch)]
pub(crate) fn panel_kernel<F: Float>(
    x: &[F],
    basis: &mut [f32],
    panel: Panel,
    #[comptime] stage: Stage,
    #[comptime] tile: BasisTile,
    #[define(F)] _dtype: ElemType,
) {
    let width = panel.width;
    let mut shared = Shared::<[f32]>::new_slice(comptime!(tile.shared_len()));
    let mut overlaps = Shared::<[f32]>::new_slice(tile.capacity);
    let mut row = panel.first;
    while row < panel.first + panel.rows {
        // A unit owns every so many columns: it alone writes them, so only the overlaps need barriers.
        let mut norm = 0.0f32;
        let mut column = UNIT_POS as usize;
        while column < width {
            let value = if comptime!(stage == Stage::Second) {
                basis[row * width + column]
            } else {
                f32::cast_from(x[row * panel.x_row + column * panel.x_column])
            };
            if comptime!(stage == Stage::Alone) {
                basis[row * width + column] = value;
            }
            norm += value * value;
            column += comptime!(tile.units as usize);
        }
        let norm = fold_lanes(&mut shared, norm, comptime!(tile.whole()), Fold::Sum);
        let mut left = norm;
        #[unroll]
        for _ in 0..comptime!(if stage == Stage::Alone { 2 } else { 1 }) {
            sync_storage();
            overlap_with_earlier(&*basis, &mut overlaps, &mut shared, panel.first, row, width, tile);
            sync_storage();
            left = take_overlaps(basis, &overlaps, panel.first, row, width, tile);
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

/// `overlaps[j − first] = basis[j]·basis[row]` for the rows from `first` to `row`, a run of units for each.
#[cube]
fn overlap_with_earlier(
    basis: &[f32],
    overlaps: &mut Shared<[f32]>,
    shared: &mut Shared<[f32]>,
    first: usize,
    row: usize,
    width: usize,
    #[comptime] tile: BasisTile,
) {
    let lane = UNIT_POS as usize % tile.lanes.count;
    let mut begin = first;
    while begin < row {
        let earlier = begin + UNIT_POS as usize / tile.lanes.count;
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
            overlaps[earlier - first] = sum;
        }
        begin += comptime!(tile.runs());
    }
}

/// `basis[row] −= Σ_j overlaps[j − first]·basis[j]`; this unit's share of the squared length of what is left.
#[cube]
fn take_overlaps(
    basis: &mut [f32],
    overlaps: &Shared<[f32]>,
    first: usize,
    row: usize,
    width: usize,
    #[comptime] tile: BasisTile,
) -> f32 {
    let mut left = 0.0f32;
    let mut column = UNIT_POS as usize;
    while column < width {
        let mut value = basis[row * width + column];
        let mut earlier = first;
        while earlier < row {
            #[unroll]
            for step in 0..TERMS {
                if earlier + step < row {
                    value -= overlaps[earlier + step - first] * basis[(earlier + step) * width + column];
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

/// `overlaps[j, p] = basis[j]·v[p]` for all rows `j` before the panel. `v` are the panel's rows of `x` or, the second time, of
/// `basis`. A run of units takes one row `j` and all rows of the panel.
#[cube(launch)]
pub(crate) fn panel_overlaps_kernel<F: Float>(
    x: &[F],
    basis: &[f32],
    overlaps: &mut [f32],
    panel: Panel,
    #[comptime] stage: Stage,
    #[define(F)] _dtype: ElemType,
) {
    let units = comptime!(OVERLAPS.units as usize);
    let lanes = comptime!(OVERLAPS.lanes);
    let first = CUBE_POS * comptime!(OVERLAPS.runs());
    if first >= panel.first {
        terminate!();
    }
    let (run, lane) = (UNIT_POS as usize / lanes, UNIT_POS as usize % lanes);
    // Behind the last row stands a copy of it that is not written.
    let earlier = (first + run).min(panel.first - 1);
    let mut sums = Array::<f32>::new(PANEL);
    #[unroll]
    for p in 0..PANEL {
        sums[p] = 0.0f32;
    }
    let mut column = lane;
    while column < panel.width {
        let factor = basis[earlier * panel.width + column];
        #[unroll]
        for p in 0..PANEL {
            let row = panel.first + comptime!(p).min(panel.rows - 1);
            sums[p] += factor * panel_value::<F>(x, basis, &panel, row, column, stage);
        }
        column += lanes;
    }
    let mut work = Shared::<[f32]>::new_slice(comptime!(PANEL * OVERLAPS.units as usize));
    #[unroll]
    for p in 0..PANEL {
        work[p * units + UNIT_POS as usize] = sums[p];
    }
    sync_cube();
    // An overlap for each of the first units: each begins with another lane, so that no two read one bank.
    let (of_run, p) = (UNIT_POS as usize / PANEL, UNIT_POS as usize % PANEL);
    let mut sum = 0.0f32;
    if of_run < comptime!(OVERLAPS.runs()) {
        #[unroll]
        for i in 0..lanes {
            sum += work[p * units + of_run * lanes + (UNIT_POS as usize + i) % lanes];
        }
        if first + of_run < panel.first {
            overlaps[(first + of_run) * PANEL + p] = sum;
        }
    }
}

/// `basis[panel] ← v − Σ_j overlaps[j]·basis[j]` over all rows `j` before the panel: a unit takes one column of all its rows.
#[cube(launch)]
pub(crate) fn take_panels_kernel<F: Float>(
    x: &[F],
    overlaps: &[f32],
    basis: &mut [f32],
    panel: Panel,
    #[comptime] stage: Stage,
    #[define(F)] _dtype: ElemType,
) {
    let column = ABSOLUTE_POS;
    if column >= panel.width {
        terminate!();
    }
    let mut values = Array::<f32>::new(PANEL);
    #[unroll]
    for p in 0..PANEL {
        let row = panel.first + comptime!(p).min(panel.rows - 1);
        values[p] = panel_value::<F>(x, &*basis, &panel, row, column, stage);
    }
    let mut earlier = 0usize.runtime();
    while earlier < panel.first {
        let factor = basis[earlier * panel.width + column];
        #[unroll]
        for p in 0..PANEL {
            values[p] -= overlaps[earlier * PANEL + p] * factor;
        }
        earlier += 1usize;
    }
    #[unroll]
    for p in 0..PANEL {
        if comptime!(p) < panel.rows {
            basis[(panel.first + p) * panel.width + column] = values[p];
        }
    }
}

#[cube]
fn panel_value<F: Float>(
    x: &[F],
    basis: &[f32],
    panel: &Panel,
    row: usize,
    column: usize,
    #[comptime] stage: Stage,
) -> f32 {
    if comptime!(stage == Stage::Second) {
        basis[row * panel.width + column]
    } else {
        f32::cast_from(x[row * panel.x_row + column * panel.x_column])
    }
}
