//! What noise adds to a parameter, of every pair: held for the steps of its episodes, in one form for low-rank and dense noise.

use cubecl::prelude::*;

/// Where a parameter stands, and its factors.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct DeviationSizes {
    pub pairs: usize,
    pub d_input: usize,
    pub d_output: usize,
    /// Rows of the factors; not read for dense noise.
    pub rank: usize,
    /// Elements of a pair's noise.
    pub elements: usize,
    /// Where the parameter begins among all of a pair.
    pub start: usize,
    /// Elements of all parameters.
    pub all: usize,
}

/// Writes `deviations[pair, start + i·d_output + j]` of `deviations : [pairs, all]`: `scale·Σ_k B[k, i]·A[k, j]` of `noise : [pairs, elements]`, or
/// `scale·noise[pair, i·d_output + j]`. A unit takes one element.
#[cube(launch)]
pub(crate) fn deviation_kernel(
    noise: &[f32],
    deviations: &mut [f32],
    sizes: DeviationSizes,
    scale: f32,
    #[comptime] low_rank: bool,
) {
    let count = sizes.d_input * sizes.d_output;
    let pair = ABSOLUTE_POS / count;
    if pair >= sizes.pairs {
        terminate!();
    }
    let element = ABSOLUTE_POS % count;
    let begin = pair * sizes.elements;
    let mut value = 0.0f32;
    if comptime!(low_rank) {
        let (i, j) = (element / sizes.d_output, element % sizes.d_output);
        let second = begin + sizes.rank * sizes.d_input;
        let mut k = 0usize.runtime();
        while k < sizes.rank {
            value += noise[begin + k * sizes.d_input + i] * noise[second + k * sizes.d_output + j];
            k += 1usize;
        }
    } else {
        value = noise[begin + element];
    }
    deviations[pair * sizes.all + sizes.start + element] = scale * value;
}
