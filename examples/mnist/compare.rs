//! EGGROLL, OpenES and backpropagation on the same model and data, fed by Burn's `DataLoader`.

use crate::args::MnistArgs;
use crate::evolution::likelihood;
use crate::settings::{MnistSettings, ModelName};
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataloader::{DataLoader, DataLoaderBuilder};
use burn::data::dataset::InMemDataset;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData};
use clap::ValueEnum;
use eggroll::core::NoiserConfig;
use eggroll::run::print_line;
use eggroll_examples::device::open;
use eggroll_examples::digits::{Dataset, DigitsMlp, Images, PixelScale};
use eggroll_examples::interrupt::Signals;
use eggroll_examples::observers::ObserverArgs;
use eggroll_examples::options::Given;
use eggroll_examples::{Ending, Failure};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// What is compared.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Method {
    Eggroll,
    OpenEs,
    Backpropagation,
}

/// What a comparison has no use for: it leaves no run behind, its batches are whole images in Burn's order, and its noisers are two.
const NOT_COMPARED: [&str; 8] =
    ["out", "resume", "generations", "evaluate-every", "validation", "shift", "noiser", "preset"];

/// Batches whose plain inference is timed.
const INFERENCE_BATCHES: usize = 50;

/// One image with its label.
#[derive(Clone, Debug)]
struct LabeledImage {
    pixels: Vec<u8>,
    label: u8,
}

/// Items to tensors.
#[derive(Clone)]
struct ToTensors(PixelScale);

impl Batcher<LabeledImage, Dataset> for ToTensors {
    fn batch(&self, items: Vec<LabeledImage>, device: &Device) -> Dataset {
        let count = items.len();
        let pixels: Vec<f32> = items.iter().flat_map(|item| self.0.apply(&item.pixels)).collect();
        let labels: Vec<i32> = items.iter().map(|item| i32::from(item.label)).collect();
        let size = pixels.len() / count;
        Dataset {
            images: Tensor::from_data(TensorData::new(pixels, [count, size]), device),
            labels: Tensor::<1, Int>::from_data(TensorData::new(labels, [count]), device),
        }
    }
}

/// The result of one method in one epoch.
struct MethodResult {
    name: &'static str,
    milliseconds: f64,
    samples_per_second: f64,
    overhead: f64,
    accuracy: f64,
}

struct Comparison<'a> {
    settings: MnistSettings,
    epochs: usize,
    /// Images of an epoch.
    images: usize,
    loader: Arc<dyn DataLoader<Dataset>>,
    test: Dataset,
    model: DigitsMlp,
    device: Device,
    signals: &'a Signals,
}

/// Runs each method and prints the table.
pub fn run(args: MnistArgs, given: &Given, signals: &Signals) -> Result<Ending, Failure> {
    let device = open(args.backend)?.device;
    let settings = args.settings.settings(given)?;
    if let NoiserConfig::QEggroll(_) = settings.noiser {
        return Err("--compare is for float networks and cannot be used with q-eggroll".into());
    }
    if args.epochs == 0 {
        return Err("--epochs must be at least 1, not 0".into());
    }
    if settings.model == ModelName::Cnn {
        return Err("--compare is for the mlp and cannot be used with the cnn".into());
    }
    given.refuse(
        &[&NOT_COMPARED[..], &ObserverArgs::NAMES].concat(),
        "with --compare, which trains all methods for --epochs on whole data",
    )?;
    let images = Images::read(&args.data, "train")?;
    settings.validate(images.len(), images.shape)?;
    let test = images.read_next(&args.data, "t10k")?.pooled(settings.pool);
    let images = images.pooled(settings.pool);
    let (scale, inputs) = (images.scale(), images.size());
    let test = Dataset::new(&test, scale, &device);
    let count = images.len();
    let items = images.pixels.chunks(inputs).zip(&images.labels);
    let items = items.map(|(pixels, label)| LabeledImage { pixels: pixels.to_vec(), label: *label }).collect();
    let loader = DataLoaderBuilder::new(ToTensors(scale))
        .batch_size(settings.batch)
        .shuffle(settings.seed)
        .set_device(device.clone())
        .build(InMemDataset::new(items));
    device.seed(settings.seed);
    let model = DigitsMlp::new(inputs, &settings.hidden, &device);
    let comparison = Comparison { settings, epochs: args.epochs, images: count, loader, test, model, device, signals };
    let outcome = |method: &Method| match method {
        Method::Eggroll => comparison.evolve("eggroll"),
        Method::OpenEs => comparison.evolve("open_es"),
        Method::Backpropagation => comparison.backpropagate(),
    };
    let outcomes = args.methods.iter().map(outcome).collect::<Result<Vec<_>, _>>()?;
    // Outcomes of methods that were not over are missing.
    let ending = if outcomes.iter().any(Option::is_none) { Ending::Stopped } else { Ending::Finished };
    let outcomes: Vec<MethodResult> = outcomes.into_iter().flatten().collect();
    comparison.report(&outcomes, ending);
    Ok(ending)
}

