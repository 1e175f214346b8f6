//! The library against golden vectors of other codebases; see `tests/golden/README.md`.
//!
//! Noise is given, so nothing depends on a generator. Every comparison has a canary: the same computation on a wrong
//! input must be far off, so that a comparison that compares nothing is noticed.

mod compare;
mod environments;
mod files;
mod fitness;
mod forward;
mod import;
mod int8_transformer;
mod loader;
mod mlp_step;
mod nano;
mod noise_index;
mod optimizers;
mod recorded;
mod rwkv7;
mod torch_port;
mod updates;
mod written;

use burn::tensor::Device;

/// The backends that the tests are built with: for what eggroll's kernels compute.
fn devices() -> Vec<Device> {
    let others = [
        #[cfg(feature = "wgpu")]
        Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(feature = "cuda")]
        Device::cuda(0),
        #[cfg(feature = "rocm")]
        Device::rocm(0),
    ];
    hosts().into_iter().chain(others).collect()
}

/// Those of them on the CPU: for what Burn's own operations compute.
#[cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]
fn hosts() -> Vec<Device> {
    vec![
        Device::flex(),
        #[cfg(feature = "ndarray")]
        Device::ndarray(),
    ]
}
