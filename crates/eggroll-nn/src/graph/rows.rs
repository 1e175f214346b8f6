//! Rows for the members of the safety net, made of an example's: other rows for every member, so that no member's can be taken for another's.

use burn::backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
use burn::backend::{Dispatch, DispatchTensor, Scalar, TensorMetadata};
use burn::tensor::{Bool, DType, Device, Int, Shape, Slice, Tensor, TensorData};

/// Members of the population.
pub(super) const MEMBERS: usize = 4;

/// The inputs of every member: the example's rows in another order, the same for all inputs, and floats scaled down, as rows may be equal. An example
/// of zeros, which would hide weights, has numbers between 0 and 1 instead.
pub(super) fn of_members(example: Vec<DispatchTensor>) -> Vec<Vec<DispatchTensor>> {
    let is_blank =
        example.iter().all(|tensor| tensor.dtype().is_float() && values(tensor.clone()).iter().all(|x| *x == 0.0));
    let example: Vec<DispatchTensor> = if is_blank { example.into_iter().map(filled).collect() } else { example };
    let fewest = example.iter().map(rows).min().unwrap_or(0).max(1);
    let of_member = |member: usize| {
        let of_input = |tensor: &DispatchTensor| {
            // An input may have several rows for a row of another.
            let rolled = rolled(tensor.clone(), member * (rows(tensor) / fewest));
            let scale = 1.0 - member as f64 / 10.0;
            match rolled.dtype().is_float() {
                true => Dispatch::float_mul_scalar(rolled, Scalar::Float(scale)),
                false => rolled,
            }
        };
        example.iter().map(of_input).collect()
    };
    (0..MEMBERS).map(of_member).collect()
}

/// Every input with the rows of all members.
pub(super) fn folded(members: &[Vec<DispatchTensor>]) -> Vec<DispatchTensor> {
    let inputs = 0..members.first().map_or(0, Vec::len);
    inputs.map(|input| joined(members.iter().map(|of_member| of_member[input].clone()).collect())).collect()
}

/// The values of a tensor, in their order.
pub(super) fn values(tensor: DispatchTensor) -> Vec<f64> {
    let (dtype, shape) = (tensor.dtype(), Shape::new([tensor.shape().num_elements()]));
    let data: TensorData = if dtype.is_float() {
        Tensor::<1>::from_dispatch(Dispatch::float_reshape(tensor, shape)).cast(DType::F32).into_data()
    } else if dtype.is_bool() {
        Tensor::<1, Bool>::from_dispatch(Dispatch::bool_reshape(tensor, shape)).int().into_data()
    } else {
        Tensor::<1, Int>::from_dispatch(Dispatch::int_reshape(tensor, shape)).into_data()
    };
    data.iter::<f64>().collect()
}

fn rows(tensor: &DispatchTensor) -> usize {
    tensor.shape().to_vec().first().copied().unwrap_or(0)
}

/// Numbers between 0 and 1 in place of a tensor's.
fn filled(tensor: DispatchTensor) -> DispatchTensor {
    let (shape, dtype, device) = (tensor.shape(), tensor.dtype(), Device::new(tensor.device()));
    let numbers = (0..shape.num_elements()).map(|at| (0.5 + 0.5 * (at as f32 * 7.3).sin()).clamp(0.01, 0.99));
    let flat = Tensor::<1>::from_data(TensorData::new(numbers.collect(), [shape.num_elements()]), (&device, dtype));
    Dispatch::float_reshape(flat.into_dispatch(), shape)
}

/// With the first `shift` rows at the end.
fn rolled(tensor: DispatchTensor, shift: usize) -> DispatchTensor {
    let rows = rows(&tensor);
    let shift = shift % rows.max(1);
    if shift == 0 {
        return tensor;
    }
    let part = |from: usize, to: usize| {
        let mut slices = vec![Slice::full(); tensor.shape().num_dims()];
        slices[0] = Slice::from(from..to);
        if tensor.dtype().is_float() {
            Dispatch::float_slice(tensor.clone(), &slices)
        } else if tensor.dtype().is_bool() {
            Dispatch::bool_slice(tensor.clone(), &slices)
        } else {
            Dispatch::int_slice(tensor.clone(), &slices)
        }
    };
    joined(vec![part(shift, rows), part(0, shift)])
}

/// Tensors of one type along the leading axis.
fn joined(tensors: Vec<DispatchTensor>) -> DispatchTensor {
    let dtype = tensors[0].dtype();
    if dtype.is_float() {
        Dispatch::float_cat(tensors, 0)
    } else if dtype.is_bool() {
        Dispatch::bool_cat(tensors, 0)
    } else {
        Dispatch::int_cat(tensors, 0)
    }
}
