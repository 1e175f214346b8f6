//! Rollouts in environments of [burn-rl](burn_rl::Environment), which are stepped on the host (feature `rl`).
//!
//! The policy stays on its device: a step is one forward of all rows of a chunk of members, one read of what comes out, and a step of
//! each environment, side by side on the cores. So any simulator that has a Rust interface can be played by a population.

mod config;
mod moments;
mod outcome;
mod play;
mod policy;
mod task;

pub use config::HostRolloutConfig;
pub use moments::Moments;
pub use outcome::{EpisodeStatistics, RolloutOutcome};
pub use policy::{FeedForward, Policy, feed_forward};
pub use task::HostTask;

use crate::error::Error;
use crate::population::{Members, Population};
use burn::tensor::{Device, Tensor, TensorData};
use burn_rl::Environment;
use eggroll_envs::EpisodeKey;
use outcome::mean;
use play::Play;

/// The stream of keys whose episodes belong to no generation.
const EVALUATION: u32 = u32::MAX;

/// Plays episodes of a [`HostTask`]: of all members of a population, or of one model. Made by [`HostRolloutConfig`].
///
/// # Example
///
/// A cart on a track whose position is to become 0.
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::Device;
/// use burn_rl::{Environment, StepResult};
/// use eggroll_core::EggrollConfig;
/// use eggroll_envs::EpisodeKey;
/// use eggroll_nn::LinearConfig;
/// use eggroll_train::EvolutionStrategyConfig;
/// use eggroll_train::host_rollout::{HostRolloutConfig, HostTask, feed_forward};
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
/// /// Observation and action are the number that they are.
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
/// let mut model = LinearConfig::new(1, 1).init(&device);
/// let rollouts = HostRolloutConfig::new().with_episodes(4).try_init(Centre, &device)?;
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population(32);
/// let mut strategy = config.with_sigma(0.1).with_learning_rate(0.1).try_init(&model)?;
/// for _ in 0..30 {
///     let population = strategy.ask();
///     let outcome = rollouts.evaluate(&population, &feed_forward(|x| model.forward(x)));
///     model = strategy.tell(model, population, outcome.fitness)?;
/// }
/// let episodes = rollouts.evaluate_model(&feed_forward(|x| model.forward(x)), 100, 0);
/// assert!(episodes.mean_return() > -5.0, "{}", episodes.mean_return());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HostRollouts<T: HostTask> {
    config: HostRolloutConfig,
    task: T,
    device: Device,
    /// Of all observations so far, in place of which the policy sees them with mean 0 and variance 1.
    observed: Option<Moments>,
}

impl<T: HostTask> HostRollouts<T> {
    pub(super) fn new(config: HostRolloutConfig, task: T, device: &Device) -> Result<Self, Error> {
        config.validate()?;
        assert!(task.observation_size() > 0, "observations of 0 values");
        let observed = config.normalise_observations.then(|| Moments::new(task.observation_size()));
        Ok(Self { config, task, device: device.clone(), observed })
    }

    /// The configuration.
    pub fn config(&self) -> &HostRolloutConfig {
        &self.config
    }

    /// What observations are normalised by, if they are: what has to be kept with a model that was trained so.
    pub fn observed(&self) -> Option<&Moments> {
        self.observed.as_ref()
    }

    /// Normalises observations by moments that were kept.
    ///
    /// # Panics
    ///
    /// Panics if they are of another number of values than an observation has.
    #[track_caller]
    pub fn with_observed(mut self, observed: Moments) -> Self {
        let (found, expected) = (observed.size(), self.task.observation_size());
        assert!(found == expected, "moments of {found} values for observations of {expected}");
        self.observed = Some(observed);
        self
    }

    /// Cuts episodes off after `steps`, if the environment's own limit is not below that.
    pub fn set_max_steps(&mut self, steps: impl Into<Option<usize>>) {
        self.config.max_steps = steps.into();
    }

    /// Plays the episodes of one generation, the same ones for all members. A member's fitness is its mean return, and does not
    /// depend on chunks or threads, bit for bit.
    ///
    /// # Panics
    ///
    /// As [`Population::evaluate`], and if the policy returns another number of rows than it was given.
    #[track_caller]
    pub fn evaluate<P: Policy>(&self, population: &Population, policy: &P) -> RolloutOutcome {
        let keys = self.keys(population.generation() as u32, self.config.episodes, self.config.seed);
        let mut episodes = EpisodeStatistics::default();
        let fitness = population.evaluate(|members| {
            let played = self.play(&keys, members.count(), policy);
            let fitness = self.fitness(&played, members);
            // A chunk may be asked for again, for the sake of its forwards: it is not counted twice.
            if episodes.returns().len() == members.first() * keys.len() {
                episodes.append(played);
            }
            fitness
        });
        RolloutOutcome { fitness, episodes }
    }

    /// Plays `episodes` episodes with the model as it is: others than those of generations, whatever the seed.
    pub fn evaluate_model<P: Policy>(&self, policy: &P, episodes: usize, seed: u64) -> EpisodeStatistics {
        self.play(&self.keys(EVALUATION, episodes, seed), 1, policy)
    }

    /// Takes the observations of a generation into those that later ones are normalised by; nothing if they are not.
    pub fn observe(&mut self, episodes: &EpisodeStatistics) {
        if let Some(observed) = &mut self.observed {
            episodes.moments().iter().for_each(|moments| observed.merge(moments));
        }
    }

    fn keys(&self, stream: u32, episodes: usize, seed: u64) -> Vec<EpisodeKey> {
        (0..episodes as u32).map(|episode| EpisodeKey::new(seed, stream, episode)).collect()
    }

    /// The episodes of some members: rows are member-major, as a population's are.
    fn play<P: Policy>(&self, keys: &[EpisodeKey], members: usize, policy: &P) -> EpisodeStatistics {
        let limit = self.config.max_steps.unwrap_or(usize::MAX).min(T::Environment::MAX_STEPS);
        let mut play = Play::begin(&self.task, keys, members, self.observed.as_ref());
        let mut state = policy.initial_state(play.rows(), &self.device);
        for _ in 0..limit {
            let (outputs, next) = policy.forward(play.observations(&self.device), state);
            state = next;
            if play.step(outputs) {
                break;
            }
        }
        play.end()
    }

    /// `[members]`
    fn fitness(&self, played: &EpisodeStatistics, members: &Members) -> Tensor<1> {
        let means: Vec<f32> =
            played.returns().chunks_exact(self.config.episodes).map(|returns| mean(returns) as f32).collect();
        Tensor::from_data(TensorData::new(means, [members.count()]), &self.device)
    }
}
