//! The run: data, task and configuration of the learner, table, curve.

use crate::args::MnistArgs;
use crate::chart::{self, MnistPoint};
use crate::classifier::Classifier;
use crate::cnn::Cnn;
use crate::filters;
use crate::integer::IntegerMlp;
use crate::settings::{MnistSettings, ModelName};
use burn::module::Module;
use burn::tensor::Device;
use eggroll::core::messages;
use eggroll::prelude::*;
use eggroll::run::distribution::{Communicator, Distribution, detect, on_devices};
use eggroll::run::report;
use eggroll::run::{Interrupter, JsonLines, MetricTarget, ScalarMetric, Scalars};
use eggroll::run::{print_line, print_note};
use eggroll::train::GenerationReport;
use eggroll_examples::device::open;
use eggroll_examples::digits::{Batches, DigitsMlp, Images, PixelScale, Sample};
use eggroll_examples::interrupt::Signals;
use eggroll_examples::observers::ObserverArgs;
use eggroll_examples::options::Given;
use eggroll_examples::run_folder::{begin, fixed};
use eggroll_examples::{Ending, Failure, shown};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Generations between two checkpoints.
const CHECKPOINT_EVERY: u64 = 2000;
/// Generations between two reports of metrics.
const REPORT_EVERY: u64 = 100;
/// Options next to --resume.
const WITH_RESUME: [&str; 4] = ["resume", "out", "backend", "devices"];
/// The metric of validation.
const ACCURACY: &str = "Accuracy";

/// What is trained on, and what accuracy is reported on.
struct Data<C: Classifier> {
    train: Images,
    held_out: C::Data,
    scale: PixelScale,
    /// Side of the squares of pixels that the network sees as one.
    pool: usize,
    device: Device,
}

impl<C: Classifier> Data<C> {
    /// Reads the files. With a validation split, the test set is not read.
    fn read(folder: &Path, settings: &MnistSettings, device: &Device) -> Result<Self, Failure> {
        let mut train = Images::read(folder, "train")?;
        settings.validate(train.len(), train.shape)?;
        let held_out = match settings.validation {
            0 => train.read_next(folder, "t10k")?,
            count => train.split_off(count),
        };
        let (scale, pool) = (train.scale(), settings.pool);
        Ok(Self {
            held_out: C::data(&held_out.pooled(pool), scale, device),
            train,
            scale,
            pool,
            device: device.clone(),
        })
    }

    /// Rows and columns of pixels that the network sees of one image.
    fn shape(&self) -> [usize; 2] {
        self.train.shape.map(|length| length / self.pool)
    }

    /// Of what is trained on: a run does not continue with other images.
    fn digest(&self) -> String {
        data_digest([&self.train.pixels[..], &self.train.labels[..]])
    }

    /// A mini-batch on the device.
    fn batch(&self, samples: &[Sample]) -> C::Data {
        C::data(&self.train.select(samples).pooled(self.pool), self.scale, &self.device)
    }
}

/// Trains, or continues, and prints the result.
pub fn run(args: MnistArgs, given: &Given, signals: &Signals) -> Result<Ending, Failure> {
    let MnistArgs { data, out, resume, observers, backend, devices, settings: choices, .. } = args;
    if resume {
        let used = [&WITH_RESUME[..], &ObserverArgs::NAMES].concat();
        given.refuse_all_but(&used, "with --resume, which keeps the settings of the run")?;
    }
    let names = if devices.is_empty() { vec![backend] } else { devices };
    let devices = names.into_iter().map(|name| Ok(open(name)?.device)).collect::<Result<Vec<_>, Failure>>()?;
    let communicator = detect()?;
    let folder = RunFolder::new(out);
    if !resume {
        folder.check()?;
    }
    let settings: MnistSettings = if resume { folder.settings()? } else { choices.settings(given)? };
    let interrupter = signals.interrupter();
    let run = MnistRun { data: &data, folder: &folder, settings: &settings, resume, observers, interrupter };
    match (settings.model, &settings.noiser) {
        (ModelName::Cnn, _) => run.on::<Cnn>(&devices, communicator),
        (ModelName::Mlp, NoiserConfig::QEggroll(_)) => run.on::<IntegerMlp>(&devices, communicator),
        (ModelName::Mlp, _) => run.on::<DigitsMlp>(&devices, communicator),
    }
}

