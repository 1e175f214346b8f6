//! Properties of a device.

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

/// Bytes of the device's memory, if it is not the host's and the device reports it.
pub(crate) fn device_memory(device: &Device) -> Option<u64> {
    match device.as_dispatch() {
        #[cfg(feature = "cube")]
        DispatchDevice::Cube(device) => device.client().properties().memory.max_memory(),
        _ => None,
    }
}
