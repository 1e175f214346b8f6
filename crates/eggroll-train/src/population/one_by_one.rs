//! Evaluation member by member: for models of any modules.

use super::{Population, workers};
use crate::fitness::{Fitness, Scores};
use burn::module::Module;
use eggroll_core::profile::{self, Component};
use std::ops::Range;

/// For models with layers that have no perturbed twin. Every member is formed as a model of its own, `W + s·E` with the noise
/// that [`evaluate`](Self::evaluate) uses, and scored alone; all parameters count as used. A twin in such a model computes plainly on
/// its member's weights.
///
/// A forward of one member reads its weights once for that member's rows, so a population costs `N` small forwards and `N/2`
/// formed models where `evaluate` makes one large forward: use that where every layer has a twin.
impl Population {
    /// Evaluates the members one after the other: `score` gets each as a model and returns its fitness, higher is better, as `f32`
    /// or `i32`, or as a tensor of one value, read to the host with all others in the end: on a device that is faster, because
    /// nothing waits for a member.
    ///
    /// Estimate and update are those of [`evaluate`](Self::evaluate).
    ///
    /// # Panics
    ///
    /// Panics if `model` is not the one that the strategy was made for, if `score` returns a tensor of other than one value, or if an
    /// evaluation of the same model is running on this thread already.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::module::{Module, Param};
    /// use burn::optim::SgdConfig;
    /// use burn::tensor::{Device, Tensor};
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// /// `exp(−(x·c)²)`: no twin of eggroll's.
    /// #[derive(Module, Debug)]
    /// struct Bump {
    ///     center: Param<Tensor<1>>,
    /// }
    ///
    /// # fn main() -> Result<(), eggroll_train::Error> {
    /// let device = Device::flex();
    /// let mut model = Bump { center: Param::from_tensor(Tensor::from_floats([1.0, 1.0], &device)) };
    /// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_learning_rate(0.5);
    /// let mut strategy = config.try_init(&model)?;
    /// for _ in 0..20 {
    ///     let population = strategy.ask();
    ///     let fitness = population.evaluate_members(&model, |member| {
    ///         let x = Tensor::from_floats([0.5, -0.5], &device);
    ///         (-(x * member.center.val()).square()).exp().mean()
    ///     });
    ///     model = strategy.tell(model, population, fitness)?;
    /// }
    /// let distance: f32 = model.center.val().abs().max().into_scalar();
    /// assert!(distance < 0.5, "{distance}");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn evaluate_members<M: Module, R: Scores>(&self, model: &M, mut score: impl FnMut(M) -> R) -> Fitness {
        let _span = profile::span(Component::Fitness, 0);
        self.perturbation.refuse_nesting();
        let scores =
            self.pair_numbers().flat_map(|pair| self.perturbation.materialise(model, pair).map(&mut score)).collect();
        self.finish_members(scores)
    }

    /// Evaluates the members as [`evaluate_members`](Self::evaluate_members) does, pairs side by side on all CPU cores, one on
    /// each: for models on a CPU. Results are the same, bit for bit. Holds one pair's models for each core.
    ///
    /// # Panics
    ///
    /// As [`evaluate_members`](Self::evaluate_members).
    #[track_caller]
    pub fn evaluate_members_parallel<M: Module + Sync, R: Scores>(
        &self,
        model: &M,
        score: impl Fn(M) -> R + Sync,
    ) -> Fitness {
        let _span = profile::span(Component::Fitness, 0);
        self.perturbation.refuse_nesting();
        let pairs: Vec<u32> = self.pair_numbers().collect();
        let waiting = profile::waiting();
        let scores = workers::map(workers::pools(), &pairs, |pair| {
            let _span = profile::span(Component::Fitness, 0);
            self.perturbation.materialise(model, *pair).map(&score)
        });
        drop(waiting);
        self.finish_members(scores.into_iter().flatten().collect())
    }

    fn pair_numbers(&self) -> Range<u32> {
        let pairs = self.pairs();
        pairs.first..pairs.first + pairs.count
    }

    #[track_caller]
    fn finish_members<R: Scores>(&self, scores: Vec<R>) -> Fitness {
        if let Some((member, score)) = self.range().zip(&scores).find(|(_, score)| score.shape().first() != Some(&1)) {
            panic!(
                "evaluate_members: the closure returned fitness of shape {:?} for member {member}, expected [1]",
                score.shape()
            );
        }
        self.note_all_used();
        R::read(scores)
    }
}
