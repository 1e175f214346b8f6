//! What operations cost on GPUs that are not here: launches and bytes as a [recorder](crate::Recorder) saw them, and the time below which no
//! GPU gets with them.
//!
//! A launch takes as long as the largest of what it moves, multiplies and draws takes at the GPU's peak. That is a bound, not a measurement:
//! kernels reach a part of the peak, and the time between launches is not in it.

use crate::recorder::{Launch, Recorder, Recording};
use crate::rollouts;
use crate::targets::{Target, all};
use crate::tensors::Tensors;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use cubecl::client::Client;
use eggroll_core::ops::backend::{BiasPrimitive, PerturbedOps, SourcePrimitive};
use eggroll_core::ops::{InputRows, LinearMembers, LowRankNoise};
use eggroll_core::{NoiseKey, PairRange};
use std::sync::{Arc, Mutex};

/// Instructions of one lane for one normal: a quarter of a Philox block of 4, with two Box–Muller transforms.
const SLOTS_OF_A_NORMAL: f64 = 41.0;
/// The side of an estimate's tile: each draws as many values of both factors.
const SIDE: u64 = 64;

/// The peak of a GPU.
#[derive(Clone, Copy, Debug)]
pub struct Gpu {
    /// Its name.
    pub name: &'static str,
    /// The target whose kernels it runs.
    pub target: &'static str,
    /// Bytes of memory a second.
    pub memory: f64,
    /// Floating-point operations of bf16 products a second, as large products reach them.
    pub products: f64,
    /// Instructions of all lanes a second.
    pub slots: f64,
}

/// GPUs by their makers' data sheets; products of H200 as cuBLAS reaches them, which an H100 has the same units for.
pub const GPUS: [Gpu; 4] = [
    Gpu { name: "H200", target: "sm_90", memory: 4.8e12, products: 790e12, slots: 33.4e12 },
    Gpu { name: "H100", target: "sm_90", memory: 3.35e12, products: 790e12, slots: 33.4e12 },
    Gpu { name: "RTX 4090", target: "sm_80", memory: 1.008e12, products: 165e12, slots: 41.3e12 },
    Gpu { name: "M3 Max", target: "metal", memory: 0.4e12, products: 14.2e12, slots: 7.1e12 },
];

/// What an operation costs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Launches, of Burn's kernels too.
    pub launches: usize,
    /// Bytes that are read and written.
    pub bytes: u64,
    /// Floating-point operations of products.
    pub flops: f64,
    /// Normals that are drawn, each as often as it is.
    pub normals: u64,
    /// The least time that this takes.
    pub seconds: f64,
}

/// A layer, and the population that perturbs it with low-rank noise.
#[derive(Clone, Copy, Debug)]
pub struct CostLayer {
    /// Pairs of members.
    pub pairs: u32,
    /// Rows of each member.
    pub rows: usize,
    /// Columns of a factor.
    pub rank: usize,
    /// `[d_input, d_output]`
    pub shape: [usize; 2],
    /// The type of activations and weights.
    pub dtype: DType,
}

/// Where the noise of a layer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseOrigin {
    /// Drawn in the kernels.
    OnTheFly,
    /// In memory, for all pairs.
    Held,
}

/// The device of a GPU that computes nothing.
pub struct CostModel {
    gpu: Gpu,
    client: Client,
    recording: Arc<Mutex<Recording>>,
}

impl CostModel {
    /// The model of `gpu`, device number `index` of this process.
    pub fn new(gpu: Gpu, index: u16) -> Self {
        let is_its = |target: &Target| target.name == gpu.target;
        let target = all().into_iter().find(is_its).expect("a target");
        let (client, recording) = Recorder::start(target, index);
        Self { gpu, client, recording }
    }

    /// Whether the GPU has the type.
    pub fn supports(&self, dtype: DType) -> bool {
        self.tensors().supports(dtype)
    }

    /// `x·W` without noise, a row for each member: what a plain model costs.
    pub fn inference(&self, layer: CostLayer) -> Cost {
        let [d_input, d_output] = layer.shape;
        let tensors = self.tensors();
        self.cost(layer, NoiseOrigin::Held, layer.forward_flops(), || {
            let x = tensors.empty([layer.all_rows(), d_input], layer.dtype);
            CubeBackend::float_matmul(x, tensors.empty([d_input, d_output], layer.dtype));
        })
    }

