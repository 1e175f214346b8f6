//! The run: text, model, what the learner asks of them.

use super::args::{CharLmArgs, CharLmLimits, CharLmSettings, ModelName, ModelSettings, OptimizerName};
use super::float::{Attention, FloatModel, Recurrence};
use super::language_model::LanguageModel;
use super::report::{Baselines, HeldOut, Interval, Report};
use super::samples::Samples;
use super::timing::{Timing, timed};
use eggroll::nn::integer::EggModel;
use eggroll::nn::integer::transformer::Transformer;
use eggroll::prelude::*;
use eggroll::run;
use eggroll::run::print_line;
use eggroll::run::text::{Alphabet, ByteStreams, Sampler, printable};
use eggroll::run::{Generation, Interrupter, MetricTarget, ScalarMetric, Scalars};
use eggroll::train::GenerationReport;
use eggroll_examples::device::{Opened, open};
use eggroll_examples::interrupt::Signals;
use eggroll_examples::options::Given;
use eggroll_examples::run_folder::{begin, fixed};
use eggroll_examples::{Ending, Failure, shown};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The metric of validation.
const BITS_PER_BYTE: &str = "Bits per byte";

/// Metrics of the transformer's activations.
const ATTENTION: &str = "Attention entropy (bits)";
const SATURATED: &str = "Most saturated activation (%)";

/// What is saved of a run next to its checkpoints.
#[derive(Serialize, Deserialize)]
struct SavedCharLmRun {
    #[serde(flatten)]
    settings: CharLmSettings,
    #[serde(flatten)]
    model: ModelSettings,
    #[serde(flatten)]
    limits: CharLmLimits,
}

/// Trains, or continues, and prints the result.
pub fn run(mut args: CharLmArgs, given: &Given, signals: &Signals) -> Result<Ending, Failure> {
    args.validate()?;
    args.settings.fill_in_size(&mut args.model, given);
    args.refuse_unused(given)?;
    let opened = open(args.backend)?;
    let folder = RunFolder::new(&args.out);
    if !args.resume && !args.forecast {
        folder.check()?;
    }
    let earlier: Option<SavedCharLmRun> = if args.resume { Some(folder.resume()?) } else { None };
    match earlier.as_ref().map_or(args.model.model, |saved| saved.model.model) {
        ModelName::Integer => run_model::<EggModel>(args, opened, folder, earlier, signals),
        ModelName::Transformer => run_model::<Transformer>(args, opened, folder, earlier, signals),
        ModelName::Gru => run_model::<FloatModel<Recurrence>>(args, opened, folder, earlier, signals),
        ModelName::FloatTransformer => run_model::<FloatModel<Attention>>(args, opened, folder, earlier, signals),
    }
}

