//! Whether a kernel can run, of floats or of integers: what it asks of the device, and what the device has. Where it lacks
//! something, the portable operations run, on the device too.

use super::device::{Limits, has_type};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

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
    let floats = matches!(like.dtype, DType::F32 | DType::F16 | DType::BF16);
    let integers = matches!(like.dtype, DType::I8 | DType::I16 | DType::I32);
    (floats || integers) && has_type(&like.client, like.dtype) && demand.is_met_by(&Limits::of(&like.client))
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
}
