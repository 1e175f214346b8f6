//! The network before the damage: trained by backpropagation, or read from a file.

use crate::args::FinetuneArgs;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams};
use burn::store::{ModuleSnapshot, SafetensorsStore};
use burn::tensor::{Device, Tensor};
use eggroll::nn::weights;
use eggroll_examples::Failure;
use eggroll_examples::digits::{Batches, Dataset, DigitsMlp, Images, PixelScale};
use eggroll_examples::interrupt::Signals;
use std::time::Instant;

/// Images of a step of backpropagation.
const BATCH: usize = 128;
const LEARNING_RATE: f64 = 1e-3;

/// Where the network comes from.
pub struct Pretrained<'a> {
    pub args: &'a FinetuneArgs,
    pub train: &'a Images,
    pub scale: PixelScale,
    pub device: &'a Device,
    pub signals: &'a Signals,
}

impl Pretrained<'_> {
    /// The network.
    pub fn model(&self) -> Result<DigitsMlp, Failure> {
        let model = DigitsMlp::new(self.train.size(), &self.args.hidden, self.device);
        let model = match &self.args.weights {
            Some(file) => weights::load(model, &mut SafetensorsStore::from_file(file), file)?,
            None => self.backpropagate(model),
        };
        if let Some(file) = self.args.save.as_ref().filter(|_| !self.signals.came()) {
            let saved = model.save_into(&mut SafetensorsStore::from_file(file).overwrite(true));
            saved.map_err(|error| format!("{}: {error}", file.display()))?;
        }
        Ok(model)
    }

    fn backpropagate(&self, model: DigitsMlp) -> DigitsMlp {
        let batch = BATCH.min(self.train.len());
        let mut batches = Batches::new(self.args.seed, self.train.len(), batch, 0);
        let steps = self.args.epochs.saturating_mul((self.train.len() / batch) as u64);
        let loss = CrossEntropyLossConfig::new().init(&self.device.clone().autodiff());
        let (mut model, mut optimizer, start) = (model.train(), AdamConfig::new().init(), Instant::now());
        let mut done = 0;
        for step in 0..steps {
            if self.signals.came() {
                break;
            }
            let batch = Dataset::new(&self.train.select(&batches.samples(step)), self.scale, self.device);
            let (images, labels) = (Tensor::from_inner(batch.images), Tensor::from_inner(batch.labels));
            let gradients = loss.forward(model.forward(images), labels).backward();
            let gradients = GradientsParams::from_grads(gradients, &model);
            model = optimizer.step(LEARNING_RATE, model, gradients);
            done = step + 1;
        }
        println!("{done} steps of backpropagation in {:.1} s", start.elapsed().as_secs_f64());
        model.valid()
    }
}
