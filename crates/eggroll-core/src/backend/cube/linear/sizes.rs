//! Sizes of a perturbed linear operation, and what one cube takes of it.

use cubecl::prelude::*;

/// Sizes of a perturbed linear operation, and the distances between rows and columns in memory.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct LinearSizes {
    pub pairs: usize,
    pub first_pair: u32,
    /// Rows of one member.
    pub rows: usize,
    pub d_input: usize,
    pub d_output: usize,
    /// Rows of the second factor: the rank, or `d_input` for dense noise.
    pub depth: usize,
    /// Where the first factor starts in a pair's noise; dense noise has none.
    pub first_factor: usize,
    /// Where the second factor starts in a pair's noise.
    pub second_factor: usize,
    pub x_row: usize,
    pub x_column: usize,
    pub base_row: usize,
    pub y_row: usize,
}

/// What one cube works on: some rows of one pair.
#[derive(CubeType, Clone, Copy)]
pub(crate) struct PairRows {
    /// The pair, counted from the first of the launch.
    pub pair: usize,
    /// Rows of the pair.
    pub pair_rows: usize,
    /// The first of the cube's rows within the pair.
    pub first_row: usize,
    /// The row of `x` that the pair begins with.
    pub x_first: usize,
}

/// The place of this cube, the pairs' tiles of `tile_rows` rows one after the other. Behind the last pair there is nothing to do.
#[cube]
pub(crate) fn place(sizes: &LinearSizes, #[comptime] tile_rows: usize, #[comptime] shared: bool) -> PairRows {
    let pair_rows = if comptime!(shared) { sizes.rows } else { 2 * sizes.rows };
    let tiles = pair_rows.div_ceil(tile_rows);
    let pair = CUBE_POS / tiles;
    let x_first = if comptime!(shared) { 0usize.runtime() } else { pair * pair_rows };
    PairRows { pair, pair_rows, first_row: CUBE_POS % tiles * tile_rows, x_first }
}

/// Where rows of `x` start in memory, one for each of the cube's rows. Rows behind the last are computed as copies of it and not
/// written.
#[cube]
pub(crate) fn x_starts(place: &PairRows, sizes: &LinearSizes, #[comptime] rows: usize) -> Array<usize> {
    let mut starts = Array::<usize>::new(rows);
    #[unroll]
    for row in 0..rows {
        starts[row] = (place.x_first + (place.first_row + row).min(place.pair_rows - 1)) * sizes.x_row;
    }
    starts
}
