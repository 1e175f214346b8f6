//! Tensors on a recorder.

use burn::tensor::{DType, Shape};
use burn_cubecl::CubeDevice;
use burn_cubecl::ops::numeric::empty_device_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::client::Client;
use cubecl::features::TypeUsage;

/// Makes tensors that have no values.
pub(crate) struct Tensors {
    pub client: Client,
}

impl Tensors {
    pub(crate) fn empty<const D: usize>(&self, shape: [usize; D], dtype: DType) -> CubeTensor {
        empty_device_dtype(self.client.clone(), CubeDevice::Cuda(Default::default()), Shape::new(shape), dtype)
    }

    /// Whether users can have tensors of `dtype` on the device.
    pub(crate) fn supports(&self, dtype: DType) -> bool {
        let elem = burn::backend::cubecl::dtype_to_elem_type(dtype);
        self.client.properties().type_usage(elem).is_superset(TypeUsage::all())
    }
}
