//! Settings of fine-tuning.

use crate::tunable::Tunable;
use burn::optim::SgdConfig;
use eggroll_core::transformer::Precision;
use eggroll_core::{EggrollConfig, NoiserConfig, Role};
use eggroll_train::{Credit, EvolutionStrategyConfig, NoiseScale};
use serde::{Deserialize, Serialize};

/// Settings of a [`Finetune`](super::Finetune).
///
/// Noise is of low rank, on the attention and feed-forward matrices, and relative to each matrix' spread: `σ_p = σ·std(W_p)`. The step is
/// plain SGD on the z-scored fitness. With random scores it moves each weight by `learning_rate·σ_p` (root mean square), for any
/// population; scores that agree move it further.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FinetuneConfig {
    /// Members of a step, in pairs of opposite noise.
    pub population_size: usize,
    /// Rank of the noise.
    pub rank: usize,
    /// Noise scale, relative to the standard deviation of each matrix.
    pub sigma: f64,
    /// Learning rate, relative to the noise: 0.05 moves a weight by 5 % of its noise if the scores are random.
    pub learning_rate: f64,
    /// Decay towards the pretrained weights, times the learning rate in each step.
    pub anchor_decay: f64,
    /// Seed of the noise.
    pub seed: u64,
    /// Number format of the members' products.
    pub precision: Precision,
    /// What a step learns from: the mean score of each member or, with [`Auto`](Credit::Auto), the score of every token of completions and of every prompt.
    pub credit: Credit,
}

impl Default for FinetuneConfig {
    fn default() -> Self {
        Self {
            population_size: 32,
            rank: 1,
            sigma: 0.03,
            learning_rate: 0.05,
            anchor_decay: 0.0,
            seed: 0,
            precision: Precision::default(),
            credit: Credit::Mean,
        }
    }
}

impl FinetuneConfig {
    /// 32 members, rank 1, sigma 0.03 of each matrix' spread, learning rate 0.05, int8 products, no decay, learning from means.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the members of a step.
    pub fn with_population_size(mut self, members: usize) -> Self {
        self.population_size = members;
        self
    }

    /// Sets the rank of the noise.
    pub fn with_rank(mut self, rank: usize) -> Self {
        self.rank = rank;
        self
    }

    /// Sets the noise scale, relative to each matrix' spread.
    pub fn with_sigma(mut self, sigma: f64) -> Self {
        self.sigma = sigma;
        self
    }

    /// Sets the learning rate.
    pub fn with_learning_rate(mut self, learning_rate: f64) -> Self {
        self.learning_rate = learning_rate;
        self
    }

    /// Sets the decay towards the pretrained weights.
    pub fn with_anchor_decay(mut self, decay: f64) -> Self {
        self.anchor_decay = decay;
        self
    }

    /// Sets the seed.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the number format of the members' products.
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Sets what a step learns from. Scores of tokens need another rate, about 1 for plain SGD; they teach the form of an answer in a few steps with few
    /// members.
    pub fn with_credit(mut self, credit: Credit) -> Self {
        self.credit = credit;
        self
    }

    /// The strategy of these settings for an architecture, to be changed and passed to
    /// [`Finetune::with_strategy`](super::Finetune::with_strategy), for example with other roles.
    pub fn strategy<M: Tunable>(&self) -> EvolutionStrategyConfig {
        let noiser: NoiserConfig = EggrollConfig::new().with_rank(self.rank).into();
        let roles = M::PERTURBED.iter().map(|pattern| (*pattern, Role::LowRank { rank: self.rank }));
        let config = EvolutionStrategyConfig::new(noiser, SgdConfig::new())
            .with_population_size(self.population_size)
            .with_noise_scale(NoiseScale::RelativeToSpread)
            .with_sigma(self.sigma)
            .with_learning_rate(self.learning_rate)
            .with_seed(self.seed)
            .with_credit(self.credit)
            .with_roles(roles.chain([("*", Role::Frozen)]));
        if self.anchor_decay == 0.0 { config } else { config.with_anchor_decay(self.anchor_decay) }
    }
}
