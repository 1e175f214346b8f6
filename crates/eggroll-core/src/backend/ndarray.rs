//! Burn's former CPU backend on the slice kernels.

use super::memo::Address;
use super::slice_backend::SliceBackend;
use burn::backend::NdArray;
use burn::backend::ndarray::NdArrayTensor;
use burn::backend::ops::{FloatTensorOps, IntTensorOps};
use burn::tensor::{IntDType, Shape, TensorData, try_read_sync};

impl SliceBackend for NdArray {
    fn contiguous(tensor: NdArrayTensor) -> NdArrayTensor {
        match &tensor {
            NdArrayTensor::F32(storage) if storage.view().is_standard_layout() => tensor,
            NdArrayTensor::F32(storage) => {
                let view = storage.view();
                let shape = Shape::from(view.shape().to_vec());
                Self::from_vec(view.iter().copied().collect(), shape)
            }
            _ => tensor,
        }
    }

    #[track_caller]
    fn slice(tensor: &NdArrayTensor) -> &[f32] {
        match tensor {
            NdArrayTensor::F32(storage) => storage.view().to_slice().expect("the tensor was made contiguous"),
            _ => panic!("a tensor of another type than f32 has no f32 slice"),
        }
    }

    #[track_caller]
    fn address(tensor: &NdArrayTensor) -> Address {
        match tensor {
            NdArrayTensor::F32(storage) => {
                let view = storage.view();
                Address { start: view.as_ptr(), shape: view.shape().to_vec(), strides: view.strides().to_vec() }
            }
            _ => panic!("a tensor of another type than f32 has no f32 elements"),
        }
    }

    fn from_vec(values: Vec<f32>, shape: Shape) -> NdArrayTensor {
        Self::float_from_data(TensorData::new(values, shape), &Default::default())
    }

    fn int_data(tensor: NdArrayTensor) -> TensorData {
        try_read_sync(Self::int_into_data(tensor)).and_then(Result::ok).expect("a tensor in host memory")
    }

    fn int8(tensor: NdArrayTensor) -> NdArrayTensor {
        match &tensor {
            NdArrayTensor::I8(storage) if storage.view().is_standard_layout() => tensor,
            NdArrayTensor::I8(storage) => {
                let view = storage.view();
                let shape = Shape::from(view.shape().to_vec());
                Self::from_int8(view.iter().copied().collect(), shape)
            }
            _ => Self::int8(Self::int_cast(tensor, IntDType::I8)),
        }
    }

    #[track_caller]
    fn int8_slice(tensor: &NdArrayTensor) -> &[i8] {
        match tensor {
            NdArrayTensor::I8(storage) => storage.view().to_slice().expect("the tensor was made contiguous"),
            _ => panic!("a tensor of another type than i8 has no i8 slice"),
        }
    }

    fn from_int8(values: Vec<i8>, shape: Shape) -> NdArrayTensor {
        Self::int_from_data(TensorData::new(values, shape), &Default::default())
    }
}
