//! What the examples train with: the table of settings, with the reasons for each environment.

use crate::bounds::learning_rate;
use crate::names::{ActivationName, NoiserName};
use burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use burn::nn::activation::ActivationConfig;
use eggroll::core::NoiseSourceConfig;
use eggroll::core::rng::philox::philox4x32;
use eggroll::rl::{ActionHead, ActionSpace, RolloutConfig};
use eggroll::train::{EvolutionStrategyConfig, FitnessShaping, OptimizerConfig, SigmaSchedule};
use serde::Serialize;

/// Everything that a run depends on.
#[derive(Clone, Debug, Serialize)]
pub struct ControlSettings {
    /// How parameters are perturbed.
    pub noiser: NoiserName,
    /// Of EGGROLL's noise.
    pub rank: usize,
    /// Members of a generation.
    pub population: usize,
    /// Episodes of each member in a generation.
    pub episodes: usize,
    /// Whether noise is relative to the spread of each parameter, and the learning rate to the noise and the population.
    pub relative: bool,
    /// Noise scale of the first generation.
    pub sigma: f64,
    /// Learning rate of the first generation.
    pub lr: f64,
    /// Factor of both for each generation.
    pub decay: f64,
    /// Of the returns.
    pub shaping: FitnessShaping,
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
    /// Activation between the layers.
    pub activation: ActivationName,
    /// Whether observations are normalized by their running statistics.
    pub normalize: bool,
    /// Steps for which an action is repeated.
    pub action_repeat: usize,
    /// Sample discrete actions instead of taking the best.
    pub sampled: bool,
    /// Environment steps in which the task is to be solved.
    pub budget: u64,
    /// Generations between two tests of the mean policy.
    pub test_every: u64,
    /// Generations after which an attempt that has solved nothing begins again, with other weights and noise; 0 for never.
    pub restart_after: u64,
    /// Of initial weights, noise and episodes.
    pub seed: u64,
}

impl ControlSettings {
    /// The settings of an environment, by its name. All environments share the first lines; what differs has its reason next to it.
    pub fn of(environment: &str) -> Self {
        let common = Self {
            noiser: NoiserName::Eggroll,
            rank: 1,
            population: 256,
            episodes: 1,
            relative: false,
            sigma: 0.3,
            lr: 0.1,
            decay: 1.0,
            // Returns of one generation differ by hundreds between members that succeed and members that fail. Ranks keep a few
            // lucky ones from being the whole estimate.
            shaping: FitnessShaping::CenteredRank,
            hidden: vec![32, 32],
            activation: ActivationName::Relu,
            normalize: false,
            action_repeat: 1,
            sampled: false,
            budget: 100_000_000,
            test_every: 5,
            restart_after: 0,
            seed: 0,
        };
        match environment {
            // A pole falls within 10 steps or stands for 500: one episode tells members apart. Many small generations need a fifth of the
            // steps of few generations with 128 members.
            "CartPole-v1" => Self { population: 16, lr: 0.2, test_every: 2, budget: 20_000_000, ..common },
            // The return depends on the starting angle above all, so that a member is judged by several. Torques near the top are small
            // and of both signs, where a smooth network does better; speeds are eight times the size of the other observations. About one
            // run in five ends in a limit cycle of full torques, with a return of about -800: it is there by generation 50 and does not
            // leave. The others are done by generation 130. A small population makes restarts cheap.
            "Pendulum-v1" => Self {
                population: 64,
                episodes: 4,
                sigma: 0.5,
                hidden: vec![32],
                activation: ActivationName::Tanh,
                normalize: true,
                restart_after: 150,
                ..common
            },
            // -1 for each step until the goal, which some random networks reach by swinging.
            "Acrobot-v1" => Self { population: 128, normalize: true, ..common },
            // Nothing is learned before some member reaches the goal: pushing along the speed does. Speeds are 20 times smaller than
            // positions, and without normalization no random network would look at them. Whoever has the idea gains little from more
            // steps of training, but the threshold asks for it.
            "MountainCar-v0" => Self { episodes: 2, sigma: 0.5, hidden: vec![16], normalize: true, ..common },
            // The same; and doing nothing is a local optimum, which strong noise leaves.
            "MountainCarContinuous-v0" => Self {
                population: 128,
                sigma: 0.5,
                hidden: vec![16],
                activation: ActivationName::Tanh,
                normalize: true,
                ..common
            },
            // Luck of the deal is most of a return: many hands for each member, the same for all. Scores need their order, not their size.
            "Texas42" => Self {
                population: 2048,
                episodes: 32,
                sigma: 0.1,
                lr: 0.02,
                hidden: vec![64],
                activation: ActivationName::Tanh,
                budget: 60_000_000,
                ..common
            },
            // Right or wrong: every member answers enough cues for its return to be more than luck. A network of 16 remembers a cue.
            "Memory" => Self { episodes: 16, hidden: vec![16], ..common },
            _ => common,
        }
    }

    /// These settings with noise scale and learning rate that are the same for all environments.
    pub fn in_relative_units(self) -> Self {
        Self { relative: true, sigma: 2.0, lr: 0.6, ..self }
    }

    /// The settings of an attempt, with its own seed: attempt 0 is the run as it began.
    pub fn of_attempt(&self, attempt: u64) -> Self {
        let bits =
            philox4x32([attempt as u32, (attempt >> 32) as u32, 0, 0], [self.seed as u32, (self.seed >> 32) as u32]);
        let drawn = u64::from(bits[0]) | u64::from(bits[1]) << 32;
        Self { seed: if attempt == 0 { self.seed } else { drawn }, ..self.clone() }
    }

    /// Refuses what nobody else would check.
    ///
    /// # Errors
    ///
    /// The value.
    pub fn validate(&self) -> Result<(), String> {
        if self.hidden.contains(&0) {
            return Err(format!("hidden layers {:?}: a width is 0", self.hidden));
        }
        learning_rate("lr", self.lr)?;
        let counts = [self.episodes as u64, self.action_repeat as u64, self.budget, self.test_every];
        if counts.contains(&0) {
            return Err(format!("episodes, action-repeat, budget and test-every must be at least 1, not {counts:?}"));
        }
        Ok(())
    }

    /// Activation between the layers.
    pub fn activation(&self) -> ActivationConfig {
        self.activation.activation()
    }

    /// The strategy's configuration.
    pub fn strategy(&self) -> EvolutionStrategyConfig {
        let strategy = EvolutionStrategyConfig::new(self.noiser.noiser(self.rank), OptimizerConfig::default());
        let strategy = if self.relative { strategy.in_relative_units() } else { strategy };
        strategy
            .with_population_size(self.population)
            .with_sigma(SigmaSchedule::Exponential { initial: self.sigma, decay: self.decay, last: None })
            .with_learning_rate(ExponentialLrSchedulerConfig::new(self.lr, self.decay))
            .with_shaping(self.shaping.clone())
            .with_noise_source(NoiseSourceConfig::Cached)
            .with_seed(self.seed)
    }

    /// The configuration of rollouts in an environment with such actions.
    pub fn rollouts(&self, actions: ActionSpace) -> RolloutConfig {
        RolloutConfig::new()
            .with_episodes(self.episodes)
            .with_head(match (actions, self.sampled) {
                (ActionSpace::Discrete(_), false) => ActionHead::Greedy,
                (ActionSpace::Discrete(_), true) => ActionHead::Sampled,
                (ActionSpace::Continuous { .. }, _) => ActionHead::Tanh,
            })
            .with_normalize_observations(self.normalize)
            .with_action_repeat(self.action_repeat)
            .with_seed(self.seed)
    }
}
