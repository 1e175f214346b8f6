//! The weight of every pair in the estimate of every part.

use crate::fitness::with_later_steps;
use burn::tensor::Tensor;
use eggroll_core::{NoiseOnRows, counters};

/// The weight of every pair for every part.
pub(crate) struct PartWeights {
    /// `[parts, pairs]`: the sums over parts are the weights of all parts together.
    pub own: Vec<f32>,
    /// Parts of a sequence.
    pub steps: usize,
}

/// The weights of estimates by part: scores divided by how far the pair has moved the part.
///
/// A score responds to the effect of the noise on its part's rows. Rank-1 noise moves the output of a row `x` by `(x·b)·a`, whose square varies
/// between pairs like the square of a normal number. An estimate that weighs pairs by their scores would count the largest moves most. With the power
///
/// `k_tq = (1 + Σ_l p_ltq) / (1 + L)`
///
/// over the `L` parameters with low-rank noise that learn by part, `w_tq/k_tq` in place of `w_tq` is the step of normalized least mean squares (Widrow and Lehr
/// 1990, section IV). `p` is the squared move relative to its mean. It is 1 for all other parameters, and for a part that gave the parameter zeros, which
/// nothing moves. Estimates are divided by `Σp/k ÷ Σp`, which keeps their mean over noise.
pub(super) struct ByPart {
    /// The noise on the rows of the parameter at each position, if it learns by part.
    rows: Vec<Option<NoiseOnRows>>,
    /// By a part's own score, `[parts, pairs]`.
    own: Vec<f32>,
    /// By its own score and the scores of later steps of its sequence.
    with_later: Vec<f32>,
    /// `Σp/k ÷ Σp` of the parameter at each position that has a power.
    powers: Vec<Option<Tensor<1>>>,
    /// The mean of `1/k`, for the others.
    others: f64,
}

impl ByPart {
    /// `has_noise` says which pairs are not baselines; `powers` belong to the rows at the same positions.
    pub fn new(
        weights: &PartWeights,
        has_noise: &[bool],
        rows: Vec<Option<NoiseOnRows>>,
        powers: &[Option<Tensor<2>>],
    ) -> Self {
        let pairs = has_noise.len();
        let parts = weights.own.len() / pairs;
        let (powers, inverse) = inverse_powers(powers, [parts, pairs]);
        let own: Vec<f32> = weights.own.iter().zip(&inverse).map(|(weight, inverse)| weight * inverse).collect();
        let noisy = || inverse.iter().zip(has_noise.iter().cycle()).filter(|(_, has_noise)| **has_noise);
        let others = noisy().map(|(inverse, _)| f64::from(*inverse)).sum::<f64>() / noisy().count() as f64;
        Self { with_later: with_later_steps(&own, pairs, weights.steps), own, powers, others, rows }
    }

    /// The weights `[parts, pairs]` for a layer.
    pub fn weights(&self, acts_later: bool) -> &[f32] {
        if acts_later { &self.with_later } else { &self.own }
    }

    /// The estimate of the parameter at a position from these weights, in the type of its noise.
    ///
    /// # Panics
    ///
    /// Panics if the parameter does not learn by part.
    pub fn estimate(&self, position: usize, weights: Tensor<2>) -> Tensor<1> {
        let estimate = self.rows[position].as_ref().expect("it learns by part").estimate(weights);
        match &self.powers[position] {
            Some(mean) => {
                let mean = mean.clone().cast(estimate.dtype());
                estimate / mean
            }
            None if self.others == 1.0 => estimate,
            None => estimate / self.others,
        }
    }
}

/// `Σp/k ÷ Σp` of every power there is, and `1/k`: ones without a power.
fn inverse_powers(powers: &[Option<Tensor<2>>], [parts, pairs]: [usize; 2]) -> (Vec<Option<Tensor<1>>>, Vec<f32>) {
    let Some(device) = powers.iter().flatten().next().map(Tensor::device) else {
        return (vec![None; powers.len()], vec![1.0; parts * pairs]);
    };
    let (mut sum, mut count) = (Tensor::<2>::ones([parts, pairs], &device), 1.0);
    for power in powers.iter().flatten() {
        let unmoved = power.clone().sum_dim(1).equal_elem(0.0).expand([parts, pairs]);
        let counted = power.clone().mask_fill(unmoved, 1.0);
        (sum, count) = (sum + counted.to_device(&device), count + 1.0);
    }
    let inverse = sum.recip() * count;
    let mean = |power: &Tensor<2>| {
        let sum = power.clone().sum();
        let mean = (power.clone() * inverse.clone().to_device(&power.device())).sum() / sum.clone();
        mean.mask_fill(sum.equal_elem(0.0), 1.0) // nothing moves: the estimate is 0
    };
    let means = powers.iter().map(|power| power.as_ref().map(mean)).collect();
    counters::add_host_read();
    (means, inverse.into_data().iter().collect())
}
