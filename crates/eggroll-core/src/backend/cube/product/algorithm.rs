//! The ways to compute a product, and its types.

use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use cubek::matmul::definition::{MatmulElems, MatmulGlobalElems};

/// A way to compute a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatmulAlgorithm {
    /// Tensor cores by single instructions, with tensor maps: some planes copy to shared memory while the others multiply. Of two-byte types,
    /// whose rows start at multiples of 16 bytes.
    TensorMaps,
    /// Tensor cores; one stage of shared memory is loaded while the other is multiplied.
    TwoStages,
    /// Tensor cores, one stage.
    OneStage,
    /// Multiply-adds, tiles in registers.
    Units,
    /// A unit for each element, no shared memory.
    Naive,
}

/// The types of a product of `dtype` that is written as `out`.
pub(crate) fn elems(dtype: DType, out: DType) -> MatmulElems {
    let factor = dtype_to_elem_type(dtype);
    MatmulElems::from_globals(&MatmulGlobalElems { lhs: factor, rhs: factor, out: dtype_to_elem_type(out) })
}
