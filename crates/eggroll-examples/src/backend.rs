//! The backends that an example can run on.

use burn::tensor::Device;
use clap::ValueEnum;
use eggroll_train::distribution::DeviceName;

/// A backend, as `--backend` names it.
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
    /// The name, as `--backend` takes it.
    pub fn name(&self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Whether tensors are in host memory and every core may work on its own chunk.
    pub fn is_cpu(self) -> bool {
        matches!(self, Self::Flex | Self::Ndarray)
    }

    /// Opens the device.
    ///
    /// # Errors
    ///
    /// The backend, if this build does not have it.
    ///
    /// # Panics
    ///
    /// Panics if the backend has no device here.
    pub fn device(self) -> Result<Device, String> {
        let name: DeviceName = self.name().parse().expect("backends have the names of devices");
        name.open().map_err(|_| format!("this build has no backend {self:?}: build with its feature"))
    }
}
