//! Episodes of populations: environment and policy in one kernel, with a few hundred steps in each launch.
//!
//! `network` reads the policy; `deviations` computes its perturbation once for all steps; `plan` has the settings that a kernel is
//! compiled for. `kernel` steps the environments, with the parts of a row in `row`, the layers in `layer` and the physics in
//! `program`.

mod deviations;
mod kernel;
mod layer;
mod network;
mod plan;
mod program;
mod row;

use super::device::Limits;
use super::eligibility::runs;
use super::geometry::{UNITS, cube_count};
use super::launch::{self, empty};
use crate::fused::device_rollout::{ChainLayer, DeviceEpisodes, DeviceRows};
use crate::ops::MatrixNoise;
use crate::rng::key::PairRange;
use crate::scope::Perturbation;
use crate::work::counters;
use crate::work::profile::{self, Component};
use burn::backend::{Backend, DispatchDevice};
use burn::tensor::{DType, Device, TensorData};
use burn_cubecl::CubeBackend;
use burn_cubecl::ops::into_data_sync;
use burn_cubecl::tensor::CubeTensor;
use cubecl::client::Client;
use cubecl::{CubeDim, Device as CubeDevice};
use deviations::{DeviationSizesLaunch, deviation_kernel};
use kernel::rollout_kernel;
use network::{Network, Perturbed};
use plan::{HEADER, LaunchLaunch, RolloutPlan};

/// Bytes of deviations that are held at a time: pairs beyond come after.
const HELD_BYTES: usize = 64 << 20;
/// Pairs of a batch that keep a device busy: policies of which fewer are held are products for tensors.
const LEAST_PAIRS: usize = 64;

/// See [`run`](crate::fused::device_rollout::run).
pub(crate) fn rollout(
    device: &Device,
    layers: &[ChainLayer],
    population: Option<(&Perturbation, PairRange)>,
    episodes: &DeviceEpisodes,
) -> Option<DeviceRows> {
    let DispatchDevice::Cube(device) = device.as_dispatch() else { return None };
    let network = Network::new(layers, population.map(|(perturbation, _)| perturbation))?;
    counters::add_host_read(); // of the parameters
    let (plan, records) = launched(&device.client(), device, &network, population.map(|(_, pairs)| pairs), episodes)?;
    let rows = records.into_iter().flat_map(|records| rows(&plan, records)).collect();
    Some(DeviceRows { rows, parameters: network.parameters })
}

/// Launches all episodes, by way of `client`: their records.
fn launched(
    client: &Client,
    device: &CubeDevice,
    network: &Network,
    pairs: Option<PairRange>,
    episodes: &DeviceEpisodes,
) -> Option<(RolloutPlan, Vec<CubeTensor>)> {
    let plan = RolloutPlan::new(client, network.layers.clone(), episodes, pairs.is_some());
    let rollout = Rollout { inputs: LaunchInputs::new(client, device, network, episodes), plan, episodes };
    let batches = rollout.batches(pairs.unwrap_or(PairRange::new(0, 1)), network.values.len())?;
    let records = batches.into_iter().map(|pairs| rollout.run(network, pairs)).collect();
    Some((rollout.plan, records))
}

/// See [`launch`](crate::fused::device_rollout::launch).
pub(crate) fn launch_rollout(
    client: &Client,
    layers: &[ChainLayer],
    (perturbation, pairs): (&Perturbation, PairRange),
    episodes: &DeviceEpisodes,
) -> bool {
    let network = Network::new(layers, Some(perturbation));
    network.and_then(|network| launched(client, &CubeDevice::default(), &network, Some(pairs), episodes)).is_some()
}

/// Episodes on their device.
struct Rollout<'a> {
    episodes: &'a DeviceEpisodes<'a>,
    inputs: LaunchInputs,
    plan: RolloutPlan,
}

/// What every launch reads.
struct LaunchInputs {
    parameters: CubeTensor,
    starts: CubeTensor,
    scaling: CubeTensor,
    draws: CubeTensor,
}

impl LaunchInputs {
    fn new(client: &Client, device: &CubeDevice, network: &Network, episodes: &DeviceEpisodes) -> Self {
        let floats = |values: Vec<f32>| {
            let len = values.len();
            upload(client, device, TensorData::new(values, [len]))
        };
        // An argument that is not read must be there all the same.
        let scaling =
            episodes.scaling.map_or(vec![0.0], |scaling| [scaling.mean, scaling.scale, scaling.center].concat());
        let draws = if episodes.draws.is_empty() { vec![0u32] } else { episodes.draws.concat() };
        let words = draws.len();
        Self {
            parameters: floats(network.values.clone()),
            starts: floats(episodes.starts.to_vec()),
            scaling: floats(scaling),
            draws: upload(client, device, TensorData::new(draws, [words])),
        }
    }
}

