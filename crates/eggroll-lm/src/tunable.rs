//! The interface of a model for fine-tuning, with any kind of weights.

use crate::causal::CausalModel;
use crate::error::Error;
use crate::host::{Changed, Decoder};
use crate::language_model::LanguageModel;
use crate::load::{LoadError, ModelConfig, Weights};
use burn::module::Module;
use burn::tensor::Device;
use eggroll_core::ParameterTable;
use eggroll_core::scope::Perturbation;
use eggroll_core::transformer::Precision;
use eggroll_run::replay_from;
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig, Fitness, GenerationReport, Population};
use std::path::Path;
use std::sync::OnceLock;

/// A model that a [`Finetune`](crate::Finetune) tunes: a [`CausalModel`], whose weights are floats, or a [`QuantizedLlama`](crate::QuantizedLlama), whose
/// weights are integers.
pub trait Tunable: Module + Sync {
    /// The model on the host.
    type Host: Decoder + Send;

    /// Patterns of the parameters that are perturbed unless roles are given.
    const PERTURBED: &'static [&'static str];

    /// Reads a model, and its host if the host has the weights.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for files that do not fit, or weights that are not finite.
    fn open(config: &ModelConfig, weights: Weights) -> Result<(Self, OnceLock<Self::Host>), LoadError>;

    /// [`CausalModel::on_device`].
    fn on_device(&self) -> Option<&dyn LanguageModel> {
        None
    }

    /// Whether [`on_device`](Self::on_device) takes members of this noise.
    fn takes_on_device(&self, _perturbation: &Perturbation) -> bool {
        true
    }

    /// Packs the weights for the host, if it does not have them.
    fn pack(&self, precision: Precision) -> Self::Host;

    /// Refuses settings that the weights do not support.
    ///
    /// # Errors
    ///
    /// [`Error::Quantized`] with the setting.
    fn check(&self, config: &EvolutionStrategyConfig) -> Result<(), Error>;

    /// Makes the step of a generation; returns the changes of packed weights.
    ///
    /// # Errors
    ///
    /// As [`EvolutionStrategy::tell`]; [`Error::Carried`].
    fn tell(
        &mut self,
        host: &mut OnceLock<Self::Host>,
        strategy: &mut EvolutionStrategy,
        population: Population,
        fitness: Fitness,
    ) -> Result<(GenerationReport, Changed), Error>;

    /// Replays the steps of a log, from its initial model.
    ///
    /// # Errors
    ///
    /// As [`replay_from`].
    fn replay(
        &mut self,
        host: &mut OnceLock<Self::Host>,
        path: &Path,
        strategy: EvolutionStrategy,
    ) -> Result<EvolutionStrategy, eggroll_run::Error>;

    /// A member as a separate model.
    ///
    /// # Errors
    ///
    /// [`Error::Quantized`] if there is none.
    fn member(&self, population: &Population, member: usize, precision: Precision) -> Result<Self::Host, Error>;
}

impl<M: CausalModel> Tunable for M {
    type Host = M::Host;
    const PERTURBED: &'static [&'static str] = M::PERTURBED;

    fn open(config: &ModelConfig, weights: Weights) -> Result<(Self, OnceLock<M::Host>), LoadError> {
        Ok((M::load(config, &weights, &Device::flex())?, OnceLock::new()))
    }

    fn on_device(&self) -> Option<&dyn LanguageModel> {
        CausalModel::on_device(self)
    }

    fn pack(&self, precision: Precision) -> M::Host {
        self.to_host(precision)
    }

    fn check(&self, _config: &EvolutionStrategyConfig) -> Result<(), Error> {
        Ok(())
    }

    fn tell(
        &mut self,
        host: &mut OnceLock<M::Host>,
        strategy: &mut EvolutionStrategy,
        population: Population,
        fitness: Fitness,
    ) -> Result<(GenerationReport, Changed), Error> {
        let table = population.perturbation().table.clone();
        let report = strategy.tell(self, population, fitness)?;
        let changed = if report.stepped { follow(self, host, Some(&table)) } else { Changed::default() };
        Ok((report, changed))
    }

    fn replay(
        &mut self,
        host: &mut OnceLock<M::Host>,
        path: &Path,
        strategy: EvolutionStrategy,
    ) -> Result<EvolutionStrategy, eggroll_run::Error> {
        let (strategy, model) = replay_from(path, strategy, self.clone(), None)?;
        *self = model;
        host.take();
        Ok(strategy)
    }

    fn member(&self, population: &Population, member: usize, precision: Precision) -> Result<M::Host, Error> {
        Ok(population.member(self, member).to_host(precision))
    }
}

/// Updates the packed host after a change of the model, in these parameters or in any.
pub(crate) fn follow<M: CausalModel>(
    model: &M,
    host: &mut OnceLock<M::Host>,
    changed: Option<&ParameterTable>,
) -> Changed {
    match (CausalModel::on_device(model), changed, host.get_mut()) {
        (None, Some(table), Some(host)) => model.update_host(host, table),
        _ => {
            host.take();
            Changed::default()
        }
    }
}
