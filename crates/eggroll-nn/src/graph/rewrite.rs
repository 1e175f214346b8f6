//! From a recorded forward to steps for a folded population: every use of a parameter becomes its perturbed operation.
//!
//! A recorded tensor has one of three origins. *Plain*: the same for all members, or rows of members on the leading axis; Burn's
//! operation is right as it stands. *Parameter*: a parameter, perhaps rearranged, before any computation. *Members*: computed from
//! parameters alone, different for every member, held as `[members, ...]`. Where the last two meet rows, the operation runs with
//! members on a separate axis.

use super::error::GraphError;
use super::fuse::fuse;
use super::interpreter::Interpreter;
use super::operation::{is_row_wise, is_view, name, of_kind, replace};
use super::program::{GraphProgram, ProgramStep, difference, needed};
use super::trace::{Parameter, Trace};
use burn::backend::ir::{BaseOperationIr, OperationIr, RepeatDimOpIr, ShapeOpIr, TensorIr, TensorStatus};
use burn::tensor::{DType, Shape, TensorId};
use std::collections::{HashMap, HashSet};

/// Where the rows of a recorded tensor lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowAxis {
    /// Nowhere: its shape does not depend on the batch.
    None,
    /// On the leading axis and no other.
    Leading,
    /// Elsewhere.
    Other,
}

/// A parameter, perhaps rearranged.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// Position of the parameter.
    pub parameter: usize,
    /// Whether it is the parameter as it stands.
    pub base: bool,
    /// Whether its last two axes are a matrix parameter, the others being 1: `Some(transposed)`.
    pub matrix: Option<bool>,
}

/// The origin of a recorded tensor: see the top of this file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    Plain,
    Parameter(View),
    Members,
}

/// The rewriting of one recording.
pub(super) struct Rewrite<'a> {
    parameters: &'a [Parameter],
    pub(super) members: usize,
    batch: HashMap<TensorId, RowAxis>,
    pub(super) origins: HashMap<TensorId, Origin>,
    /// How a parameter was arranged.
    pub(super) views: HashMap<TensorId, OperationIr>,
    /// `[members, ...]` of tensors that differ for every member.
    pub(super) lifted: HashMap<TensorId, TensorIr>,
    /// A parameter that a tensor was computed from.
    roots: HashMap<TensorId, usize>,
    /// Tensors that depend on the inputs' values.
    pub(super) rows: HashSet<TensorId>,
    /// Rows that are the same for all members and so far stored once, of recorded tensors that no operation has needed
    /// repeated.
    repeated: HashMap<TensorId, TensorIr>,
    steps: Vec<ProgramStep>,
    next_id: u64,
}

/// The program of a recording for `members` members. `other` is the recording for another batch, which shows the axes of
/// rows. With `shared`, the inputs have the rows of one member, for all. Constants are brought to the device of `on`.
pub(super) fn rewrite(
    trace: Trace,
    other: &Trace,
    parameters: &[Parameter],
    members: usize,
    shared: bool,
    on: &mut dyn Interpreter,
) -> Result<GraphProgram, GraphError> {
    let operations = whole(&trace);
    let batch = batch_axes(&operations, &whole(other))?;
    let mut rewrite = Rewrite {
        parameters,
        members,
        batch,
        origins: HashMap::new(),
        views: HashMap::new(),
        lifted: HashMap::new(),
        roots: HashMap::new(),
        rows: trace.inputs.iter().map(|input| input.id).collect(),
        repeated: HashMap::new(),
        steps: Vec::new(),
        next_id: u64::MAX,
    };
    let inputs = match shared {
        false => trace.inputs.iter().map(|input| input.id).collect(),
        true => trace.inputs.iter().map(|input| rewrite.repeat(input).id).collect(),
    };
    let mut plain_parameters = Vec::new();
    for (position, (parameter, id)) in parameters.iter().zip(&trace.parameters).enumerate() {
        if parameter.is_perturbed {
            let matrix = (parameter.shape().len() == 2).then_some(false);
            rewrite.origins.insert(*id, Origin::Parameter(View { parameter: position, base: true, matrix }));
            rewrite.roots.insert(*id, position);
        } else {
            plain_parameters.push((position, *id));
        }
    }
    let mut shapes: HashMap<TensorId, TensorIr> = HashMap::new();
    for operation in operations {
        shapes.extend(operation.nodes().into_iter().map(|node| (node.id, node.clone())));
        rewrite.operation(operation)?;
    }
    let outputs = trace.outputs.iter().enumerate().map(|(output, id)| {
        let ir = shapes.get(id).cloned();
        match (rewrite.origin(*id), rewrite.batch(*id), ir) {
            (Origin::Plain, RowAxis::Leading, Some(ir)) => Ok(ir),
            (_, _, ir) => Err(GraphError::Output { output, shape: ir.map(|ir| ir.shape.to_vec()).unwrap_or_default() }),
        }
    });
    let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    outputs.iter().for_each(|output| rewrite.unfold(output));
    let constants = trace.constants.into_iter().map(|(id, data)| {
        let (shape, dtype) = (data.shape().clone(), data.dtype());
        on.put_data(id, data);
        (id, on.take(&TensorIr { id, shape, status: TensorStatus::ReadWrite, dtype }))
    });
    let (constants, steps) = (constants.collect(), rewrite.steps);
    Ok(GraphProgram { steps, constants, inputs, plain_parameters, outputs }.finish())
}

