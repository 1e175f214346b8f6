//! Tensors and operations with members on a separate axis.

use super::error::GraphError;
use super::operation::{of_kind, replace, with_leading_axis};
use super::program::ProgramStep;
use super::rewrite::{Origin, Rewrite, RowAxis, View, read};
use burn::backend::ir::{BaseOperationIr, OperationIr, ShapeOpIr, TensorIr};
use burn::tensor::TensorId;
use std::collections::HashMap;

impl Rewrite<'_> {
    /// The shape of a recorded tensor with members on a separate axis, in front.
    pub(super) fn lifted_shape(&self, operation: &OperationIr, tensor: &TensorIr) -> Result<Vec<usize>, GraphError> {
        let (shape, members) = (tensor.shape.to_vec(), self.members);
        match self.batch(tensor.id) {
            RowAxis::None => Ok([&[members], &shape[..]].concat()),
            RowAxis::Leading if shape[0].is_multiple_of(members) => {
                Ok([&[members, shape[0] / members], &shape[1..]].concat())
            }
            _ => Err(self.misplaced(operation, tensor)),
        }
    }

    /// A tensor with members on a separate axis, in front: `[members, ...]`, or `[1, ...]` if it is the same for all.
    pub(super) fn lift(&mut self, operation: &OperationIr, tensor: &TensorIr) -> Result<TensorIr, GraphError> {
        self.unfold(tensor);
        match self.origin(tensor.id) {
            Origin::Plain if self.batch(tensor.id) == RowAxis::None => {
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
        self.run(of_kind(out.dtype, op));
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
            self.step(ProgramStep::Values { parameter: view.parameter, out: out.clone() });
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

    /// Hands a result over: rows of members, folded again, or a value for every member.
    pub(super) fn land(&mut self, out: &TensorIr, lifted: TensorIr) {
        if self.batch(out.id) == RowAxis::Leading {
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

    /// Runs an operation with members on a separate axis.
    pub(super) fn lift_operation(&mut self, operation: &OperationIr) -> Result<(), GraphError> {
        let mut operation = operation.clone();
        if with_leading_axis(operation.clone()).is_none() {
            return Err(self.unsupported(&operation));
        }
        let inputs: Vec<TensorIr> = operation.inputs().cloned().collect();
        let outputs: Vec<TensorIr> = operation.outputs().cloned().collect();
        let together = matches!(operation, OperationIr::BaseFloat(BaseOperationIr::Cat(_)));
        let mut tensors = HashMap::new();
        for input in &inputs {
            let lifted = if together { self.lift_fully(&operation, input)? } else { self.lift(&operation, input)? };
            tensors.insert(input.id, lifted);
        }
        for out in &outputs {
            let shape = self.lifted_shape(&operation, out)?;
            let lifted = self.fresh(shape, out.dtype);
            tensors.insert(out.id, lifted);
        }
        if let OperationIr::BaseFloat(BaseOperationIr::RepeatDim(op)) = &mut operation
            && op.dim == 0
            && self.batch(op.out.id) == RowAxis::Leading
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