    /// The perturbed product of the population.
    pub fn forward(&self, layer: CostLayer, noise: NoiseOrigin) -> Cost {
        let [d_input, d_output] = layer.shape;
        let tensors = self.tensors();
        self.cost(layer, noise, layer.forward_flops(), || {
            let x = tensors.empty([layer.all_rows(), d_input], layer.dtype);
            let weight = tensors.empty([d_input, d_output], layer.dtype);
            let members = LinearMembers { pairs: layer.pair_range(), input: InputRows::PerMember };
            let held = layer.source(noise, &tensors);
            CubeBackend::low_rank_linear(x, weight, BiasPrimitive::None, layer.noise(), held, members);
        })
    }

    /// The estimate from the pairs' weights.
    pub fn estimate(&self, layer: CostLayer, noise: NoiseOrigin) -> Cost {
        let [d_input, d_output] = layer.shape;
        let terms = f64::from(layer.pairs) * layer.rank as f64;
        let tensors = self.tensors();
        self.cost(layer, noise, 2.0 * terms * (d_input * d_output) as f64, || {
            let weights = tensors.empty([layer.pairs as usize], DType::F32);
            let held = layer.source(noise, &tensors);
            CubeBackend::low_rank_estimate(weights, layer.noise(), held, 0, d_input, d_output, layer.dtype);
        })
    }

    /// Launches of an episode of CartPole for a population, and its steps.
    pub fn cart_pole(&self) -> (usize, usize) {
        let before = self.launches().len();
        let steps = rollouts::cart_pole(&self.client);
        (self.launches().len() - before, steps)
    }

    fn tensors(&self) -> Tensors {
        Tensors { client: self.client.clone() }
    }

    fn launches(&self) -> Vec<Launch> {
        self.client.flush().expect("a recorder has nothing to flush");
        self.recording.lock().expect("no thread panicked with the list").launches.clone()
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn cost(&self, layer: CostLayer, noise: NoiseOrigin, flops: f64, operation: impl FnOnce()) -> Cost {
        let before = self.launches().len();
        operation();
        let launches = self.launches().split_off(before);
        cost(&self.gpu, (layer, noise), flops, &launches)
    }
}

/// The cost of launches whose products take `flops`.
fn cost(gpu: &Gpu, (layer, noise): (CostLayer, NoiseOrigin), flops: f64, launches: &[Launch]) -> Cost {
    let products = launches.iter().filter(|launch| is_product(launch)).count();
    let mut cost = Cost { launches: launches.len(), flops, ..Cost::default() };
    for launch in launches {
        let normals = if noise == NoiseOrigin::OnTheFly { layer.normals(launch) } else { 0 };
        let bytes = launch.read + launch.written;
        let multiplying = if is_product(launch) { flops / products as f64 / gpu.products } else { 0.0 };
        let drawing = normals as f64 * SLOTS_OF_A_NORMAL / gpu.slots;
        cost.seconds += (bytes as f64 / gpu.memory).max(multiplying).max(drawing);
        cost.bytes += bytes;
        cost.normals += normals;
    }
    cost
}

/// Whether a launch is one of CubeK's products.
fn is_product(launch: &Launch) -> bool {
    launch.path.contains("matmul")
}

impl Cost {
    /// With others, so many times.
    pub(crate) fn plus(self, other: Self, times: usize) -> Self {
        Self {
            launches: self.launches + times * other.launches,
            bytes: self.bytes + times as u64 * other.bytes,
            flops: self.flops + times as f64 * other.flops,
            normals: self.normals + times as u64 * other.normals,
            seconds: self.seconds + times as f64 * other.seconds,
        }
    }
}

impl CostLayer {
    /// Rows of all members.
    fn all_rows(self) -> usize {
        2 * self.pairs as usize * self.rows
    }

    fn pair_range(self) -> PairRange {
        PairRange::new(0, self.pairs)
    }

    fn forward_flops(self) -> f64 {
        2.0 * (self.all_rows() * self.shape[0] * self.shape[1]) as f64
    }

