//! Devices by name, as they stand in configurations and on command lines.

use burn::tensor::Device;
#[cfg(any(feature = "vulkan", feature = "metal", feature = "wgpu"))]
use burn::tensor::DeviceKind;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A device by the name of its backend and, of several discrete cards, its number: `flex`, `cuda:1`, `vulkan`.
///
/// | name | backend | feature |
/// |---|---|---|
/// | `flex` | Burn's CPU backend; the default | `flex` |
/// | `ndarray` | Burn's former CPU backend | `ndarray` |
/// | `cuda`, `cuda:1` | NVIDIA's CUDA | `cuda` |
/// | `vulkan`, `vulkan:1` | Vulkan through SPIR-V | `vulkan` |
/// | `metal`, `metal:1` | Apple's Metal | `metal` |
/// | `wgpu`, `wgpu:1` | WebGPU | `wgpu` |
///
/// Every name can be read in every build; [`device`](Self::device) needs the feature. On command lines the type parses itself
/// ([`FromStr`]); [`BACKENDS`](Self::BACKENDS) are the names to offer.
///
/// # Example
///
/// ```
/// use eggroll_core::DeviceName;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let names: Vec<DeviceName> = serde_json::from_str(r#"["flex", "cuda:0", "cuda:1"]"#)?;
/// assert_eq!(names[2].to_string(), "cuda:1");
/// let device = names[0].device()?;
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

/// A device name that cannot be read, or whose backend this build does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceNameError {
    /// No backend of that name.
    #[error("there is no backend \"{0}\": expected one of {names}", names = DeviceName::BACKENDS.join(", "))]
    Unknown(String),
    /// The number of a card is no number.
    #[error("the device \"{0}\" has no number from 0 on behind the colon")]
    Number(String),
    /// A number for a backend of one device.
    #[error("the device \"{name}\" has a number, but {backend} is one device: expected \"{backend}\"")]
    OneDevice {
        /// The name as given.
        name: String,
        /// Its backend.
        backend: &'static str,
    },
    /// A backend that was not compiled.
    #[error("this build has no backend {0}: build with the feature `{0}`")]
    NotCompiled(&'static str),
}

/// Backends of several devices.
const SEVERAL: [&str; 4] = ["cuda", "vulkan", "metal", "wgpu"];

impl DeviceName {
    /// The names of all backends.
    pub const BACKENDS: [&str; 6] = ["flex", "ndarray", "cuda", "vulkan", "metal", "wgpu"];

    /// The default devices of all backends that this build has.
    pub fn compiled() -> impl Iterator<Item = Self> {
        Self::BACKENDS.into_iter().map(|backend| Self { backend, number: None }).filter(Self::is_compiled)
    }

    /// Whether this build has the backend.
    pub fn is_compiled(&self) -> bool {
        match self.backend {
            "flex" => cfg!(feature = "flex"),
            "ndarray" => cfg!(feature = "ndarray"),
            "cuda" => cfg!(feature = "cuda"),
            "vulkan" => cfg!(feature = "vulkan"),
            "metal" => cfg!(feature = "metal"),
            _ => cfg!(feature = "wgpu"),
        }
    }

    /// Whether tensors are in host memory, so that every core can work on members of its own.
    pub fn is_on_host(&self) -> bool {
        !SEVERAL.contains(&self.backend)
    }

    /// Opens the device.
    ///
    /// # Errors
    ///
    /// [`DeviceNameError::NotCompiled`] if this build does not have the backend.
    ///
    /// # Panics
    ///
    /// Panics if the machine has no such device.
    #[cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]
    pub fn device(&self) -> Result<Device, DeviceNameError> {
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
            backend => Err(DeviceNameError::NotCompiled(backend)),
        }
    }
}

/// `flex`
impl Default for DeviceName {
    fn default() -> Self {
        Self { backend: "flex", number: None }
    }
}

impl FromStr for DeviceName {
    type Err = DeviceNameError;

    fn from_str(name: &str) -> Result<Self, DeviceNameError> {
        let (backend, number) = name.split_once(':').map_or((name, None), |(name, number)| (name, Some(number)));
        let Some(backend) = Self::BACKENDS.into_iter().find(|known| *known == backend) else {
            return Err(DeviceNameError::Unknown(backend.to_owned()));
        };
        match number.map(str::parse) {
            None => Ok(Self { backend, number: None }),
            Some(_) if !SEVERAL.contains(&backend) => {
                Err(DeviceNameError::OneDevice { name: name.to_owned(), backend })
            }
            Some(Ok(number)) => Ok(Self { backend, number: Some(number) }),
            Some(Err(_)) => Err(DeviceNameError::Number(name.to_owned())),
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
    type Error = DeviceNameError;

    fn try_from(name: String) -> Result<Self, DeviceNameError> {
        name.parse()
    }
}

impl From<DeviceName> for String {
    fn from(name: DeviceName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let numbered = SEVERAL.map(|backend| format!("{backend}:3"));
        for name in DeviceName::BACKENDS.into_iter().chain(numbered.iter().map(String::as_str)) {
            let device: DeviceName = name.parse().expect("a name");
            assert_eq!(device.to_string(), name);
            let json = serde_json::to_string(&device).expect("writes");
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<DeviceName>(&json).expect("reads"), device);
        }
    }

    #[test]
    fn errors_name_what_was_found_and_expected() {
        let error = |name: &str| name.parse::<DeviceName>().unwrap_err().to_string();
        assert!(error("cda:1").contains("\"cda\"") && error("cda:1").contains(&DeviceName::BACKENDS.join(", ")));
        assert!(error("cuda:-1").contains("\"cuda:-1\""));
        assert!(error("flex:0").contains("expected \"flex\""));
        assert!(serde_json::from_str::<DeviceName>("\"cda\"").unwrap_err().to_string().contains("\"cda\""));
    }

    /// Host backends only: opening a card that is not there panics.
    #[test]
    fn opens_what_this_build_has() {
        for name in DeviceName::BACKENDS {
            let device: DeviceName = name.parse().expect("a name");
            match device.is_compiled() {
                true if device.is_on_host() => assert!(device.device().is_ok(), "{name}"),
                true => assert!(DeviceName::compiled().any(|compiled| compiled == device)),
                false => assert_eq!(device.device().unwrap_err(), DeviceNameError::NotCompiled(device.backend)),
            }
        }
    }
}
