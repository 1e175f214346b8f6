//! Evaluation member by member: for models of any modules.

use super::evaluate::never;
use super::{Population, workers};
use crate::fitness::{Fitness, Scores};
use burn::module::Module;
use eggroll_core::profile::{self, Component};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// For models with layers that have no perturbed drop-in replacement. Every member is formed as a separate model, `W + s·E` with the noise
/// that [`evaluate`](Self::evaluate) uses, and scored alone; all parameters count as used. A drop-in replacement in such a model is plain
/// and uses its member's weights.
///
/// A forward of one member reads its weights for that member's rows only. A population costs `N` small forwards and `N/2`
/// formed models, where `evaluate` makes one large forward: prefer `evaluate` if every layer has a replacement.
impl Population {
    /// Evaluates the members of any model one by one. `score` gets each as a model and returns its fitness, higher is better, as `f32`
    /// or `i32`. It may also return a tensor of one value, which is faster on a device: all are read to the host together in the end.
    /// For a model in host memory, pairs are evaluated on all CPU cores at the same time; each core holds one pair's models.
    ///
    /// Estimate and update are the same as with [`evaluate`](Self::evaluate). Only `model` is perturbed, without its clones with
    /// `no_grad()` ([identifiers](eggroll_core::ParameterTable#identifiers)). A score that changes what it captures needs
    /// [`evaluate_each_mut`](Self::evaluate_each_mut).
    ///
    /// # Panics
    ///
    /// Panics if
    /// - `model` is not the one that the strategy was made for,
    /// - `score` returns a tensor of other than one value,
    /// - an evaluation of the same model is running around this one.
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
    ///     let fitness = population.evaluate_each(&model, |member| {
    ///         let x = Tensor::from_floats([0.5, -0.5], &device);
    ///         (-(x * member.center.val()).square()).exp().mean()
    ///     });
    ///     strategy.tell(&mut model, population, fitness)?;
    /// }
    /// let distance: f32 = model.center.val().abs().max().into_scalar();
    /// assert!(distance < 0.5, "{distance}");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn evaluate_each<M: Module + Sync, R: Scores>(&self, model: &M, score: impl Fn(M) -> R + Sync) -> Fitness {
        never(self.try_evaluate_each(model, |member| Ok(score(member))))
    }

    /// [`evaluate_each`](Self::evaluate_each) for a score that can fail.
    ///
    /// # Errors
    ///
    /// The error of the first member that fails; members that have not begun are left out then.
    ///
    /// # Panics
    ///
    /// As [`evaluate_each`](Self::evaluate_each).
    #[track_caller]
    pub fn try_evaluate_each<M: Module + Sync, R: Scores, E: Send>(
        &self,
        model: &M,
        score: impl Fn(M) -> Result<R, E> + Sync,
    ) -> Result<Fitness, E> {
        if !self.is_on_host() {
            return self.each_in_order(model, score);
        }
        let _span = profile::span(Component::Fitness, 0);
        self.perturbation.refuse_nesting();
        self.note_model(model);
        let pairs: Vec<u32> = self.pair_numbers().collect();
        let waiting = profile::waiting();
        let failed = AtomicBool::new(false);
        let scores = workers::map(workers::pools(), &pairs, |pair| {
            if failed.load(Relaxed) {
                return None;
            }
            let _span = profile::span(Component::Fitness, 0);
            let [plus, minus] = self.perturbation.materialize(model, *pair);
            let scores = score(plus).and_then(|plus| Ok([plus, score(minus)?]));
            failed.fetch_or(scores.is_err(), Relaxed);
            Some(scores)
        });
        drop(waiting);
        let scores = scores.into_iter().flatten().collect::<Result<Vec<_>, E>>()?;
        Ok(self.finish_each(scores.into_iter().flatten().collect()))
    }

    /// [`evaluate_each`](Self::evaluate_each) for a closure that changes what it captures: members are evaluated one after the other,
    /// on this thread. On CPUs `evaluate_each` is faster.
    ///
    /// # Panics
    ///
    /// As [`evaluate_each`](Self::evaluate_each).
    #[track_caller]
    pub fn evaluate_each_mut<M: Module, R: Scores>(&self, model: &M, mut score: impl FnMut(M) -> R) -> Fitness {
        never(self.each_in_order(model, |member| Ok(score(member))))
    }

    #[track_caller]
    fn each_in_order<M: Module, R: Scores, E>(
        &self,
        model: &M,
        mut score: impl FnMut(M) -> Result<R, E>,
    ) -> Result<Fitness, E> {
        let _span = profile::span(Component::Fitness, 0);
        self.note_model(model);
        let scores = self.alone(|| -> Result<_, E> {
            let mut scores = Vec::with_capacity(self.members);
            for pair in self.pair_numbers() {
                for member in self.perturbation.materialize(model, pair) {
                    scores.push(score(member)?);
                }
            }
            Ok(scores)
        })?;
        Ok(self.finish_each(scores))
    }

    fn pair_numbers(&self) -> Range<u32> {
        let pairs = self.pairs();
        pairs.first..pairs.first + pairs.count
    }

    #[track_caller]
    fn finish_each<R: Scores>(&self, scores: Vec<R>) -> Fitness {
        if let Some((member, score)) = self.range().zip(&scores).find(|(_, score)| score.shape().first() != Some(&1)) {
            panic!(
                "evaluate_each: the closure returned fitness of shape {:?} for member {member}, expected [1]",
                score.shape()
            );
        }
        self.note_all_used();
        R::read(scores)
    }
}