    /// Elements of a pair's noise.
    fn elements(self) -> u64 {
        (self.rank * (self.shape[0] + self.shape[1])) as u64
    }

    fn noise(self) -> LowRankNoise {
        LowRankNoise::new(NoiseKey::new(1, 2, 3), self.rank, 0.1)
    }

    fn source(self, noise: NoiseOrigin, tensors: &Tensors) -> SourcePrimitive<CubeBackend> {
        match noise {
            NoiseOrigin::OnTheFly => SourcePrimitive::Drawn,
            NoiseOrigin::Held => {
                let held = tensors.empty([self.pairs as usize, self.elements() as usize], self.dtype);
                SourcePrimitive::Cached(held, 0)
            }
        }
    }

    /// The type of an estimate's factors.
    fn factor_type(self) -> DType {
        if self.dtype == DType::BF16 { DType::BF16 } else { DType::F32 }
    }

    /// Normals that a launch draws where noise is not held.
    fn normals(self, launch: &Launch) -> u64 {
        let pairs = u64::from(self.pairs);
        let [d_input, d_output] = self.shape.map(|size| (self.rank * size) as u64);
        let kernel = launch.path.split('<').next().unwrap_or_default();
        match () {
            () if kernel.contains("cube::factors::") => launch.cubes * d_input + pairs * d_output,
            () if kernel.contains("cube::linear::") => launch.cubes * self.elements(),
            // What is drawn is written.
            () if kernel.contains("cube::estimate_product::") => launch.written / self.factor_type().size() as u64,
            () if kernel.contains("cube::estimate::") => launch.cubes * pairs * self.rank as u64 * 2 * SIDE,
            () => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's setting: width 8192, 1,024 members, rank 1.
    const PAPER: CostLayer = CostLayer { pairs: 512, rows: 1, rank: 1, shape: [8192, 8192], dtype: DType::BF16 };

    #[test]
    fn shares_of_inference() {
        let model = CostModel::new(GPUS[0], 100);
        let plain = model.inference(PAPER);
        let share = |noise| plain.seconds / model.forward(PAPER, noise).seconds;
        let (drawn, held) = (share(NoiseOrigin::OnTheFly), share(NoiseOrigin::Held));
        assert!(drawn >= 0.91 && held >= 0.95, "{drawn:.3} on the fly, {held:.3} held");
        assert!(drawn < 1.0 && held < 1.0, "canary: noise is not free");
    }

    #[test]
    fn estimates_cost_less_than_forwards() {
        let model = CostModel::new(GPUS[0], 101);
        for noise in [NoiseOrigin::OnTheFly, NoiseOrigin::Held] {
            let (forward, estimate) = (model.forward(PAPER, noise), model.estimate(PAPER, noise));
            assert!(estimate.seconds <= forward.seconds, "{noise:?}: {estimate:?}, {forward:?}");
        }
    }

    /// Every normal once, where a tile for every 64 by 64 elements would draw each 128 times.
    #[test]
    fn normals_are_drawn_once() {
        let model = CostModel::new(GPUS[0], 102);
        let all = u64::from(PAPER.pairs) * PAPER.elements();
        assert_eq!(model.forward(PAPER, NoiseOrigin::OnTheFly).normals, all);
        assert_eq!(model.estimate(PAPER, NoiseOrigin::OnTheFly).normals, all);
        assert_eq!(model.estimate(PAPER, NoiseOrigin::Held).normals, 0);
        let path = "eggroll_core::backend::cube::estimate::low_rank_estimate_kernel";
        let tiles = Launch { path, cubes: 128 * 128, read: 0, written: 0 };
        let forward = model.forward(PAPER, NoiseOrigin::OnTheFly);
        let tiled = cost(&model.gpu, (PAPER, NoiseOrigin::OnTheFly), 0.0, &[tiles]);
        assert_eq!(tiled.normals, 128 * all, "canary");
        assert!(tiled.seconds > 5.0 * forward.seconds, "canary: {tiled:?}");
    }

    #[test]
    fn launches_of_a_step() {
        let (launches, steps) = CostModel::new(GPUS[0], 103).cart_pole();
        assert!(launches <= 2 * steps && launches < 20, "{launches} launches for {steps} steps");
    }
}
