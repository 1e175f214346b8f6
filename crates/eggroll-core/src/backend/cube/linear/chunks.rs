//! `y ← x·W ± c·t·E + bias` where rows of `E` start anywhere in a group, so that one column's elements belong to several units. Chunks
//! of the noise go through shared memory.

use super::sizes::{LinearSizes, PairRows, x_starts};
use super::tile::{BiasKind, LinearTile};
use super::write::write_column;
use crate::backend::cube::geometry::{COLUMNS, chunk_len};
use crate::backend::cube::noise::{PairNoise, bring_chunk};
use crate::rng::normal::GROUP;
use cubecl::prelude::*;

/// Adds the perturbation in all columns of the cube's rows. `t` is visible to all units, `work` has room for a chunk. Vectors have one
/// element here.
#[cube]
pub(crate) fn perturb_chunks<F: Float, N: Size>(
    x: &[Vector<F, N>],
    base: &[Vector<F, N>],
    bias: &[Vector<F, N>],
    t: &Shared<[f32]>,
    work: &mut Shared<[f32]>,
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
    let mut sums = Array::<Vector<f32, N>>::new(comptime!(tile.rows * COLUMNS));
    let mut first_column = 0usize.runtime();
    while first_column < sizes.d_output {
        let width = (sizes.d_output - first_column).min(comptime!(chunk_len(tile.units)));
        #[unroll]
        for i in 0..comptime!(tile.rows * COLUMNS) {
            sums[i] = Vector::new(0.0f32);
        }
        add_columns::<F, N>(x, t, work, held, drawn, place, sizes, first_column, width, &mut sums, tile);
        if comptime!(tile.bias == BiasKind::Perturbed) {
            let (group, groups) = (first_column / GROUP, width.div_ceil(GROUP));
            bring_chunk::<Vector<F, N>>(work, bias_held, bias_drawn, group, groups, tile.bias_source);
            sync_cube();
        }
        #[unroll]
        for c in 0..COLUMNS {
            let local = comptime!(c * tile.units as usize) + UNIT_POS as usize;
            let column = first_column + local;
            if column < sizes.d_output {
                let noise = Vector::<f32, N>::new(work[local]);
                let first = comptime!(c * tile.rows);
                write_column::<F, N>(base, bias, y, &sums, first, noise, place, sizes, column, scale, bias_scale, tile);
            }
        }
        first_column += comptime!(chunk_len(tile.units));
        if comptime!(tile.bias == BiasKind::Perturbed) && first_column < sizes.d_output {
            sync_cube();
        }
    }
}

/// `sums += t·E` for `width` columns from `first_column` on, a chunk of noise at a time.
#[cube]
fn add_columns<F: Float, N: Size>(
    x: &[Vector<F, N>],
    t: &Shared<[f32]>,
    work: &mut Shared<[f32]>,
    held: &[Vector<F, N>],
    drawn: &PairNoise,
    place: &PairRows,
    sizes: &LinearSizes,
    first_column: usize,
    width: usize,
    sums: &mut Array<Vector<f32, N>>,
    #[comptime] tile: LinearTile,
) {
    let starts = x_starts(place, sizes, tile.rows);
    // A narrow second factor is one run of the stream, a wide one has a run in each of its rows.
    let whole = width == sizes.d_output;
    let runs = select(whole, 1usize, sizes.depth);
    let run_len = select(whole, sizes.depth * sizes.d_output, width);
    let mut run = 0usize.runtime();
    while run < runs {
        let begin = sizes.second_factor + run * sizes.d_output + first_column;
        let end = begin + run_len;
        let mut k = run;
        let mut chunk = begin / GROUP * GROUP;
        while chunk < end {
            let groups = (end - chunk).div_ceil(GROUP);
            bring_chunk::<Vector<F, N>>(work, held, drawn, chunk / GROUP, groups, tile.source);
            sync_cube();
            let high = end.min(chunk + comptime!(chunk_len(tile.units)));
            // Every row that begins in the chunk or before it.
            let low = begin.max(chunk);
            while k < sizes.depth && sizes.second_factor + k * sizes.d_output + first_column < high {
                add_row::<F, N>(x, &starts, t, &*work, sizes, first_column, chunk, low, high, k, sums, tile);
                k += 1usize;
            }
            // The last of them may go on in the next chunk.
            k -= 1usize;
            sync_cube();
            chunk += comptime!(chunk_len(tile.units));
        }
        run += 1usize;
    }
}

/// Adds the elements `low..high` of row `k` of a pair's noise, which lie in the chunk that starts with element `chunk`.
#[cube]
fn add_row<F: Float, N: Size>(
    x: &[Vector<F, N>],
    starts: &Array<usize>,
    t: &Shared<[f32]>,
    noise: &Shared<[f32]>,
    sizes: &LinearSizes,
    first_column: usize,
    chunk: usize,
    low: usize,
    high: usize,
    k: usize,
    sums: &mut Array<Vector<f32, N>>,
    #[comptime] tile: LinearTile,
) {
    #[unroll]
    for c in 0..COLUMNS {
        let column = first_column + comptime!(c * tile.units as usize) + UNIT_POS as usize;
        let element = sizes.second_factor + k * sizes.d_output + column;
        if column < sizes.d_output && element >= low && element < high {
            let drawn = noise[element - chunk];
            #[unroll]
            for r in 0..tile.rows {
                let factor = if comptime!(tile.is_low_rank()) {
                    t[r * sizes.depth + k]
                } else {
                    f32::cast_from(x[starts[r] + k * sizes.x_column])
                };
                sums[c * tile.rows + r] += Vector::<f32, N>::new(factor * drawn);
            }
        }
    }
}
