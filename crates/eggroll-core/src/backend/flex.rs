//! Burn's CPU backend on the slice kernels.

use super::memo::Address;
use super::slice_backend::SliceBackend;
use burn::backend::Flex;
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::ops::IntTensorOps;
use burn::tensor::{Bytes, DType, IntDType, Shape, TensorData};

impl SliceBackend for Flex {
    fn contiguous(tensor: FlexTensor) -> FlexTensor {
        tensor.to_contiguous()
    }

    #[track_caller]
    fn slice(tensor: &FlexTensor) -> &[f32] {
        tensor.as_slice().expect("the tensor was made contiguous")
    }

    fn address(tensor: &FlexTensor) -> Address {
        let layout = tensor.layout();
        let start = tensor.storage::<f32>()[layout.start_offset()..].as_ptr();
        Address { start, shape: layout.shape().to_vec(), strides: layout.strides().to_vec() }
    }

    fn from_vec(values: Vec<f32>, shape: Shape) -> FlexTensor {
        FlexTensor::new(Bytes::from_elems(values), Layout::contiguous(shape), DType::F32)
    }

    fn int_data(tensor: FlexTensor) -> TensorData {
        tensor.into_data()
    }

    fn int8(tensor: FlexTensor) -> FlexTensor {
        let tensor = if tensor.dtype() == DType::I8 { tensor } else { Self::int_cast(tensor, IntDType::I8) };
        tensor.to_contiguous()
    }

    #[track_caller]
    fn int8_slice(tensor: &FlexTensor) -> &[i8] {
        tensor.as_slice().expect("the tensor was made contiguous")
    }

    fn from_int8(values: Vec<i8>, shape: Shape) -> FlexTensor {
        FlexTensor::new(Bytes::from_elems(values), Layout::contiguous(shape), DType::I8)
    }
}
