//! The recurrence of the minimal GRU over whole sequences in one launch: a cube takes one sequence and keeps its state in
//! shared memory.

use super::arithmetic::{MaterializedNoise, clip, floor_div, noise_start, perturbation, sum_lanes, vector_element};
use super::geometry::{GateNoise, GruTile};
use crate::integer::RAIL;
use cubecl::prelude::*;

/// Sizes of a recurrence.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct GruSizes {
    pub members: usize,
    pub steps: usize,
    pub width: usize,
    pub divisor: i32,
}

/// The noise of one gate.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct GateHeld {
    pub weight: MaterializedNoise,
    pub bias: MaterializedNoise,
}

#[cube(launch)]
pub(crate) fn gru_kernel<I: Int, T: Int>(
    state: &[I],
    starts: &[T],
    forget_input: &[I],
    forget_weight: &[I],
    forget_held: &[I],
    forget_bias: &[I],
    forget_bias_held: &[I],
    candidate_input: &[I],
    candidate_weight: &[I],
    candidate_held: &[I],
    candidate_bias: &[I],
    candidate_bias_held: &[I],
    outputs: &mut [I],
    sizes: GruSizes,
    forget: GateHeld,
    candidate: GateHeld,
    #[comptime] tile: GruTile,
    #[define(I)] _dtype: ElemType,
    #[define(T)] _start_dtype: ElemType,
) {
    let member = CUBE_POS;
    if member >= sizes.members {
        terminate!();
    }
    let width = sizes.width;
    let mut h = Shared::<[i32]>::new_slice(tile.capacity);
    let mut gated = Shared::<[i32]>::new_slice(tile.capacity);
    let mut share = Shared::<[i32]>::new_slice(tile.capacity);
    let mut partial = Shared::<[i32]>::new_slice(tile.units);
    let mut projected = Shared::<[i32]>::new_slice(tile.rank_capacity);
    let mut column = UNIT_POS as usize;
    while column < width {
        h[column] = i32::cast_from(state[member * width + column]);
        column += tile.units;
    }
    let mut row = member * sizes.steps;
    let last = row + sizes.steps;
    while row < last {
        // A column is always the same unit's.
        if i32::cast_from(starts[row]) != 0i32 {
            let mut column = UNIT_POS as usize;
            while column < width {
                h[column] = 0i32;
                column += tile.units;
            }
        }
        sync_cube();
        if comptime!(tile.forget.weight) {
            project::<I>(&mut projected, &mut partial, &h, forget_held, &forget.weight, member, width, tile);
        }
        let mut column = UNIT_POS as usize;
        while column < width {
            let product = product::<I>(
                &h,
                &projected,
                forget_weight,
                forget_held,
                &forget.weight,
                member,
                column,
                &sizes,
                tile.forget,
            );
            let bias = vector_element::<I>(
                forget_bias,
                forget_bias_held,
                &forget.bias,
                member,
                column,
                comptime!(tile.forget.bias),
            );
            let input = i32::cast_from(forget_input[row * width + column]);
            let open = clip(input + product + bias) + RAIL;
            share[column] = open;
            gated[column] = (open * h[column]) >> 8i32;
            column += tile.units;
        }
        sync_cube();
        if comptime!(tile.candidate.weight) {
            project::<I>(&mut projected, &mut partial, &gated, candidate_held, &candidate.weight, member, width, tile);
        }
        let mut column = UNIT_POS as usize;
        while column < width {
            let product = product::<I>(
                &gated,
                &projected,
                candidate_weight,
                candidate_held,
                &candidate.weight,
                member,
                column,
                &sizes,
                tile.candidate,
            );
            let bias = vector_element::<I>(
                candidate_bias,
                candidate_bias_held,
                &candidate.bias,
                member,
                column,
                comptime!(tile.candidate.bias),
            );
            let input = i32::cast_from(candidate_input[row * width + column]);
            let before = h[column];
            let change = (share[column] * (clip(input + product + bias) - before)) >> 8i32;
            // Wrapping int8.
            let after = ((before + change + 128i32) & 255i32) - 128i32;
            h[column] = after;
            outputs[row * width + column] = I::cast_from(after);
            column += tile.units;
        }
        row += 1usize;
    }
}

/// `v·B` of the member's pair: `[rank]`.
#[cube]
fn project<I: Int>(
    projected: &mut Shared<[i32]>,
    partial: &mut Shared<[i32]>,
    v: &Shared<[i32]>,
    held: &[I],
    noise: &MaterializedNoise,
    member: usize,
    width: usize,
    #[comptime] tile: GruTile,
) {
    let lanes = comptime!(tile.units / tile.rank_rows());
    let lane = UNIT_POS as usize % lanes;
    let mut first = 0usize.runtime();
    while first < noise.rank {
        let k = first + UNIT_POS as usize / lanes;
        let start = noise_start(noise, member) + k * width;
        let mut sum = 0i32;
        if k < noise.rank {
            let mut i = lane;
            while i < width {
                sum += v[i] * i32::cast_from(held[start + i]);
                i += lanes;
            }
        }
        let sum = sum_lanes(partial, sum, lanes);
        if lane == 0usize && k < noise.rank {
            projected[k] = sum;
        }
        first += comptime!(tile.rank_rows());
    }
    sync_cube();
}

/// One element of `v·U`, perturbed.
#[cube]
fn product<I: Int>(
    v: &Shared<[i32]>,
    projected: &Shared<[i32]>,
    weight: &[I],
    held: &[I],
    noise: &MaterializedNoise,
    member: usize,
    column: usize,
    sizes: &GruSizes,
    #[comptime] noisy: GateNoise,
) -> i32 {
    let mut sum = 0i32;
    let mut i = 0usize.runtime();
    while i < sizes.width {
        sum += v[i] * i32::cast_from(weight[i * sizes.width + column]);
        i += 1usize;
    }
    if comptime!(noisy.weight) {
        sum += perturbation::<I>(projected, 0usize, held, noise, member, sizes.width, sizes.width, column);
    }
    clip(floor_div(sum, sizes.divisor))
}
