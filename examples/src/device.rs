//! The device of a command line: opened before any other work, and named as it names itself.

use crate::Failure;
use crate::guarded::guarded;
use burn::tensor::{DType, Device};
use eggroll::core::{DeviceName, hardware_name};

/// Parts of the names that drivers have which compute on the CPU: Mesa's, Google's, Microsoft's.
const SOFTWARE: [&str; 3] = ["llvmpipe", "SwiftShader", "Basic Render Driver"];

/// A device that has been opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The device.
    pub device: Device,
    /// What it runs on: a GPU as its driver names it, a CPU with its instruction set. Records carry it, because a machine may have
    /// other devices than the one that was taken.
    pub hardware: String,
}

impl Opened {
    /// Whether this is a GPU's interface without a GPU behind it.
    pub fn is_software(&self) -> bool {
        SOFTWARE.iter().any(|part| self.hardware.contains(part))
    }

    /// Whether the device computes in the type.
    ///
    /// # Errors
    ///
    /// A sentence that says on which device it does not, if it does not.
    pub fn has(&self, name: DeviceName, dtype: DType) -> Result<(), Failure> {
        if self.device.supports_dtype(dtype) {
            return Ok(());
        }
        let type_name = format!("{dtype:?}").to_lowercase();
        Err(format!("{name} has no {type_name} on {}: --dtype takes another type", self.hardware).into())
    }
}

/// Opens the device. Programs begin with this, so that a device that is not there costs no reading and no building.
///
/// # Errors
///
/// A sentence: a backend that this build does not have, a device that this machine does not have, or the driver's reason why it does
/// not open.
pub fn open(name: DeviceName) -> Result<Opened, Failure> {
    let device = name.device()?;
    // A driver may list a device and fail to open it, in a panic.
    let hardware =
        guarded(|| Ok(hardware_name(&device))).map_err(|reason| format!("{name} does not open: {reason}"))?;
    Ok(Opened { device, hardware })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_opens_or_says_in_a_sentence_why_not() {
        for name in DeviceName::BACKENDS.map(|name| name.parse::<DeviceName>().expect("a name")) {
            match open(name) {
                Ok(opened) => {
                    assert!(name.is_compiled() && !opened.hardware.is_empty());
                    assert!(!(name.is_on_host() && opened.is_software()));
                }
                Err(error) => assert!(!name.is_on_host() || !name.is_compiled(), "{error}"),
            }
        }
    }

    #[test]
    fn types_that_are_missing_are_named_with_the_device() {
        let flex: DeviceName = "flex".parse().expect("a name");
        let opened = open(flex).expect("the CPU is there");
        assert!(opened.has(flex, DType::F32).is_ok());
        // Canary: a type that nothing computes in.
        let error = opened.has(flex, DType::Bool(burn::tensor::BoolStore::U32)).unwrap_err().to_string();
        assert!(error.starts_with("flex has no bool") && error.contains(&opened.hardware), "{error}");
    }
}
