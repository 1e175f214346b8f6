//! From a recorded forward to steps for a folded population: every use of a parameter becomes its perturbed operation.
//!
//! A recorded tensor is one of three things. *Plain*: the same for all members, or rows of members on the leading axis, so that
//! Burn's operation is right as it stands. *Parameter*: a parameter, perhaps arranged anew, of which nothing has been computed yet.
//! *Members*: computed from parameters alone, so that every member has its own: held as `[members, ...]`. Where the last two meet rows,
//! the operation runs with members on an axis of their own.

use super::error::GraphError;
use super::interpreter::Interpreter;
use super::operation::{is_view, name, replace, with_leading_axis};
use super::program::{Program, Step, difference, needed};
use super::trace::{Parameter, Trace};
use burn::backend::ir::{BaseOperationIr, OperationIr, ShapeOpIr, TensorIr, TensorStatus};
use burn::tensor::{DType, Shape, TensorId};
use std::collections::{HashMap, HashSet};

/// Where the rows of a recorded tensor lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Batch {
    /// Nowhere: its shape does not depend on the batch.
    None,
    /// On the leading axis and no other.
    Leading,
    /// Elsewhere.
    Other,
}

/// A parameter, perhaps arranged anew.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// Position of the parameter.
    pub parameter: usize,
    /// Whether it is the parameter as it stands.
    pub base: bool,
    /// Whether its last two axes are a matrix parameter, the others being 1: `Some(transposed)`.
    pub matrix: Option<bool>,
}

#[derive(Clone, Copy, Debug)]
enum Origin {
    Plain,
    Parameter(View),
    Members,
}

/// The rewriting of one recording.
pub(super) struct Rewrite<'a> {
    parameters: &'a [Parameter],
    pub(super) members: usize,
    batch: HashMap<TensorId, Batch>,
    origins: HashMap<TensorId, Origin>,
    /// How a parameter was arranged.
    views: HashMap<TensorId, OperationIr>,
    /// `[members, ...]` of tensors that every member has its own of.
    lifted: HashMap<TensorId, TensorIr>,
    /// A parameter that a tensor was computed from.
    roots: HashMap<TensorId, usize>,
    /// Tensors that depend on the inputs' values.
    rows: HashSet<TensorId>,
    steps: Vec<Step>,
    next_id: u64,
}

/// The program of a recording for `members` members. `other` is the recording for another batch: by it we know which axes are
/// rows. Constants are brought to the device of `on`.
pub(super) fn rewrite(
    trace: Trace,
    other: &Trace,
    parameters: &[Parameter],
    members: usize,
    on: &mut dyn Interpreter,
) -> Result<Program, GraphError> {
    let batch = batch_axes(&trace, other)?;
    let mut rewrite = Rewrite {
        parameters,
        members,
        batch,
        origins: HashMap::new(),
        views: HashMap::new(),
        lifted: HashMap::new(),
        roots: HashMap::new(),
        rows: trace.inputs.iter().copied().collect(),
        steps: Vec::new(),
        next_id: u64::MAX,
    };
    let mut plain_parameters = Vec::new();
    for (position, (parameter, id)) in parameters.iter().zip(&trace.parameters).enumerate() {
        if parameter.is_float() {
            let matrix = (parameter.shape().len() == 2).then_some(false);
            rewrite.origins.insert(*id, Origin::Parameter(View { parameter: position, base: true, matrix }));
            rewrite.roots.insert(*id, position);
        } else {
            plain_parameters.push((position, *id));
        }
    }
    let mut shapes: HashMap<TensorId, TensorIr> = HashMap::new();
    for operation in needed(&trace.operations, &trace.outputs) {
        shapes.extend(operation.nodes().into_iter().map(|node| (node.id, node.clone())));
        rewrite.operation(operation)?;
    }
    let outputs = trace.outputs.iter().enumerate().map(|(output, id)| {
        let ir = shapes.get(id).cloned();
        match (rewrite.origin(*id), rewrite.batch(*id), ir) {
            (Origin::Plain, Batch::Leading, Some(ir)) => Ok(ir),
            (_, _, ir) => {
                Err(GraphError::Output { output, shape: ir.map(|ir| ir.shape.to_vec()).unwrap_or_default() })
            }
        }
    });
    let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    let constants = trace.constants.into_iter().map(|(id, data)| {
        let (shape, dtype) = (data.shape().clone(), data.dtype());
        on.put_data(id, data);
        (id, on.take(&TensorIr { id, shape, status: TensorStatus::ReadWrite, dtype }))
    });
    let (constants, steps) = (constants.collect(), rewrite.steps);
    Ok(Program { steps, constants, inputs: trace.inputs, plain_parameters, outputs }.finish())
}

