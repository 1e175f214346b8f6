//! Runs episodes in environments of burn-rl.

use super::config::HostRolloutConfig;
use super::play::Play;
use super::task::HostTask;
use crate::EpisodeKey;
use crate::rollouts::error::RolloutError;
use crate::rollouts::evaluate::Rollouts;
use crate::rollouts::keys::MOST_EPISODES;
use crate::rollouts::policy::Policy;
use crate::rollouts::runner::{EpisodePlan, Runner};
use burn::tensor::Device;
use burn_rl::Environment;
use eggroll_train::Population;

/// Runs the episodes of populations in an environment of [burn-rl](Environment), which computes on the host (feature `host`).
///
/// The policy stays on its device. A step is one forward of all rows of a chunk of members, one read of the outputs, and a step of
/// every environment whose episode is not over. On CPUs every core has a separate chunk; with a model on a device the environments of
/// all members are shared out to the cores. Neither changes a bit of the returns.
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
/// use eggroll_nn::MlpConfig;
/// use eggroll_rl::{EpisodeKey, EvaluationConfig, HostRolloutConfig, HostTask};
/// use eggroll_train::EvolutionStrategyConfig;
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
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::flex();
/// let mut policy = MlpConfig::new(vec![1, 1]).init(&device);
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(32);
/// let mut strategy = config.with_sigma(0.1).with_learning_rate(0.1).try_init(&policy)?;
/// let rollouts = HostRolloutConfig::new().with_episodes(4).init(Centre)?;
/// for _ in 0..30 {
///     let population = strategy.ask();
///     let outcome = rollouts.evaluate(&population, &policy);
///     strategy.tell(&mut policy, population, outcome.fitness)?;
/// }
/// let episodes = rollouts.evaluate_model(&policy, &EvaluationConfig::new(100), &device);
/// assert_eq!(episodes.lengths(), [20; 100]);
/// # Ok(())
/// # }
/// ```
pub type HostRollouts<T> = Rollouts<T, HostRolloutConfig>;

impl HostRolloutConfig {
    /// Rollouts of a task.
    ///
    /// # Errors
    ///
    /// [`RolloutError::Zero`] if a count is 0, [`RolloutError::TooMany`] for more than 2²⁰ episodes.
    pub fn init<T: HostTask>(&self, task: T) -> Result<HostRollouts<T>, RolloutError> {
        let size = task.observation_size();
        RolloutError::if_zero(&[
            ("episodes", self.episodes),
            ("max_steps", self.max_steps.unwrap_or(usize::MAX)),
            ("MAX_STEPS", T::Environment::MAX_STEPS),
            ("observation_size", size),
        ])?;
        RolloutError::if_above(&[("episodes", self.episodes, MOST_EPISODES)])?;
        Ok(Rollouts::new(self.clone(), task, self.normalize_observations, size))
    }

    /// Plays the episodes of a plan with each of some members, whose rows are member-major.
    #[track_caller]
    fn play<T: HostTask, P: Policy>(
        &self,
        plan: &EpisodePlan<'_, T>,
        policy: &P,
        members: usize,
        device: &Device,
    ) -> Vec<f32> {
        let limit = self.max_steps.unwrap_or(usize::MAX).min(T::Environment::MAX_STEPS);
        let mut play = Play::begin(plan.environment, plan.keys, members, plan.scaling, limit);
        let mut state = policy.initial_state(play.rows(), device);
        while play.is_on() {
            let (outputs, next) = policy.forward(play.observations(device), state);
            state = next;
            play.step(outputs);
        }
        play.into_rows()
    }
}

impl<T: HostTask> HostRollouts<T> {
    /// The task.
    pub fn task(&self) -> &T {
        &self.environment
    }
}

impl<T: HostTask> Runner<T> for HostRolloutConfig {
    fn episodes(&self) -> usize {
        self.episodes
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn first_observation(&self, task: &T, key: EpisodeKey) -> Vec<f32> {
        let mut observation = vec![0.0; task.observation_size()];
        task.observe(&task.begin(key).state(), &mut observation);
        observation
    }

    #[track_caller]
    fn rows<P: Policy>(&self, plan: &EpisodePlan<'_, T>, population: &Population, policy: &P) -> Vec<f32> {
        let device = population.device();
        population.evaluate_with_cached_noise(|members| self.play(plan, policy, members.count(), &device))
    }

    #[track_caller]
    fn rows_of_model<P: Policy>(&self, plan: &EpisodePlan<'_, T>, policy: &P, device: &Device) -> Vec<f32> {
        self.play(plan, policy, 1, device)
    }
}
