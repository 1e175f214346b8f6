//! Episodes on devices without tensors: environment and policy of whole populations in one kernel, with many steps in
//! each launch.
//!
//! An environment is given as [programs](Program), traced from its physics; a policy as the layers of a chain. The twin on the host
//! is the [chain](crate::fused::chain) of fused rollouts.

pub use crate::rollout::episodes::{DeviceEpisodes, DeviceRows, DeviceScaling, Dynamics, Head, SymbolicStep};
pub use crate::rollout::layer::{ChainActivation, ChainLayer};
pub use crate::rollout::program::{Operation, Operator, Program, Symbol};

use crate::rng::key::PairRange;
use crate::scope::Perturbation;
use burn::tensor::Device;

/// Whether a device runs eggroll's kernels.
pub fn runs_on(device: &Device) -> bool {
    #[cfg(feature = "cube")]
    return matches!(device.as_dispatch(), burn::backend::DispatchDevice::Cube(_));
    #[cfg(not(feature = "cube"))]
    {
        let _ = device;
        false
    }
}

/// Runs the episodes of all members of `population`, or of the model as it is, on `device`.
///
/// `None` on a device without eggroll's kernels, for parameters that are not float32, and for sparse noise or a noise table. Also
/// if a pair has more rows than the device allows.
///
/// # Panics
///
/// Panics if there are no layers, or they do not fit each other or the environment. Also panics if episodes and scaling do not
/// have the environment's sizes.
#[track_caller]
pub fn run(
    device: &Device,
    layers: &[ChainLayer],
    population: Option<(&Perturbation, PairRange)>,
    episodes: &DeviceEpisodes,
) -> Option<DeviceRows> {
    episodes.check(layers);
    #[cfg(feature = "cube")]
    let rows = crate::backend::cube::rollout(device, layers, population, episodes);
    #[cfg(not(feature = "cube"))]
    let rows = {
        let _ = (device, population);
        None
    };
    rows
}

/// Launches the kernels of [`run`] through `client`, for devices that compute nothing, and reads nothing. Returns whether the
/// kernel can run.
#[cfg(feature = "cube")]
#[doc(hidden)]
pub fn launch(
    client: &cubecl::client::Client,
    layers: &[ChainLayer],
    population: (&Perturbation, PairRange),
    episodes: &DeviceEpisodes,
) -> bool {
    episodes.check(layers);
    crate::backend::cube::launch_rollout(client, layers, population, episodes)
}
