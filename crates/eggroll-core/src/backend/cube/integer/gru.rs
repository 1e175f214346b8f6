//! The recurrence of the minimal GRU over whole sequences in one launch. A cube takes a few sequences and keeps their states in
//! shared memory, as words. A word of the weights is read once for all sequences of a unit.

use super::arithmetic::{MaterializedNoise, clip, floor_div, noise_start, second_product, sign};
use super::geometry::{GateNoise, GruTile};
use super::packed_int8::{Form, Packing, column_words, multiply, part_of, put, row_word, value};
use crate::arithmetic::integer::INT8_LIMIT;
use cubecl::prelude::*;

/// Sizes of a recurrence.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct GruSizes {
    pub sequences: usize,
    /// Sequences of a member.
    pub each: usize,
    pub steps: usize,
    pub width: usize,
    pub divisor: i32,
    /// From one state to the next.
    pub state_stride: usize,
}

/// Layout and noise of one gate.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct GateSizes {
    /// From one row of the input to the next.
    pub input_stride: usize,
    /// From one row of the weight to the next.
    pub weight_stride: usize,
    pub weight: MaterializedNoise,
    pub bias: MaterializedNoise,
}

/// The columns and sequences of a unit: the columns of a word, and `tile.each` consecutive sequences.
#[derive(CubeType, Clone, Copy)]
struct UnitColumns {
    /// The word.
    word: usize,
    /// The first sequence of the unit in the cube, and that of the cube.
    first: usize,
    first_sequence: usize,
}

/// Sequence `s` of a unit; behind the last stands a copy of it, which is not written.
#[cube]
fn sequence_of(place: &UnitColumns, sizes: &GruSizes, #[comptime] s: usize) -> usize {
    (place.first_sequence + place.first + s).min(sizes.sequences - 1)
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
    forget: GateSizes,
    candidate: GateSizes,
    #[comptime] tile: GruTile,
    #[define(I)] _elem: ElemType,
    #[define(T)] _start_elem: ElemType,
) {
    let first_sequence = CUBE_POS * tile.sequences();
    if first_sequence >= sizes.sequences {
        terminate!();
    }
    let words = sizes.width.div_ceil(tile.packing.values());
    let first = UNIT_POS as usize / tile.across * tile.each;
    let mut h = Shared::<[i32]>::new_slice(comptime!(tile.sequences() * tile.capacity));
    let mut gated = Shared::<[i32]>::new_slice(comptime!(tile.sequences() * tile.capacity));
    let mut share = Shared::<[i32]>::new_slice(comptime!(tile.sequences() * tile.capacity));
    let mut partial = Shared::<[i32]>::new_slice(comptime!(tile.sequences() * tile.rank_capacity * tile.lanes));
    let mut projected = Shared::<[i32]>::new_slice(comptime!(tile.sequences() * tile.rank_capacity));
    let mut word = UNIT_POS as usize % tile.across;
    while word < words {
        let place = UnitColumns { word, first, first_sequence };
        #[unroll]
        for s in 0..tile.each {
            let start = sequence_of(&place, &sizes, s) * sizes.state_stride;
            h[(first + s) * tile.capacity + word] =
                row_word::<I>(state, start, word * tile.packing.values(), sizes.width, tile.form, tile.packing);
        }
        word += tile.across;
    }
    let mut step = 0usize.runtime();
    while step < sizes.steps {
        // A word is always the same unit's.
        let mut word = UNIT_POS as usize % tile.across;
        while word < words {
            let place = UnitColumns { word, first, first_sequence };
            #[unroll]
            for s in 0..tile.each {
                if i32::cast_from(starts[sequence_of(&place, &sizes, s) * sizes.steps + step]) != 0i32 {
                    h[(first + s) * tile.capacity + word] = 0i32;
                }
            }
            word += tile.across;
        }
        sync_cube();
        if comptime!(tile.forget.weight) {
            project::<I>(&mut projected, &mut partial, &h, forget_held, &forget.weight, first_sequence, &sizes, tile);
        }
        let mut word = UNIT_POS as usize % tile.across;
        while word < words {
            let place = UnitColumns { word, first, first_sequence };
            let sums = sums::<I>(
                &h,
                &projected,
                forget_input,
                forget_weight,
                forget_held,
                forget_bias,
                forget_bias_held,
                &forget,
                &place,
                step,
                &sizes,
                tile.forget,
                tile,
            );
            #[unroll]
            for s in 0..tile.each {
                let at = (first + s) * tile.capacity + word;
                let before = h[at];
                let mut open = 0i32;
                let mut scaled = 0i32;
                #[unroll]
                for j in 0..comptime!(tile.packing.values()) {
                    let sum = sums[comptime!(s * tile.packing.values() + j)];
                    open = put(open, sum, j, tile.packing);
                    scaled =
                        put(scaled, ((sum + INT8_LIMIT) * part_of(before, j, tile.packing)) >> 8i32, j, tile.packing);
                }
                share[at] = open;
                gated[at] = scaled;
            }
            word += tile.across;
        }
        sync_cube();
        if comptime!(tile.candidate.weight) {
            let noise = &candidate.weight;
            project::<I>(&mut projected, &mut partial, &gated, candidate_held, noise, first_sequence, &sizes, tile);
        }
        let mut word = UNIT_POS as usize % tile.across;
        while word < words {
            let place = UnitColumns { word, first, first_sequence };
            let sums = sums::<I>(
                &gated,
                &projected,
                candidate_input,
                candidate_weight,
                candidate_held,
                candidate_bias,
                candidate_bias_held,
                &candidate,
                &place,
                step,
                &sizes,
                tile.candidate,
                tile,
            );
            #[unroll]
            for s in 0..tile.each {
                let at = (first + s) * tile.capacity + word;
                let (open, before) = (share[at], h[at]);
                let mut after = 0i32;
                #[unroll]
                for j in 0..comptime!(tile.packing.values()) {
                    let value = part_of(before, j, tile.packing);
                    let change = sums[comptime!(s * tile.packing.values() + j)] - value;
                    let next = value + (((part_of(open, j, tile.packing) + INT8_LIMIT) * change) >> 8i32);
                    // Wrapping int8; behind the last column the state stays 0.
                    let next = ((next + 128i32) & 255i32) - 128i32;
                    let next = select(word * tile.packing.values() + j < sizes.width, next, 0i32);
                    after = put(after, next, j, tile.packing);
                }
                h[at] = after;
                if first_sequence + first + s < sizes.sequences {
                    let row = (first_sequence + first + s) * sizes.steps + step;
                    write::<I>(outputs, row * sizes.width, word, after, sizes.width, tile);
                }
            }
            word += tile.across;
        }
        step += 1usize;
    }
}

