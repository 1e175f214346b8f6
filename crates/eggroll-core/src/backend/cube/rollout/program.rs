//! Programs in kernels: their operations become operations of the kernel when it is compiled, one register each.

use crate::fused::device_rollout::{Operation, Operator, Program};
use cubecl::prelude::*;

/// The outputs of a program.
#[cube]
pub(crate) fn run_program(inputs: &Sequence<f32>, #[comptime] program: Program) -> Sequence<f32> {
    let mut values = Sequence::<f32>::new();
    #[unroll]
    for i in 0..comptime!(program.operations().len()) {
        let value = result(inputs, &values, comptime!(program.operations()[i]));
        values.push(value);
    }
    let mut outputs = Sequence::<f32>::new();
    #[unroll]
    for i in 0..comptime!(program.outputs().len()) {
        let number = comptime!(program.outputs()[i]);
        outputs.push(values[number]);
    }
    outputs
}

#[cube]
fn result(inputs: &Sequence<f32>, values: &Sequence<f32>, #[comptime] operation: Operation) -> f32 {
    let a = comptime!(operation.operands[0]);
    let b = comptime!(operation.operands[1]);
    let c = comptime!(operation.operands[2]);
    match comptime!(operation.operator) {
        Operator::Input => inputs[a],
        Operator::Constant => f32::new(comptime!(f32::from_bits(a as u32))),
        Operator::Add => values[a] + values[b],
        Operator::Sub => values[a] - values[b],
        Operator::Mul => values[a] * values[b],
        Operator::Div => values[a] / values[b],
        Operator::Sin => values[a].sin(),
        Operator::Cos => values[a].cos(),
        Operator::Floor => values[a].floor(),
        Operator::Abs => values[a].abs(),
        Operator::Clamp => clamped(values[a], values[b], values[c]),
        Operator::Less => select(values[a] < values[b], 1.0f32, 0.0f32),
        Operator::LessEqual => select(values[a] <= values[b], 1.0f32, 0.0f32),
        Operator::Select => select(values[a] != 0.0f32, values[b], values[c]),
    }
}

/// A value between bounds, as on the host: NaN stays.
#[cube]
pub(super) fn clamped(value: f32, low: f32, high: f32) -> f32 {
    select(value.is_nan(), value, value.max(low).min(high))
}
