//! MNIST from Burn's `DataLoader`: `cargo run --release --example dataloader` takes a few seconds. An argument is a number of batches.
//!
//! Inside `evaluate` nothing changes for the data: a batch is the same for all members.

use burn::data::{dataloader::DataLoaderBuilder, dataloader::batcher::Batcher, dataset::InMemDataset};
use eggroll::prelude::*;
use eggroll_examples::digits::Images;

#[derive(Module, Debug)]
struct Mlp {
    first: nn::Linear,
    second: nn::Linear,
}

impl Mlp {
    fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::relu(self.first.forward_shared(images)))
    }
}

type Item = (Vec<u8>, u8); // pixels and label
struct ToTensors;

impl Batcher<Item, (Tensor<2>, Tensor<1, Int>)> for ToTensors {
    fn batch(&self, items: Vec<Item>, device: &Device) -> (Tensor<2>, Tensor<1, Int>) {
        let labels: Vec<i32> = items.iter().map(|(_, label)| i32::from(*label)).collect();
        let pixels = items.iter().flat_map(|(pixels, _)| pixels).map(|pixel| f32::from(*pixel) / 78.0);
        let images = TensorData::new(pixels.collect::<Vec<f32>>(), [items.len(), 784]);
        (Tensor::from_data(images, device), Tensor::from_ints(labels.as_slice(), device))
    }
}

fn items(name: &str) -> Result<InMemDataset<Item>, eggroll_examples::Failure> {
    let images = Images::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/mnist").as_ref(), name)?;
    let pixels = images.pixels.chunks_exact(784).map(<[u8]>::to_vec);
    Ok(InMemDataset::new(pixels.zip(images.labels).collect()))
}

fn main() -> Result<(), eggroll_examples::Failure> {
    let batches: usize = std::env::args().nth(1).map_or(Ok(400), |count| count.parse())?;
    let device = Device::flex();
    let train =
        DataLoaderBuilder::new(ToTensors).batch_size(128).shuffle(0).set_device(device.clone()).build(items("train")?);
    let test = DataLoaderBuilder::new(ToTensors).batch_size(1000).set_device(device.clone()).build(items("t10k")?);

    let (first, second) = (nn::LinearConfig::new(784, 64), nn::LinearConfig::new(64, 10));
    let mut model = Mlp { first: first.init(&device), second: second.init(&device) };
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let mut strategy = config.with_population_size(512).with_sigma(0.02).with_learning_rate(0.01).try_init(&model)?;
    for batch in train.iter().take(batches) {
        let (images, labels) = batch?;
        let population = strategy.ask();
        let fitness = population.evaluate(|members| {
            let logits = model.forward(images.clone()); // [members · 128, 10]
            -members.cross_entropy(logits, labels.clone())
        });
        let report = strategy.tell(&mut model, population, fitness)?;
        if strategy.generation() % 50 == 0 {
            println!("{report}");
        }
    }
    let mut accuracy = 0.0;
    for batch in test.iter() {
        let (images, labels) = batch?;
        let hits = model.forward(images).argmax(1).squeeze_dim::<1>(1).equal(labels);
        accuracy += hits.float().mean().into_scalar::<f32>() / 10.0; // ten batches
    }
    println!("test accuracy {:.2} %", 100.0 * accuracy);
    Ok(())
}
