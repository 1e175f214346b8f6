//! Facts of a device that kernels depend on.

use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use cubecl::client::Client;
use cubecl::ir::HardwareProperties;
use cubecl::ir::features::{Plane, TypeUsage};
use std::sync::OnceLock;

/// Turns that the loops of one unit take at most, all together: Mesa's software driver ends every loop after so many, silently.
const LLVMPIPE_TURNS: usize = 65_535;
/// The same elsewhere: a unit that runs for seconds looks to drivers as if it hung.
const TURNS: usize = 1 << 24;
/// Environment variable that overrides the choice of reductions: `planes`, or `shared` for shared memory.
pub(crate) const REDUCTIONS: &str = "EGGROLL_DEVICE_REDUCTIONS";

/// What a device has for one launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Units of a cube of one dimension.
    pub units: u32,
    /// Buffers of a kernel.
    pub bindings: u32,
    /// Bytes of shared memory of a cube.
    pub shared_bytes: usize,
    /// Turns of the loops of one unit, all together: fewer than this.
    pub turns: usize,
}

impl Limits {
    pub(crate) fn of(client: &Client) -> Self {
        let properties = client.properties();
        let software = properties.identity.name.contains("llvmpipe");
        Self {
            units: max_units(client),
            bindings: properties.hardware.max_bindings,
            shared_bytes: properties.hardware.max_shared_memory_size,
            turns: if software { LLVMPIPE_TURNS } else { TURNS },
        }
    }
}

/// Units that a cube of one dimension can have on the device.
pub(crate) fn max_units(client: &Client) -> u32 {
    let hardware = &client.properties().hardware;
    hardware.max_units_per_cube.min(hardware.max_cube_dim.0)
}

/// Whether kernels can read, convert and write a type. They compute in f32 or i32, so it needs no arithmetic.
pub(crate) fn has_type(client: &Client, dtype: DType) -> bool {
    let usage = client.properties().type_usage(dtype_to_elem_type(dtype));
    usage.is_superset(TypeUsage::Buffer | TypeUsage::Conversion)
}

/// Whether one instruction multiplies four int8 values by four others: by `__dp4a` of CUDA C++, and `OpSDot`, which Vulkan 1.3 has everywhere.
/// CubeCL's other compilers take the values of both words apart again for each product.
pub(crate) fn has_dot_products(client: &Client) -> bool {
    // Of CubeCL's two compilers for CUDA, feature `cuda` turns on that of CUDA C++.
    matches!(client.name(), "cuda" | "wgpu<spirv>")
}

/// Units of a plane (warp, subgroup) for reductions. 0 if they go through shared memory, because the device has no plane
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

/// [`DeviceName::of_tests`](crate::DeviceName::of_tests).
#[cfg(test)]
pub(crate) fn tested() -> cubecl::Device {
    match crate::DeviceName::of_tests().as_dispatch() {
        burn::backend::DispatchDevice::Cube(device) => device.clone(),
        other => panic!("{other:?} runs no kernels"),
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