/// What a forward needs, linear operations as a whole.
fn whole(trace: &Trace) -> Vec<OperationIr> {
    needed(&fuse(&trace.operations, &trace.outputs), &trace.outputs)
}

/// The axis of every tensor's rows: where two recordings, for different numbers of rows, differ.
fn batch_axes(operations: &[OperationIr], other: &[OperationIr]) -> Result<HashMap<TensorId, RowAxis>, GraphError> {
    if let Some(position) = difference(operations, other) {
        return Err(GraphError::ShapeDependent { position });
    }
    let axes = |a: &Shape, b: &Shape| {
        let differing: Vec<usize> = (0..a.num_dims()).filter(|&axis| a[axis] != b[axis]).collect();
        match differing[..] {
            [] => RowAxis::None,
            [0] => RowAxis::Leading,
            _ => RowAxis::Other,
        }
    };
    let mut batch = HashMap::new();
    for (a, b) in operations.iter().zip(other) {
        for (a, b) in a.nodes().into_iter().zip(b.nodes()) {
            batch.insert(a.id, axes(&a.shape, &b.shape));
        }
        if let Some((input, out)) = reshaped(a)
            && let (RowAxis::Other, RowAxis::Leading) = (batch[&input.id], batch[&out.id])
            && let Some((other, _)) = reshaped(b)
            && !leads(&input.shape, &other.shape)
        {
            return Err(GraphError::MixesRows { operation: name(a), shape: out.shape.to_vec() });
        }
    }
    Ok(batch)
}

/// Operand and result of a reshape.
fn reshaped(operation: &OperationIr) -> Option<(&TensorIr, &TensorIr)> {
    match operation {
        OperationIr::BaseFloat(BaseOperationIr::Reshape(op))
        | OperationIr::BaseInt(BaseOperationIr::Reshape(op))
        | OperationIr::BaseBool(BaseOperationIr::Reshape(op)) => Some((&op.input, &op.out)),
        _ => None,
    }
}

/// Whether only axes of length 1 precede the axis of the rows, as shapes for two numbers of rows show. Otherwise `[steps, rows]` in one axis would
/// be taken for rows of members.
fn leads(shape: &Shape, other: &Shape) -> bool {
    let first = (0..shape.num_dims()).find(|axis| shape[*axis] != other[*axis]);
    first.is_none_or(|first| shape[..first].iter().all(|length| *length == 1))
}

