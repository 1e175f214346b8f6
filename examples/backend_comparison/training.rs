//! A short training on MNIST, and what one of its generations launches and reads.

use super::rows::{Training, WorkCounts};
use super::timing::sync;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor, TensorData};
use eggroll::core::{EggrollConfig, NoiseKey, counters, reference};
use eggroll::train::{EvolutionStrategy, EvolutionStrategyConfig, MemberChunk};
use eggroll_examples::Failure;
use eggroll_examples::digits::{Batches, Dataset, DigitsMlp, Images, PixelScale};
use std::path::Path;
use std::time::Instant;

const MEMBERS: usize = 128;
const BATCH: usize = 32;
const HIDDEN: usize = 32;
const SEED: u64 = 0;
/// Another seed than that of the noise: both draw from the same generator.
const SEED_OF_WEIGHTS: u64 = 1;
/// Generations before the clock starts: the first learns the size of chunks, both let kernels be compiled.
const WARM_UP: usize = 2;

/// The training images, in host memory.
pub struct Mnist {
    images: Images,
    scale: PixelScale,
}

impl Mnist {
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let images = Images::read(folder, "train")?;
        if images.len() < BATCH {
            return Err(format!("{}: {} images, a batch is {BATCH}", folder.display(), images.len()).into());
        }
        Ok(Self { scale: images.scale(), images })
    }
}

/// One training on one device.
pub struct Trainer<'a> {
    mnist: &'a Mnist,
    batches: Batches,
    device: &'a Device,
    /// Whether launches are counted, which is done by thread.
    counts: bool,
}

impl<'a> Trainer<'a> {
    pub fn new(mnist: &'a Mnist, device: &'a Device) -> Self {
        Self { mnist, batches: Batches::new(SEED, mnist.images.len(), BATCH, 0), device, counts: false }
    }

    /// Trains, and counts the work of one more generation.
    pub fn run(&mut self, rank: usize, generations: u64) -> Result<(Training, WorkCounts), Failure> {
        let mut model = self.model();
        let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(rank), AdamConfig::new())
            .with_population_size(MEMBERS)
            .with_seed(SEED)
            .try_init(&model)?;
        let (mut thrown_away, mut same) = (strategy.clone(), model.clone());
        for _ in 0..WARM_UP {
            same = self.generation(&mut thrown_away, same)?;
        }
        sync(self.device)?;
        let start = Instant::now();
        for _ in 0..generations {
            model = self.generation(&mut strategy, model)?;
        }
        sync(self.device)?;
        let generations_per_second = generations as f64 / start.elapsed().as_secs_f64();
        let final_fitness = strategy.report().map_or(f64::NAN, |report| report.fitness_mean);
        if !final_fitness.is_finite() {
            return Err(format!("the training ended with fitness {final_fitness}").into());
        }
        Ok((Training { final_fitness, generations_per_second }, self.count(&mut strategy, model)?))
    }

    fn generation(&mut self, strategy: &mut EvolutionStrategy, mut model: DigitsMlp) -> Result<DigitsMlp, Failure> {
        let population = strategy.ask();
        let samples = self.batches.samples(population.generation());
        let batch = Dataset::new(&self.mnist.images.select(&samples), self.mnist.scale, self.device);
        let score = |members: &MemberChunk| {
            let logits = model.forward(batch.images.clone()); // [members · batch, 10]
            -members.cross_entropy(logits, batch.labels.clone())
        };
        let fitness = match self.counts {
            true => population.evaluate_mut(score),
            false => population.evaluate(score),
        };
        strategy.tell(&mut model, population, fitness)?;
        Ok(model)
    }

    /// What a generation launches and reads, evaluated on this thread alone: launches are counted by thread.
    fn count(&mut self, strategy: &mut EvolutionStrategy, model: DigitsMlp) -> Result<WorkCounts, Failure> {
        self.counts = true;
        sync(self.device)?;
        let (before, kernels) = (counters::snapshot(), counters::kernels());
        let model = self.generation(strategy, model)?;
        sync(self.device)?;
        drop(model);
        let work = counters::snapshot() - before;
        Ok(WorkCounts {
            launches: work.launches,
            kernels: counters::kernels() - kernels,
            host_reads: work.host_reads,
            noise_bytes: work.noise_bytes,
        })
    }

    /// The same weights on every backend, which Burn's own generators do not give.
    fn model(&self) -> DigitsMlp {
        DigitsMlp::new(self.mnist.images.size(), &[HIDDEN], self.device).map(&mut InitialWeights { position: 0 })
    }
}

/// Normals of variance `1/d_input` for matrices, zeros for biases.
struct InitialWeights {
    position: u32,
}

impl ModuleMapper for InitialWeights {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let key = NoiseKey::new(SEED_OF_WEIGHTS, self.position, 0);
        self.position += 1;
        parameter.map(|tensor| {
            let dims = tensor.dims();
            let scale = if D == 2 { (dims[0] as f64).sqrt().recip() } else { 0.0 };
            let value = |element| (scale * reference::normal(key, 0, element)) as f32;
            let values: Vec<f32> = (0..dims.iter().product()).map(value).collect();
            Tensor::from_data(TensorData::new(values, dims), &tensor.device())
        })
    }
}
