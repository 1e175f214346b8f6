//! Operands of kernels: what Burn's tensors of int8 values are to a launch.

use super::arithmetic::MaterializedNoiseLaunch;
use super::packed_int8::Form;
use crate::ops::integer::{IntegerMembers, IntegerNoisePrimitive};
use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::{cast, into_contiguous};
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::ElemType;

/// `tensor` of type `dtype`, row after row without gaps.
pub(crate) fn plain(tensor: CubeTensor, dtype: DType) -> CubeTensor {
    let tensor = if tensor.dtype == dtype { tensor } else { cast(tensor, dtype) };
    into_contiguous(tensor)
}

/// A matrix whose rows may have gaps between them: CUDA pads them.
#[derive(Clone)]
pub(crate) struct Operand {
    pub tensor: CubeTensor,
    pub shape: [usize; 2],
    /// Values from one row to the next.
    pub stride: usize,
    pub form: Form,
}

impl Operand {
    /// `tensor` of type `dtype`, read by words if all rows start with one. Only a matrix whose columns lie apart is copied.
    pub(crate) fn new(tensor: CubeTensor, dtype: DType) -> Self {
        let tensor = if tensor.dtype == dtype { tensor } else { cast(tensor, dtype) };
        let by_rows = !tensor.meta.is_tiled() && (tensor.meta.strides()[1] == 1 || tensor.meta.shape()[1] == 1);
        let tensor = if by_rows { tensor } else { into_contiguous(tensor) };
        let (shape, stride) = (tensor.meta.shape().dims(), tensor.meta.strides()[0]);
        let bytes = [tensor.handle.offset_start.unwrap_or(0), tensor.handle.size_in_used()];
        let words = dtype == DType::I8 && stride.is_multiple_of(4) && bytes.iter().all(|bytes| bytes.is_multiple_of(4));
        Self { tensor, shape, stride, form: if words { Form::Word } else { Form::Value } }
    }

    /// Read by words only if runs of values that start at `starts` in a row start with one.
    pub(crate) fn aligned(self, starts: &[usize]) -> Self {
        let aligned = starts.iter().all(|start| start.is_multiple_of(4));
        if aligned { self } else { Self { form: Form::Value, ..self } }
    }

    /// Read value by value.
    pub(crate) fn by_value(self) -> Self {
        Self { form: Form::Value, ..self }
    }

    /// The type of the elements that a kernel sees.
    pub(crate) fn elem(&self) -> ElemType {
        elem(self.tensor.dtype, self.form)
    }
}

/// The type of the elements that a kernel sees.
pub(crate) fn elem(dtype: DType, form: Form) -> ElemType {
    match form {
        Form::Value => dtype_to_elem_type(dtype),
        Form::Word => dtype_to_elem_type(DType::I32),
    }
}

/// Held noise as a launch needs it.
pub(crate) struct LaunchNoise {
    /// `None`: a plain operation.
    pub noise: Option<(Operand, IntegerMembers)>,
}

impl LaunchNoise {
    pub(crate) fn new(noise: IntegerNoisePrimitive<CubeBackend>, dtype: DType) -> Self {
        let noise = match noise {
            IntegerNoisePrimitive::None => None,
            IntegerNoisePrimitive::Held(noise, members) => Some((Operand::new(noise, dtype), members)),
        };
        Self { noise }
    }

    /// See [`Operand::aligned`].
    pub(crate) fn aligned(self, starts: &[usize]) -> Self {
        Self { noise: self.noise.map(|(noise, members)| (noise.aligned(starts), members)) }
    }

    /// See [`Operand::by_value`].
    pub(crate) fn by_value(self) -> Self {
        Self { noise: self.noise.map(|(noise, members)| (noise.by_value(), members)) }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.noise.is_some()
    }

    /// Columns of the factors of a matrix.
    pub(crate) fn rank(&self) -> usize {
        self.noise.as_ref().map_or(1, |(_, members)| members.rank)
    }

    /// Members that `otherwise` are as many.
    pub(crate) fn members(&self, otherwise: usize) -> usize {
        self.noise.as_ref().map_or(otherwise, |(_, members)| members.pairs.members())
    }

    pub(crate) fn sizes(&self) -> MaterializedNoiseLaunch {
        match &self.noise {
            None => MaterializedNoiseLaunch::new(0, 0, 0, 0, 0),
            Some((noise, IntegerMembers { skip, rank, shift, .. })) => {
                MaterializedNoiseLaunch::new(*skip, *rank, noise.shape[1], noise.stride, *shift as i32)
            }
        }
    }

    /// What is held, or `instead` for an argument that is not read.
    pub(crate) fn operand(self, instead: &Operand) -> Operand {
        self.noise.map_or_else(|| instead.clone(), |(noise, _)| noise)
    }
}
