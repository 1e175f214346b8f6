//! MNIST: a perceptron of 128 hidden units, 128 images a step, moved by a pixel at most.

use crate::learn::Method;
use crate::task::{Batch, CreditTask, Hook, Network};
use burn::tensor::{Device, Tensor};
use eggroll::nn::{Mlp, MlpConfig};
use eggroll::prelude::{EggrollConfig, EvolutionStrategyConfig, OptimizerConfig};
use eggroll::train::MuonAdamWConfig;
use eggroll_examples::Failure;
use eggroll_examples::digits::{Batches, CLASSES, Dataset, Images, PixelScale, accuracy};
use std::path::Path;

const HIDDEN: usize = 128;
const ROWS: usize = 128;
/// Images of the training split that `--dev` judges by.
const DEV: usize = 10_000;

pub struct Mnist {
    train: Images,
    judged: Dataset,
    scale: PixelScale,
    batches: Batches,
    seed: u64,
}

impl Mnist {
    pub fn new(folder: &Path, seed: u64, dev: bool) -> Result<Self, Failure> {
        let mut train = Images::read(folder, "train")?;
        let least = ROWS + if dev { DEV } else { 0 };
        if train.len() < least {
            return Err(format!("{} training images, where {least} are needed", train.len()).into());
        }
        let test = train.read_next(folder, "t10k")?;
        let judged = if dev { train.split_off(DEV) } else { test };
        let scale = train.scale();
        let judged = Dataset::new(&judged, scale, &Device::flex());
        let batches = Batches::new(seed, train.len(), ROWS, 1);
        Ok(Self { train, judged, scale, batches, seed })
    }
}

impl Network for Mlp {
    fn logits(&self, x: Tensor<2>, hook: &mut Hook<'_>) -> Tensor<2> {
        let (first, rest) = self.layers.split_first().expect("a layer");
        let y = hook(first, x.clone(), first.forward_shared(x));
        rest.iter().fold(y, |y, layer| {
            let x = self.activation.forward(y);
            hook(layer, x.clone(), layer.forward(x))
        })
    }
}

impl CreditTask for Mnist {
    type Network = Mlp;

    fn network(&self) -> Mlp {
        Device::flex().seed(self.seed);
        MlpConfig::new(vec![self.train.size(), HIDDEN, CLASSES]).init(&Device::flex())
    }

    fn batch(&mut self, step: u64) -> Batch {
        let images = self.train.select(&self.batches.samples(step));
        let Dataset { images: inputs, labels } = Dataset::new(&images, self.scale, &Device::flex());
        Batch { inputs, labels }
    }

    fn evolution(&self) -> EvolutionStrategyConfig {
        EvolutionStrategyConfig::new(EggrollConfig::new(), self.optimizer()).with_population_size(1024).with_sigma(0.02)
    }

    fn optimizer(&self) -> OptimizerConfig {
        MuonAdamWConfig::new().into()
    }

    fn rate(&self, method: Method) -> f64 {
        match method {
            Method::Backpropagation => 0.003,
            Method::OutputNoise | Method::Parts => 0.005,
            Method::Means => 0.01,
        }
    }

    /// Accuracy in percent.
    fn judge(&self, network: &Mlp) -> Result<f64, Failure> {
        Ok(100.0 * accuracy(&self.judged, |images| network.forward(images)))
    }
}
