//! Uses of parameters that have a special form: products, embeddings and norms; convolutions are in `convolution.rs`.

use super::error::GraphError;
use super::operation::{as_matmul, binary};
use super::program::ProgramStep;
use super::rewrite::{Rewrite, RowAxis, read};
use burn::backend::ir::{
    BaseOperationIr, BatchNormOpIr, FloatOperationIr, FullOpIr, LayerNormOpIr, MatmulOpIr, ModuleOperationIr,
    NumericOperationIr, OperationIr, ScalarIr, ScalarOpIr, TensorIr, UnaryOpIr,
};
use eggroll_core::ops::InputRows;

/// The operands of a linear operation.
struct LinearOperands<'a> {
    x: &'a TensorIr,
    weight: &'a TensorIr,
    bias: Option<&'a TensorIr>,
    out: &'a TensorIr,
}

impl Rewrite<'_> {
    /// Rewrites an operation that has a special form; `None` if it has none.
    pub(super) fn module(&mut self, operation: &OperationIr) -> Option<Result<(), GraphError>> {
        // A product of other than two axes on the right.
        if let Some((x, weight, out)) = as_matmul(operation) {
            return Some(self.linear(operation, &LinearOperands { x, weight, bias: None, out }));
        }
        Some(match operation {
            OperationIr::Module(ModuleOperationIr::Linear(op)) => {
                let linear = LinearOperands { x: &op.x, weight: &op.weight, bias: op.bias.as_ref(), out: &op.out };
                self.linear(operation, &linear)
            }
            OperationIr::Module(ModuleOperationIr::Embedding(op)) => {
                self.embedding(operation, &op.weights, &op.indices, &op.out)
            }
            OperationIr::BaseFloat(BaseOperationIr::Select(op)) if op.dim == 0 => {
                self.embedding(operation, &op.tensor, &op.indices, &op.out)
            }
            OperationIr::Module(ModuleOperationIr::LayerNorm(op)) => self.layer_norm(operation, op),
            OperationIr::Module(ModuleOperationIr::BatchNorm(op)) => self.batch_norm(operation, op),
            OperationIr::Module(module) => return self.convolution(operation, module),
            _ => return None,
        })
    }

    fn linear(&mut self, operation: &OperationIr, linear: &LinearOperands) -> Result<(), GraphError> {
        let &LinearOperands { x, weight, bias, out } = linear;
        let direct = self.view(weight).filter(|view| view.matrix == Some(false));
        let Some(view) = direct else {
            return self.explicit_linear(operation, linear);
        };
        let fused = bias.and_then(|bias| self.view(bias)).filter(|view| view.base).map(|view| view.parameter);
        let rest = bias.filter(|_| fused.is_none());
        let step = |x: &TensorIr, input, out: &TensorIr| ProgramStep::Linear {
            x: read(x),
            input,
            weight: view.parameter,
            bias: fused,
            out: out.clone(),
        };
        if self.is_plain(x) && self.batch(x.id) == RowAxis::Leading && rest.is_none() {
            self.lifted_shape(operation, x)?;
            match self.once(x) {
                Some(once) => self.step(step(&once, InputRows::Shared, out)),
                None => self.step(step(x, InputRows::PerMember, out)),
            }
            self.land_rows(out);
            return Ok(());
        }
        let shape = self.lifted_shape(operation, out)?;
        let y = self.fresh(shape, out.dtype);
        if self.is_plain(x) && self.batch(x.id) == RowAxis::None {
            self.step(step(x, InputRows::Shared, &y));
        } else {
            let x = self.lift(operation, x)?;
            self.step(step(&x, InputRows::PerMember, &y));
        }
        let y = match rest {
            None => y,
            Some(bias) => {
                let rank = out.shape.num_dims();
                let bias = self.lift_vector(operation, bias, rank, rank - 1)?;
                self.arithmetic(NumericOperationIr::Add, &y, &bias)
            }
        };
        self.land(out, y);
        Ok(())
    }

    /// A product with a weight that every member has its own of, `[members, d_input, d_output]`: for weights that were computed,
    /// or transposed.
    fn explicit_linear(&mut self, operation: &OperationIr, linear: &LinearOperands) -> Result<(), GraphError> {
        let &LinearOperands { x, weight, bias, out } = linear;
        let rank = out.shape.num_dims();
        let x = self.lift(operation, x)?;
        let weight = self.lift(operation, weight)?;
        let missing = (rank + 1).saturating_sub(weight.shape.num_dims());
        let weight_shape = [&weight.shape[..1], &vec![1; missing], &weight.shape[1..]].concat();
        let weight = self.reshape(&weight, weight_shape);
        let shape = self.lifted_shape(operation, out)?;
        let y = self.fresh(shape, out.dtype);
        let op = MatmulOpIr { lhs: read(&x), rhs: read(&weight), out: y.clone() };
        self.run(OperationIr::Float(out.dtype, FloatOperationIr::Matmul(op)));
        let y = match bias {
            None => y,
            Some(bias) => {
                let bias = self.lift_vector(operation, bias, rank, rank - 1)?;
                self.arithmetic(NumericOperationIr::Add, &y, &bias)
            }
        };
        self.land(out, y);
        Ok(())
    }

    fn embedding(
        &mut self,
        operation: &OperationIr,
        weight: &TensorIr,
        indices: &TensorIr,
        out: &TensorIr,
    ) -> Result<(), GraphError> {
        let Some(view) = self.view(weight).filter(|view| view.base && view.matrix.is_some()) else {
            return Err(self.unsupported(operation));
        };
        let step = |indices: &TensorIr, input, out: &TensorIr| ProgramStep::Embedding {
            indices: read(indices),
            input,
            weight: view.parameter,
            out: out.clone(),
        };
        match self.batch(indices.id) {
            RowAxis::Leading => {
                self.lifted_shape(operation, indices)?;
                match self.once(indices) {
                    Some(once) => self.step(step(&once, InputRows::Shared, out)),
                    None => self.step(step(indices, InputRows::PerMember, out)),
                }
                self.land_rows(out);
            }
            RowAxis::None => {
                let shape = self.lifted_shape(operation, out)?;
                let y = self.fresh(shape, out.dtype);
                self.step(step(indices, InputRows::Shared, &y));
                self.land_members(out, y);
            }
            RowAxis::Other => return Err(self.misplaced(operation, indices)),
        }
        Ok(())
    }

    /// Burn's normalization with gains of 1, then every member's gain and bias.
    fn layer_norm(&mut self, operation: &OperationIr, op: &LayerNormOpIr) -> Result<(), GraphError> {
        let (rank, dtype) = (op.out.shape.num_dims(), op.out.dtype);
        let input = self.lift(operation, &op.input)?;
        let ones = self.fresh(vec![op.input.shape[rank - 1]], dtype);
        let full = FullOpIr { out: ones.clone(), value: ScalarIr::Float(1.0) };
        self.run(OperationIr::NumericFloat(dtype, NumericOperationIr::Full(full)));
        let normal = self.fresh(input.shape.to_vec(), dtype);
        self.run(OperationIr::Module(ModuleOperationIr::LayerNorm(LayerNormOpIr {
            input: read(&input),
            gamma: read(&ones),
            beta: None,
            epsilon: op.epsilon,
            out: normal.clone(),
        })));
        let gain = self.lift_vector(operation, &op.gamma, rank, rank - 1)?;
        let mut y = self.arithmetic(NumericOperationIr::Mul, &normal, &gain);
        if let Some(beta) = &op.beta {
            let beta = self.lift_vector(operation, beta, rank, rank - 1)?;
            y = self.arithmetic(NumericOperationIr::Add, &y, &beta);
        }
        self.land(&op.out, y);
        Ok(())
    }

    /// `(x − mean)/√(variance + ε)·gain + bias`, each by member if it is a parameter.
    fn batch_norm(&mut self, operation: &OperationIr, op: &BatchNormOpIr) -> Result<(), GraphError> {
        let (rank, dtype) = (op.out.shape.num_dims(), op.out.dtype);
        let x = self.lift(operation, &op.x)?;
        let mut vector = |vector: &TensorIr| self.lift_vector(operation, vector, rank, 1);
        let (gain, bias, mean, variance) =
            (vector(&op.gamma)?, vector(&op.beta)?, vector(&op.mean)?, vector(&op.variance)?);
        let shifted = self.fresh(variance.shape.to_vec(), dtype);
        let add = ScalarOpIr { lhs: read(&variance), rhs: op.epsilon, out: shifted.clone() };
        self.run(OperationIr::NumericFloat(dtype, NumericOperationIr::AddScalar(add)));
        let deviation = self.fresh(variance.shape.to_vec(), dtype);
        let root = UnaryOpIr { input: read(&shifted), out: deviation.clone() };
        self.run(OperationIr::Float(dtype, FloatOperationIr::Sqrt(root)));
        let factor = self.arithmetic(NumericOperationIr::Div, &gain, &deviation);
        let centered = self.arithmetic(NumericOperationIr::Sub, &x, &mean);
        let scaled = self.arithmetic(NumericOperationIr::Mul, &centered, &factor);
        let y = self.arithmetic(NumericOperationIr::Add, &scaled, &bias);
        self.land(&op.out, y);
        Ok(())
    }

    /// `lhs` and `rhs` joined element by element, broadcast.
    pub(super) fn arithmetic(
        &mut self,
        kind: fn(burn::backend::ir::BinaryOpIr) -> NumericOperationIr,
        lhs: &TensorIr,
        rhs: &TensorIr,
    ) -> TensorIr {
        let shape: Vec<usize> = lhs.shape.iter().zip(rhs.shape.iter()).map(|(a, b)| *a.max(b)).collect();
        let out = self.fresh(shape, lhs.dtype);
        self.run(binary(kind, &read(lhs), &read(rhs), &out));
        out
    }
}
