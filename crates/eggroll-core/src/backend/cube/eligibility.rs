//! Whether a kernel can run, of floats or of integers: what it asks of the device, and what the device has. Where it lacks
//! something, the portable operations run, on the device too.

use super::device::{Limits, has_type};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use cubecl::client::Client;

/// Elements that a kernel can address: kernels index with 32 bits.
const ADDRESSABLE: usize = u32::MAX as usize;
/// Buffers for the numbers of a kernel, in addition to its tensors.
const NUMBERS: u32 = 2;

/// What a launch asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Elements of the largest tensor.
    pub elements: usize,
    /// Tensors that the kernel takes.
    pub tensors: u32,
    /// Units of a cube.
    pub units: u32,
    /// Bytes of shared memory of a cube.
    pub shared_bytes: usize,
    /// Turns of a unit's loops, at most.
    pub turns: usize,
}

impl Demand {
    fn is_met_by(&self, limits: &Limits) -> bool {
        (1..=ADDRESSABLE).contains(&self.elements)
            && self.tensors + NUMBERS <= limits.bindings
            && self.units <= limits.units
            && self.shared_bytes <= limits.shared_bytes
            && self.turns < limits.turns
    }
}

/// Whether a kernel that computes in the type of `like` runs.
pub(crate) fn runs(like: &CubeTensor, demand: &Demand) -> bool {
    runs_in(&like.client, like.dtype, demand)
}

/// Whether a kernel that computes in `dtype` runs.
pub(crate) fn runs_in(client: &Client, dtype: DType, demand: &Demand) -> bool {
    let floats = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
    let integers = matches!(dtype, DType::I8 | DType::I16 | DType::I32);
    (floats || integers) && has_type(client, dtype) && demand.is_met_by(&Limits::of(client))
}

/// Elements of memory from the first of a tensor to its last: more than it has, where rows are padded or columns are left out.
pub(crate) fn extent(tensor: &CubeTensor) -> usize {
    extent_of(tensor.meta.shape(), tensor.meta.strides())
}

fn extent_of(shape: &[usize], strides: &[usize]) -> usize {
    1 + shape.iter().zip(strides).map(|(size, stride)| size.saturating_sub(1) * stride).sum::<usize>()
}

/// Whether kernels can read indices of the type of `indices`.
pub(crate) fn reads(indices: &CubeTensor) -> bool {
    has_type(&indices.client, indices.dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What WebGPU guarantees.
    const LIMITS: Limits = Limits { units: 256, bindings: 8, shared_bytes: 16_384, turns: 65_535 };
    /// All that these limits allow.
    const MOST: Demand = Demand { elements: ADDRESSABLE, tensors: 6, units: 256, shared_bytes: 16_384, turns: 65_534 };

    #[test]
    fn every_limit_is_asked_for() {
        assert!(MOST.is_met_by(&LIMITS));
        let beyond = [
            Demand { elements: ADDRESSABLE + 1, ..MOST },
            Demand { elements: 0, ..MOST },
            Demand { tensors: 7, ..MOST },
            Demand { units: 257, ..MOST },
            Demand { shared_bytes: 16_385, ..MOST },
            Demand { turns: 65_535, ..MOST },
        ];
        for demand in beyond {
            assert!(!demand.is_met_by(&LIMITS), "{demand:?}");
        }
    }

    /// Places behind 2³² are not addressed, in memory whose elements are fewer: of padded rows, and of columns of a wider matrix.
    #[test]
    fn memory_is_longer_than_its_elements() {
        let addressed = |elements| Demand { elements, ..MOST }.is_met_by(&LIMITS);
        let (rows, columns) = (1 << 25, 10);
        assert!(addressed(rows * columns));
        assert!(
            addressed(extent_of(&[rows, columns], &[128, 1])) && !addressed(extent_of(&[rows + 1, columns], &[128, 1]))
        );
        assert_eq!(extent_of(&[3, 4], &[1, 3]), 12);
    }
}
