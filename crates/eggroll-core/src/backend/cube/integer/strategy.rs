//! Whether a kernel can run: what the device must have. Where it has not, the portable operations run, on the device too.

use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

/// Elements that a kernel can address: kernels index with 32 bits.
const ADDRESSABLE: usize = u32::MAX as usize;

/// Whether the kernels run on tensors of the type of `like`, none of them above `elements` elements.
pub(crate) fn has_kernels(like: &CubeTensor, elements: usize) -> bool {
    matches!(like.dtype, DType::I8 | DType::I16 | DType::I32)
        && like.client.properties().hardware.max_units_per_cube >= 64
        && (1..=ADDRESSABLE).contains(&elements)
}

/// Whether a cube has `shared_bytes` of shared memory and `buffers` buffers.
pub(crate) fn fits(like: &CubeTensor, shared_bytes: usize, buffers: u32) -> bool {
    let hardware = &like.client.properties().hardware;
    shared_bytes <= hardware.max_shared_memory_size && buffers <= hardware.max_bindings
}
