//! Training: generations of rollouts, until the task is solved or the budget is spent.

use super::args::Protocol;
use super::settings::ControlSettings;
use super::{ControlSession, ControlTask};
use crate::names::NoiserName;
use crate::{Ending, Failure};
use burn::tensor::Device;
use eggroll::rl::{EvaluationConfig, Rollouts, TensorEnvironment};
use eggroll::run::RunFolder;
use eggroll::run::report::Writer;
use eggroll::train::EvolutionStrategy;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Episodes of a test of the mean policy.
const TEST_EPISODES: usize = 100;
/// Seeds of the episodes of tests: no episode of training, or of another test, is among them.
const TEST_SEED: u64 = 1 << 32;
/// Seeds of the episodes that confirm a test: of many tests of an almost good policy one would pass by luck.
const CONFIRM_SEED: u64 = 2 << 32;

/// The state of training after some generation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ControlPoint {
    pub noiser: NoiserName,
    pub seed: u64,
    /// Attempts given up before this one.
    pub restarts: u64,
    /// Generations done, of all attempts.
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
pub struct ControlResult {
    pub solved: bool,
    pub ending: Ending,
    /// Mean return of the mean policy over the 100 episodes that confirm a solved task.
    pub mean_return: f64,
    pub last: ControlPoint,
}

/// Time of the parts of all generations so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrainingTimes {
    pub evaluate: Duration,
    /// `ask`, `tell` and the statistics of observations.
    pub update: Duration,
}

/// What a run trains until it is solved or begins again.
struct Attempt<T: ControlTask> {
    rollouts: Rollouts<T::Environment>,
    strategy: EvolutionStrategy,
    network: T::Network,
}

impl<T: ControlTask> Attempt<T> {
    fn new(task: &T, settings: &ControlSettings, device: &Device) -> Result<Self, Failure> {
        let environment = task.environment();
        device.seed(settings.seed);
        let network = task.network(settings, device);
        let strategy = settings.strategy().try_init(&network)?;
        Ok(Self { rollouts: settings.rollouts(environment.actions()).init(environment)?, strategy, network })
    }
}

pub struct Trainer<'a, T: ControlTask> {
    task: &'a T,
    pub settings: &'a ControlSettings,
    protocol: Protocol,
    /// Return at which the environment is solved.
    pub threshold: f64,
    attempt: Attempt<T>,
    restarts: u64,
    /// Generations of the attempts before.
    given_up: u64,
    pub env_steps: u64,
    pub episodes: u64,
    pub times: TrainingTimes,
    device: Device,
    start: Instant,
}

impl<'a, T: ControlTask> Trainer<'a, T> {
    pub fn new(task: &'a T, settings: &'a ControlSettings, session: &ControlSession) -> Result<Self, Failure> {
        let start = Instant::now();
        Ok(Self {
            task,
            settings,
            protocol: session.protocol,
            threshold: task.environment().solved_at().map_or(f64::INFINITY, f64::from),
            attempt: Attempt::new(task, settings, &session.device)?,
            restarts: 0,
            given_up: 0,
            env_steps: 0,
            episodes: 0,
            times: TrainingTimes::default(),
            device: session.device.clone(),
            start,
        })
    }

    /// Trains until the task is solved, the budget is spent or the program is to stop; shows some points on the way.
    pub fn run(
        &mut self,
        session: &ControlSession,
        mut show: impl FnMut(ControlPoint) -> Result<(), Failure>,
    ) -> Result<ControlResult, Failure> {
        self.start = Instant::now();
        let (mut solved, mut population_return) = (false, f64::NAN);
        while !solved && self.env_steps < self.settings.budget && !session.signals.came() {
            if self.is_stuck() {
                self.restart()?;
            }
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
        show(ControlPoint { policy_return: Some(mean_return), ..last })?;
        Ok(ControlResult { solved, ending, mean_return, last })
    }

    /// What keeps the page of a run in a folder.
    pub fn report(&self, folder: &RunFolder) -> Writer {
        let device = format!("{:?}", self.device);
        Writer::new(folder.path(), device, self.generations()).with_parameters(self.attempt.strategy.parameters())
    }

    /// One generation; the mean return of its members.
    pub fn generation(&mut self) -> Result<f64, Failure> {
        let begin = Instant::now();
        let population = self.attempt.strategy.ask();
        let asked = Instant::now();
        let outcome = self.attempt.rollouts.evaluate(&population, &self.attempt.network);
        let evaluated = Instant::now();
        self.attempt.strategy.tell(&mut self.attempt.network, population, outcome.fitness)?;
        self.attempt.rollouts.update_normalizer(&outcome.episodes);
        self.env_steps += outcome.episodes.env_steps();
        self.episodes += outcome.episodes.returns().len() as u64;
        self.times.evaluate += evaluated - asked;
        self.times.update += (asked - begin) + evaluated.elapsed();
        Ok(outcome.episodes.mean_return())
    }

    /// Generations of all attempts.
    pub fn generations(&self) -> u64 {
        self.given_up + self.attempt.strategy.generation()
    }

    /// The network of the last attempt.
    pub fn network(&self) -> &T::Network {
        &self.attempt.network
    }

    fn is_stuck(&self) -> bool {
        self.settings.restart_after > 0 && self.attempt.strategy.generation() >= self.settings.restart_after
    }

    /// Gives the attempt up: other weights, noise and episodes, and nothing that was observed.
    fn restart(&mut self) -> Result<(), Failure> {
        self.given_up = self.generations();
        self.restarts += 1;
        self.attempt = Attempt::new(self.task, &self.settings.of_attempt(self.restarts), &self.device)?;
        Ok(())
    }

    /// Mean return of the mean policy, over other episodes for each generation.
    fn test(&self, seed: u64) -> f64 {
        let seed = seed + self.generations();
        self.attempt
            .rollouts
            .evaluate_model(&self.attempt.network, &EvaluationConfig::new(TEST_EPISODES).with_seed(seed), &self.device)
            .mean_return()
    }

    fn point(&self, population_return: f64, policy_return: Option<f64>) -> ControlPoint {
        ControlPoint {
            noiser: self.settings.noiser,
            seed: self.settings.seed,
            restarts: self.restarts,
            generation: self.generations(),
            env_steps: self.env_steps,
            seconds: self.start.elapsed().as_secs_f64(),
            population_return,
            policy_return,
        }
    }
}

impl ControlResult {
    pub fn env_steps_per_second(&self) -> f64 {
        self.last.env_steps as f64 / self.last.seconds
    }
}
