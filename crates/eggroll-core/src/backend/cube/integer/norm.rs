//! Norm by the mean magnitude, rounded down: a cube for each row.

use super::arithmetic::{MaterializedNoise, clip, floor_div, sum_lanes, vector_element};
use cubecl::prelude::*;

#[cube(launch)]
pub(crate) fn norm_kernel<I: Int>(
    x: &[I],
    weight: &[I],
    held: &[I],
    y: &mut [I],
    rows: usize,
    rows_of_member: usize,
    n: usize,
    x_stride: usize,
    noise: MaterializedNoise,
    #[comptime] noisy: bool,
    #[comptime] units: usize,
    #[define(I)] _dtype: ElemType,
) {
    let row = CUBE_POS;
    if row >= rows {
        terminate!();
    }
    let mut partial = Shared::<[i32]>::new_slice(units);
    let mut sum = 0i32;
    let mut i = UNIT_POS as usize;
    while i < n {
        sum += i32::cast_from(x[row * x_stride + i]).abs();
        i += units;
    }
    let mean = sum_lanes(&mut partial, sum, units).max(1i32) / n as i32;
    let divisor = mean.max(1i32);
    let mut i = UNIT_POS as usize;
    while i < n {
        let factor = vector_element::<I>(weight, held, &noise, row / rows_of_member, i, noisy);
        let numerator = i32::cast_from(x[row * x_stride + i]) * factor;
        let regular = clip(floor_div(numerator, divisor));
        let tiny = select(numerator == 0i32, -1i32, -2i32);
        y[row * n + i] = I::cast_from(select(mean == 0i32, tiny, regular));
        i += units;
    }
}