/// A word of a row that starts at `start`.
#[cube]
fn write<I: Int>(outputs: &mut [I], start: usize, word: usize, values: i32, width: usize, #[comptime] tile: GruTile) {
    if comptime!(tile.form == Form::Word) {
        outputs[start / 4 + word] = I::cast_from(values);
    } else {
        #[unroll]
        for j in 0..comptime!(tile.packing.values()) {
            let column = word * tile.packing.values() + j;
            if column < width {
                outputs[start + column] = I::cast_from(part_of(values, j, tile.packing));
            }
        }
    }
}

/// `v·B` of the pairs of the cube's sequences: `[sequences, rank]`.
#[cube]
fn project<I: Int>(
    projected: &mut Shared<[i32]>,
    partial: &mut Shared<[i32]>,
    v: &Shared<[i32]>,
    held: &[I],
    noise: &MaterializedNoise,
    first_sequence: usize,
    sizes: &GruSizes,
    #[comptime] tile: GruTile,
) {
    let words = sizes.width.div_ceil(tile.packing.values());
    let runs = tile.sequences() * noise.rank;
    let mut item = UNIT_POS as usize;
    while item < runs * tile.lanes {
        let (run, lane) = (item / tile.lanes, item % tile.lanes);
        let (local, k) = (run / noise.rank, run % noise.rank);
        let start =
            noise_start(noise, (first_sequence + local).min(sizes.sequences - 1) / sizes.each) + k * sizes.width;
        let mut sum = 0i32;
        let mut word = lane;
        while word < words {
            let first = word * tile.packing.values();
            let factor = row_word::<I>(held, start, first, sizes.width, tile.form, tile.packing);
            sum = multiply(v[local * tile.capacity + word], factor, sum, tile.packing);
            word += tile.lanes;
        }
        partial[item] = sum;
        item += tile.units();
    }
    sync_cube();
    let mut run = UNIT_POS as usize;
    while run < runs {
        let mut sum = 0i32;
        #[unroll]
        for lane in 0..tile.lanes {
            sum += partial[run * tile.lanes + lane];
        }
        projected[run] = sum;
        run += tile.units();
    }
    sync_cube();
}