impl Rewrite<'_> {
    fn operation(&mut self, operation: OperationIr) -> Result<(), GraphError> {
        let special = operation.inputs().any(|input| !matches!(self.origin(input.id), Origin::Plain));
        if !special {
            return self.plain(operation);
        }
        if let Some(root) = operation.inputs().find_map(|input| self.roots.get(&input.id).copied()) {
            let outputs: Vec<TensorId> = operation.outputs().map(|out| out.id).collect();
            self.roots.extend(outputs.into_iter().map(|out| (out, root)));
        }
        if is_view(&operation) && self.arranged(&operation) {
            return Ok(());
        }
        match self.module(&operation) {
            Some(done) => done,
            None => self.lift_operation(&operation),
        }
    }

    /// An operation without parameters: as it stands.
    fn plain(&mut self, operation: OperationIr) -> Result<(), GraphError> {
        let rows = operation.inputs().any(|input| self.rows.contains(&input.id));
        for out in operation.outputs() {
            if rows && self.batch(out.id) == RowAxis::None {
                return Err(GraphError::MixesRows { operation: name(&operation), shape: out.shape.to_vec() });
            }
            if rows {
                self.rows.insert(out.id);
            }
        }
        if self.plain_once(&operation).is_none() {
            operation.inputs().for_each(|input| self.unfold(input));
            self.run(operation);
        }
        Ok(())
    }

    /// Runs an operation without parameters on rows that all members share, once; `None` if it needs them repeated.
    fn plain_once(&mut self, operation: &OperationIr) -> Option<()> {
        let (mut inputs, mut outputs) = (operation.inputs(), operation.outputs());
        let (input, out) = (inputs.next()?, outputs.next()?);
        let once = self.repeated.get(&input.id)?.clone();
        let single = inputs.next().is_none() && outputs.next().is_none() && is_row_wise(operation);
        if !single || self.batch(out.id) != RowAxis::Leading || !out.shape[0].is_multiple_of(self.members) {
            return None;
        }
        let result = self.repeat(out);
        let mut operation = operation.clone();
        replace(&mut operation, &HashMap::from([(input.id, once), (out.id, result)]));
        self.run(operation);
        Some(())
    }

    /// One member's rows of a recorded tensor, which all share.
    fn repeat(&mut self, tensor: &TensorIr) -> TensorIr {
        let mut shape = tensor.shape.to_vec();
        shape[0] /= self.members;
        let once = self.fresh(shape, tensor.dtype);
        self.repeated.insert(tensor.id, once.clone());
        once
    }

    /// One member's rows of a recorded tensor, if all share them.
    pub(super) fn once(&self, tensor: &TensorIr) -> Option<TensorIr> {
        self.repeated.get(&tensor.id).cloned()
    }

    /// Repeats the rows of a recorded tensor for every member, if they stand only once.
    pub(super) fn unfold(&mut self, tensor: &TensorIr) {
        if let Some(once) = self.repeated.remove(&tensor.id) {
            let out = TensorIr { status: TensorStatus::NotInit, ..tensor.clone() };
            let dtype = out.dtype;
            let op = RepeatDimOpIr { tensor: read(&once), dim: 0, times: self.members, out };
            self.run(of_kind(dtype, BaseOperationIr::RepeatDim(op)));
        }
    }

    /// Notes a parameter that is rearranged; false if the operand is not a parameter.
    fn arranged(&mut self, operation: &OperationIr) -> bool {
        let (Some(input), Some(out)) = (operation.inputs().next(), operation.outputs().next()) else {
            return false;
        };
        let Origin::Parameter(view) = self.origin(input.id) else {
            return false;
        };
        let rank = out.shape.num_dims();
        let matrix = view.matrix.and_then(|transposed| match operation {
            OperationIr::BaseFloat(BaseOperationIr::Reshape(_)) => {
                let from = &input.shape[input.shape.num_dims() - 2..];
                let kept = rank >= 2 && out.shape[rank - 2..] == *from;
                kept.then_some(transposed)
            }
            OperationIr::BaseFloat(BaseOperationIr::SwapDims(op)) => {
                let last = rank >= 2 && op.dim1.min(op.dim2) == rank - 2 && op.dim1.max(op.dim2) == rank - 1;
                last.then_some(!transposed)
            }
            _ => None,
        });
        let view = View { base: false, matrix, ..view };
        self.origins.insert(out.id, Origin::Parameter(view));
        self.views.insert(out.id, operation.clone());
        true
    }

    pub(super) fn origin(&self, id: TensorId) -> Origin {
        self.origins.get(&id).copied().unwrap_or(Origin::Plain)
    }

    pub(super) fn batch(&self, id: TensorId) -> RowAxis {
        self.batch.get(&id).copied().unwrap_or(RowAxis::None)
    }

    /// The parameter that a tensor is a view of.
    pub(super) fn view(&self, tensor: &TensorIr) -> Option<View> {
        match self.origin(tensor.id) {
            Origin::Parameter(view) => Some(view),
            _ => None,
        }
    }

    /// Whether the tensor holds rows of all members, or values that are the same for all.
    pub(super) fn is_plain(&self, tensor: &TensorIr) -> bool {
        matches!(self.origin(tensor.id), Origin::Plain)
    }

    /// Path of a parameter that an operand of `operation` was computed from.
    pub(super) fn blame(&self, operation: &OperationIr) -> String {
        let root = operation.inputs().find_map(|input| self.roots.get(&input.id));
        root.map(|root| self.parameters[*root].path.clone()).unwrap_or_default()
    }

    /// The error for an operation that has no perturbed form.
    pub(super) fn unsupported(&self, operation: &OperationIr) -> GraphError {
        GraphError::UnsupportedUse { operation: name(operation), parameter: self.blame(operation) }
    }

    /// The error for rows that are not where they must be.
    pub(super) fn misplaced(&self, operation: &OperationIr, tensor: &TensorIr) -> GraphError {
        let (operation, parameter) = (name(operation), self.blame(operation));
        GraphError::BatchAxis { operation, parameter, shape: tensor.shape.to_vec() }
    }

    pub(super) fn step(&mut self, step: ProgramStep) {
        self.steps.push(step);
    }

    pub(super) fn run(&mut self, operation: OperationIr) {
        self.step(ProgramStep::Run(Box::new(operation)));
    }

    /// A new tensor.
    pub(super) fn fresh(&mut self, shape: impl Into<Vec<usize>>, dtype: DType) -> TensorIr {
        self.next_id -= 1;
        TensorIr::uninit(TensorId::new(self.next_id), Shape::from(shape.into()), dtype)
    }

    /// Writes `tensor` in the shape of `out`.
    pub(super) fn reshape_into(&mut self, tensor: &TensorIr, out: TensorIr) {
        let dtype = out.dtype;
        let op = BaseOperationIr::Reshape(ShapeOpIr { input: read(tensor), out });
        self.run(of_kind(dtype, op));
    }

    pub(super) fn reshape(&mut self, tensor: &TensorIr, shape: impl Into<Vec<usize>>) -> TensorIr {
        let shape = shape.into();
        if tensor.shape[..] == shape[..] {
            return tensor.clone();
        }
        let out = self.fresh(shape, tensor.dtype);
        self.reshape_into(tensor, out.clone());
        out
    }
}

/// A tensor as an operand.
pub(super) fn read(tensor: &TensorIr) -> TensorIr {
    TensorIr { status: TensorStatus::ReadOnly, ..tensor.clone() }
}
