//! Devices by name, as they stand in configurations and on command lines.

use crate::simd::InstructionSet;
use crate::work::device::is_on_host;
#[cfg(feature = "cube")]
use crate::work::sync::locked;
use burn::tensor::Device;
#[cfg(feature = "wgpu")]
use burn::tensor::DeviceKind;
#[cfg(feature = "cube")]
use burn::tensor::DeviceType;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
#[cfg(feature = "cube")]
use std::sync::Mutex;

/// A device by the name of its backend and, with several discrete cards, its number: `flex`, `cuda:1`, `vulkan`.
///
/// | name | backend | feature |
/// |---|---|---|
/// | `flex` | Burn's CPU backend; the default | `flex` |
/// | `ndarray` | Burn's former CPU backend | `ndarray` |
/// | `cuda`, `cuda:1` | NVIDIA's CUDA | `cuda` |
/// | `rocm`, `rocm:1` | AMD's ROCm | `rocm` |
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
    backend: Backend,
    number: Option<usize>,
}

/// A backend of Burn; by position in [`DeviceName::BACKENDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Backend {
    Flex,
    Ndarray,
    Cuda,
    Rocm,
    Vulkan,
    Metal,
    Wgpu,
}

/// A device name that cannot be read, or whose backend this build does not have.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceNameError {
    /// No backend of that name.
    #[error("there is no backend \"{0}\": expected one of {names}", names = DeviceName::BACKENDS.join(", "))]
    Unknown(String),
    /// The number of a card cannot be read.
    #[error("the device \"{0}\" has no number after the colon: expected a number from 0, as in cuda:1")]
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
    /// A device that this machine does not have.
    #[error("this machine has no device {name}: {found}")]
    Absent {
        /// The name as given.
        name: String,
        /// What the driver answered.
        found: String,
    },
}

crate::debug_is_message!(DeviceNameError);

impl Backend {
    const ALL: [Self; 7] = [Self::Flex, Self::Ndarray, Self::Cuda, Self::Rocm, Self::Vulkan, Self::Metal, Self::Wgpu];

    fn name(self) -> &'static str {
        DeviceName::BACKENDS[self as usize]
    }

    fn is_on_host(self) -> bool {
        matches!(self, Self::Flex | Self::Ndarray)
    }
}

impl DeviceName {
    /// The names of all backends.
    pub const BACKENDS: [&str; 7] = ["flex", "ndarray", "cuda", "rocm", "vulkan", "metal", "wgpu"];

    /// The default devices of all backends that this build has.
    pub fn compiled() -> impl Iterator<Item = Self> {
        Backend::ALL.into_iter().map(|backend| Self { backend, number: None }).filter(Self::is_compiled)
    }

    /// The device for tests of kernels: the first that is not the host's. If `EGGROLL_CONFORMANCE` names such devices, as for the
    /// conformance suite, the first of them.
    #[doc(hidden)]
    pub fn of_tests() -> Device {
        let named = std::env::var("EGGROLL_CONFORMANCE").unwrap_or_default();
        let devices: Vec<Self> = Self::compiled().filter(|device| !device.is_on_host()).collect();
        let is_named = |device: &&Self| named.split(',').any(|name| name == device.to_string());
        let chosen = devices.iter().find(is_named).or(devices.first()).expect("a backend of devices is compiled in");
        chosen.device().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Whether this build has the backend.
    pub fn is_compiled(&self) -> bool {
        match self.backend {
            Backend::Flex => cfg!(feature = "flex"),
            Backend::Ndarray => cfg!(feature = "ndarray"),
            Backend::Cuda => cfg!(feature = "cuda"),
            Backend::Rocm => cfg!(feature = "rocm"),
            Backend::Vulkan => cfg!(feature = "vulkan"),
            Backend::Metal => cfg!(feature = "metal"),
            Backend::Wgpu => cfg!(feature = "wgpu"),
        }
    }

    /// Whether tensors are in host memory, so that every core can work on its own members.
    pub fn is_on_host(&self) -> bool {
        self.backend.is_on_host()
    }

    /// The device. Asks the driver whether it exists; the first work opens it.
    ///
    /// # Errors
    ///
    /// [`DeviceNameError::NotCompiled`] if this build does not have the backend, [`DeviceNameError::Absent`] if this machine
    /// does not have the device.
    #[cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]
    pub fn device(&self) -> Result<Device, DeviceNameError> {
        #[cfg(feature = "wgpu")]
        let kind = self.number.map_or(DeviceKind::DefaultDevice, DeviceKind::DiscreteGpu);
        match self.backend {
            #[cfg(feature = "flex")]
            Backend::Flex => Ok(Device::flex()),
            #[cfg(feature = "ndarray")]
            Backend::Ndarray => Ok(Device::ndarray()),
            #[cfg(feature = "cuda")]
            Backend::Cuda => self.found(Device::cuda(self.number.unwrap_or(0)), DeviceType::Cuda),
            #[cfg(feature = "rocm")]
            Backend::Rocm => self.found(Device::rocm(self.number.unwrap_or(0)), DeviceType::Rocm),
            #[cfg(feature = "vulkan")]
            Backend::Vulkan => self.found(Device::vulkan(kind), DeviceType::Vulkan),
            #[cfg(feature = "metal")]
            Backend::Metal => self.found(Device::metal(kind), DeviceType::Metal),
            #[cfg(feature = "wgpu")]
            Backend::Wgpu => self.found(Device::wgpu(kind), DeviceType::Wgpu),
            #[cfg(not(all(
                feature = "flex",
                feature = "ndarray",
                feature = "cuda",
                feature = "rocm",
                feature = "vulkan",
                feature = "metal",
                feature = "wgpu"
            )))]
            backend => Err(DeviceNameError::NotCompiled(backend.name())),
        }
    }

    /// The device, if the driver lists it; without a number, if it lists any.
    #[cfg(feature = "cube")]
    fn found(&self, device: Device, all: DeviceType) -> Result<Device, DeviceNameError> {
        let listed = listed(all);
        let is_there = if self.number.is_some() { listed.contains(&device) } else { !listed.is_empty() };
        if is_there {
            return Ok(device);
        }
        let found = match (listed.len(), self.backend) {
            (0, Backend::Cuda) => "the NVIDIA driver (libcuda) is not installed or finds no GPU".to_owned(),
            (0, Backend::Rocm) => "ROCm (libamdhip64) is not installed or finds no GPU".to_owned(),
            (0, Backend::Metal) => "Metal needs macOS and a GPU".to_owned(),
            (0, Backend::Vulkan) => "the Vulkan loader (libvulkan) or a driver for it is not installed".to_owned(),
            (0, _) => "no driver of Vulkan, Metal or DirectX 12 finds a GPU".to_owned(),
            (count, _) => format!("of {count} that drivers list none is a discrete GPU of this number, counted from 0"),
        };
        Err(DeviceNameError::Absent { name: self.to_string(), found })
    }
}