/// `clip(input + v·U + b)` of a word's columns for each sequence of a unit, perturbed: `[each, values of a word]`.
#[cube]
fn sums<I: Int>(
    v: &Shared<[i32]>,
    projected: &Shared<[i32]>,
    input: &[I],
    weight: &[I],
    held: &[I],
    bias: &[I],
    bias_held: &[I],
    gate: &GateSizes,
    place: &UnitColumns,
    step: usize,
    sizes: &GruSizes,
    #[comptime] noisy: GateNoise,
    #[comptime] tile: GruTile,
) -> Array<i32> {
    let mut sums = products::<I>(v, weight, gate.weight_stride, place, sizes, tile);
    let (width, column) = (sizes.width, place.word * tile.packing.values());
    let plain = row_word::<I>(bias, 0usize.runtime(), column, width, tile.form, tile.packing);
    #[unroll]
    for s in 0..tile.each {
        let sequence = sequence_of(place, sizes, s);
        let member = sequence / sizes.each;
        let row = (sequence * sizes.steps + step) * gate.input_stride;
        let input = row_word::<I>(input, row, column, width, tile.form, tile.packing);
        let mut factor = 0i32;
        let mut other = 0i32;
        if comptime!(noisy.bias) {
            let start = noise_start(&gate.bias, member);
            factor = row_word::<I>(bias_held, start, column, width, tile.form, tile.packing);
            other = row_word::<I>(bias_held, start + width, column, width, tile.form, tile.packing);
        }
        #[unroll]
        for j in 0..comptime!(tile.packing.values()) {
            let at = comptime!(s * tile.packing.values() + j);
            let mut sum = sums[at];
            if comptime!(noisy.weight) {
                let start = noise_start(&gate.weight, member) + gate.weight.rank * width;
                let first = (place.first + s) * gate.weight.rank;
                let at = (column + j).min(width - 1);
                let second = second_product::<I>(projected, first, held, start, gate.weight.rank, width, at, tile.form);
                sum += (second * sign(member)) >> gate.weight.shift;
            }
            let mut bias = part_of(plain, j, tile.packing);
            if comptime!(noisy.bias) {
                let product = part_of(factor, j, tile.packing) * part_of(other, j, tile.packing);
                bias = clip(bias + ((product * sign(member)) >> gate.bias.shift));
            }
            sums[at] = clip(part_of(input, j, tile.packing) + clip(floor_div(sum, sizes.divisor)) + bias);
        }
    }
    sums
}

/// `v·U` of a word's columns for each sequence of a unit: `[each, values of a word]`.
#[cube]
fn products<I: Int>(
    v: &Shared<[i32]>,
    weight: &[I],
    stride: usize,
    place: &UnitColumns,
    sizes: &GruSizes,
    #[comptime] tile: GruTile,
) -> Array<i32> {
    let mut sums = Array::<i32>::new(comptime!(tile.each * tile.packing.values()));
    #[unroll]
    for i in 0..comptime!(tile.each * tile.packing.values()) {
        sums[i] = 0i32;
    }
    let words = sizes.width.div_ceil(tile.packing.values());
    let mut depth = 0usize.runtime();
    while depth < words {
        if comptime!(tile.packing == Packing::One) {
            let factor = value::<I>(weight, depth * stride + place.word, tile.form);
            #[unroll]
            for s in 0..tile.each {
                sums[s] += v[(place.first + s) * tile.capacity + depth] * factor;
            }
        } else {
            let factors =
                column_words::<I>(weight, 4 * depth, sizes.width, stride, 4 * place.word, sizes.width, tile.form);
            #[unroll]
            for s in 0..tile.each {
                let word = v[(place.first + s) * tile.capacity + depth];
                let at = comptime!(4 * s);
                sums[at] = multiply(word, factors.0, sums[at], tile.packing);
                sums[comptime!(at + 1)] = multiply(word, factors.1, sums[comptime!(at + 1)], tile.packing);
                sums[comptime!(at + 2)] = multiply(word, factors.2, sums[comptime!(at + 2)], tile.packing);
                sums[comptime!(at + 3)] = multiply(word, factors.3, sums[comptime!(at + 3)], tile.packing);
            }
        }
        depth += 1usize;
    }
    sums
}
