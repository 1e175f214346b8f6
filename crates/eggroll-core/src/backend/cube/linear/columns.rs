//! `y ← x·W ± c·t·E + bias`. A unit keeps its columns for all rows of `E`: the noise stays in the registers of the unit that has
//! drawn it. No unit waits for another.

use super::sizes::{LinearSizes, PairRows, x_starts};
use super::tile::{BiasKind, LinearTile};
use super::write::write_column;
use crate::backend::cube::geometry::COLUMNS;
use crate::backend::cube::noise::PairNoise;
use crate::backend::cube::registers::{none_kept, unit_noise, walk};
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::prelude::*;

/// Adds the perturbation in all columns of the cube's rows. `t` is visible to all units.
#[cube]
pub(crate) fn perturb_columns<F: Float, N: Size>(
    x: &[Vector<F, N>],
    base: &[Vector<F, N>],
    bias: &[Vector<F, N>],
    t: &Shared<[f32]>,
    held: &[Vector<F, N>],
    bias_held: &[Vector<F, N>],
    y: &mut [Vector<F, N>],
    drawn: &PairNoise,
    bias_drawn: &PairNoise,
    place: &PairRows,
    sizes: &LinearSizes,
    scale: f32,
    bias_scale: f32,
    #[comptime] tile: LinearTile,
) {
    let begin = sizes.second_factor;
    let walk = walk(begin, sizes.d_output, tile.units, tile.vector);
    let mut bias_kept = none_kept(tile.vector);
    let mut kept = none_kept(tile.vector);
    let mut noise = Array::<Vector<f32, N>>::new(COLUMNS);
    let mut sums = Array::<Vector<f32, N>>::new(comptime!(tile.rows * tile.groups * COLUMNS));
    let mut group = walk.first;
    while group < walk.end {
        #[unroll]
        for i in 0..comptime!(tile.rows * tile.groups * COLUMNS) {
            sums[i] = Vector::new(0.0f32);
        }
        add_groups::<F, N>(x, t, held, drawn, place, sizes, group, walk.lane, &mut noise, &mut kept, &mut sums, tile);
        #[unroll]
        for j in 0..tile.groups {
            if comptime!(tile.groups == 1) || group + j < walk.end {
                if comptime!(tile.bias == BiasKind::Perturbed) {
                    // The columns' own groups: the second factor starts on one.
                    let own = group + j - begin / GROUP;
                    unit_noise::<Vector<F, N>, N>(
                        &mut noise,
                        &mut bias_kept,
                        bias_held,
                        bias_drawn,
                        own,
                        walk.lane,
                        tile.vector,
                        tile.bias_source,
                    );
                }
                #[unroll]
                for c in 0..COLUMNS {
                    // Before the first column this is far behind the last.
                    let column = (group + j) * GROUP + walk.lane + comptime!(c * BLOCKS) - begin;
                    if comptime!(tile.vector > 1) || column < sizes.d_output {
                        let first = comptime!((j * COLUMNS + c) * tile.rows);
                        write_column::<F, N>(
                            base, bias, y, &sums, first, noise[c], place, sizes, column, scale, bias_scale, tile,
                        );
                    }
                }
            }
        }
        group += tile.groups;
    }
}

/// `sums += t·E` in this unit's columns of some groups.
#[cube]
fn add_groups<F: Float, N: Size>(
    x: &[Vector<F, N>],
    t: &Shared<[f32]>,
    held: &[Vector<F, N>],
    drawn: &PairNoise,
    place: &PairRows,
    sizes: &LinearSizes,
    group: usize,
    lane: usize,
    noise: &mut Array<Vector<f32, N>>,
    kept: &mut Array<u32>,
    sums: &mut Array<Vector<f32, N>>,
    #[comptime] tile: LinearTile,
) {
    // With more rows than one, each starts on a group.
    let row_groups = sizes.d_output / GROUP;
    let starts = x_starts(place, sizes, tile.rows);
    let mut factors = Array::<f32>::new(tile.rows);
    let mut k = 0usize.runtime();
    while k < sizes.depth {
        #[unroll]
        for row in 0..tile.rows {
            factors[row] = if comptime!(tile.is_low_rank()) {
                t[row * sizes.depth + k]
            } else {
                f32::cast_from(x[starts[row] + k * sizes.x_column])
            };
        }
        #[unroll]
        for j in 0..tile.groups {
            let of_row = group + j + k * row_groups;
            unit_noise::<Vector<F, N>, N>(noise, kept, held, drawn, of_row, lane, tile.vector, tile.source);
            #[unroll]
            for c in 0..COLUMNS {
                #[unroll]
                for row in 0..tile.rows {
                    let to = comptime!((j * COLUMNS + c) * tile.rows + row);
                    sums[to] += Vector::<f32, N>::new(factors[row]) * noise[c];
                }
            }
        }
        k += 1usize;
    }
}
