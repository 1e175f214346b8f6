//! Whether a kernel can run, and with what: the capabilities that the device must have. Where it lacks one, the portable
//! operations run, on the device too.

use super::geometry::{BasisTile, EmbeddingTile, LinearTile, MIN_UNITS, MemberTile, max_units};
use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use cubecl::client::Client;
use cubecl::ir::HardwareProperties;
use cubecl::ir::features::{Plane, TypeUsage};
use std::sync::OnceLock;

/// Elements that a kernel can address: kernels index with 32 bits.
const ADDRESSABLE: usize = u32::MAX as usize;
/// Buffers that a kernel takes at most: those of the linear kernel, and two for its numbers.
const BINDINGS: u32 = 8;
/// Turns that the loops of one unit take at most, all together: Mesa's software driver ends every loop after so many, silently.
const LLVMPIPE_TURNS: usize = 65_535;
/// The same elsewhere: a unit that runs for seconds looks to drivers as if it hung.
const TURNS: usize = 1 << 24;
/// Environment variable that overrides the choice of reductions: `planes`, or `shared` for shared memory.
pub(crate) const REDUCTIONS: &str = "EGGROLL_DEVICE_REDUCTIONS";

/// Whether the kernels run on tensors like `like`, with outputs of `elements` elements.
pub(crate) fn has_kernels(like: &CubeTensor, elements: usize) -> bool {
    has_type(&like.client, like.dtype)
        && max_units(&like.client) >= 2 * MIN_UNITS
        && like.client.properties().hardware.max_bindings >= BINDINGS
        && (1..=ADDRESSABLE).contains(&elements)
}

/// Whether kernels can read, convert and write a type. They compute in f32, so it needs no arithmetic.
fn has_type(client: &Client, dtype: DType) -> bool {
    let usage = || client.properties().type_usage(dtype_to_elem_type(dtype));
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
        && usage().is_superset(TypeUsage::Buffer | TypeUsage::Conversion)
}

/// Whether a linear kernel of `depth` runs: as [`has_kernels`], the tile fits into shared memory, and no unit works too long.
pub(crate) fn has_linear_kernel(
    x: &CubeTensor,
    tile: &LinearTile,
    d_output: usize,
    depth: usize,
    output: usize,
) -> bool {
    let (elements, d_input) = (x.meta.shape().num_elements(), x.meta.shape()[1]);
    has_kernels(x, output.max(elements))
        && elements > 0
        && fits(&x.client, tile.shared_bytes())
        && ends(&x.client, tile.turns(d_input, d_output, depth))
}

/// Whether the kernel of an embedding of `rows` rows runs: as [`has_kernels`], it can read the indices, and no unit works too long.
pub(crate) fn has_embedding_kernel(
    weight: &CubeTensor,
    indices: &CubeTensor,
    tile: &EmbeddingTile,
    rows: usize,
    rank: usize,
) -> bool {
    let width = weight.meta.shape()[1];
    has_kernels(weight, (rows * width).max(weight.meta.shape().num_elements()))
        && rows * width > 0
        && has_index_type(weight, indices)
        && fits(&weight.client, tile.shared_bytes())
        && ends(&weight.client, tile.turns(width, rank))
}

/// Whether kernels can read indices of this type.
fn has_index_type(like: &CubeTensor, indices: &CubeTensor) -> bool {
    let usage = like.client.properties().type_usage(dtype_to_elem_type(indices.dtype));
    usage.is_superset(TypeUsage::Buffer | TypeUsage::Conversion)
}

/// Whether an estimate's kernel runs: as [`has_kernels`], a tile fits into shared memory, and no unit works too long on
/// `columns` columns of noise.
pub(crate) fn has_estimate_kernel(weights: &CubeTensor, elements: usize, shared_bytes: usize, columns: usize) -> bool {
    columns > 0
        && has_kernels(weights, elements)
        && fits(&weights.client, shared_bytes)
        && ends(&weights.client, columns)
}

/// Whether the cross-entropy kernel runs: as [`has_kernels`], and it can read the targets.
pub(crate) fn has_cross_entropy_kernel(logits: &CubeTensor, targets: &CubeTensor, tile: &MemberTile) -> bool {
    has_kernels(logits, logits.meta.shape().num_elements())
        && has_index_type(logits, targets)
        && fits(&logits.client, tile.shared_bytes())
        && ends(&logits.client, tile.turns(targets.meta.shape()[0], logits.meta.shape()[1]))
}

/// Whether the kernel for a basis of the rows of `x` runs: as [`has_kernels`], the overlaps fit into shared memory, and the one
/// cube does not work too long.
pub(crate) fn has_basis_kernel(x: &CubeTensor, tile: &BasisTile) -> bool {
    has_kernels(x, x.meta.shape().num_elements())
        && fits(&x.client, tile.shared_bytes())
        && ends(&x.client, tile.turns(x.meta.shape()[0], x.meta.shape()[1]))
}

fn fits(client: &Client, shared_bytes: usize) -> bool {
    shared_bytes <= client.properties().hardware.max_shared_memory_size
}

fn ends(client: &Client, turns: usize) -> bool {
    let software = client.properties().identity.name.contains("llvmpipe");
    turns < if software { LLVMPIPE_TURNS } else { TURNS }
}

/// Units of a plane (warp, subgroup) for reductions; 0 if they go through shared memory, because the device has no plane
/// operations or planes of no fixed size.
pub(crate) fn plane_size(client: &Client) -> usize {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| std::env::var(REDUCTIONS).ok());
    let properties = client.properties();
    let reported = properties.features.plane.contains(Plane::Ops);
    reductions(wanted.as_deref(), reported, fixed_plane_size(&properties.hardware))
}

/// Units of a plane if that is the same in every kernel, else 0.
pub(crate) fn fixed_plane_size(hardware: &HardwareProperties) -> usize {
    let size = hardware.plane_size_min;
    if size == hardware.plane_size_max && size > 1 && size.is_power_of_two() { size as usize } else { 0 }
}

/// The plane size to use, given what is wanted, whether the device reports plane operations, and its fixed size, if any.
fn reductions(wanted: Option<&str>, reported: bool, fixed: usize) -> usize {
    match wanted {
        None => usize::from(reported) * fixed,
        Some("planes") => fixed,
        Some("shared") => 0,
        Some(other) => panic!("{REDUCTIONS}={other}: either `planes` or `shared`"),
    }
}

#[cfg(test)]
mod tests {
    use super::reductions;

    #[test]
    fn planes_where_reported_and_of_fixed_size() {
        assert_eq!(reductions(None, true, 32), 32);
        assert_eq!(reductions(None, true, 0), 0);
        assert_eq!(reductions(None, false, 32), 0);
        assert_eq!(reductions(Some("planes"), false, 8), 8);
        assert_eq!(reductions(Some("shared"), true, 32), 0);
    }

    #[test]
    #[should_panic(expected = "EGGROLL_DEVICE_REDUCTIONS=warp: either `planes` or `shared`")]
    fn refuses_other_reductions() {
        reductions(Some("warp"), true, 32);
    }
}
