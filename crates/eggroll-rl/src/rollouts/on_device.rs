//! Episodes on devices without tensors: a policy that is a chain of layers and the environment's programs, in one kernel.
//!
//! What the kernel cannot run goes to tensors:
//!
//! - environments without [`dynamics`](TensorEnvironment::dynamics)
//! - policies without [`layers`](Policy::layers), or with other activations than ReLU and tanh
//! - parameters that are not float32
//! - sparse noise, and noise of a table
//! - layers whose rows do not fit in a cube's shared memory

use super::config::RolloutConfig;
use super::head::ActionHead;
use super::keys::episode_draws;
use super::normalizer::Scaling;
use super::policy::{Policy, chain_layers, check_shape, note_layers};
use super::runner::EpisodePlan;
use crate::{ActionSpace, TensorEnvironment};
use burn::tensor::Device;
use eggroll_core::device_rollout::{self, DeviceEpisodes, Head};
use eggroll_train::Population;

/// The rows of all episodes of a population, or of the model as it is; `None` if the kernel cannot run them.
#[track_caller]
pub(super) fn run<E: TensorEnvironment, P: Policy>(
    config: &RolloutConfig,
    plan: &EpisodePlan<'_, E>,
    population: Option<&Population>,
    policy: &P,
    device: &Device,
) -> Option<Vec<f32>> {
    if !device_rollout::runs_on(device) {
        return None;
    }
    let (environment, dynamics) = (plan.environment, plan.environment.dynamics()?);
    let layers = policy.layers()?;
    let layers = chain_layers(&layers)?;
    let (first, last) = (layers.first()?, layers.last()?);
    check_shape(environment, [first.weight.shape()[0], last.weight.shape()[1]]);
    if let Some(population) = population {
        population.perturbation().refuse_nesting();
    }
    let mut starts = vec![0.0; plan.keys.len() * environment.state_size()];
    for (key, start) in plan.keys.iter().zip(starts.chunks_exact_mut(environment.state_size())) {
        environment.reset_host(*key, start);
    }
    let (head, bounds) = head(config.head, environment.actions());
    let episodes = DeviceEpisodes {
        dynamics: &dynamics,
        head,
        outputs: environment.actions().outputs(),
        bounds,
        starts: &starts,
        draws: &episode_draws(plan.keys),
        scaling: plan.scaling.map(Scaling::in_kernel),
        action_repeat: config.action_repeat,
        time_limit: environment.time_limit(),
    };
    let perturbed = population.map(|population| (population.perturbation(), population.pairs()));
    let run = device_rollout::run(device, &layers, perturbed, &episodes)?;
    if let Some(population) = population {
        note_layers(population, &layers, &run.parameters);
    }
    Some(run.rows)
}

fn head(head: ActionHead, actions: ActionSpace) -> (Head, [f32; 2]) {
    match (head, actions) {
        (ActionHead::Sampled, ActionSpace::Discrete(_)) => (Head::Sampled, [0.0; 2]),
        (_, ActionSpace::Discrete(_)) => (Head::Highest, [0.0; 2]),
        (ActionHead::Tanh, ActionSpace::Continuous { low, high, .. }) => (Head::Tanh, [low, high]),
        (_, ActionSpace::Continuous { low, high, .. }) => (Head::Clamped, [low, high]),
    }
}
