//! Training: generations of rollouts, until the task is solved or the budget is spent.

use super::args::Protocol;
use super::settings::Settings;
use super::{Session, Task};
use crate::names::NoiserName;
use crate::{Ending, Failure};
use burn::tensor::Device;
use eggroll_rl::{EvaluationConfig, Rollouts, TensorEnvironment};
use eggroll_run::RunFolder;
use eggroll_run::report::Writer;
use eggroll_train::EvolutionStrategy;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Episodes of a test of the mean policy.
const TEST_EPISODES: usize = 100;
/// Seeds of the episodes of tests: no episode of training, or of another test, is among them.
const TEST_SEED: u64 = 1 << 32;
/// Seeds of those that confirm a test: of many tests of an almost good policy one would pass by luck.
const CONFIRM_SEED: u64 = 2 << 32;

/// The state of training after some generation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    pub noiser: NoiserName,
    pub seed: u64,
    /// Generations done.
    pub generation: u64,
    /// Steps of episodes that had not ended, of all generations, tests not counted.
    pub env_steps: u64,
    /// With tests.
    pub seconds: f64,
    /// Mean return of the generation's members, noise included.
    pub population_return: f64,
    /// Mean return of the mean policy, if it was tested.
    pub policy_return: Option<f64>,
}

/// The result of a run.
pub struct Outcome {
    pub solved: bool,
    pub ending: Ending,
    /// Mean return of the mean policy over 100 episodes, those that confirm that a task is solved.
    pub mean_return: f64,
    pub last: Point,
}

/// Time of the parts of all generations so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    pub evaluate: Duration,
    /// `ask`, `tell` and the statistics of observations.
    pub update: Duration,
}

pub struct Trainer<'a, T: Task> {
    pub settings: &'a Settings,
    protocol: Protocol,
    /// Return at which the environment is solved.
    pub threshold: f64,
    rollouts: Rollouts<T::Environment>,
    strategy: EvolutionStrategy,
    pub network: T::Network,
    pub env_steps: u64,
    pub episodes: u64,
    pub times: Times,
    device: Device,
    start: Instant,
}

impl<'a, T: Task> Trainer<'a, T> {
    pub fn new(task: &T, settings: &'a Settings, session: &Session) -> Result<Self, Failure> {
        let start = Instant::now();
        let environment = task.environment();
        session.device.seed(settings.seed);
        let network = task.network(settings, &session.device);
        let strategy = settings.strategy().try_init(&network)?;
        Ok(Self {
            settings,
            protocol: session.protocol,
            threshold: environment.solved_at().map_or(f64::INFINITY, f64::from),
            rollouts: settings.rollouts(environment.actions()).init(environment)?,
            strategy,
            network,
            env_steps: 0,
            episodes: 0,
            times: Times::default(),
            device: session.device.clone(),
            start,
        })
    }

    /// Trains until the task is solved, the budget is spent or the program is to stop; shows some points on the way.
    pub fn run(
        &mut self,
        session: &Session,
        mut show: impl FnMut(Point) -> Result<(), Failure>,
    ) -> Result<Outcome, Failure> {
        self.start = Instant::now();
        let (mut solved, mut population_return) = (false, f64::NAN);
        while !solved && self.env_steps < self.settings.budget && !session.signals.came() {
            population_return = self.generation()?;
            if self.protocol == Protocol::Paper {
                solved = population_return >= self.threshold;
            }
            if self.generations().is_multiple_of(self.settings.test_every) {
                let policy_return = (self.protocol == Protocol::Policy).then(|| self.test(TEST_SEED));
                solved |= policy_return
                    .is_some_and(|found| found >= self.threshold && self.test(CONFIRM_SEED) >= self.threshold);
                show(self.point(population_return, policy_return))?;
            }
        }
        let spent = self.env_steps >= self.settings.budget;
        let ending = if solved || spent { Ending::Finished } else { session.signals.ending() };
        let last = self.point(population_return, None);
        let mean_return = self.test(CONFIRM_SEED);
        show(Point { policy_return: Some(mean_return), ..last })?;
        Ok(Outcome { solved, ending, mean_return, last })
    }

    /// What keeps the page of a run in a folder.
    pub fn report(&self, folder: &RunFolder) -> Writer {
        let device = format!("{:?}", self.device);
        Writer::new(folder.path(), device, self.generations()).with_parameters(self.strategy.parameters())
    }

    /// One generation; the mean return of its members.
    pub fn generation(&mut self) -> Result<f64, Failure> {
        let begin = Instant::now();
        let population = self.strategy.ask();
        let asked = Instant::now();
        let outcome = self.rollouts.evaluate(&population, &self.network);
        let evaluated = Instant::now();
        self.strategy.tell(&mut self.network, population, outcome.fitness)?;
        self.rollouts.update_normalizer(&outcome.episodes);
        self.env_steps += outcome.episodes.env_steps();
        self.episodes += outcome.episodes.returns().len() as u64;
        self.times.evaluate += evaluated - asked;
        self.times.update += (asked - begin) + evaluated.elapsed();
        Ok(outcome.episodes.mean_return())
    }

    pub fn generations(&self) -> u64 {
        self.strategy.generation()
    }

    /// Mean return of the mean policy, over other episodes for each generation.
    fn test(&self, seed: u64) -> f64 {
        let seed = seed + self.generations();
        self.rollouts
            .evaluate_model(&self.network, &EvaluationConfig::new(TEST_EPISODES).with_seed(seed), &self.device)
            .mean_return()
    }

    fn point(&self, population_return: f64, policy_return: Option<f64>) -> Point {
        Point {
            noiser: self.settings.noiser,
            seed: self.settings.seed,
            generation: self.generations(),
            env_steps: self.env_steps,
            seconds: self.start.elapsed().as_secs_f64(),
            population_return,
            policy_return,
        }
    }
}

impl Outcome {
    pub fn env_steps_per_second(&self) -> f64 {
        self.last.env_steps as f64 / self.last.seconds
    }
}
