//! The run: generations, table, curve.

use crate::args::{MujocoArgs, MujocoSettings};
use crate::chart::{self, MujocoPoint};
use crate::task::{Body, BodyName, Running};
use crate::throughput;
use burn::tensor::Device;
use eggroll::nn::Mlp;
use eggroll::prelude::*;
use eggroll::rl::mujoco::{HalfCheetah, Hopper, Humanoid, Walker2d};
use eggroll::rl::{EvaluationConfig, HostRolloutConfig, HostRollouts, ObservationNormalizer};
use eggroll::run::JsonLines;
use eggroll_examples::device::open;
use eggroll_examples::interrupt::Signals;
use eggroll_examples::run_folder::begin;
use eggroll_examples::{Ending, Failure, shown};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// Episodes of the evaluations on the way.
const EPISODES: usize = 16;
/// Episodes of the last one.
const LAST_EPISODES: usize = 100;
/// Seeds of evaluations, which have the same episodes in every run.
const SEED: u64 = 1_000_000;

/// A line of the log: what a checkpoint needs in addition to the strategy and the policy.
#[derive(Serialize, Deserialize)]
struct MujocoLine {
    #[serde(flatten)]
    point: MujocoPoint,
    normalizer: ObservationNormalizer,
}

/// When training ends.
#[derive(Clone, Copy)]
struct Budget {
    seconds: f64,
    generations: u64,
    env_steps: u64,
}

/// Trains, or continues, and prints the result.
pub fn run(args: MujocoArgs, signals: &Signals) -> Result<Ending, Failure> {
    let device = open(args.backend)?.device;
    let folder = RunFolder::new(args.out);
    if !args.resume {
        folder.check()?;
    }
    let settings: MujocoSettings = if args.resume { folder.resume()? } else { args.settings };
    settings.validate()?;
    let xml = args.xml.as_deref();
    let plan = MujocoPlan {
        folder,
        begins: !args.resume,
        budget: Budget {
            seconds: 60.0 * args.minutes,
            generations: args.generations.unwrap_or(u64::MAX),
            env_steps: args.env_steps.unwrap_or(u64::MAX),
        },
        compares: args.compare,
        throughput: args.throughput,
        device,
    };
    match settings.body {
        BodyName::HalfCheetah => plan.train(settings, HalfCheetah::open(xml)?, signals),
        BodyName::Hopper => plan.train(settings, Hopper::open(xml)?, signals),
        BodyName::Walker2d => plan.train(settings, Walker2d::open(xml)?, signals),
        BodyName::Humanoid => plan.train(settings, Humanoid::open(xml)?, signals),
    }
}

/// What the command line says in addition to the settings.
struct MujocoPlan {
    folder: RunFolder,
    begins: bool,
    budget: Budget,
    compares: bool,
    throughput: bool,
    device: Device,
}

impl MujocoPlan {
    fn train<B: Body>(self, settings: MujocoSettings, body: B, signals: &Signals) -> Result<Ending, Failure> {
        let Self { folder, begins, budget, compares, throughput, device } = self;
        if throughput {
            return print(throughput::measure(&settings, &body, &device)?, Ending::Finished);
        }
        if begins {
            begin(&folder, &settings)?;
        }
        let title = settings.body.title();
        let mut first = PolicyRun::new(settings.clone(), &body, folder.path().to_owned(), &device)?;
        let ending = first.train(budget, signals)?;
        if !compares || ending.is_stopped() {
            return print(first.result()?, ending);
        }
        let other = settings.noiser.other();
        let path = folder.file(other.name());
        fs::create_dir_all(&path)?;
        let mut second = PolicyRun::new(MujocoSettings { noiser: other, ..settings }, &body, path, &device)?;
        let budget = Budget { seconds: f64::INFINITY, generations: u64::MAX, env_steps: first.env_steps };
        let ending = second.train(budget, signals)?;
        chart::draw(&folder.file("compare.svg"), title, &[first.curve(), second.curve()])?;
        print(json!({ first.name(): first.result()?, second.name(): second.result()? }), ending)
    }
}

fn print(mut result: Value, ending: Ending) -> Result<Ending, Failure> {
    result["stopped"] = json!(ending.is_stopped());
    println!("RESULT {result}");
    Ok(ending)
}

/// One policy in training.
struct PolicyRun<B: Body> {
    settings: MujocoSettings,
    folder: PathBuf,
    device: Device,
    strategy: EvolutionStrategy,
    policy: Mlp,
    rollouts: HostRollouts<Running<B>>,
    /// For evaluations: whole episodes.
    whole: HostRolloutConfig,
    points: Vec<MujocoPoint>,
    env_steps: u64,
    /// Seconds that the run took before it was continued.
    before: f64,
    start: Instant,
}

impl<B: Body> PolicyRun<B> {
    /// A new run, or one that continues after the last checkpoint in its folder.
    fn new(settings: MujocoSettings, body: &B, folder: PathBuf, device: &Device) -> Result<Self, Failure> {
        device.seed(settings.seed);
        let policy = settings.policy(B::SIZES.0, B::SIZES.1).init(device);
        let whole = HostRolloutConfig::new().with_normalize_observations(true);
        let config = whole
            .clone()
            .with_episodes(settings.episodes)
            .with_max_steps(Some(settings.steps))
            .with_seed(settings.seed);
        let mut run = Self {
            strategy: settings.strategy().try_init(&policy)?,
            policy,
            rollouts: config.init(Running { body: body.clone(), survival: settings.survival })?,
            whole,
            settings,
            folder,
            device: device.clone(),
            points: Vec::new(),
            env_steps: 0,
            before: 0.0,
            start: Instant::now(),
        };
        if let Some((strategy, policy)) = run.checkpoints().load_latest(run.policy.clone())? {
            run.resume(strategy, policy)?;
        }
        Ok(run)
    }

    fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(self.folder.join("checkpoints"))
    }

    fn resume(&mut self, strategy: EvolutionStrategy, policy: Mlp) -> Result<(), Failure> {
        let generation = strategy.generation();
        (self.strategy, self.policy) = (strategy, policy);
        let mut lines: Vec<MujocoLine> = JsonLines::read(self.folder.join("curve.jsonl"))?;
        lines.retain(|line| line.point.generation <= generation);
        let last = lines.last().filter(|line| line.point.generation == generation);
        let last = last.ok_or_else(|| format!("curve.jsonl has no line of generation {generation}"))?;
        self.rollouts = self.rollouts.clone().with_normalizer(last.normalizer.clone())?;
        (self.before, self.env_steps) = (last.point.seconds, last.point.env_steps);
        self.points = lines.into_iter().map(|line| line.point).collect();
        println!("continuing after generation {generation}");
        Ok(())
    }

    fn normalizer(&self) -> ObservationNormalizer {
        self.rollouts.normalizer().expect("observations are normalized").clone()
    }

    fn name(&self) -> &'static str {
        self.settings.noiser.name()
    }

    fn curve(&self) -> (&str, &[MujocoPoint]) {
        (self.name(), &self.points)
    }

    fn seconds(&self) -> f64 {
        self.before + self.start.elapsed().as_secs_f64()
    }

    /// A signal ends it before its budget is spent, with a line and a checkpoint.
    fn train(&mut self, budget: Budget, signals: &Signals) -> Result<Ending, Failure> {
        println!("{}\n{}", self.name(), shown::lines(&self.settings, &[]));
        println!("{}", self.strategy.parameter_summary());
        println!("generation  seconds  env steps  per second  population    policy");
        let mut log = JsonLines::open(self.folder.join("curve.jsonl"), self.strategy.generation() + 1)?;
        self.start = Instant::now();
        let over = |run: &Self| {
            run.strategy.generation() >= budget.generations
                || run.env_steps >= budget.env_steps
                || run.seconds() >= budget.seconds
        };
        while !over(self) {
            let population_return = self.generation()?;
            let stopped = signals.came();
            if self.strategy.generation().is_multiple_of(self.settings.evaluate_every) || over(self) || stopped {
                self.report(&mut log, population_return)?;
            }
            if stopped && !over(self) {
                return Ok(Ending::Stopped);
            }
        }
        Ok(Ending::Finished)
    }

    /// Returns the population's mean return.
    fn generation(&mut self) -> Result<f64, Failure> {
        let population = self.strategy.ask();
        let outcome = self.rollouts.evaluate(&population, &self.policy);
        self.rollouts.update_normalizer(&outcome.episodes);
        self.env_steps += outcome.episodes.env_steps();
        self.strategy.tell(&mut self.policy, population, outcome.fitness)?;
        Ok(outcome.episodes.mean_return())
    }

    /// Mean return of the policy over whole episodes.
    fn evaluate(&self, episodes: usize) -> Result<f64, Failure> {
        let whole = self
            .whole
            .init(Running { survival: true, ..self.rollouts.task().clone() })?
            .with_normalizer(self.normalizer())?;
        Ok(whole
            .evaluate_model(&self.policy, &EvaluationConfig::new(episodes).with_seed(SEED), &self.device)
            .mean_return())
    }

    fn report(&mut self, log: &mut JsonLines, population_return: f64) -> Result<(), Failure> {
        let mean_return = self.evaluate(EPISODES)?;
        let (generation, seconds, env_steps) = (self.strategy.generation(), self.seconds(), self.env_steps);
        println!(
            "{generation:>10} {seconds:>8.1} {:>9.2}M {:>11.0} {population_return:>11.1} {mean_return:>9.1}",
            env_steps as f64 / 1e6,
            env_steps as f64 / seconds
        );
        let point = MujocoPoint { generation, seconds, env_steps, population_return, mean_return };
        log.write(&MujocoLine { point, normalizer: self.normalizer() })?;
        self.points.push(point);
        chart::draw(&self.folder.join("curve.svg"), self.settings.body.title(), &[self.curve()])?;
        self.checkpoints().save(&self.strategy, &self.policy)?;
        Ok(())
    }

    /// The result of the run: seconds are those to the last line of the table.
    fn result(&self) -> Result<Value, Failure> {
        let seconds = self.points.last().map_or(0.0, |point| point.seconds);
        let mean_return = self.evaluate(LAST_EPISODES)?;
        println!(
            "{}: mean return {mean_return:.1} over {LAST_EPISODES} episodes; curve: {}",
            self.name(),
            self.folder.join("curve.svg").display()
        );
        Ok(json!({
            "mean_return": mean_return,
            "train_seconds": seconds,
            "env_steps": self.env_steps,
            "env_steps_per_second": self.env_steps as f64 / seconds,
            "generations": self.strategy.generation(),
            "environment": self.settings.body.title(),
            "noiser": self.name(),
            "seed": self.settings.seed,
            "parameter_digest": parameter_digest(&self.policy),
        }))
    }
}
