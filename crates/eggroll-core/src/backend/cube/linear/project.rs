//! `t = x·B` for the rows of one cube. A unit multiplies the noise that it has drawn itself, in its registers, so that units meet only
//! to add up.

use super::sizes::{LinearSizes, PairRows, x_starts};
use super::tile::LinearTile;
use crate::backend::cube::geometry::COLUMNS;
use crate::backend::cube::noise::PairNoise;
use crate::backend::cube::reduce::{Fold, fold_lanes};
use crate::backend::cube::registers::{none_kept, unit_noise, walk};
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::prelude::*;

/// `t ← x·B`, `[rows of the tile, rank]`, visible to all units. `work` has room for a value of each unit and row.
#[cube]
pub(crate) fn project_rows<F: Float, N: Size>(
    x: &[Vector<F, N>],
    t: &mut Shared<[f32]>,
    work: &mut Shared<[f32]>,
    held: &[Vector<F, N>],
    drawn: &PairNoise,
    place: &PairRows,
    sizes: &LinearSizes,
    #[comptime] tile: LinearTile,
) {
    let mut folds = Shared::<[f32]>::new_slice(comptime!(tile.lanes().shared_len(tile.units)));
    let starts = x_starts(place, sizes, tile.rows);
    let mut k = 0usize.runtime();
    while k < sizes.depth {
        let mut sums = Array::<Vector<f32, N>>::new(tile.rows);
        #[unroll]
        for row in 0..tile.rows {
            sums[row] = Vector::new(0.0f32);
        }
        project::<F, N>(x, &starts, k, held, drawn, sizes, &mut sums, tile);
        fold_rows::<N>(&sums, t, work, &mut folds, k, sizes.depth, tile);
        k += 1usize;
    }
}

/// `sums[row] += x[row]·B[k]`, this unit's share. A row of `B` may start inside a group, so the first and the last group may hold
/// elements of others.
#[cube]
fn project<F: Float, N: Size>(
    x: &[Vector<F, N>],
    starts: &Array<usize>,
    k: usize,
    held: &[Vector<F, N>],
    drawn: &PairNoise,
    sizes: &LinearSizes,
    sums: &mut Array<Vector<f32, N>>,
    #[comptime] tile: LinearTile,
) {
    let begin = sizes.first_factor + k * sizes.d_input;
    let walk = walk(begin, sizes.d_input, tile.units, tile.vector);
    let mut kept = none_kept(tile.vector);
    let mut noise = Array::<Vector<f32, N>>::new(COLUMNS);
    let mut group = walk.first;
    while group < walk.end {
        unit_noise::<Vector<F, N>, N>(&mut noise, &mut kept, held, drawn, group, walk.lane, tile.vector, tile.source);
        #[unroll]
        for c in 0..COLUMNS {
            // Before the row this is far behind it.
            let column = group * GROUP + walk.lane + comptime!(c * BLOCKS) - begin;
            if comptime!(tile.vector > 1) || column < sizes.d_input {
                #[unroll]
                for row in 0..tile.rows {
                    let at = (starts[row] + column * sizes.x_column) / tile.vector;
                    sums[row] += Vector::<f32, N>::cast_from(x[at]) * noise[c];
                }
            }
        }
        group += 1usize;
    }
}

/// `t[row, k] ←` the sum of every row over all units. Units exchange their sums: afterwards a run of units has the sums of
/// one row.
#[cube]
fn fold_rows<N: Size>(
    sums: &Array<Vector<f32, N>>,
    t: &mut Shared<[f32]>,
    work: &mut Shared<[f32]>,
    folds: &mut Shared<[f32]>,
    k: usize,
    depth: usize,
    #[comptime] tile: LinearTile,
) {
    let (lanes, units) = comptime!((tile.lanes(), tile.units as usize));
    let unit = UNIT_POS as usize;
    let (row, lane) = (unit / lanes.count, unit % lanes.count);
    let mut sum = 0.0f32;
    if comptime!(tile.rows == 1) {
        sum = sum_of::<N>(sums[0], tile.vector);
    } else {
        #[unroll]
        for r in 0..tile.rows {
            work[r * units + unit] = sum_of::<N>(sums[r], tile.vector);
        }
        sync_cube();
        #[unroll]
        for i in 0..tile.rows {
            sum += work[row * units + i * lanes.count + lane];
        }
    }
    let sum = fold_lanes(folds, sum, lanes, Fold::Sum);
    if lane == 0usize {
        t[row * depth + k] = sum;
    }
    // For readers of `t` and for the next writers of `work`.
    sync_cube();
}

#[cube]
fn sum_of<N: Size>(vector: Vector<f32, N>, #[comptime] size: usize) -> f32 {
    let mut sum = vector.extract(0usize);
    #[unroll]
    for i in 1..size {
        sum += vector.extract(i);
    }
    sum
}
