//! Episodes of populations and models, in any environment.

use super::config::{EvaluationConfig, RolloutConfig};
use super::error::RolloutError;
use super::keys::{EVALUATION, episode_keys, stream};
use super::normalizer::{Normalization, ObservationNormalizer, Scaling};
use super::policy::Policy;
use super::runner::{EpisodePlan, Runner};
use super::statistics::{EpisodeStatistics, RolloutResult};
use crate::EpisodeKey;
use burn::tensor::Device;
use eggroll_core::profile::{self, Component};
use eggroll_train::Population;

/// Runs the episodes of populations in an environment.
///
/// An episode is addressed by the seed, the generation and its number: it begins the same on every backend, in every chunk and
/// shard. All members act at once, as rows of a batch on the device of the policy. On CPUs a policy that is a chain of layers
/// ([`Policy::layers`]) runs fused, without tensors, and gives the same returns.
///
/// `E` is the environment, made rollouts by [`RolloutConfig::init`]; with another [`Runner`] it is what that one runs:
/// `HostRollouts` are rollouts of tasks in environments of burn-rl.
///
/// # Example
///
/// ```
/// use burn::optim::SgdConfig;
/// use burn::tensor::Device;
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::MlpConfig;
/// use eggroll_rl::{CartPole, EvaluationConfig, RolloutConfig};
/// use eggroll_train::EvolutionStrategyConfig;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::flex();
/// let mut policy = MlpConfig::new(vec![4, 16, 2]).init(&device);
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
/// let mut strategy = config.with_population_size(64).with_sigma(0.3).try_init(&policy)?;
/// let rollouts = RolloutConfig::new().init(CartPole::new())?;
/// for _ in 0..2 {
///     let population = strategy.ask();
///     let outcome = rollouts.evaluate(&population, &policy);
///     strategy.tell(&mut policy, population, outcome.fitness)?;
/// }
/// let episodes = rollouts.evaluate_model(&policy, &EvaluationConfig::new(10), &device);
/// assert!(episodes.mean_return() >= 1.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Rollouts<E, C = RolloutConfig> {
    config: C,
    /// The environment, or the task in one.
    pub(super) environment: E,
    normalization: Normalization,
}

impl<E, C> Rollouts<E, C> {
    /// Rollouts by these settings, in an environment whose observations have so many values.
    pub(super) fn new(config: C, environment: E, normalize: bool, observation_size: usize) -> Self {
        Self { config, environment, normalization: Normalization::new(normalize, observation_size) }
    }

    /// The statistics of observations, if they are normalized: to be saved with the model.
    pub fn normalizer(&self) -> Option<&ObservationNormalizer> {
        self.normalization.statistics()
    }

    /// Continues with statistics that were saved.
    ///
    /// # Errors
    ///
    /// [`RolloutError::NormalizerSize`] if they are of observations of another size, [`RolloutError::NotNormalized`] if observations are
    /// not normalized, [`RolloutError::NormalizerNumbers`] if no observations have such statistics.
    pub fn with_normalizer(mut self, normalizer: ObservationNormalizer) -> Result<Self, RolloutError> {
        self.normalization.restore(normalizer)?;
        Ok(self)
    }

    /// Adds the observations of a generation to the statistics that normalize them, to be called after each generation; without
    /// normalization there are none.
    ///
    /// # Panics
    ///
    /// Panics if observations are normalized, and the episodes are of rollouts that do not, or whose observations have another size.
    #[track_caller]
    pub fn update_normalizer(&mut self, episodes: &EpisodeStatistics) {
        self.normalization.update(episodes);
    }
}

impl<E, C: Runner<E>> Rollouts<E, C> {
    /// Runs the episodes of all members; their fitness is the mean return.
    ///
    /// The population's noise is held for the episodes where memory allows it, under every
    /// [`NoiseSourceConfig`](eggroll_core::NoiseSourceConfig) of the strategy: the values are the
    /// same.
    ///
    /// # Panics
    ///
    /// Panics in one of these cases:
    ///
    /// - The policy's shapes do not fit the environment.
    /// - The policy answers another number of rows than it was asked.
    /// - An evaluation of the same model is running around this one.
    /// - Observations are normalized, and no [update](Self::update_normalizer) of their statistics followed an earlier
    ///   generation.
    #[track_caller]
    pub fn evaluate<P: Policy>(&self, population: &Population, policy: &P) -> RolloutResult {
        self.outcome(&self.rows(population, policy))
    }

    /// Runs episodes of the model without noise: none where 0 are asked for. A chain of layers runs fused too: it rounds otherwise than Burn's
    /// products.
    ///
    /// # Panics
    ///
    /// Panics if the policy's shapes do not fit the environment, if it answers another number of rows than it was asked, or if there are
    /// more than 2²⁰ episodes.
    #[track_caller]
    pub fn evaluate_model<P: Policy>(
        &self,
        policy: &P,
        config: &EvaluationConfig,
        device: &Device,
    ) -> EpisodeStatistics {
        if config.episodes == 0 {
            return EpisodeStatistics::default();
        }
        let keys = episode_keys(config.seed, EVALUATION, config.episodes);
        let scaling = self.scaling(&keys);
        let rows = self.config.rows_of_model(&self.plan(&keys, scaling.as_ref()), policy, device);
        self.statistics(&EpisodeRows::new(rows, scaling))
    }

    /// The rows of all episodes of a population, member after member.
    #[track_caller]
    pub(super) fn rows<P: Policy>(&self, population: &Population, policy: &P) -> EpisodeRows {
        let _span = profile::span(Component::Fitness, 0);
        self.normalization.begin(population.generation());
        let keys = episode_keys(self.config.seed(), stream(population.generation()), self.config.episodes());
        let scaling = self.scaling(&keys);
        EpisodeRows::new(self.config.rows(&self.plan(&keys, scaling.as_ref()), population, policy), scaling)
    }

    fn scaling(&self, keys: &[EpisodeKey]) -> Option<Scaling> {
        self.normalization.scaling(keys.iter().map(|key| self.config.first_observation(&self.environment, *key)))
    }

    fn plan<'a>(&'a self, keys: &'a [EpisodeKey], scaling: Option<&'a Scaling>) -> EpisodePlan<'a, E> {
        EpisodePlan { environment: &self.environment, keys, scaling, row_width: self.normalization.row_width() }
    }

    /// The result of members' episodes.
    pub(super) fn outcome(&self, rows: &EpisodeRows) -> RolloutResult {
        RolloutResult::of(self.statistics(rows), self.config.episodes())
    }

    /// The statistics of episodes.
    pub(super) fn statistics(&self, rows: &EpisodeRows) -> EpisodeStatistics {
        EpisodeStatistics::from_rows(
            &rows.values,
            self.normalization.row_width(),
            self.config.action_repeat(),
            &rows.center,
        )
    }
}

/// The rows of episodes.
pub(super) struct EpisodeRows {
    pub(super) values: Vec<f32>,
    /// What distances in a normalizer's sums are measured from: the same in every replica.
    pub(super) center: Vec<f32>,
}

impl EpisodeRows {
    fn new(values: Vec<f32>, scaling: Option<Scaling>) -> Self {
        Self { values, center: scaling.map_or(Vec::new(), |scaling| scaling.center().to_vec()) }
    }
}
