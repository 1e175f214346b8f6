//! The work of a row's unit apart from its environment: it passes an observation to the policy, and turns the outputs into an
//! action.

use super::super::noise::philox;
use super::plan::{Launch, RolloutPlan};
use super::program::{clamped, run_program};
use crate::fused::device_rollout::Head;
use cubecl::prelude::*;

/// A unit's row.
#[derive(CubeType, Clone, Copy)]
pub(crate) struct UnitRow {
    /// Its number in the cube.
    pub unit: usize,
    pub episode: usize,
    /// The pair, numbered in the whole population.
    pub pair: u32,
}

/// Shows the observation to the first layer; with a normalizer as it sees it, and adds it to the sums.
#[cube]
pub(crate) fn observe(
    from: &mut Shared<[f32]>,
    scaling: &[f32],
    state: &Array<f32>,
    sums: &mut Array<f32>,
    row: &UnitRow,
    launch: &Launch,
    #[comptime] plan: RolloutPlan,
) {
    let (seen, at) = (comptime!(plan.seen()), row.unit * comptime!(plan.width()));
    let mut inputs = Sequence::<f32>::new();
    #[unroll]
    for i in 0..comptime!(plan.dynamics.state_size()) {
        inputs.push(state[i]);
    }
    let values = run_program(&inputs, comptime!(plan.dynamics.observation().clone()));
    if comptime!(plan.normalizes) {
        let mut far = false.runtime();
        #[unroll]
        for i in 0..seen {
            let distance = values[i] - scaling[i];
            far = far || distance.abs() > launch.farthest || distance.is_nan();
        }
        #[unroll]
        for i in 0..seen {
            let distance = values[i] - scaling[i];
            let summed = values[i] - scaling[comptime!(2 * seen + i)];
            let counted = select(far, 0.0f32, summed);
            sums[i] += counted;
            sums[comptime!(seen + i)] += counted * counted;
            let scaled = distance * scaling[comptime!(seen + i)];
            from[at + i] = clamped(scaled, -launch.seen_limit, launch.seen_limit);
        }
        sums[comptime!(2 * seen)] += select(far, 1.0f32, 0.0f32);
    } else {
        #[unroll]
        for i in 0..seen {
            from[at + i] = values[i];
        }
    }
}

/// The action that follows from a row's outputs.
#[cube]
pub(crate) fn act(
    outputs: &Shared<[f32]>,
    draws: &[u32],
    row: &UnitRow,
    step: u32,
    launch: &Launch,
    #[comptime] plan: RolloutPlan,
) -> Sequence<f32> {
    let at = row.unit * comptime!(plan.width());
    let mut action = Sequence::<f32>::new();
    match comptime!(plan.head) {
        Head::Highest => action.push(highest(outputs, at, plan.outputs)),
        Head::Sampled => action.push(sampled(outputs, at, uniform(draws, row, step), plan.outputs)),
        Head::Clamped =>
        {
            #[unroll]
            for i in 0..plan.outputs {
                action.push(clamped(outputs[at + i], launch.low, launch.high));
            }
        }
        Head::Tanh => {
            let half = 0.5f32 * (launch.high - launch.low);
            let middle = 0.5f32 * (launch.low + launch.high);
            #[unroll]
            for i in 0..plan.outputs {
                action.push(outputs[at + i].tanh() * half + middle);
            }
        }
    }
    action
}

/// The first index of the highest output.
#[cube]
fn highest(outputs: &Shared<[f32]>, at: usize, #[comptime] count: usize) -> f32 {
    let mut best = outputs[at];
    let mut index = 0.0f32;
    #[unroll]
    for i in 1..count {
        let output = outputs[at + i];
        let better = output > best;
        best = select(better, output, best);
        index = select(better, f32::new(comptime!(i as f32)), index);
    }
    index
}

/// An index drawn with the probabilities `softmax(outputs)`.
#[cube]
fn sampled(outputs: &Shared<[f32]>, at: usize, uniform: f32, #[comptime] count: usize) -> f32 {
    let mut best = outputs[at];
    #[unroll]
    for i in 1..count {
        best = best.max(outputs[at + i]);
    }
    let mut total = 0.0f32;
    #[unroll]
    for i in 0..count {
        total += (outputs[at + i] - best).exp();
    }
    let mut sum = 0.0f32;
    let mut index = 0.0f32;
    #[unroll]
    for i in 0..comptime!(count - 1) {
        sum += (outputs[at + i] - best).exp();
        index += select(sum <= uniform * total, 1.0f32, 0.0f32);
    }
    index
}

/// The number in `[0, 1)` that both members of a pair draw at a step.
#[cube]
fn uniform(draws: &[u32], row: &UnitRow, step: u32) -> f32 {
    let at = row.episode * 4usize;
    let counter = (row.pair / 4u32, step, draws[at + 2usize], draws[at + 3usize]);
    let words = philox(counter, (draws[at], draws[at + 1usize]));
    let place = row.pair % 4u32;
    let low = select(place == 0u32, words.0, words.1);
    let high = select(place == 2u32, words.2, words.3);
    f32::cast_from(select(place < 2u32, low, high) >> 8u32) * comptime!(1.0 / 16_777_216.0f32)
}