/// Where the rows of every tensor lie: on the axes on which two recordings, for other numbers of rows, differ.
fn batch_axes(trace: &Trace, other: &Trace) -> Result<HashMap<TensorId, Batch>, GraphError> {
    if let Some(position) = difference(&trace.operations, &other.operations) {
        return Err(GraphError::ShapeDependent { position });
    }
    let axes = |a: &Shape, b: &Shape| {
        let differing: Vec<usize> = (0..a.num_dims()).filter(|&axis| a[axis] != b[axis]).collect();
        match differing[..] {
            [] => Batch::None,
            [0] => Batch::Leading,
            _ => Batch::Other,
        }
    };
    let mut batch = HashMap::new();
    for (a, b) in trace.operations.iter().zip(&other.operations) {
        for (a, b) in a.nodes().into_iter().zip(b.nodes()) {
            batch.insert(a.id, axes(&a.shape, &b.shape));
        }
    }
    Ok(batch)
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
            if rows && self.batch(out.id) == Batch::None {
                return Err(GraphError::MixesRows { operation: name(&operation), shape: out.shape.to_vec() });
            }
            if rows {
                self.rows.insert(out.id);
            }
        }
        self.run(operation);
        Ok(())
    }

    /// Notes a parameter that is arranged anew; false if the operand is none.
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

    fn origin(&self, id: TensorId) -> Origin {
        self.origins.get(&id).copied().unwrap_or(Origin::Plain)
    }

    pub(super) fn batch(&self, id: TensorId) -> Batch {
        self.batch.get(&id).copied().unwrap_or(Batch::None)
    }

    /// The parameter behind a tensor of which nothing has been computed yet.
    pub(super) fn view(&self, tensor: &TensorIr) -> Option<View> {
        match self.origin(tensor.id) {
            Origin::Parameter(view) => Some(view),
            _ => None,
        }
    }

    /// Whether rows of all members stand in the tensor, or what is the same for all.
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

    pub(super) fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub(super) fn run(&mut self, operation: OperationIr) {
        self.step(Step::Run(operation));
    }

    /// A tensor of our own.
    pub(super) fn fresh(&mut self, shape: impl Into<Vec<usize>>, dtype: DType) -> TensorIr {
        self.next_id -= 1;
        TensorIr::uninit(TensorId::new(self.next_id), Shape::from(shape.into()), dtype)
    }

    /// Writes `tensor` in the shape of `out`.
    pub(super) fn reshape_into(&mut self, tensor: &TensorIr, out: TensorIr) {
        let dtype = out.dtype;
        let op = BaseOperationIr::Reshape(ShapeOpIr { input: read(tensor), out });
        self.run(if dtype.is_float() {
            OperationIr::BaseFloat(op)
        } else if dtype.is_bool() {
            OperationIr::BaseBool(op)
        } else {
            OperationIr::BaseInt(op)
        });
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

    /// The shape of a recorded tensor with members on an axis of their own, in front.
    pub(super) fn lifted_shape(&self, operation: &OperationIr, tensor: &TensorIr) -> Result<Vec<usize>, GraphError> {
        let (shape, members) = (tensor.shape.to_vec(), self.members);
        match self.batch(tensor.id) {
            Batch::None => Ok([&[members], &shape[..]].concat()),
            Batch::Leading if shape[0].is_multiple_of(members) => {
                Ok([&[members, shape[0] / members], &shape[1..]].concat())
            }
            _ => Err(self.misplaced(operation, tensor)),
        }
    }

    /// A tensor with members on an axis of their own, in front: `[members, ...]`, or `[1, ...]` if it is the same for all.
    pub(super) fn lift(&mut self, operation: &OperationIr, tensor: &TensorIr) -> Result<TensorIr, GraphError> {
        match self.origin(tensor.id) {
            Origin::Plain if self.batch(tensor.id) == Batch::None => {
                Ok(self.reshape(tensor, [&[1], &tensor.shape[..]].concat()))
            }
            Origin::Plain => {
                let shape = self.lifted_shape(operation, tensor)?;
                Ok(self.reshape(tensor, shape))
            }
            Origin::Members => Ok(self.lifted[&tensor.id].clone()),
            Origin::Parameter(view) => self.values(view, tensor),
        }
    }

    /// As [`lift`](Self::lift), `[members, ...]` always.
    pub(super) fn lift_fully(&mut self, operation: &OperationIr, tensor: &TensorIr) -> Result<TensorIr, GraphError> {
        let lifted = self.lift(operation, tensor)?;
        let shape = self.lifted_shape(operation, tensor)?;
        if lifted.shape[..] == shape[..] {
            return Ok(lifted);
        }
        let out = self.fresh(shape, lifted.dtype);
        let op = BaseOperationIr::Expand(ShapeOpIr { input: read(&lifted), out: out.clone() });
        self.run(OperationIr::BaseFloat(op));
        Ok(out)
    }

    /// A vector, by members, to be broadcast along axis `axis` of recorded tensors of rank `rank`.
    pub(super) fn lift_vector(
        &mut self,
        operation: &OperationIr,
        vector: &TensorIr,
        rank: usize,
        axis: usize,
    ) -> Result<TensorIr, GraphError> {
        let lifted = self.lift(operation, vector)?;
        let mut shape = vec![1; rank + 1];
        shape[0] = lifted.shape[0];
        shape[axis + 1] = lifted.shape[1];
        Ok(self.reshape(&lifted, shape))
    }

    /// A parameter as every member sees it, arranged as it was.
    fn values(&mut self, view: View, tensor: &TensorIr) -> Result<TensorIr, GraphError> {
        if let Some(known) = self.lifted.get(&tensor.id) {
            return Ok(known.clone());
        }
        let shape = [&[self.members], &tensor.shape[..]].concat();
        let out = self.fresh(shape, tensor.dtype);
        if view.base {
            self.step(Step::Values { parameter: view.parameter, out: out.clone() });
        } else {
            let operation = self.views[&tensor.id].clone();
            let input = operation.inputs().next().expect("a view has an operand").clone();
            let input_lifted = self.lift(&operation, &input)?;
            let tensors = HashMap::from([(input.id, input_lifted), (tensor.id, out.clone())]);
            self.run_lifted(&operation, &tensors)?;
        }
        self.lifted.insert(tensor.id, out.clone());
        Ok(out)
    }

    fn run_lifted(&mut self, operation: &OperationIr, tensors: &HashMap<TensorId, TensorIr>) -> Result<(), GraphError> {
        let mut lifted = with_leading_axis(operation.clone()).ok_or_else(|| self.unsupported(operation))?;
        replace(&mut lifted, tensors);
        self.run(lifted);
        Ok(())
    }

    /// Hands a result over: rows of members folded again, or what every member has its own of.
    pub(super) fn land(&mut self, out: &TensorIr, lifted: TensorIr) {
        if self.batch(out.id) == Batch::Leading {
            self.reshape_into(&lifted, out.clone());
            self.rows.insert(out.id);
        } else {
            self.land_members(out, lifted);
        }
    }

    /// Notes that `out` was written as it stands.
    pub(super) fn land_rows(&mut self, out: &TensorIr) {
        self.rows.insert(out.id);
    }

    pub(super) fn land_members(&mut self, out: &TensorIr, lifted: TensorIr) {
        self.origins.insert(out.id, Origin::Members);
        self.lifted.insert(out.id, lifted);
    }

    /// Runs an operation with members on an axis of their own.
    fn lift_operation(&mut self, operation: &OperationIr) -> Result<(), GraphError> {
        let mut operation = operation.clone();
        if with_leading_axis(operation.clone()).is_none() {
            return Err(self.unsupported(&operation));
        }
        let inputs: Vec<TensorIr> = operation.inputs().cloned().collect();
        let outputs: Vec<TensorIr> = operation.outputs().cloned().collect();
        let together = matches!(operation, OperationIr::BaseFloat(BaseOperationIr::Cat(_)));
        let mut tensors = HashMap::new();
        for input in &inputs {
            let lifted =
                if together { self.lift_fully(&operation, input)? } else { self.lift(&operation, input)? };
            tensors.insert(input.id, lifted);
        }
        for out in &outputs {
            let shape = self.lifted_shape(&operation, out)?;
            let lifted = self.fresh(shape, out.dtype);
            tensors.insert(out.id, lifted);
        }
        if let OperationIr::BaseFloat(BaseOperationIr::RepeatDim(op)) = &mut operation
            && op.dim == 0
            && self.batch(op.out.id) == Batch::Leading
        {
            op.times /= self.members;
        }
        self.run_lifted(&operation, &tensors)?;
        for out in &outputs {
            self.land(out, tensors[&out.id].clone());
        }
        Ok(())
    }
}

/// A tensor as an operand.
pub(super) fn read(tensor: &TensorIr) -> TensorIr {
    TensorIr { status: TensorStatus::ReadOnly, ..tensor.clone() }
}
