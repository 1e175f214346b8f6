//! How episodes are run, and who runs them.

use super::head::ActionHead;
use super::normaliser::{Normalisation, ObservationNormaliser};
use super::policy::Policy;
use super::statistics::{EpisodeStatistics, RolloutOutcome};
use super::tensors::TensorRun;
use crate::error::Error;
use crate::population::{Members, Population};
use burn::config::Config;
use burn::tensor::Device;
use eggroll_core::profile::{self, Component};
use eggroll_envs::{EpisodeKey, TensorEnvironment};

/// Settings of [`Rollouts`].
#[derive(Config, Debug)]
pub struct RolloutConfig {
    /// Episodes of every member in a generation; all members have the same ones.
    #[config(default = 1)]
    pub episodes: usize,
    /// How outputs become actions.
    #[config(default = "ActionHead::Greedy")]
    pub head: ActionHead,
    /// Whether policies see observations normalised by their running mean and variance ([`ObservationNormaliser`]).
    #[config(default = false)]
    pub normalise_observations: bool,
    /// Steps that an action lasts.
    #[config(default = 1)]
    pub action_repeat: usize,
    /// Steps of the policy from one look whether all episodes are over to the next: each is a host read, of which fused rollouts have
    /// none.
    #[config(default = 16)]
    pub check_every: usize,
    /// Whether a chain of layers runs fused on CPUs.
    #[config(default = true)]
    pub fused: bool,
    /// Seed of the episodes.
    #[config(default = 0)]
    pub seed: u64,
}

impl RolloutConfig {
    /// Rollouts in an environment.
    ///
    /// # Errors
    ///
    /// [`Error::Rollout`] if a count is 0, or the head does not fit the environment's actions.
    pub fn init<E: TensorEnvironment>(&self, environment: E) -> Result<Rollouts<E>, Error> {
        let counts =
            [("episodes", self.episodes), ("action_repeat", self.action_repeat), ("check_every", self.check_every)];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(Error::Rollout(format!("{name} must be at least 1, not 0")));
        }
        let actions = environment.actions();
        if !self.head.fits(actions) {
            return Err(Error::Rollout(format!("the head {:?} makes no actions of {actions:?}", self.head)));
        }
        let normalisation = Normalisation::new(self.normalise_observations, environment.observation_size());
        Ok(Rollouts { config: self.clone(), environment, normalisation })
    }
}

/// Runs the episodes of populations in an environment.
///
/// An episode is addressed by the seed, the generation and its number: it begins the same on every backend, in every chunk and
/// shard. All members act at once, as rows of a batch on the device of the policy; on CPUs a policy that is a chain of layers
/// ([`Policy::layers`]) runs fused, without tensors, and comes to the same returns.
///
/// # Example
///
/// ```
/// use burn::optim::SgdConfig;
/// use burn::tensor::Device;
/// use eggroll_core::EggrollConfig;
/// use eggroll_envs::CartPole;
/// use eggroll_nn::MlpConfig;
/// use eggroll_train::{EvolutionStrategyConfig, RolloutConfig};
///
/// # fn main() -> Result<(), eggroll_train::Error> {
/// let device = Device::flex();
/// let mut policy = MlpConfig::new(vec![4, 16, 2]).init(&device);
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
/// let mut strategy = config.with_population(64).with_sigma(0.3).try_init(&policy)?;
/// let rollouts = RolloutConfig::new().init(CartPole::new())?;
/// for _ in 0..2 {
///     let population = strategy.ask();
///     let outcome = rollouts.evaluate(&population, &policy);
///     policy = strategy.tell(policy, population, outcome.fitness)?;
/// }
/// let episodes = rollouts.evaluate_model(&policy, 10, 0, &device);
/// assert!(episodes.mean_return() >= 1.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Rollouts<E> {
    config: RolloutConfig,
    environment: E,
    normalisation: Normalisation,
}

/// The stream of episodes that [`Rollouts::evaluate_model`] draws: no generation's.
pub(super) const EVALUATION: u32 = u32::MAX;

