//! Shakespeare by characters, as Burn's examples bring data: items, a batcher, loaders.

use super::model::TextGenerationModel;
use burn::data::dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher};
use burn::data::dataset::InMemDataset;
use eggroll::nn::loss::cross_entropy;
use eggroll::prelude::*;
use eggroll::run::text::{Alphabet, Text};
use std::f32::consts::LOG2_E;
use std::sync::Arc;

pub const STEPS: usize = 32;

/// Sequences and what follows each of their tokens, `[sequences, STEPS]` both.
#[derive(Clone, Debug)]
pub struct TextBatch {
    pub inputs: Tensor<2, Int>,
    pub targets: Tensor<2, Int>,
}

struct TextBatcher;

impl Batcher<Vec<i32>, TextBatch> for TextBatcher {
    fn batch(&self, items: Vec<Vec<i32>>, device: &Device) -> TextBatch {
        let (sequences, tokens) = (items.len(), items.concat());
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [sequences, STEPS + 1]), device);
        let at = |from: usize| tokens.clone().slice_dim(1, from..from + STEPS);
        TextBatch { inputs: at(0), targets: at(1) }
    }
}

pub struct Shakespeare {
    pub vocab_size: usize,
    pub train: Arc<dyn DataLoader<TextBatch>>,
    test: Arc<dyn DataLoader<TextBatch>>,
}

impl Shakespeare {
    /// Nine tenths of the text to learn from, 16 sequences a batch, and one tenth to test with.
    pub fn load(device: &Device) -> Result<Self, eggroll_examples::Failure> {
        let text = Text::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/text/shakespeare.txt"))?;
        let (train, test) = text.split(0.1)?;
        let alphabet = Alphabet::of(&train);
        let loader = |text: &[u8], stride: usize, batch_size: usize| {
            let tokens: Vec<i32> = alphabet.encode(text).into_iter().map(i32::from).collect();
            let items = tokens.windows(STEPS + 1).step_by(stride).map(<[i32]>::to_vec).collect();
            DataLoaderBuilder::new(TextBatcher)
                .batch_size(batch_size)
                .shuffle(0)
                .set_device(device.clone())
                .build(InMemDataset::new(items))
        };
        Ok(Self {
            vocab_size: alphabet.tokens(),
            train: loader(&train, STEPS / 2, 16),
            test: loader(&test, STEPS, 256),
        })
    }

    /// Bits a character on the test's text.
    pub fn bits(&self, model: &TextGenerationModel) -> f32 {
        let batches: Vec<TextBatch> = self.test.iter().take(4).flatten().collect();
        let mean = |batch: &TextBatch| {
            let logits = model.forward(batch.inputs.clone()).flatten::<2>(0, 1);
            cross_entropy(logits, batch.targets.clone().flatten(0, 1)).mean().into_scalar::<f32>()
        };
        LOG2_E * batches.iter().map(mean).sum::<f32>() / batches.len() as f32
    }
}
