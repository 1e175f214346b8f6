//! A graph that is ready to run: steps in order.

use super::operation;
use burn::backend::DispatchTensor;
use burn::backend::ir::{IrVisitorMut, OperationIr, TensorIr, TensorStatus};
use burn::tensor::TensorId;
use eggroll_core::ops::InputRows;
use std::collections::{HashMap, HashSet};

/// One step of a [`GraphProgram`], with the actual shapes of tensors.
#[derive(Clone, Debug)]
pub(super) enum ProgramStep {
    /// An operation of Burn.
    Run(Box<OperationIr>),
    /// A linear operation on the last axis, under a parameter as the matrix `[d_input, d_output]`.
    Linear { x: TensorIr, input: InputRows, weight: usize, bias: Option<usize>, out: TensorIr },
    /// Rows of a matrix parameter.
    Embedding { indices: TensorIr, input: InputRows, weight: usize, out: TensorIr },
    /// A parameter as every member sees it, `[members, ...]`.
    Values { parameter: usize, out: TensorIr },
}

/// Steps and what they need.
pub(super) struct GraphProgram {
    pub steps: Vec<ProgramStep>,
    /// Tensors that are the same in every generation, on the device.
    pub constants: Vec<(TensorId, DispatchTensor)>,
    /// Where the inputs go, by position.
    pub inputs: Vec<TensorId>,
    /// Parameters that are used as they are: position and where they go.
    pub plain_parameters: Vec<(usize, TensorId)>,
    pub outputs: Vec<TensorIr>,
}

impl ProgramStep {
    /// Calls `f` with every operand.
    fn operands(&mut self, f: &mut dyn FnMut(&mut TensorIr)) {
        struct Visit<'a>(&'a mut dyn FnMut(&mut TensorIr));
        impl IrVisitorMut for Visit<'_> {
            fn visit_tensor_mut(&mut self, tensor: &mut TensorIr) {
                if tensor.status != TensorStatus::NotInit {
                    (self.0)(tensor);
                }
            }
        }
        match self {
            Self::Run(operation) => operation.visit_mut(&mut Visit(f)),
            Self::Linear { x, .. } => f(x),
            Self::Embedding { indices, .. } => f(indices),
            Self::Values { .. } => {}
        }
    }

    fn results(&self) -> Vec<TensorId> {
        match self {
            Self::Run(operation) => operation.outputs().map(|out| out.id).collect(),
            Self::Linear { out, .. } | Self::Embedding { out, .. } | Self::Values { out, .. } => vec![out.id],
        }
    }
}

impl GraphProgram {
    /// Marks the last use of every tensor, so that its memory is free from there on, and drops steps that nothing needs.
    pub fn finish(mut self) -> Self {
        let mut needed: HashSet<TensorId> = HashSet::new();
        for output in self.outputs.iter_mut().rev() {
            output.status = if needed.insert(output.id) { TensorStatus::ReadWrite } else { TensorStatus::ReadOnly };
        }
        let mut kept: Vec<ProgramStep> = Vec::with_capacity(self.steps.len());
        for mut step in std::mem::take(&mut self.steps).into_iter().rev() {
            if !step.results().iter().any(|id| needed.contains(id)) {
                continue;
            }
            let mut count: HashMap<TensorId, usize> = HashMap::new();
            step.operands(&mut |operand| *count.entry(operand.id).or_default() += 1);
            step.operands(&mut |operand| {
                // A tensor that an operation takes twice is kept until the end.
                let last = count[&operand.id] == 1 && !needed.contains(&operand.id);
                operand.status = if last { TensorStatus::ReadWrite } else { TensorStatus::ReadOnly };
            });
            needed.extend(count.into_keys());
            kept.push(step);
        }
        kept.reverse();
        self.steps = kept;
        self.constants.retain(|(id, _)| needed.contains(id));
        self.plain_parameters.retain(|(_, id)| needed.contains(id));
        self
    }
}

/// The operations that `outputs` depend on.
pub(super) fn needed(operations: &[OperationIr], outputs: &[TensorId]) -> Vec<OperationIr> {
    let mut needed: HashSet<TensorId> = outputs.iter().copied().collect();
    let mut kept = Vec::new();
    for operation in operations.iter().rev() {
        if operation.outputs().any(|out| needed.contains(&out.id)) {
            needed.extend(operation.inputs().map(|input| input.id));
            kept.push(operation.clone());
        }
    }
    kept.reverse();
    kept
}

/// The position of the first operation that differs between two recordings of one forward.
pub(super) fn difference(a: &[OperationIr], b: &[OperationIr]) -> Option<usize> {
    let same = |a: &OperationIr, b: &OperationIr| {
        operation::name(a) == operation::name(b)
            && a.nodes().len() == b.nodes().len()
            && a.nodes()
                .iter()
                .zip(b.nodes())
                .all(|(a, b)| a.shape.num_dims() == b.shape.num_dims() && a.dtype == b.dtype)
    };
    let length = a.len().min(b.len());
    (0..length).find(|&i| !same(&a[i], &b[i])).or((a.len() != b.len()).then_some(length))
}
