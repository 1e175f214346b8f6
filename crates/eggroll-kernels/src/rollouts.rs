//! Calls of rollouts: every environment and every head, with low-rank and with dense noise.

use burn::module::Param;
use burn::tensor::{Device, Distribution, Tensor};
use cubecl::client::Client;
use eggroll_core::device_rollout::{self, ChainActivation, ChainLayer, DeviceEpisodes, DeviceScaling, Head};
use eggroll_core::scope::Perturbation;
use eggroll_core::{EggrollConfig, NoiserConfig, OpenEsConfig, PairRange, ParameterTable};
use eggroll_rl::{Acrobot, CartPole, MountainCar, MountainCarContinuous, Pendulum, TensorEnvironment};
use std::sync::Arc;

const PAIRS: PairRange = PairRange { first: 0, count: 64 };

/// Launches the episodes of every environment.
pub(crate) fn launch(client: &Client) {
    for noiser in [EggrollConfig::new().into(), EggrollConfig::new().with_rank(4).into(), OpenEsConfig::new().into()] {
        for head in [Head::Highest, Head::Sampled] {
            episodes(client, &CartPole, &noiser, head);
        }
        episodes(client, &Acrobot, &noiser, Head::Highest);
        episodes(client, &MountainCar, &noiser, Head::Highest);
        for head in [Head::Clamped, Head::Tanh] {
            episodes(client, &Pendulum, &noiser, head);
        }
        episodes(client, &MountainCarContinuous, &noiser, Head::Tanh);
    }
}

/// Launches episodes of CartPole for a population whose policies have two layers of 32 units; returns the steps of an episode.
pub(crate) fn cart_pole(client: &Client) -> usize {
    rollout(client, &CartPole, &EggrollConfig::new().into(), Head::Highest, (32, false));
    CartPole.time_limit()
}

/// Policies of 32 and of 64 units, whose observations are normalized, and of 32 whose are not.
fn episodes<E: TensorEnvironment>(client: &Client, environment: &E, noiser: &NoiserConfig, head: Head) {
    for policy in [(32, false), (32, true), (64, true)] {
        rollout(client, environment, noiser, head, policy);
    }
}

fn rollout<E: TensorEnvironment>(
    client: &Client,
    environment: &E,
    noiser: &NoiserConfig,
    head: Head,
    (width, normalizes): (usize, bool),
) {
    let dynamics = environment.dynamics().expect("an environment of programs");
    let (seen, outputs) = (environment.observation_size(), environment.actions().outputs());
    let (weights, biases) = network(&[seen, width, width, outputs]);
    let layers: Vec<ChainLayer> = weights.iter().zip(&biases).map(layer).collect();
    let noiser = noiser.init().expect("valid");
    let table = ParameterTable::new(&(weights.clone(), biases.clone()), noiser.as_ref(), &[]).expect("valid");
    let table = Arc::new(table);
    let perturbation = Perturbation { noiser, table, seed: 1, generation: 0, sigma: 0.1, held: Arc::default() };
    let (mean, scale) = (vec![0.0; seen], vec![1.0; seen]);
    let scaling = DeviceScaling { mean: &mean, scale: &scale, center: &mean, limit: 5.0, farthest: 1e6 };
    let episodes = DeviceEpisodes {
        dynamics: &dynamics,
        head,
        outputs,
        bounds: [-1.0, 1.0],
        starts: &vec![0.0; environment.state_size()],
        draws: &[[0; 4]],
        scaling: normalizes.then_some(scaling),
        action_repeat: 1,
        time_limit: environment.time_limit(),
    };
    assert!(device_rollout::launch(client, &layers, (&perturbation, PAIRS), &episodes), "a device of our kernels");
}

type LayerWeights = (Vec<Param<Tensor<2>>>, Vec<Param<Tensor<1>>>);

fn network(sizes: &[usize]) -> LayerWeights {
    let device = Device::flex();
    let weight = |size: &[usize]| Tensor::random([size[0], size[1]], Distribution::Default, &device);
    let weights = sizes.windows(2).map(|size| Param::from_tensor(weight(size))).collect();
    let biases = sizes[1..].iter().map(|size| Param::from_tensor(Tensor::zeros([*size], &device))).collect();
    (weights, biases)
}

fn layer<'a>((weight, bias): (&'a Param<Tensor<2>>, &'a Param<Tensor<1>>)) -> ChainLayer<'a> {
    ChainLayer { weight, bias: Some(bias), activation: ChainActivation::Tanh }
}