impl Rollout<'_> {
    /// Members that act for one pair: a model as it is acts alone.
    fn members(&self) -> usize {
        if self.plan.pairs { 2 } else { 1 }
    }

    /// Steps of a launch; 0 if the device takes none.
    fn steps(&self) -> usize {
        self.plan.steps(&Limits::of(&self.inputs.parameters.client), self.episodes.action_repeat)
    }

    /// The pairs of each batch, or `None` if the kernel cannot run: `parameters` deviations of each pair are held.
    fn batches(&self, pairs: PairRange, parameters: usize) -> Option<Vec<PairRange>> {
        let records = self.members() * self.episodes.count() * self.plan.record(); // of a pair
        let each = (HELD_BYTES / 4 / parameters.max(records)).clamp(1, pairs.count.max(1) as usize);
        let steps = self.steps();
        let demand = self.plan.demand(each * parameters.max(records), steps, self.episodes.action_repeat);
        let is_idle = each < LEAST_PAIRS.min(pairs.count as usize);
        if steps == 0 || is_idle || !runs(&self.inputs.parameters, &demand) {
            return None;
        }
        let end = pairs.first + pairs.count;
        let batch = |first| PairRange::new(first, (end - first).min(each as u32));
        Some((pairs.first..end).step_by(each).map(batch).collect())
    }

    /// Runs the episodes of some pairs: their records.
    fn run(&self, network: &Network, pairs: PairRange) -> CubeTensor {
        let LaunchInputs { parameters, starts, scaling, draws } = &self.inputs;
        let (client, episodes) = (&parameters.client, self.episodes);
        let deviations = if self.plan.pairs { deviations(network, pairs, parameters) } else { parameters.clone() };
        let lots = pairs.count as usize * episodes.count();
        let records = empty(parameters, [self.members() * lots * self.plan.record()], DType::F32);
        let span = profile::span(Component::LowRankPart, 0);
        let (all, each) = (episodes.time_limit.div_ceil(episodes.action_repeat), self.steps());
        for first_step in (0..all).step_by(each) {
            let scaled = episodes.scaling.map_or([0.0; 2], |scaling| [scaling.limit, scaling.farthest]);
            let launch = LaunchLaunch::new(
                lots,
                episodes.count(),
                network.values.len(),
                pairs.first,
                first_step as u32,
                each.min(all - first_step) as u32,
                episodes.action_repeat as u32,
                episodes.time_limit as f32,
                episodes.bounds[0],
                episodes.bounds[1],
                scaled[0],
                scaled[1],
            );
            rollout_kernel::launch(
                client,
                cube_count(client, lots.div_ceil(self.plan.lots)),
                self.plan.cube_dim(),
                parameters.clone().into_buffer_arg(),
                deviations.clone().into_buffer_arg(),
                starts.clone().into_buffer_arg(),
                scaling.clone().into_buffer_arg(),
                draws.clone().into_buffer_arg(),
                records.clone().into_buffer_arg(),
                launch,
                self.plan.clone(),
            );
            counters::add_kernel();
        }
        span.end(|| drop(CubeBackend::sync(&parameters.device)));
        records
    }
}

/// The rows of records, which are read to the host: without what only launches need.
fn rows(plan: &RolloutPlan, records: CubeTensor) -> Vec<f32> {
    counters::add_host_read();
    let waiting = profile::waiting();
    let records: Vec<f32> = into_data_sync(records).try_to_vec().expect("of type f32");
    drop(waiting);
    let sums = HEADER..HEADER + plan.sums();
    let row = |record: &[f32]| [&record[..2], &record[sums.clone()]].concat();
    records.chunks_exact(plan.record()).flat_map(row).collect()
}

/// A vector on a device.
fn upload(client: &Client, device: &CubeDevice, data: TensorData) -> CubeTensor {
    let (bytes, shape, dtype) = data.into_parts();
    CubeTensor::new_contiguous(client.clone(), device.clone(), shape, client.create(bytes), dtype)
}

/// What the noise of `pairs` adds to every parameter: `[pairs · parameters]`.
fn deviations(network: &Network, pairs: PairRange, like: &CubeTensor) -> CubeTensor {
    let (count, all) = (pairs.count as usize, network.values.len());
    let deviations = empty(like, [count * all], DType::F32);
    for Perturbed { start, shape, noise } in &network.perturbed {
        let [d_input, d_output] = *shape;
        let rank = match noise {
            MatrixNoise::LowRank(noise) => Some(noise.rank),
            MatrixNoise::Dense(_) => None,
        };
        let elements = noise.elements(*shape);
        let drawn = launch::noise(like, noise.key(), pairs, elements);
        let sizes = DeviationSizesLaunch::new(count, d_input, d_output, rank.unwrap_or(0), elements, *start, all);
        deviation_kernel::launch(
            &like.client,
            cube_count(&like.client, (count * d_input * d_output).div_ceil(UNITS)),
            CubeDim::new_1d(UNITS as u32),
            drawn.into_buffer_arg(),
            deviations.clone().into_buffer_arg(),
            sizes,
            noise.scale(),
            rank.is_some(),
        );
        counters::add_kernel();
    }
    deviations
}