/// What a run consists of, whatever it trains and wherever.
struct MnistRun<'a> {
    data: &'a Path,
    folder: &'a RunFolder,
    settings: &'a MnistSettings,
    resume: bool,
    observers: ObserverArgs,
    interrupter: Interrupter,
}

impl MnistRun<'_> {
    /// Trains on one device, alone or as a process of several, or on several devices of this process.
    fn on<C: Classifier + Sync>(
        &self,
        devices: &[Device],
        communicator: Box<dyn Communicator>,
    ) -> Result<Ending, Failure> {
        let first = &devices[0];
        let data = Data::<C>::read(self.data, self.settings, first)?;
        first.seed(self.settings.seed);
        let model = C::new(data.shape(), self.settings, first)?;
        self.settings.strategy().try_init(&model)?;
        if devices.len() == 1 {
            return self.train(model, data, Distribution::new(communicator));
        }
        if communicator.size() > 1 {
            return Err("several devices belong to one process, not to each rank of a job".into());
        }
        let outcomes = on_devices(devices, |replica, device| {
            let data = Data::<C>::read(self.data, self.settings, device)?;
            self.train(model.clone().to_device(device), data, Distribution::new(replica))
        });
        let stopped = outcomes.iter().flatten().any(|ending| ending.is_stopped());
        let errors: Vec<String> = outcomes.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
        match errors.is_empty() {
            true => Ok(if stopped { Ending::Stopped } else { Ending::Finished }),
            false => Err(errors.join("; ").into()),
        }
    }

    fn train<C: Classifier>(&self, model: C, data: Data<C>, mut distribution: Distribution) -> Result<Ending, Failure> {
        let Self { folder, settings, .. } = *self;
        if !self.resume {
            distribution.lead(|| begin(folder, settings))?;
        }
        let leads = distribution.leads();
        let batches = Batches::new(settings.seed, data.train.len(), settings.batch, settings.shift);
        let digest = data.digest();
        let mut task = MnistTask { data, batches, folder, settings, leads, table: None };
        let config = EsTrainingConfig::new(settings.strategy(), settings.generations)
            .with_validate_every(settings.evaluate_every)
            .with_report_every(REPORT_EVERY)
            .with_checkpoint_every(CHECKPOINT_EVERY)
            .with_data(Some(digest))
            .with_early_stopping(self.observers.early_stopping(MetricTarget::highest(ACCURACY)))
            .with_settings(fixed(settings, &["generations"])?);
        let training = EsTraining::new(folder.clone(), config)
            .with_interrupter(self.interrupter.clone())
            .with_distribution(distribution)
            .metric_valid(ScalarMetric::new(ACCURACY));
        let outcome = self.observers.watch(training).launch(model, &mut task)?;
        // Rank 0 says how the job ended: launchers kill the others when one ends with a status, and it may not have printed yet.
        let Some(table) = task.table else { return Ok(Ending::Finished) };
        let done = outcome.strategy.generation();
        let ending = self.observers.ending(&outcome.stop, done);
        let accuracy = outcome.model.accuracy(&task.data.held_out);
        if let Some(weights) = outcome.model.first_layer() {
            let member = outcome.strategy.ask().member(&outcome.model, 0).first_layer();
            let noise = member.expect("of the same network") - weights.clone();
            let rows = [("weights of the first layer, by unit", weights), ("noise of a member", noise)];
            let path = folder.file("filters.svg");
            filters::draw(&path, task.data.shape(), rows)?;
            print_line!("first layer: {}", path.display());
        }
        let ending = table.finish(&outcome.model, done, accuracy, ending)?;
        // The page again, with the pictures; without it the run is the same.
        if let Err(error) = report::write(folder.path()) {
            print_note!("warning: {error}");
        }
        Ok(ending)
    }
}

/// A mini-batch for each generation, accuracy on what is held out.
struct MnistTask<'a, C: Classifier> {
    data: Data<C>,
    batches: Batches,
    folder: &'a RunFolder,
    settings: &'a MnistSettings,
    /// Whether this process prints and writes: rank 0 of several, or the only one.
    leads: bool,
    /// Its table, from the beginning of the run on.
    table: Option<AccuracyTable<'a>>,
}

