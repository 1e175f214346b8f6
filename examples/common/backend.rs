//! The backends that an example can run on, shared by the examples that let their user choose.

use burn::tensor::Device;
#[cfg(any(feature = "vulkan", feature = "metal", feature = "wgpu"))]
use burn::tensor::DeviceKind;
use clap::ValueEnum;

/// Opens a backend's device.
pub type Opener = fn() -> Device;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// Burn's CPU backend.
    Flex,
    /// Burn's former CPU backend (feature `ndarray`).
    Ndarray,
    /// NVIDIA's CUDA (feature `cuda`).
    Cuda,
    /// Vulkan (feature `vulkan`).
    Vulkan,
    /// Apple's Metal (feature `metal`).
    Metal,
    /// WebGPU (feature `wgpu`).
    Wgpu,
}

impl Backend {
    pub fn name(&self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Whether tensors are in host memory and every core may work on its own chunk.
    pub fn is_cpu(self) -> bool {
        matches!(self, Self::Flex | Self::Ndarray)
    }

    /// Opens the device.
    pub fn device(self) -> Result<Device, String> {
        let opener = self.opener();
        opener.map(|open| open()).ok_or_else(|| format!("this build has no backend {self:?}: build with its feature"))
    }

    /// What opens the device, if this build has the backend. Nothing is opened yet: that may panic.
    #[cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]
    pub fn opener(self) -> Option<Opener> {
        match self {
            #[cfg(feature = "flex")]
            Self::Flex => Some(Device::flex),
            #[cfg(feature = "ndarray")]
            Self::Ndarray => Some(Device::ndarray),
            #[cfg(feature = "cuda")]
            Self::Cuda => Some(|| Device::cuda(0)),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => Some(|| Device::vulkan(DeviceKind::DefaultDevice)),
            #[cfg(feature = "metal")]
            Self::Metal => Some(|| Device::metal(DeviceKind::DefaultDevice)),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Some(|| Device::wgpu(DeviceKind::DefaultDevice)),
            #[cfg(not(all(
                feature = "flex",
                feature = "ndarray",
                feature = "cuda",
                feature = "vulkan",
                feature = "metal",
                feature = "wgpu"
            )))]
            _ => None,
        }
    }
}
