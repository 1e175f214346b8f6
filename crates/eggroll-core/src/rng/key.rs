//! Addresses of noise: which draw belongs to which seed, parameter, generation and pair.

use serde::{Deserialize, Serialize};

/// The distribution of every noise element: mean 0, variance 1, all independent, so that the formulas of perturbation and
/// estimate are the same for all.
///
/// | distribution | an element is | Philox words for 128 elements | choose it |
/// |---|---|---|---|
/// | normal | N(0, 1) | 128 | for the method as published: moments of every order as in Eq. 4 of the paper |
/// | Rademacher | −1 or +1, equally likely | 4 | where drawing the noise on the fly is a large share of the time: small layers, few rows for each member, high ranks, OpenES |
///
/// Both estimates have the gradient as their expectation for a linear or quadratic fitness, and differ for others in terms of
/// order σ². For a linear fitness that of signs has the smaller variance, as the mean of `ε⁴` is 1 and not 3. Signs explore
/// corners only: every weight moves by exactly ±σ under dense noise or rank 1.
///
/// # Example
///
/// ```
/// use eggroll_core::{EggrollConfig, NoiseDistribution};
///
/// let config = EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher);
/// let json = serde_json::to_string(&config).unwrap();
/// assert_eq!(json, r#"{"rank":1,"freeze_non_matrix":false,"distribution":"rademacher"}"#);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseDistribution {
    /// Standard Gaussian values: [`crate::rng::normal`].
    #[default]
    Normal,
    /// Rademacher noise: [`crate::rng::rademacher`].
    Rademacher,
}

impl NoiseDistribution {
    /// Whether it is the default, which configurations do not write.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The address of one parameter's noise in one noise epoch.
///
/// Noise is a pure function of this key, the pair and the element; nothing else (chunks, shards, threads,
/// devices) ever changes a draw. The key also says which distribution the words become; Gaussian values unless
/// [`with_distribution`](Self::with_distribution) says otherwise; and which pairs have no noise
/// ([`with_baselines`](Self::with_baselines)). Together with the pair `q` and the block it fills the
/// 128-bit counter and the 64-bit key of Philox4x32-10:
///
/// | word | content |
/// |---|---|
/// | counter 0 | block: four Gaussian values, or 128 signs |
/// | counter 1 | pair `q` |
/// | counter 2 | noise epoch `t` |
/// | counter 3 | parameter (position in traversal order), below 2²⁴; bit 24 marks positions in a noise table, bit 25 its values, bit 26 Rademacher noise, bit 27 positions of sparse noise |
/// | key 0, 1 | low and high half of the seed |
///
/// # Example
///
/// ```
/// use eggroll_core::NoiseKey;
///
/// let key = NoiseKey::new(42, 0, 3);
/// assert_ne!(key, NoiseKey::new(42, 1, 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NoiseKey {
    seed: u64,
    parameter: u32,
    generation: u32,
    #[serde(default, skip_serializing_if = "NoiseDistribution::is_default")]
    distribution: NoiseDistribution,
    /// Pairs of a group whose first pair has no noise; 0 without groups.
    #[serde(default, skip_serializing_if = "is_zero")]
    group: u32,
}

fn is_zero(group: &u32) -> bool {
    *group == 0
}

impl NoiseKey {
    /// Parameters that one model may have: the top byte of the counter word is reserved.
    pub const MAX_PARAMETERS: u32 = 1 << 24;

    /// The address of `parameter` (position in traversal order) in noise epoch `generation`.
    ///
    /// # Panics
    ///
    /// Panics if `parameter` is not below [`MAX_PARAMETERS`](Self::MAX_PARAMETERS).
    #[track_caller]
    pub fn new(seed: u64, parameter: u32, generation: u32) -> Self {
        assert!(parameter < Self::MAX_PARAMETERS, "parameter index {parameter} is not below {}", Self::MAX_PARAMETERS);
        Self { seed, parameter, generation, distribution: NoiseDistribution::Normal, group: 0 }
    }

    /// Sets the distribution of the noise.
    pub fn with_distribution(mut self, distribution: NoiseDistribution) -> Self {
        self.distribution = distribution;
        self
    }

    /// The distribution of the noise.
    pub fn distribution(&self) -> NoiseDistribution {
        self.distribution
    }

    /// Panics if the noise is not of the distribution `drawn`.
    #[track_caller]
    pub(crate) fn check_distribution(&self, drawn: NoiseDistribution) {
        let found = self.distribution;
        assert!(found == drawn, "the noise of this key is {found:?}, not {drawn:?}");
    }

    /// Makes baselines of the first pair of every `pairs` consecutive ones, from pair 0 on: all elements of their noise are 0,
    /// wherever the noise of the others comes from. None of 0.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_core::{NoiseKey, rng::fill_noise};
    ///
    /// let key = NoiseKey::new(42, 0, 3).with_baselines(4);
    /// let mut noise = [1.0; 3];
    /// fill_noise(key, 8, 0, &mut noise);
    /// assert_eq!(noise, [0.0; 3]);
    /// assert!(key.is_baseline(8) && !key.is_baseline(9));
    /// ```
    pub fn with_baselines(mut self, pairs: u32) -> Self {
        self.group = pairs;
        self
    }

    /// Whether the members of `pair` are baselines: their noise is 0.
    pub fn is_baseline(&self, pair: u32) -> bool {
        self.has_baselines() && pair.is_multiple_of(self.group)
    }

    /// Whether some pairs are baselines.
    pub(crate) fn has_baselines(&self) -> bool {
        self.group > 0
    }

    /// Pairs of a group whose first pair is a baseline; 0 without.
    #[cfg(feature = "cube")]
    pub(crate) fn baseline_group(&self) -> u32 {
        self.group
    }

    /// The address of a noise table: above all parameters.
    pub(crate) fn table(seed: u64) -> Self {
        Self { seed, parameter: 2 << 24, generation: 0, distribution: NoiseDistribution::Normal, group: 0 }
    }

    /// Philox key words.
    pub(crate) fn words(&self) -> [u32; 2] {
        [self.seed as u32, (self.seed >> 32) as u32]
    }

    /// Philox counter of one block of Gaussian values of one pair; signs set [`SIGNS`](crate::rng::rademacher::SIGNS) in its last word.
    pub(crate) fn counter(&self, block: u32, pair: u32) -> [u32; 4] {
        [block, pair, self.generation, self.parameter]
    }
}

/// A run of consecutive antithetic pairs: pair `q` is members `2q` (sign +1) and `2q + 1` (sign −1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairRange {
    /// First pair.
    pub first: u32,
    /// Number of pairs.
    pub count: u32,
}

impl PairRange {
    /// Pairs `first .. first + count`.
    pub fn new(first: u32, count: u32) -> Self {
        Self { first, count }
    }

    /// Number of members, two for each pair.
    pub fn members(&self) -> usize {
        2 * self.count as usize
    }
}
