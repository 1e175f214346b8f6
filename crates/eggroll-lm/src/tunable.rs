//! What a fine-tune asks of a model, whatever its weights are.

use crate::causal::CausalModel;
use crate::error::Error;
use crate::host::{Changed, Decoder};
use crate::load::{LoadError, ModelConfig, Weights};
use burn::module::Module;
use burn::tensor::Device;
use eggroll_core::transformer::Precision;
use eggroll_run::replay_from;
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig, Fitness, GenerationReport, Population};
use std::path::Path;

/// A model that a [`Finetune`](crate::Finetune) tunes: a [`CausalModel`], whose weights are floats, or a [`QuantizedLlama`](crate::QuantizedLlama), whose
/// weights are integers.
pub trait Tunable: Module + Sync {
    /// The model on the host.
    type Host: Decoder + Send;

    /// Patterns of the parameters that are perturbed unless roles are given.
    const PERTURBED: &'static [&'static str];

    /// Reads a model, and packs it for its members.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for files that do not fit, or weights that are not finite.
    fn open(config: &ModelConfig, weights: Weights, precision: Precision) -> Result<(Self, Self::Host), LoadError>;

    /// Refuses settings that the weights do not learn by.
    ///
    /// # Errors
    ///
    /// [`Error::Quantized`] with the setting.
    fn check(&self, config: &EvolutionStrategyConfig) -> Result<(), Error>;

    /// Makes the step of a generation; says how much of what members read has changed.
    ///
    /// # Errors
    ///
    /// As [`EvolutionStrategy::tell`]; [`Error::Carried`].
    fn tell(
        &mut self,
        host: &mut Self::Host,
        strategy: &mut EvolutionStrategy,
        population: Population,
        fitness: Fitness,
    ) -> Result<(GenerationReport, Changed), Error>;

    /// Makes the steps of a replay log again, from the model that it began with.
    ///
    /// # Errors
    ///
    /// As [`replay_from`].
    fn replay(
        &mut self,
        host: &mut Self::Host,
        path: &Path,
        strategy: EvolutionStrategy,
        precision: Precision,
    ) -> Result<EvolutionStrategy, eggroll_run::Error>;

    /// A member as a model of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Quantized`] where there is none.
    fn member(&self, population: &Population, member: usize, precision: Precision) -> Result<Self::Host, Error>;
}

impl<M: CausalModel> Tunable for M {
    type Host = M::Host;
    const PERTURBED: &'static [&'static str] = M::PERTURBED;

    fn open(config: &ModelConfig, weights: Weights, precision: Precision) -> Result<(Self, M::Host), LoadError> {
        let model = M::load(config, &weights, &Device::flex())?;
        let host = model.to_host(precision);
        Ok((model, host))
    }

    fn check(&self, _config: &EvolutionStrategyConfig) -> Result<(), Error> {
        Ok(())
    }

    fn tell(
        &mut self,
        host: &mut M::Host,
        strategy: &mut EvolutionStrategy,
        population: Population,
        fitness: Fitness,
    ) -> Result<(GenerationReport, Changed), Error> {
        let table = population.perturbation().table.clone();
        let report = strategy.tell(self, population, fitness)?;
        let changed = if report.stepped { self.update_host(host, &table) } else { Changed::default() };
        Ok((report, changed))
    }

    fn replay(
        &mut self,
        host: &mut M::Host,
        path: &Path,
        strategy: EvolutionStrategy,
        precision: Precision,
    ) -> Result<EvolutionStrategy, eggroll_run::Error> {
        let (strategy, model) = replay_from(path, strategy, self.clone(), None)?;
        (*self, *host) = (model.clone(), model.to_host(precision));
        Ok(strategy)
    }

    fn member(&self, population: &Population, member: usize, precision: Precision) -> Result<M::Host, Error> {
        Ok(population.member(self, member).to_host(precision))
    }
}