fn run_model<M: LanguageModel>(
    args: CharLmArgs,
    Opened { device, hardware }: Opened,
    folder: RunFolder,
    earlier: Option<SavedCharLmRun>,
    signals: &Signals,
) -> Result<Ending, Failure> {
    let (mut settings, mut model, limits) = match &earlier {
        Some(saved) => (saved.settings.clone(), saved.model, saved.limits.renewed(args.limits)),
        None => (args.settings.clone(), args.model, args.limits),
    };
    settings.validate(&model, limits)?;
    settings.fill_in(&mut model);
    let text = settings.text(&model)?;
    let (train, held_out) = text.split(settings.validation_share)?;
    let held_out = held_out.head(settings.validation_bytes);
    let baselines = Baselines::new(&train, &held_out);
    let alphabet = model.alphabet(&train);
    let held_out = HeldOut::new(&held_out, &alphabet)?;
    device.seed(settings.seed);
    let initial = M::new(&settings, &model, alphabet.tokens(), &device);
    let streams = ByteStreams::new(alphabet.encode_text(&train)?, settings.streams(&model), settings.seq)?;
    let strategy = M::strategy(&settings, &model, args.backend.is_on_host());
    let begun = strategy.try_init(&initial)?;
    if args.forecast {
        let (population, mut state) = (begun.ask(), initial.initial_state(settings.states(&model)));
        let fitness = initial.evaluate(&population, &streams, settings.groups(&model), &mut state);
        match begun.forecast(&initial, &population, &fitness)? {
            Some(forecast) => print_line!("{forecast}"),
            None => print_line!("all members have the same scores"),
        }
        return Ok(Ending::Finished);
    }
    let (prompt, sampler) = (args.prompt(&train), args.sampler(settings.seed)?);
    let saved = SavedCharLmRun { settings: settings.clone(), model, limits };
    match earlier {
        Some(_) => folder.save_settings(&saved)?,
        None => begin(&folder, &saved)?,
    }
    let mut task = CharLmTask::<M> {
        settings: &settings,
        model,
        folder: &folder,
        limits,
        text_bytes: text.len(),
        tokens: alphabet.tokens(),
        baselines,
        held_out,
        streams,
        state: initial.initial_state(settings.states(&model)),
        timing: Timing::default(),
        written: (args.samples > 0).then_some((sampler, prompt, alphabet.clone())),
        samples: None,
        interval: Interval::default(),
        report: None,
        interrupter: signals.interrupter(),
    };
    let config = EsTrainingConfig::new(strategy, limits.generations())
        .with_validate_every(settings.validate_every)
        .with_report_every(settings.validate_every)
        .with_checkpoint_every(settings.checkpoint_every)
        .with_data(Some(data_digest([&text[..]])))
        .with_early_stopping(args.observers.early_stopping(MetricTarget::lowest(BITS_PER_BYTE)))
        .with_settings(fixed(&saved, &["data", "chunk", "checkpoint_every", "seconds", "generations"])?);
    let mut training = EsTraining::new(folder.clone(), config)
        .with_interrupter(signals.interrupter())
        .metric_valid(ScalarMetric::new(BITS_PER_BYTE).lower_is_better());
    if M::SHOWS_ACTIVATIONS {
        training = training.metric_valid(ScalarMetric::new(ATTENTION)).metric_valid(ScalarMetric::new(SATURATED));
    }
    let outcome = args.observers.watch(training).launch(initial, &mut task)?;
    let (model, done) = (outcome.model, outcome.strategy.generation());
    let CharLmTask { report, interval, timing, state, .. } = task;
    let mut report = report.expect("opened when the run began");
    if report.generation() != Some(done) {
        report.add(done, &model, interval, &timing)?;
    }
    let ending = args.observers.ending(&outcome.stop, done);
    let ending = if report.seconds() < limits.seconds() { ending } else { Ending::Finished };
    if alphabet.bits_of_others(prompt) > 0.0 {
        print_line!(
            "warning: the prompt has bytes that the training text does not have; the model cannot tell them apart"
        );
    }
    let samples = if ending.is_stopped() { 0 } else { args.samples };
    for sample in 0..samples {
        let sampler = args.sampler(settings.seed.wrapping_add(sample))?;
        let tokens = sampler.sample(&model, &alphabet.encode(prompt), args.sample_bytes);
        let text = printable(&alphabet.decode(&tokens));
        print_line!("--- sample {sample} at temperature {}\n{text}\n---", args.temperature);
    }
    report.finish(&model, &state, &timing, &hardware, ending)?;
    Ok(ending)
}

/// Streams of text for the population, each member with a separate state; bits per byte on what is held out.
struct CharLmTask<'a, M: LanguageModel> {
    settings: &'a CharLmSettings,
    model: ModelSettings,
    folder: &'a RunFolder,
    limits: CharLmLimits,
    text_bytes: usize,
    /// That the model tells apart.
    tokens: usize,
    baselines: Baselines,
    held_out: HeldOut,
    streams: ByteStreams,
    /// Of every member, `[population, width]` by layer, or of every sequence where members share it.
    state: M::State,
    timing: Timing,
    /// How samples are written, if any are.
    written: Option<(Sampler, &'a [u8], Alphabet)>,
    /// From the beginning of the run on.
    samples: Option<Samples>,
    interval: Interval<M>,
    /// From the beginning of the run on.
    report: Option<Report<'a>>,
    interrupter: Interrupter,
}

