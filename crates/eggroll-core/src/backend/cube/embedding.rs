//! Rows of perturbed matrices on the device: a cube takes one index, draws the noise of that row into shared memory a chunk at a
//! time, and writes the row. One launch, whatever the population.

use super::geometry::{COLUMNS, EmbeddingTile, chunk_len};
use super::noise::{PairNoise, SourceKind, Stream, bring_chunk, element_of, pair_noise};
use crate::rng::normal::GROUP;
use cubecl::prelude::*;

/// Sizes of a perturbed embedding.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct EmbeddingSizes {
    pub pairs: usize,
    pub first_pair: u32,
    /// Rows of one member.
    pub rows: usize,
    /// Rows of the matrix.
    pub count: usize,
    pub d_model: usize,
    /// Rows of the second factor: the rank, or 1 for dense noise.
    pub depth: usize,
    /// Where the second factor starts in a pair's noise; 0 for dense noise.
    pub second_factor: usize,
}

/// `y[row] ← W[k] + s·scale·Σ_j B[j, k]·A[j]`, or `W[k] + s·scale·ε[k]`, for the index `k` of every row.
#[cube(launch)]
pub(crate) fn embedding_kernel<F: Float, I: Int>(
    weight: &[F],
    indices: &[I],
    held: &[F],
    y: &mut [F],
    stream: Stream,
    sizes: EmbeddingSizes,
    scale: f32,
    #[comptime] tile: EmbeddingTile,
    #[define(F)] _dtype: ElemType,
    #[define(I)] _int: ElemType,
) {
    let pair_rows = if comptime!(tile.shared) { sizes.rows } else { 2 * sizes.rows };
    let pair = CUBE_POS / pair_rows;
    if pair >= sizes.pairs {
        terminate!();
    }
    let row = CUBE_POS % pair_rows;
    let at = if comptime!(tile.shared) { row } else { pair * pair_rows + row };
    // An index behind the last row must not lead out of memory.
    let index = (usize::cast_from(indices[at])).min(sizes.count - 1);
    let drawn = pair_noise(stream, sizes.first_pair + pair as u32, tile.source);
    let mut noise = Shared::<[f32]>::new_slice(comptime!(chunk_len(tile.units)));
    let mut first_column = 0usize.runtime();
    while first_column < sizes.d_model {
        let width = (sizes.d_model - first_column).min(comptime!(chunk_len(tile.units)));
        let mut sums = Array::<f32>::new(COLUMNS);
        #[unroll]
        for c in 0..COLUMNS {
            sums[c] = 0.0f32;
        }
        let mut k = 0usize.runtime();
        while k < sizes.depth {
            let factor = first_factor::<F>(held, &drawn, &sizes, k, index, tile);
            let row_start =
                if comptime!(tile.low_rank) { sizes.second_factor + k * sizes.d_model } else { index * sizes.d_model };
            let begin = row_start + first_column;
            add_run::<F>(&mut noise, held, &drawn, begin, width, factor, &mut sums, tile.units, tile.source);
            k += 1usize;
        }
        #[unroll]
        for c in 0..COLUMNS {
            let column = first_column + comptime!(c * tile.units as usize) + UNIT_POS as usize;
            if column < sizes.d_model {
                let value = f32::cast_from(weight[index * sizes.d_model + column]);
                write_both::<F>(y, &sizes, pair, row, column, value, scale * sums[c], tile);
            }
        }
        first_column += comptime!(chunk_len(tile.units));
    }
}

/// Element `index` of row `k` of the first factor; 1 for dense noise, which has none.
#[cube]
fn first_factor<F: Float>(
    held: &[F],
    drawn: &PairNoise,
    sizes: &EmbeddingSizes,
    k: usize,
    index: usize,
    #[comptime] tile: EmbeddingTile,
) -> f32 {
    let mut factor = 1.0f32;
    if comptime!(tile.low_rank) {
        factor = element_of::<F>(held, drawn, k * sizes.count + index, tile.source);
    }
    factor
}

/// `sums += factor · noise` for the `width` elements of a pair's noise from `begin` on.
#[cube]
fn add_run<F: Float>(
    noise: &mut Shared<[f32]>,
    held: &[F],
    drawn: &PairNoise,
    begin: usize,
    width: usize,
    factor: f32,
    sums: &mut Array<f32>,
    #[comptime] units: u32,
    #[comptime] source: SourceKind,
) {
    let end = begin + width;
    let mut chunk = begin / GROUP * GROUP;
    while chunk < end {
        bring_chunk::<F>(noise, held, drawn, chunk / GROUP, (end - chunk).div_ceil(GROUP), source);
        sync_cube();
        #[unroll]
        for c in 0..COLUMNS {
            let element = begin + comptime!(c * units as usize) + UNIT_POS as usize;
            if element < end && element >= chunk && element < chunk + comptime!(chunk_len(units)) {
                sums[c] += factor * noise[element - chunk];
            }
        }
        sync_cube();
        chunk += comptime!(chunk_len(units));
    }
}

/// Writes `value ± delta`: for shared indices to both members, otherwise to the member that the row belongs to.
#[cube]
fn write_both<F: Float>(
    y: &mut [F],
    sizes: &EmbeddingSizes,
    pair: usize,
    row: usize,
    column: usize,
    value: f32,
    delta: f32,
    #[comptime] tile: EmbeddingTile,
) {
    let plus = (pair * 2 * sizes.rows + row) * sizes.d_model + column;
    if comptime!(tile.shared) {
        y[plus] = F::cast_from(value + delta);
        y[plus + sizes.rows * sizes.d_model] = F::cast_from(value - delta);
    } else {
        y[plus] = F::cast_from(select(row < sizes.rows, value + delta, value - delta));
    }
}