/// The devices that drivers list. Each is asked until it lists one, then never again: while one thread opens a GPU, some drivers list
/// none to another.
#[cfg(feature = "cube")]
fn listed(kind: DeviceType) -> Vec<Device> {
    static LISTED: Mutex<Vec<(DeviceType, Vec<Device>)>> = Mutex::new(Vec::new());
    let mut known = locked(&LISTED);
    if let Some((_, devices)) = known.iter().find(|(listed, _)| *listed == kind) {
        return devices.clone();
    }
    let devices = Device::enumerate(kind.clone()).to_vec();
    if !devices.is_empty() {
        known.push((kind, devices.clone()));
    }
    devices
}

/// The hardware of a device: a GPU by its driver's name, the CPU with the instruction set of its kernels. Opens the device.
///
/// # Panics
///
/// Panics if the driver does not open the device.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
///
/// assert!(eggroll_core::hardware_name(&Device::flex()).starts_with("CPU, "));
/// ```
pub fn hardware_name(device: &Device) -> String {
    #[cfg(feature = "cube")]
    if let Some(identity) = device.identity() {
        return identity.name;
    }
    match is_on_host(device) {
        true => format!("CPU, {}", InstructionSet::detected().name()),
        false => format!("{device:?}"),
    }
}

/// `flex`
impl Default for DeviceName {
    fn default() -> Self {
        Self { backend: Backend::Flex, number: None }
    }
}

impl FromStr for DeviceName {
    type Err = DeviceNameError;

    fn from_str(name: &str) -> Result<Self, DeviceNameError> {
        let (backend, number) = name.split_once(':').map_or((name, None), |(name, number)| (name, Some(number)));
        let Some(backend) = Backend::ALL.into_iter().find(|known| known.name() == backend) else {
            return Err(DeviceNameError::Unknown(backend.to_owned()));
        };
        match number.map(str::parse) {
            None => Ok(Self { backend, number: None }),
            Some(_) if backend.is_on_host() => {
                Err(DeviceNameError::OneDevice { name: name.to_owned(), backend: backend.name() })
            }
            Some(Ok(number)) => Ok(Self { backend, number: Some(number) }),
            Some(Err(_)) => Err(DeviceNameError::Number(name.to_owned())),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            None => f.write_str(self.backend.name()),
            Some(number) => write!(f, "{}:{number}", self.backend.name()),
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
        let numbered = ["cuda", "rocm", "vulkan", "metal", "wgpu"].map(|backend| format!("{backend}:3"));
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

    #[test]
    fn devices_are_there_or_the_error_says_why_not() {
        for name in DeviceName::BACKENDS {
            let device: DeviceName = name.parse().expect("a name");
            assert_eq!(device.is_compiled(), DeviceName::compiled().any(|compiled| compiled == device));
            match (device.device(), device.is_compiled()) {
                (Ok(_), true) => {}
                (Err(DeviceNameError::Absent { name: found, .. }), true) if !device.is_on_host() => {
                    assert_eq!(found, name)
                }
                (Err(error), false) => assert_eq!(error, DeviceNameError::NotCompiled(name)),
                (found, compiled) => panic!("{name}, compiled {compiled}: {found:?}"),
            }
        }
    }

    #[cfg(feature = "cube")]
    #[test]
    fn no_machine_has_so_many_cards() {
        for device in DeviceName::compiled().filter(|device| !device.is_on_host()) {
            let name = format!("{device}:60000");
            let error = name.parse::<DeviceName>().expect("a name").device().unwrap_err().to_string();
            assert!(error.starts_with(&format!("this machine has no device {name}: ")), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }
}
