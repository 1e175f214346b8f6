//! How episodes are run in environments of burn-rl, and who runs them.

use super::HostTask;
use super::play::Play;
use crate::distribution::{Communicator, DistributionError};
use crate::error::Error;
use crate::population::Population;
use crate::rollout::config::{EVALUATION, episode_keys, stream};
use crate::rollout::gather::gather;
use crate::rollout::normaliser::{Normalisation, ObservationNormaliser, Scaling};
use crate::rollout::{EpisodeStatistics, Policy, RolloutOutcome};
use burn::config::Config;
use burn::tensor::Device;
use burn_rl::Environment;
use eggroll_core::profile::{self, Component};
use eggroll_envs::EpisodeKey;

/// Settings of [`HostRollouts`].
#[derive(Config, Debug, PartialEq)]
pub struct HostRolloutConfig {
    /// Episodes of every member in a generation; all members have the same ones.
    #[config(default = 1)]
    pub episodes: usize,
    /// Steps after which episodes are cut off, if the environment's own limit is not below that.
    pub max_steps: Option<usize>,
    /// Whether policies see observations normalised by their running mean and variance ([`ObservationNormaliser`]).
    #[config(default = false)]
    pub normalise_observations: bool,
    /// Seed of the episodes.
    #[config(default = 0)]
    pub seed: u64,
}

impl HostRolloutConfig {
    /// Rollouts of a task.
    ///
    /// # Errors
    ///
    /// [`Error::Rollout`] if a count is 0.
    pub fn init<T: HostTask>(&self, task: T) -> Result<HostRollouts<T>, Error> {
        let size = task.observation_size();
        let counts =
            [("episodes", Some(self.episodes)), ("max_steps", self.max_steps), ("observation_size", Some(size))];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == Some(0)) {
            return Err(Error::Rollout(format!("{name} must be at least 1, not 0")));
        }
        let normalisation = Normalisation::new(self.normalise_observations, task.observation_size());
        Ok(HostRollouts { config: self.clone(), task, normalisation })
    }
}

/// Runs the episodes of populations in an environment of [burn-rl](Environment), which computes on the host (feature `rl`).
///
/// The policy stays on its device: a step is one forward of all rows of a chunk of members, one read of what it answers, and a step of
/// every environment whose episode is not over. On CPUs every core has a chunk of its own; with a model on a device the
/// environments of all members are shared out to the cores. Neither changes a bit of the returns.
///
/// # Example
///
/// A cart on a track that is to be brought to the middle.
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::Device;
/// use burn_rl::{Environment, StepResult};
/// use eggroll_core::EggrollConfig;
/// use eggroll_envs::EpisodeKey;
/// use eggroll_nn::MlpConfig;
/// use eggroll_train::{EvolutionStrategyConfig, HostRolloutConfig, HostTask};
///
/// struct Cart(f64);
///
/// impl Environment for Cart {
///     type State = f64;
///     type Action = f64;
///     const MAX_STEPS: usize = 20;
///
///     fn state(&self) -> f64 {
///         self.0
///     }
///     fn step(&mut self, action: f64) -> StepResult<f64> {
///         self.0 += action.clamp(-0.1, 0.1);
///         StepResult { next_state: self.0, reward: -self.0.abs(), done: false, truncated: false }
///     }
///     fn reset(&mut self) {
///         self.0 = 1.0;
///     }
/// }
///
/// struct Centre;
///
/// impl HostTask for Centre {
///     type Environment = Cart;
///
///     fn observation_size(&self) -> usize {
///         1
///     }
///     fn begin(&self, key: EpisodeKey) -> Cart {
///         Cart(key.uniform_in(-1.0, 1.0, 0, 0).into())
///     }
///     fn observe(&self, state: &f64, observation: &mut [f32]) {
///         observation[0] = *state as f32;
///     }
///     fn act(&self, outputs: &[f32]) -> f64 {
///         outputs[0].into()
///     }
/// }
///
/// # fn main() -> Result<(), eggroll_train::Error> {
/// let device = Device::flex();
/// let mut policy = MlpConfig::new(vec![1, 1]).init(&device);
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population(32);
/// let mut strategy = config.with_sigma(0.1).with_learning_rate(0.1).try_init(&policy)?;
/// let rollouts = HostRolloutConfig::new().with_episodes(4).init(Centre)?;
/// for _ in 0..30 {
///     let population = strategy.ask();
///     let outcome = rollouts.evaluate(&population, &policy);
///     policy = strategy.tell(policy, population, outcome.fitness)?;
/// }
/// let episodes = rollouts.evaluate_model(&policy, 100, 0, &device);
/// assert_eq!(episodes.lengths(), [20; 100]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HostRollouts<T> {
    config: HostRolloutConfig,
    task: T,
    normalisation: Normalisation,
}

