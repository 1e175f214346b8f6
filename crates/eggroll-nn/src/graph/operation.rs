//! Burn's operations in the rewrite: their names, and their forms with a leading axis of members.

use burn::backend::ir::{
    ActivationOperationIr, BaseOperationIr, BinaryOpIr, DimOpIr, FloatOperationIr, IntOperationIr, IrVisitorMut,
    NumericOperationIr, OperationIr, ReduceDimOpIr, TensorIr,
};
use burn::tensor::{DType, Slice, TensorId};
use std::collections::HashMap;

/// The name of an operation, as Burn's intermediate representation calls it.
pub(super) fn name(operation: &OperationIr) -> String {
    let text = match operation {
        OperationIr::BaseFloat(op) | OperationIr::BaseInt(op) | OperationIr::BaseBool(op) => format!("{op:?}"),
        OperationIr::NumericFloat(_, op) | OperationIr::NumericInt(_, op) => format!("{op:?}"),
        OperationIr::Bool(op) => format!("{op:?}"),
        OperationIr::Int(op) => format!("{op:?}"),
        OperationIr::Float(_, op) => format!("{op:?}"),
        OperationIr::Module(op) => format!("{op:?}"),
        OperationIr::Activation(op) => format!("{op:?}"),
        other => format!("{other:?}"),
    };
    text.split('(').next().unwrap_or_default().to_owned()
}

/// Whether the operation only arranges elements anew, so that a parameter stays recognizable behind it.
pub(super) fn is_view(operation: &OperationIr) -> bool {
    matches!(
        operation,
        OperationIr::BaseFloat(
            BaseOperationIr::Reshape(_)
                | BaseOperationIr::SwapDims(_)
                | BaseOperationIr::Permute(_)
                | BaseOperationIr::Cast(_)
        )
    )
}

/// Whether the operation, of one operand, treats rows on the leading axis one by one.
pub(super) fn is_row_wise(operation: &OperationIr) -> bool {
    match operation {
        OperationIr::BaseFloat(BaseOperationIr::SwapDims(op)) => op.dim1 > 0 && op.dim2 > 0,
        OperationIr::BaseFloat(op) | OperationIr::BaseInt(op) => {
            matches!(op, BaseOperationIr::Reshape(_) | BaseOperationIr::Cast(_))
        }
        OperationIr::NumericFloat(_, op) => matches!(
            op,
            NumericOperationIr::AddScalar(_)
                | NumericOperationIr::SubScalar(_)
                | NumericOperationIr::MulScalar(_)
                | NumericOperationIr::DivScalar(_)
        ),
        OperationIr::Int(IntOperationIr::IntoFloat(_)) => true,
        _ => false,
    }
}

/// An operation on tensors of the kind of `dtype`.
pub(super) fn of_kind(dtype: DType, operation: BaseOperationIr) -> OperationIr {
    if dtype.is_float() {
        OperationIr::BaseFloat(operation)
    } else if dtype.is_bool() {
        OperationIr::BaseBool(operation)
    } else {
        OperationIr::BaseInt(operation)
    }
}

/// Replaces the recorded tensors of an operation by their entries in `tensors`.
pub(super) fn replace(operation: &mut OperationIr, tensors: &HashMap<TensorId, TensorIr>) {
    struct Replace<'a>(&'a HashMap<TensorId, TensorIr>);
    impl IrVisitorMut for Replace<'_> {
        fn visit_tensor_mut(&mut self, tensor: &mut TensorIr) {
            if let Some(other) = self.0.get(&tensor.id) {
                let status = tensor.status;
                *tensor = TensorIr { status, ..other.clone() };
            }
        }
    }
    operation.visit_mut(&mut Replace(tensors));
}

/// The same operation for operands with one more leading axis, `None` if it has no such form. The caller changes the
/// shapes of its tensors.
pub(super) fn with_leading_axis(mut operation: OperationIr) -> Option<OperationIr> {
    let possible = match &mut operation {
        OperationIr::BaseFloat(op) | OperationIr::BaseInt(op) | OperationIr::BaseBool(op) => base(op),
        OperationIr::NumericFloat(_, op) => numeric(op),
        OperationIr::Float(_, op) => float(op),
        OperationIr::Activation(op) => activation(op),
        _ => false,
    };
    possible.then_some(operation)
}

fn base(operation: &mut BaseOperationIr) -> bool {
    use BaseOperationIr::*;
    match operation {
        Reshape(_) | Expand(_) | Cast(_) | Equal(_) | EqualElem(_) | NotEqual(_) | NotEqualElem(_) => {}
        SwapDims(op) => {
            op.dim1 += 1;
            op.dim2 += 1;
        }
        Permute(op) => op.axes = std::iter::once(0).chain(op.axes.iter().map(|axis| axis + 1)).collect(),
        Flip(op) => op.axes.iter_mut().for_each(|axis| *axis += 1),
        Slice(op) => op.ranges.insert(0, self::Slice::from(..)),
        RepeatDim(op) => op.dim += 1,
        Cat(op) => op.dim += 1,
        _ => return false,
    }
    true
}

fn numeric(operation: &mut NumericOperationIr) -> bool {
    use NumericOperationIr::*;
    match operation {
        Add(_) | AddScalar(_) | Sub(_) | SubScalar(_) | Div(_) | DivScalar(_) | Rem(_) | RemScalar(_) | Mul(_)
        | MulScalar(_) | Powi(_) | PowiScalar(_) | Greater(_) | GreaterElem(_) | GreaterEqual(_)
        | GreaterEqualElem(_) | Lower(_) | LowerElem(_) | LowerEqual(_) | LowerEqualElem(_) | Abs(_) | Neg(_)
        | Sign(_) | Clamp(_) | ClampMin(_) | ClampMax(_) => {}
        MeanDim(op) | SumDim(op) | ProdDim(op) | MaxDim(op) | MinDim(op) | MaxAbsDim(op) => reduce(op),
        _ => return false,
    }
    true
}

fn reduce(operation: &mut ReduceDimOpIr) {
    operation.axis += 1;
}

fn float(operation: &FloatOperationIr) -> bool {
    use FloatOperationIr::*;
    !matches!(operation, Cross(_) | Random(_) | Quantize(_) | Dequantize(_) | GridSample2d(_))
}

fn activation(operation: &mut ActivationOperationIr) -> bool {
    use ActivationOperationIr::*;
    match operation {
        Relu(_) | LeakyRelu(_) | PRelu(_) | Gelu(_) | Sigmoid(_) | HardSigmoid(_) | LogSigmoid(_) => true,
        Softmax(op) | LogSoftmax(op) | Softmin(op) => {
            let DimOpIr { axis, .. } = op;
            *axis += 1;
            true
        }
        _ => false,
    }
}

/// The operands of a product of matrices.
pub(super) fn as_matmul(operation: &OperationIr) -> Option<(&TensorIr, &TensorIr, &TensorIr)> {
    match operation {
        OperationIr::Float(_, FloatOperationIr::Matmul(op)) => Some((&op.lhs, &op.rhs, &op.out)),
        _ => None,
    }
}

/// `lhs + rhs`, `lhs · rhs` or another operation on two floats, into `out`.
pub(super) fn binary(
    kind: fn(BinaryOpIr) -> NumericOperationIr,
    lhs: &TensorIr,
    rhs: &TensorIr,
    out: &TensorIr,
) -> OperationIr {
    let op = BinaryOpIr { lhs: lhs.clone(), rhs: rhs.clone(), out: out.clone() };
    OperationIr::NumericFloat(out.dtype, kind(op))
}