impl<'a, M: LanguageModel> CharLmTask<'a, M> {
    fn report(&mut self) -> &mut Report<'a> {
        self.report.as_mut().expect("opened when the run began")
    }

    /// Ends the run after its seconds.
    fn watch_time(&mut self) {
        if self.report().seconds() >= self.limits.seconds() {
            self.interrupter.stop(Some("out of time"));
        }
    }
}

impl<M: LanguageModel> EsTask<M> for CharLmTask<'_, M> {
    type Output = Scalars;

    fn begin(&mut self, strategy: &EvolutionStrategy, _model: &M) -> Result<(), Failure> {
        let done = strategy.generation();
        if done > 0 {
            print_line!("continuing after generation {done}");
        }
        let Self { text_bytes, tokens, settings, model, .. } = self;
        let hidden = [&["data"][..], &model.unused()].concat();
        print_line!("{text_bytes} bytes of text as {tokens} tokens\n{}", shown::lines(settings, &hidden));
        print_line!("{}", shown::lines(model, &hidden));
        print_line!("{}", strategy.parameter_summary());
        self.report =
            Some(Report::open(self.folder, (self.settings, &self.model), self.baselines, self.held_out.clone(), done)?);
        self.samples = self.written.take().map(|written| Samples::open(self.folder, written, done)).transpose()?;
        self.watch_time();
        Ok(())
    }

    fn before_generation(&mut self, strategy: &mut EvolutionStrategy, model: &M) -> Result<(), Failure> {
        self.interval.before = Some(model.clone());
        let rate = match self.model.optimizer {
            Some(OptimizerName::Votes) => return Ok(()),
            Some(OptimizerName::AdamW | OptimizerName::Muon) => self.model.integer_rate,
            None => Some(self.model.learning_rate),
        };
        let by_time = if self.settings.decay.is_some() { 0.0 } else { self.report().seconds() / self.limits.seconds() };
        let generations = self.settings.decay.unwrap_or(self.limits.generations());
        let done = by_time.max(strategy.generation() as f64 / generations as f64).min(1.0);
        strategy.set_learning_rate(rate.expect("filled in") * (1.0 - done))?;
        Ok(())
    }

    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Fitness, Failure> {
        let groups = self.settings.groups(&self.model);
        let Self { timing, state, streams, .. } = self;
        Ok(timed(&mut timing.evaluate, || model.evaluate(population, streams, groups, state)))
    }

    fn after_generation(&mut self, generation: &Generation<'_, M>) -> Result<Scalars, Failure> {
        self.interval.add(generation.fitness);
        self.timing.add(generation.times);
        self.watch_time();
        Ok(Scalars::default())
    }

    fn validate(&mut self, model: &M, report: &GenerationReport) -> Result<Vec<Scalars>, Failure> {
        let (interval, timing) = (std::mem::take(&mut self.interval), self.timing);
        let (bits, activations) = self.report().add(report.generation + 1, model, interval, &timing)?;
        if let Some(samples) = &mut self.samples {
            samples.add(report.generation + 1, bits, model)?;
        }
        let mut scalars = vec![(BITS_PER_BYTE, bits)];
        if let Some(activations) = activations {
            let not_rescaled = activations.tensors.iter().filter(|tensor| !tensor.is_rescaled());
            let saturated = not_rescaled.map(|tensor| tensor.saturated).fold(0.0, f64::max);
            scalars.extend([(ATTENTION, activations.attention_entropy()), (SATURATED, 100.0 * saturated)]);
        }
        Ok(vec![scalars.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()])
    }

    fn save(&self, checkpoints: &Checkpoints, strategy: &EvolutionStrategy, model: &M) -> Result<PathBuf, run::Error> {
        checkpoints.save_with_state(strategy, model, &M::Saved::from(self.state.clone()))
    }

    fn load(&mut self, checkpoints: &Checkpoints, model: M) -> Result<Option<(EvolutionStrategy, M)>, run::Error> {
        let loaded = checkpoints.load_latest_with_state(model, M::Saved::from(self.state.clone()))?;
        Ok(loaded.map(|(strategy, model, state)| {
            self.state = state.into();
            (strategy, model)
        }))
    }
}
