//! Kernels by hardware: `cpu` works on slices, `slices` adapts it to backends whose tensors are slices,
//! `flex` (Burn's CPU backend) and `ndarray` (its predecessor);
//! `cube` runs on devices through CubeCL.

#[cfg(any(feature = "flex", feature = "ndarray"))]
mod checks;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) mod cpu;
#[cfg(feature = "cube")]
pub(crate) mod cube;
#[cfg(feature = "flex")]
mod flex;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod integer_slices;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod integer_transformer_slices;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod memo;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod row_slices;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod slice_backend;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod slices;

use burn::backend::DispatchDevice;
use burn::tensor::Device;

/// Whether a device's tensors are in host memory: Flex and NdArray.
pub fn is_on_host(device: &Device) -> bool {
    let device = device.as_dispatch();
    let host = [
        #[cfg(feature = "flex")]
        matches!(device, DispatchDevice::Flex(_)),
        #[cfg(feature = "ndarray")]
        matches!(device, DispatchDevice::NdArray(_)),
    ];
    host.contains(&true)
}

/// Bytes of memory that the device has, if it is not the host's and says so.
pub(crate) fn device_memory(device: &Device) -> Option<u64> {
    match device.as_dispatch() {
        #[cfg(feature = "cube")]
        DispatchDevice::Cube(device) => device.client().properties().memory.max_memory(),
        _ => None,
    }
}
