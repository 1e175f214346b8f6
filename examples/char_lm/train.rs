//! The run: text, model, strategy, the loop over generations.

use crate::args::{Args, Limits, ModelName, ModelSettings, Settings};
use crate::gru::GruModel;
use crate::language_model::LanguageModel;
use crate::report::{Baselines, Interval, Report};
use crate::run_folder::Folder;
use crate::timing::{Timing, timed};
use burn::tensor::Device;
use eggroll::nn::integer::EggModel;
use eggroll::prelude::*;
use eggroll::train::text::{ByteStreams, Sampler, Text, printable};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

pub type Failure = Box<dyn Error + Send + Sync>;

/// What is saved of a run beside its checkpoints.
#[derive(Serialize, Deserialize)]
struct Saved {
    #[serde(flatten)]
    settings: Settings,
    #[serde(flatten)]
    model: ModelSettings,
    #[serde(flatten)]
    limits: Limits,
    /// Length of the text: positions in another one would be others.
    text_bytes: usize,
}

/// Trains, or continues, and prints the result.
pub fn run(args: Args, stop: &AtomicBool) -> Result<(), Failure> {
    args.validate()?;
    let folder = Folder { path: args.out.clone() };
    let earlier: Option<Saved> = if args.resume { Some(folder.settings()?) } else { None };
    match earlier.as_ref().map_or(args.model.model, |saved| saved.model.model) {
        ModelName::Integer => run_model::<EggModel>(args, folder, earlier, stop),
        ModelName::Gru => run_model::<GruModel>(args, folder, earlier, stop),
    }
}

fn run_model<M: LanguageModel>(
    args: Args,
    folder: Folder,
    earlier: Option<Saved>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let (settings, model, limits) = match &earlier {
        Some(saved) => (saved.settings.clone(), saved.model, saved.limits.renewed(args.limits)),
        None => (args.settings.clone(), args.model, args.limits),
    };
    settings.validate(limits)?;
    let text = Text::open(&settings.data)?;
    if let Some(saved) = &earlier
        && saved.text_bytes != text.len()
    {
        let (path, then, now) = (settings.data.display(), saved.text_bytes, text.len());
        return Err(format!("{path} had {then} bytes when the run began and has {now} now").into());
    }
    let (train, held_out) = text.split(settings.validation_share)?;
    let held_out = held_out.head(settings.validation_bytes);
    let baselines = Baselines::new(&train, &held_out);
    let mut trainer = Trainer::<M>::new(&settings, &model, train, &args)?;
    let saved = Saved { settings: settings.clone(), model, limits, text_bytes: text.len() };
    match earlier {
        Some(_) => fs::write(folder.file("settings.json"), serde_json::to_vec_pretty(&saved)?)?,
        None => folder.begin(&saved)?,
    }
    if args.resume {
        trainer.load(&folder)?;
    }
    println!("{} bytes of text, {settings:?}\n{}", text.len(), trainer.strategy.parameter_summary());
    let mut report = Report::open(&folder, &settings, baselines, held_out, trainer.strategy.generation())?;
    trainer.train(&folder, &mut report, limits, stop)?;
    for sample in 0..args.samples {
        let sampler = Sampler::new(args.temperature, settings.seed.wrapping_add(sample))?;
        let bytes = sampler.sample(&trainer.model, args.prompt.as_bytes(), args.sample_bytes);
        println!("--- sample {sample} at temperature {}\n{}\n---", args.temperature, printable(&bytes));
    }
    report.finish(&trainer.model, &trainer.state, &trainer.timing)
}

struct Trainer<'a, M: LanguageModel> {
    settings: &'a Settings,
    strategy: EvolutionStrategy,
    model: M,
    /// Of every member: `[population, width]` by layer.
    state: M::State,
    streams: ByteStreams,
    device: Device,
    /// Chunks side by side on all cores.
    parallel: bool,
    timing: Timing,
}

impl<'a, M: LanguageModel> Trainer<'a, M> {
    fn new(settings: &'a Settings, own: &ModelSettings, text: Text, args: &Args) -> Result<Self, Failure> {
        let streams = ByteStreams::new(text, settings.streams(), settings.seq)?;
        let device = args.backend.device()?;
        device.seed(settings.seed);
        let model = M::new(settings, &device);
        let parallel = args.backend.is_cpu();
        let strategy = M::strategy(settings, own, parallel).try_init(&model)?;
        let state = model.initial_state(settings.population);
        Ok(Self { settings, strategy, model, state, streams, device, parallel, timing: Timing::default() })
    }

    /// Takes over the latest checkpoint, if there is one.
    fn load(&mut self, folder: &Folder) -> Result<(), Failure> {
        let state = M::Saved::from(self.state.clone());
        if let Some((strategy, model, state)) = folder.checkpoints().load_latest_carrying(self.model.clone(), state)? {
            (self.strategy, self.model, self.state) = (strategy, model, state.into());
            println!("continuing after generation {}", self.strategy.generation());
        }
        Ok(())
    }

    fn save(&self, folder: &Folder) -> Result<(), Failure> {
        let state = M::Saved::from(self.state.clone());
        folder.checkpoints().save_carrying(&self.strategy, &self.model, &state)?;
        Ok(())
    }

    fn train(
        &mut self,
        folder: &Folder,
        report: &mut Report,
        limits: Limits,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let every = self.settings.checkpoint_every;
        let mut interval = Interval::default();
        let done = |trainer: &Self| trainer.strategy.generation();
        let mut saved = None;
        while done(self) < limits.generations() && report.seconds() < limits.seconds() && !stop.load(Ordering::Relaxed)
        {
            interval.before = Some(self.model.clone());
            self.generation(&mut interval)?;
            if done(self).is_multiple_of(self.settings.validate_every) {
                report.add(done(self), &self.model, std::mem::take(&mut interval), &self.timing)?;
            }
            if every > 0 && done(self).is_multiple_of(every) {
                self.save(folder)?;
                saved = Some(done(self));
            }
        }
        if saved != Some(done(self)) {
            self.save(folder)?;
        }
        if report.generation() != Some(done(self)) {
            report.add(done(self), &self.model, interval, &self.timing)?;
        }
        if done(self) < limits.generations() {
            println!("stopped after generation {}: continue with --resume", done(self));
        }
        Ok(())
    }

    /// One generation: ask, evaluate, tell.
    fn generation(&mut self, interval: &mut Interval<M>) -> Result<(), Failure> {
        let Self { strategy, model, timing, .. } = self;
        let population = timed(&mut timing.noise, || strategy.ask());
        let batch = timed(&mut timing.data, || {
            self.streams.batch(population.generation(), self.settings.group_size, &self.device)
        });
        let state = self.state.clone();
        let score = |members: &Members, state: M::State| {
            let (logits, state) = model.forward(members.rows(batch.inputs.clone()), state); // [members, steps, 256]
            let targets = members.rows(batch.targets.clone()).flatten::<1>(0, 1); // [members · steps]
            (M::log_likelihood(logits.flatten::<2>(0, 1), targets, members.count()), state)
        };
        let (fitness, state) = timed(&mut timing.evaluate, || match self.parallel {
            true => population.evaluate_parallel_carrying(state, score),
            false => population.evaluate_carrying(state, score),
        });
        self.state = state;
        interval.add(&fitness);
        self.model = timed(&mut timing.update, || strategy.tell(model.clone(), population, fitness))?;
        timing.generations += 1;
        Ok(())
    }
}
