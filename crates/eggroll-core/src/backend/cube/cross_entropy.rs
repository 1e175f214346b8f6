//! Mean cross-entropy of every member: one launch, a cube for each member, a run of units for each of its rows.

use super::geometry::MemberTile;
use super::reduce::{Fold, fold_lanes};
use cubecl::prelude::*;

/// Writes `losses : [members]` from `logits : [members · rows, classes]`, rows anywhere in memory, and `targets : [rows]`.
#[cube(launch)]
pub(crate) fn member_cross_entropy_kernel<F: Float, I: Int>(
    logits: &[F],
    targets: &[I],
    losses: &mut [F],
    members: usize,
    rows: usize,
    classes: usize,
    logits_row: usize,
    #[comptime] tile: MemberTile,
    #[define(F)] _dtype: ElemType,
    #[define(I)] _int: ElemType,
) {
    let member = CUBE_POS;
    if member >= members {
        terminate!();
    }
    let mut shared = Shared::<[f32]>::new_slice(comptime!(tile.shared_len()));
    let lane = UNIT_POS as usize % tile.lanes.count;
    let mut sum = 0.0f32;
    let mut first = 0usize.runtime();
    while first < rows {
        let row = first + UNIT_POS as usize / tile.lanes.count;
        // Behind the last row stands a copy of it that counts nothing: every unit takes part in reductions.
        let at = (member * rows + row.min(rows - 1)) * logits_row;
        let largest = largest_of_lane::<F>(logits, at, lane, classes, tile);
        let largest = fold_lanes(&mut shared, largest, tile.lanes, Fold::Max);
        let mut total = 0.0f32;
        let mut class = lane;
        while class < classes {
            total += (f32::cast_from(logits[at + class]) - largest).exp();
            class += tile.lanes.count;
        }
        let total = fold_lanes(&mut shared, total, tile.lanes, Fold::Sum);
        if row < rows && lane == 0usize {
            let target = usize::cast_from(targets[row]);
            sum += total.ln() + largest - f32::cast_from(logits[at + target]);
        }
        first += comptime!(tile.rows());
    }
    let sum = fold_lanes(&mut shared, sum, comptime!(tile.whole()), Fold::Sum);
    if UNIT_POS == 0u32 {
        losses[member] = F::cast_from(sum / f32::cast_from(rows as u32));
    }
}

/// The largest logit among a lane's classes; very low if it has none.
#[cube]
fn largest_of_lane<F: Float>(
    logits: &[F],
    at: usize,
    lane: usize,
    classes: usize,
    #[comptime] tile: MemberTile,
) -> f32 {
    let mut largest = f32::MIN.runtime();
    let mut class = lane;
    while class < classes {
        largest = largest.max(f32::cast_from(logits[at + class]));
        class += tile.lanes.count;
    }
    largest
}