impl<C: Classifier> EsTask<C> for MnistTask<'_, C> {
    type Output = Scalars;

    fn begin(&mut self, strategy: &EvolutionStrategy, _model: &C) -> Result<(), Failure> {
        eggroll_examples::trace::section("training");
        if !self.leads {
            return Ok(());
        }
        let done = strategy.generation();
        if done > 0 {
            print_line!("continuing after generation {done}");
        }
        let Self { data, settings, .. } = self;
        print_line!("{} training images\n{}", data.train.len(), shown::lines(settings, settings.unused()));
        print_line!("{}", strategy.parameter_summary());
        self.table = Some(AccuracyTable::open(self.folder, self.settings, done)?);
        Ok(())
    }

    fn evaluate(&mut self, model: &C, population: &Population) -> Result<Fitness, Failure> {
        let batch = self.data.batch(&self.batches.samples(population.generation()));
        Ok(model.fitness(population, &batch))
    }

    fn validate(&mut self, model: &C, report: &GenerationReport) -> Result<Vec<Scalars>, Failure> {
        let accuracy = model.accuracy(&self.data.held_out);
        let table = self.table.as_mut().expect("opened when the run began");
        table.add(report.generation + 1, report.fitness_mean, accuracy)?;
        Ok(vec![Scalars::from([(ACCURACY, accuracy)])])
    }
}

/// The table of accuracies: printed, logged and drawn.
struct AccuracyTable<'a> {
    settings: &'a MnistSettings,
    curve: PathBuf,
    log: JsonLines,
    points: Vec<MnistPoint>,
    /// Whether the titles are printed.
    titled: bool,
    /// Seconds that the run took before it was continued.
    before: f64,
    start: Instant,
}

impl<'a> AccuracyTable<'a> {
    fn open(folder: &RunFolder, settings: &'a MnistSettings, generation: u64) -> Result<Self, Failure> {
        let log = JsonLines::open(folder.file("curve.jsonl"), generation + 1)?;
        let points: Vec<MnistPoint> = JsonLines::read(folder.file("curve.jsonl"))?;
        let before = points.last().map_or(0.0, |point| point.seconds);
        let curve = folder.file("curve.svg");
        Ok(Self { settings, curve, log, points, titled: false, before, start: Instant::now() })
    }

    fn label(settings: &MnistSettings) -> &'static str {
        if settings.validation > 0 { "validation" } else { "test" }
    }

    fn seconds(&self) -> f64 {
        self.before + self.start.elapsed().as_secs_f64()
    }

    fn evaluations(&self, generation: u64) -> u64 {
        generation * self.settings.population as u64
    }

    fn add(&mut self, generation: u64, fitness: f64, accuracy: f64) -> Result<(), Failure> {
        let (seconds, member_evaluations) = (self.seconds(), self.evaluations(generation));
        let rate = member_evaluations as f64 / seconds;
        // With the first line: what the learner says of the first generation stands above.
        if !std::mem::replace(&mut self.titled, true) {
            let label = Self::label(self.settings);
            print_line!("generation  seconds  evaluations   per second   fitness  {label} accuracy");
        }
        print_line!(
            "{generation:>10} {seconds:>8.1} {:>11.2}M {:>11.0} {:>9.4} {:>8.2} %",
            member_evaluations as f64 / 1e6,
            rate,
            messages::shown(fitness, 4),
            100.0 * accuracy
        );
        let point = MnistPoint { generation, seconds, member_evaluations, fitness, accuracy };
        self.log.write(&point)?;
        self.points.push(point);
        chart::draw(&self.curve, &self.points, Self::label(self.settings))
    }

    fn finish(self, model: &impl Module, generation: u64, accuracy: f64, ending: Ending) -> Result<Ending, Failure> {
        let (seconds, evaluations) = (self.seconds(), self.evaluations(generation));
        let label = Self::label(self.settings);
        print_line!(
            "{label} accuracy {:.2} % after {evaluations} member evaluations in {seconds:.1} s",
            100.0 * accuracy
        );
        print_line!("curve: {}", self.curve.display());
        let mut result = json!({
            "train_seconds": seconds,
            "member_evaluations": evaluations,
            "evaluations_per_second": evaluations as f64 / seconds,
            "seed": self.settings.seed,
            "stopped": ending.is_stopped(),
            "parameter_digest": parameter_digest(model),
        });
        result[format!("{label}_accuracy")] = json!(accuracy);
        print_line!("RESULT {result}");
        Ok(ending)
    }
}