impl<T: HostTask> HostRollouts<T> {
    /// The task.
    pub fn task(&self) -> &T {
        &self.task
    }

    /// The statistics of observations, if they are normalised: to be saved beside the model.
    pub fn normaliser(&self) -> Option<&ObservationNormaliser> {
        self.normalisation.statistics()
    }

    /// Goes on with statistics that were saved.
    ///
    /// # Errors
    ///
    /// [`Error::Rollout`] if they are of observations of another size, or observations are not normalised.
    pub fn with_normaliser(mut self, normaliser: ObservationNormaliser) -> Result<Self, Error> {
        self.normalisation.restore(normaliser)?;
        Ok(self)
    }

    /// Takes the observations of a generation into the running statistics; without normalisation there are none.
    pub fn observe(&mut self, episodes: &EpisodeStatistics) {
        self.normalisation.observe(episodes);
    }

    /// Runs the episodes of all members; their fitness is the mean return.
    ///
    /// The population's noise is held for the episodes where memory allows it, whatever the strategy's
    /// [`NoiseSourceConfig`](eggroll_core::NoiseSourceConfig): the values are the same.
    ///
    /// # Panics
    ///
    /// Panics if the policy answers another number of rows than it was asked, or an evaluation of the same model is running on this
    /// thread.
    #[track_caller]
    pub fn evaluate<P: Policy>(&self, population: &Population, policy: &P) -> RolloutOutcome {
        self.outcome(&self.rows(population, policy))
    }

    /// [`evaluate`](Self::evaluate) of a slice of the population, in a replica of several, as
    /// [`Rollouts::evaluate_gathering`](crate::Rollouts::evaluate_gathering).
    ///
    /// # Errors
    ///
    /// As [`Communicator::all_gather_words`]; [`DistributionError::Length`] if the slices of all ranks leave a gap.
    ///
    /// # Panics
    ///
    /// As [`evaluate`](Self::evaluate).
    #[track_caller]
    pub fn evaluate_gathering<P: Policy, C: Communicator + ?Sized>(
        &self,
        population: &Population,
        policy: &P,
        communicator: &mut C,
    ) -> Result<RolloutOutcome, DistributionError> {
        let own = self.rows(population, policy);
        let all = gather(population, &own, communicator)?;
        Ok(RolloutOutcome { episodes: self.statistics(&all), ..self.outcome(&own) })
    }

    /// What rows of members' episodes come to.
    fn outcome(&self, rows: &[f32]) -> RolloutOutcome {
        RolloutOutcome::of(self.statistics(rows), self.config.episodes)
    }

    /// The rows of all episodes of a population, member after member.
    #[track_caller]
    fn rows<P: Policy>(&self, population: &Population, policy: &P) -> Vec<f32> {
        let _span = profile::span(Component::Fitness, 0);
        let keys = episode_keys(self.config.seed, stream(population.generation()), self.config.episodes);
        let (device, scaling) = (population.device(), self.normalisation.scaling());
        population.evaluate_holding(|members| self.run(policy, &keys, members.count(), scaling.as_ref(), &device))
    }

    /// What rows of episodes come to.
    fn statistics(&self, rows: &[f32]) -> EpisodeStatistics {
        EpisodeStatistics::from_rows(rows, self.normalisation.row_width(), 1)
    }

    /// Runs episodes of the model as it is, without noise: `episodes` of them, from a seed of their own.
    ///
    /// # Panics
    ///
    /// Panics if the policy answers another number of rows than it was asked.
    #[track_caller]
    pub fn evaluate_model<P: Policy>(
        &self,
        policy: &P,
        episodes: usize,
        seed: u64,
        device: &Device,
    ) -> EpisodeStatistics {
        let keys = episode_keys(seed, EVALUATION, episodes);
        let rows = self.run(policy, &keys, 1, self.normalisation.scaling().as_ref(), device);
        self.statistics(&rows)
    }

    /// Plays the episodes of all keys with each of some members, whose rows are member-major. Returns the rows of
    /// [`EpisodeStatistics::from_rows`].
    #[track_caller]
    fn run<P: Policy>(
        &self,
        policy: &P,
        keys: &[EpisodeKey],
        members: usize,
        scaling: Option<&Scaling>,
        device: &Device,
    ) -> Vec<f32> {
        let limit = self.config.max_steps.unwrap_or(usize::MAX).min(T::Environment::MAX_STEPS);
        let mut play = Play::begin(&self.task, keys, members, scaling, limit);
        let mut state = policy.initial_state(play.rows(), device);
        while play.is_on() {
            let (outputs, next) = policy.forward(play.observations(device), state);
            state = next;
            play.step(outputs);
        }
        play.into_rows()
    }
}
