//! Whether a kernel can run: what the device must have. Where it has not, the portable operations run, on the device too.

use super::geometry::{LinearTile, MIN_UNITS};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

/// Elements that a kernel can address: kernels index with 32 bits.
const ADDRESSABLE: usize = u32::MAX as usize;

/// Whether the kernels run on tensors like `like`, with outputs of `elements` elements.
pub(crate) fn has_kernels(like: &CubeTensor, elements: usize) -> bool {
    let hardware = &like.client.properties().hardware;
    matches!(like.dtype, DType::F32 | DType::F16 | DType::BF16)
        && hardware.max_units_per_cube >= 2 * MIN_UNITS
        && (1..=ADDRESSABLE).contains(&elements)
}

/// Whether a linear kernel runs: as [`has_kernels`], and the tile fits into shared memory.
pub(crate) fn has_linear_kernel(x: &CubeTensor, tile: &LinearTile, output: usize) -> bool {
    let largest = output.max(x.meta.shape().num_elements());
    has_kernels(x, largest)
        && x.meta.shape().num_elements() > 0
        && tile.shared_bytes() <= x.client.properties().hardware.max_shared_memory_size
}
