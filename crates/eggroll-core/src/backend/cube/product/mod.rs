//! Products of matrices on the device, by CubeK's kernels.
//!
//! The kernel of a product follows from the device, the types and the size, never from timing. Two processes that tune by the
//! clock pick different kernels; a replayed or resumed run would then sum in another order. [`ways`] has the rule, and the order
//! of fallbacks if a kernel cannot run.

mod algorithm;
mod launch;
mod perturbed;

use algorithm::{MatmulAlgorithm, elems};
use burn::backend::ops::FloatTensorOps;
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use cubecl::client::Client;
use cubecl::prelude::Scalar;
use cubecl::tf32;
use cubek::matmul::multi_level::components::tile::TileMatmulKind;
use cubek::matmul::multi_level::definition::adjust_dtypes;
pub(crate) use perturbed::PerturbedParts;
use std::sync::OnceLock;

/// Environment variable for products of f32 on tensor cores that have TF32 but no f32 (NVIDIA). `tf32` rounds the factors to
/// TF32, 11 significant bits; `f32` does not use the tensor cores.
pub(crate) const F32_PRODUCTS: &str = "EGGROLL_DEVICE_F32";

/// Rows and columns of a weight that are worth two stages of shared memory.
const WIDE: usize = 512;
/// Rows of the first factor that are.
const TALL: usize = 64;

/// How exact a product of f32 has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// As [`F32_PRODUCTS`] says.
    Chosen,
    /// f32, whatever it says.
    F32,
}

/// The ways to try, best first. What needs tensor cores is left out where the device has none for the types. The last two ask for nothing
/// that a device may lack.
fn ways(tensor_cores: bool, [m, k, n]: [usize; 3]) -> &'static [MatmulAlgorithm] {
    match tensor_cores {
        true if m >= TALL && k >= WIDE && n >= WIDE => &[
            MatmulAlgorithm::TensorMaps,
            MatmulAlgorithm::TwoStages,
            MatmulAlgorithm::OneStage,
            MatmulAlgorithm::Units,
            MatmulAlgorithm::Naive,
        ],
        true => &[MatmulAlgorithm::OneStage, MatmulAlgorithm::Units, MatmulAlgorithm::Naive],
        false => &[MatmulAlgorithm::Units, MatmulAlgorithm::Naive],
    }
}

/// `lhs · rhs`, `[…, m, k] × […, k, n]`, summed in f32 and written as `out`.
pub(crate) fn product(lhs: CubeTensor, rhs: CubeTensor, out: DType, precision: Precision) -> CubeTensor {
    let sizes = sizes(&lhs, &rhs);
    if sizes.contains(&0) {
        return CubeBackend::float_cast(CubeBackend::float_matmul(lhs, rhs), out.into());
    }
    let ways = ways(has_tensor_cores(&lhs.client, lhs.dtype, out, precision), sizes);
    first_that_runs(&lhs, &rhs, out, ways).1
}

/// Tries the ways in turn; the one that ran, and the product.
fn first_that_runs(
    lhs: &CubeTensor,
    rhs: &CubeTensor,
    out: DType,
    ways: &[MatmulAlgorithm],
) -> (MatmulAlgorithm, CubeTensor) {
    let mut refusals = String::new();
    for way in ways {
        match launch::product(lhs.clone(), rhs.clone(), out, *way) {
            Ok(product) => return (*way, product),
            Err(refusal) => refusals += &format!("\n{way:?}: {refusal}"),
        }
    }
    panic!("no kernel for a product {:?} of {:?}:{refusals}", sizes(lhs, rhs), lhs.dtype)
}

/// The same with what a perturbed linear operation adds to it, or `None` if no kernel can write both.
pub(crate) fn perturbed_product(x: &CubeTensor, weight: &CubeTensor, parts: &PerturbedParts) -> Option<CubeTensor> {
    let tensor_cores = has_tensor_cores(&x.client, x.dtype, x.dtype, Precision::Chosen);
    let mut ways = ways(tensor_cores, sizes(x, weight)).iter();
    ways.find_map(|way| launch::perturbed(x.clone(), weight.clone(), parts, *way).ok())
}

/// `[m, k, n]`.
fn sizes(lhs: &CubeTensor, rhs: &CubeTensor) -> [usize; 3] {
    let (lhs, rhs) = (lhs.meta.shape(), rhs.meta.shape());
    let axes = lhs.num_dims();
    [lhs[axes - 2], lhs[axes - 1], rhs[axes - 1]]
}

/// Whether the device has tensor cores that may compute products of `dtype`.
pub(crate) fn has_tensor_cores(client: &Client, dtype: DType, out: DType, precision: Precision) -> bool {
    static CHOSEN: OnceLock<bool> = OnceLock::new();
    let rounds = *CHOSEN.get_or_init(|| may_round(std::env::var(F32_PRODUCTS).ok().as_deref()));
    let mut elems = elems(dtype, out);
    adjust_dtypes(client, &mut elems, true);
    let exact = elems.lhs_register != tf32::elem_type_native() || (rounds && precision == Precision::Chosen);
    let (lhs, rhs, sum) = (elems.lhs_register, elems.rhs_register, elems.acc_register);
    exact && !TileMatmulKind::Cmma.supported_sizes(client, lhs, rhs, sum).is_empty()
}

/// Whether products of f32 may round their factors, given what is wanted.
fn may_round(wanted: Option<&str>) -> bool {
    match wanted {
        None | Some("tf32") => true,
        Some("f32") => false,
        Some(other) => panic!("{F32_PRODUCTS}={other}: either `tf32` or `f32`"),
    }
}

#[cfg(test)]
mod tests;
