//! The layers of a policy for the rows of a cube: units share the outputs of a lot, whose members share the loads of weights.

use super::plan::{Launch, LayerPlan, PRODUCTS, RolloutPlan};
use crate::fused::device_rollout::ChainActivation;
use cubecl::prelude::*;

/// Runs all layers, from one buffer to the other and back; all units take part. A barrier follows each layer.
#[cube]
pub(crate) fn forward(
    from: &mut Shared<[f32]>,
    to: &mut Shared<[f32]>,
    parameters: &[f32],
    deviations: &[f32],
    first_lot: usize,
    launch: &Launch,
    #[comptime] plan: RolloutPlan,
) {
    #[unroll]
    for l in 0..comptime!(plan.layers.len()) {
        let layer = comptime!(plan.layers[l]);
        if comptime!(l.is_multiple_of(2)) {
            outputs(&*from, to, parameters, deviations, first_lot, launch, layer, comptime!(plan.clone()));
        } else {
            outputs(&*to, from, parameters, deviations, first_lot, launch, layer, comptime!(plan.clone()));
        }
        sync_cube();
    }
}

/// This unit's outputs of one layer.
#[cube]
fn outputs(
    x: &Shared<[f32]>,
    y: &mut Shared<[f32]>,
    parameters: &[f32],
    deviations: &[f32],
    first_lot: usize,
    launch: &Launch,
    #[comptime] layer: LayerPlan,
    #[comptime] plan: RolloutPlan,
) {
    let width = comptime!(plan.width());
    // From a lot's first row to its second.
    let apart = comptime!(plan.lots * plan.width());
    let mut item = UNIT_POS as usize;
    while item < comptime!(plan.lots * layer.d_output) {
        let (lot, column) = (item / layer.d_output, item % layer.d_output);
        // Behind the last lot stand copies of it.
        let pair = (first_lot + lot).min(launch.lots - 1usize) / launch.episodes;
        let own = pair * launch.parameters;
        let mut plus = 0.0f32;
        let mut minus = 0.0f32;
        if comptime!(layer.bias.is_some()) {
            let at = column + comptime!(layer.bias.unwrap_or(0));
            let differs = comptime!(layer.bias_differs);
            let deviation = deviation(deviations, own + at, differs);
            plus = parameters[at] + deviation;
            minus = parameters[at] - deviation;
        }
        let mut i = 0usize.runtime();
        let whole = comptime!(layer.d_input / PRODUCTS * PRODUCTS);
        let at = column + layer.weight;
        while i < whole {
            #[unroll]
            for k in 0..PRODUCTS {
                let (place, element) = (lot * width + i + k, at + (i + k) * layer.d_output);
                let deviation = deviation(deviations, own + element, layer.weight_differs);
                plus += x[place] * (parameters[element] + deviation);
                if comptime!(plan.pairs) {
                    minus += x[place + apart] * (parameters[element] - deviation);
                }
            }
            i += PRODUCTS;
        }
        #[unroll]
        for i in whole..layer.d_input {
            let (place, element) = (lot * width + i, at + comptime!(i * layer.d_output));
            let deviation = deviation(deviations, own + element, layer.weight_differs);
            plus += x[place] * (parameters[element] + deviation);
            if comptime!(plan.pairs) {
                minus += x[place + apart] * (parameters[element] - deviation);
            }
        }
        y[lot * width + column] = activated(plus, layer.activation);
        if comptime!(plan.pairs) {
            y[lot * width + column + apart] = activated(minus, layer.activation);
        }
        item += comptime!(plan.units as usize);
    }
}

/// What the noise adds to an element.
#[cube]
fn deviation(deviations: &[f32], at: usize, #[comptime] differs: bool) -> f32 {
    if comptime!(differs) { deviations[at] } else { 0.0f32.runtime() }
}

#[cube]
fn activated(value: f32, #[comptime] activation: ChainActivation) -> f32 {
    match comptime!(activation) {
        ChainActivation::Identity => value,
        // NaN stays.
        ChainActivation::Relu => select(value.is_nan(), value, value.max(0.0f32)),
        ChainActivation::Tanh => value.tanh(),
    }
}
