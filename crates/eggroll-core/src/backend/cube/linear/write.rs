//! `product + bias ± delta`, at one column of the cube's rows.

use super::sizes::{LinearSizes, PairRows};
use super::tile::{BiasKind, LinearTile};
use cubecl::prelude::*;

/// Writes one vector of columns, from `column` on, in all of the cube's rows. `sums[first..]` is the perturbation of each; `noise`
/// is the bias's, if it is perturbed.
#[cube]
pub(crate) fn write_column<F: Float, N: Size>(
    base: &[Vector<F, N>],
    bias: &[Vector<F, N>],
    y: &mut [Vector<F, N>],
    sums: &Array<Vector<f32, N>>,
    #[comptime] first: usize,
    noise: Vector<f32, N>,
    place: &PairRows,
    sizes: &LinearSizes,
    column: usize,
    scale: f32,
    bias_scale: f32,
    #[comptime] tile: LinearTile,
) {
    let plain = if comptime!(tile.bias == BiasKind::None) {
        Vector::<f32, N>::new(0.0f32.runtime())
    } else {
        Vector::<f32, N>::cast_from(bias[column / tile.vector])
    };
    let shift = if comptime!(tile.bias == BiasKind::Perturbed) {
        Vector::<f32, N>::new(bias_scale) * noise
    } else {
        Vector::<f32, N>::new(0.0f32.runtime())
    };
    #[unroll]
    for r in 0..tile.rows {
        let row = place.first_row + r;
        if row < place.pair_rows {
            let delta = Vector::<f32, N>::new(scale) * sums[comptime!(first + r)] + shift;
            write_row::<F, N>(base, y, place, sizes, row, column, plain, delta, tile);
        }
    }
}

/// Writes `product + plain ± delta`: for shared rows to both members, otherwise to the member that the row belongs to.
#[cube]
fn write_row<F: Float, N: Size>(
    base: &[Vector<F, N>],
    y: &mut [Vector<F, N>],
    place: &PairRows,
    sizes: &LinearSizes,
    row: usize,
    column: usize,
    plain: Vector<f32, N>,
    delta: Vector<f32, N>,
    #[comptime] tile: LinearTile,
) {
    if comptime!(tile.shared) {
        let product = Vector::<f32, N>::cast_from(base[(row * sizes.base_row + column) / tile.vector]) + plain;
        let plus = (place.pair * 2 * sizes.rows + row) * sizes.y_row + column;
        y[plus / tile.vector] = Vector::cast_from(product + delta);
        y[(plus + sizes.rows * sizes.y_row) / tile.vector] = Vector::cast_from(product - delta);
    } else {
        let at = ((place.pair * place.pair_rows + row) * sizes.y_row + column) / tile.vector;
        let product = Vector::<f32, N>::cast_from(y[at]) + plain;
        let sign = select(row < sizes.rows, 1.0f32, -1.0f32);
        y[at] = Vector::cast_from(product + Vector::new(sign) * delta);
    }
}
