//! Devices by name, as they stand in configurations and on command lines.

use burn::tensor::Device;
#[cfg(any(feature = "vulkan", feature = "metal", feature = "wgpu"))]
use burn::tensor::DeviceKind;
use eggroll_train::DistributionError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A device by the name of its backend and, of several discrete cards, its number: `flex`, `cuda:1`, `vulkan`.
///
/// # Example
///
/// ```
/// use eggroll_run::distribution::DeviceName;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let names: Vec<DeviceName> = serde_json::from_str(r#"["flex", "cuda:0", "cuda:1"]"#)?;
/// assert_eq!(names[2].to_string(), "cuda:1");
/// let device = names[0].open()?;
/// assert!("cuda:first".parse::<DeviceName>().is_err());
/// # let _ = device;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceName {
    backend: &'static str,
    number: Option<usize>,
}

/// Backends, and whether they have several devices.
const BACKENDS: [(&str, bool); 6] =
    [("flex", false), ("ndarray", false), ("cuda", true), ("vulkan", true), ("metal", true), ("wgpu", true)];

impl DeviceName {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Device`] if this is built without its backend.
    ///
    /// # Panics
    ///
    /// Panics if the backend has no such device.
    #[cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]
    pub fn open(&self) -> Result<Device, DistributionError> {
        #[cfg(any(feature = "vulkan", feature = "metal", feature = "wgpu"))]
        let kind = self.number.map_or(DeviceKind::DefaultDevice, DeviceKind::DiscreteGpu);
        match self.backend {
            #[cfg(feature = "flex")]
            "flex" => Ok(Device::flex()),
            #[cfg(feature = "ndarray")]
            "ndarray" => Ok(Device::ndarray()),
            #[cfg(feature = "cuda")]
            "cuda" => Ok(Device::cuda(self.number.unwrap_or(0))),
            #[cfg(feature = "vulkan")]
            "vulkan" => Ok(Device::vulkan(kind)),
            #[cfg(feature = "metal")]
            "metal" => Ok(Device::metal(kind)),
            #[cfg(feature = "wgpu")]
            "wgpu" => Ok(Device::wgpu(kind)),
            backend => Err(refuse(&self.to_string(), format!("this is built without feature {backend}"))),
        }
    }
}

fn refuse(name: &str, reason: String) -> DistributionError {
    DistributionError::Device { name: name.to_owned(), reason }
}

impl FromStr for DeviceName {
    type Err = DistributionError;

    fn from_str(name: &str) -> Result<Self, DistributionError> {
        let (backend, number) = name.split_once(':').map_or((name, None), |(name, number)| (name, Some(number)));
        let Some((backend, several)) = BACKENDS.into_iter().find(|(known, _)| *known == backend) else {
            return Err(refuse(name, format!("backends are {:?}", BACKENDS.map(|(name, _)| name))));
        };
        match number.map(str::parse) {
            None => Ok(Self { backend, number: None }),
            Some(Ok(number)) if several => Ok(Self { backend, number: Some(number) }),
            Some(_) if several => Err(refuse(name, "the number of a device is 0 or more".to_owned())),
            Some(_) => Err(refuse(name, format!("there is one {backend} only"))),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            None => f.write_str(self.backend),
            Some(number) => write!(f, "{}:{number}", self.backend),
        }
    }
}

impl TryFrom<String> for DeviceName {
    type Error = DistributionError;

    fn try_from(name: String) -> Result<Self, DistributionError> {
        name.parse()
    }
}

impl From<DeviceName> for String {
    fn from(name: DeviceName) -> Self {
        name.to_string()
    }
}