impl<E: TensorEnvironment> Rollouts<E> {
    /// The environment.
    pub fn environment(&self) -> &E {
        &self.environment
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
    /// Panics if the policy's shapes do not fit the environment, or an evaluation of the same model is running on this thread.
    #[track_caller]
    pub fn evaluate<P: Policy>(&self, population: &Population, policy: &P) -> RolloutOutcome {
        self.outcome(&self.rows(population, policy))
    }

    /// What rows of members' episodes come to.
    pub(super) fn outcome(&self, rows: &[f32]) -> RolloutOutcome {
        RolloutOutcome::of(self.statistics(rows), self.config.episodes)
    }

    /// The rows of all episodes of a population, member after member.
    #[track_caller]
    pub(super) fn rows<P: Policy>(&self, population: &Population, policy: &P) -> Vec<f32> {
        let _span = profile::span(Component::Fitness, 0);
        self.fused(population, policy).unwrap_or_else(|| self.on_tensors(population, policy))
    }

    /// What rows of episodes come to.
    pub(super) fn statistics(&self, rows: &[f32]) -> EpisodeStatistics {
        EpisodeStatistics::from_rows(rows, self.row_width(), self.config.action_repeat)
    }

    /// Runs episodes of the model as it is, without noise: `episodes` of them, from a seed of their own.
    ///
    /// # Panics
    ///
    /// Panics if the policy's shapes do not fit the environment.
    #[track_caller]
    pub fn evaluate_model<P: Policy>(
        &self,
        policy: &P,
        episodes: usize,
        seed: u64,
        device: &Device,
    ) -> EpisodeStatistics {
        let keys = episode_keys(seed, EVALUATION, episodes);
        let rows = self.tensor_run(device).run(policy, &keys, 0, episodes);
        self.statistics(&rows)
    }

    #[cfg(any(feature = "flex", feature = "ndarray"))]
    #[track_caller]
    fn fused<P: Policy>(&self, population: &Population, policy: &P) -> Option<Vec<f32>> {
        if !self.config.fused || !population.perturbation.table.is_on_host() {
            return None;
        }
        let scaling = self.normalisation.scaling();
        super::fused::run(self, population, policy, scaling.as_ref())
    }

    #[cfg(not(any(feature = "flex", feature = "ndarray")))]
    fn fused<P: Policy>(&self, _population: &Population, _policy: &P) -> Option<Vec<f32>> {
        None
    }

    #[track_caller]
    fn on_tensors<P: Policy>(&self, population: &Population, policy: &P) -> Vec<f32> {
        let keys = self.keys(population.generation());
        let run = self.tensor_run(&population.device());
        population.evaluate_holding(|members: &Members| {
            let keys: Vec<EpisodeKey> = (0..members.count()).flat_map(|_| keys.iter().copied()).collect();
            run.run(policy, &keys, members.first(), self.config.episodes)
        })
    }

    fn tensor_run(&self, device: &Device) -> TensorRun<'_, E> {
        let scaling = self.normalisation.scaling().map(|scaling| scaling.on_device(device));
        TensorRun { environment: &self.environment, config: &self.config, scaling, device: device.clone() }
    }

    /// Of every member in a generation.
    pub(super) fn keys(&self, generation: u64) -> Vec<EpisodeKey> {
        episode_keys(self.config.seed, stream(generation), self.config.episodes)
    }

    pub(super) fn config(&self) -> &RolloutConfig {
        &self.config
    }

    /// Numbers of an episode's row: its return, its length, and the sums of a normaliser.
    pub(super) fn row_width(&self) -> usize {
        self.normalisation.row_width()
    }
}

/// The stream of a generation's episodes.
pub(super) fn stream(generation: u64) -> u32 {
    (generation % u64::from(EVALUATION)) as u32
}

/// The first episodes of a stream.
pub(super) fn episode_keys(seed: u64, stream: u32, episodes: usize) -> Vec<EpisodeKey> {
    (0..episodes as u32).map(|episode| EpisodeKey::new(seed, stream, episode)).collect()
}

/// The number that a sampled head draws for an action, the same in every chunk: of a key that no episode of the environment has,
/// because none begins anew at the last step there is.
pub(super) fn uniform(key: EpisodeKey, member: usize, step: usize) -> f32 {
    key.restarted(u32::MAX).uniform(step as u32, member as u32)
}
