//! The device that tests of kernels run on.

use burn::tensor::Device;
use eggroll_core::DeviceName;

/// The first device of this build that is none of the CPU; of those that `EGGROLL_CONFORMANCE` names, as in the conformance suite, if
/// it names one.
pub fn device() -> Device {
    let named = std::env::var("EGGROLL_CONFORMANCE").unwrap_or_default();
    let devices: Vec<DeviceName> = DeviceName::compiled().filter(|device| !device.is_on_host()).collect();
    let is_named = |device: &&DeviceName| named.split(',').any(|name| name == device.to_string());
    let chosen = devices.iter().find(is_named).or(devices.first()).expect("a backend of devices is compiled in");
    chosen.device().unwrap_or_else(|error| panic!("{error}"))
}