impl Comparison<'_> {
    /// Batches of full size in all epochs.
    fn steps(&self) -> usize {
        self.epochs * (self.images / self.settings.batch)
    }

    /// Makes a step on each of these batches; returns the seconds that steps took, without loading, or nothing if a signal came.
    fn train(&self, mut step: impl FnMut(Dataset) -> Result<(), Failure>) -> Result<Option<f64>, Failure> {
        let mut seconds = 0.0;
        for _ in 0..self.epochs {
            let batches = self.loader.iter().collect::<Result<Vec<_>, _>>()?;
            for batch in batches.into_iter().filter(|batch| batch.len() == self.settings.batch) {
                if self.signals.came() {
                    return Ok(None);
                }
                let start = Instant::now();
                step(batch)?;
                seconds += start.elapsed().as_secs_f64();
            }
        }
        Ok(Some(seconds))
    }

    /// Nothing if a signal came.
    fn evolve(&self, name: &'static str) -> Result<Option<MethodResult>, Failure> {
        let settings =
            MnistSettings { noiser: name.parse()?, generations: self.steps() as u64, ..self.settings.clone() };
        let mut model = self.model.clone();
        let mut strategy = settings.strategy().try_init(&model)?;
        eggroll_examples::trace::section(name);
        let seconds = self.train(|batch| {
            let population = strategy.ask();
            let fitness = likelihood(&population, &batch, |images| model.forward(images));
            strategy.tell(&mut model, population, fitness)?;
            Ok(())
        })?;
        Ok(seconds.map(|seconds| self.outcome(name, seconds, settings.population, &model)))
    }

    /// The same.
    fn backpropagate(&self) -> Result<Option<MethodResult>, Failure> {
        let device = self.device.clone().autodiff();
        let mut model = self.model.clone().train();
        let mut optimizer = AdamConfig::new().init();
        let loss = CrossEntropyLossConfig::new().init(&device);
        // As evolution's: along half a cosine.
        let mut rate = CosineAnnealingLrSchedulerConfig::new(1e-3, self.steps()).init()?;
        let seconds = self.train(|batch| {
            let (images, labels) = (Tensor::from_inner(batch.images), Tensor::from_inner(batch.labels));
            let gradients = loss.forward(model.forward(images), labels).backward();
            let gradients = GradientsParams::from_grads(gradients, &model);
            model = optimizer.step(rate.step(), model.clone(), gradients);
            Ok(())
        })?;
        Ok(seconds.map(|seconds| self.outcome("backpropagation", seconds, 1, &model.valid())))
    }

    /// Overhead is the time of a batch over plain inference of as many rows: `batch · members`.
    fn outcome(&self, name: &'static str, seconds: f64, members: usize, model: &DigitsMlp) -> MethodResult {
        let seconds = seconds / self.steps() as f64;
        MethodResult {
            name,
            milliseconds: 1e3 * seconds,
            samples_per_second: self.settings.batch as f64 / seconds,
            overhead: seconds / (self.inference_seconds(members) * members as f64),
            accuracy: model.accuracy(&self.test),
        }
    }

    /// Seconds that plain inference takes for one batch, when `members` batches are folded into one input as a population
    /// is, up to a size that memory holds with ease.
    fn inference_seconds(&self, members: usize) -> f64 {
        let folded = members.min(64);
        let rows = self.settings.batch * folded;
        let images = self.test.images.clone().repeat_dim(0, rows.div_ceil(self.test.len())).slice(0..rows);
        let forward = || self.model.forward(images.clone()).into_data();
        forward();
        let start = Instant::now();
        (0..INFERENCE_BATCHES).for_each(|_| drop(forward()));
        start.elapsed().as_secs_f64() / (INFERENCE_BATCHES * folded) as f64
    }

    fn report(&self, outcomes: &[MethodResult], ending: Ending) {
        print_line!("{} epochs, batch {}, population {}", self.epochs, self.settings.batch, self.settings.population);
        print_line!("method            ms per batch   samples/s   x inference   test accuracy");
        let mut result = serde_json::Map::new();
        for outcome in outcomes {
            print_line!(
                "{:<16} {:>13.3} {:>11.0} {:>13.2} {:>13.2} %",
                outcome.name,
                outcome.milliseconds,
                outcome.samples_per_second,
                outcome.overhead,
                100.0 * outcome.accuracy
            );
            let figures = json!({
                "milliseconds_per_batch": outcome.milliseconds,
                "samples_per_second": outcome.samples_per_second,
                "overhead_over_inference": outcome.overhead,
                "test_accuracy": outcome.accuracy,
            });
            result.insert(outcome.name.to_owned(), figures);
        }
        result.insert("seed".to_owned(), json!(self.settings.seed));
        result.insert("stopped".to_owned(), json!(ending.is_stopped()));
        print_line!("RESULT {}", Value::Object(result));
    }
}
