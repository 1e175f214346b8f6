//! The update of a model by an estimate: a chain of links, each with its state.
//!
//! estimate → clip → transforms → relative rates → (master weights: optimizer → anchor decay) → votes → tied fields

mod anchor;
mod clip;
mod digest;
mod flat;
mod kept;
mod master_weights;
mod rates;
mod transforms;
mod votes;

pub(crate) use anchor::Anchor;
pub use clip::clip_norm;
pub use kept::KeptTensors;
pub(crate) use rates::population_share;

use crate::config::{EvolutionStrategyConfig, RateScale};
use crate::error::{ConfigError, RecordError};
use crate::fitness::Fitness;
use crate::optimizer::{Optimizer, tie};
use crate::population::{EstimatePlan, Population};
use burn::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::module::Module;
use burn::optim::GradientsParams;
use eggroll_core::ParameterTable;
use master_weights::{Masters, Types};
use std::sync::Arc;
use transforms::Transforms;

/// The links of an update that have state, in their order.
#[derive(Clone)]
pub(crate) struct Chain {
    transforms: Transforms,
    pub optimizer: Optimizer,
    /// What parameters decay to, if they do.
    pub anchor: Option<Arc<Anchor>>,
    /// The f32 copies of half-precision parameters, if they are wanted.
    pub masters: Option<Masters>,
}

/// The optimizer's input, the transforms after it, and how the votes of integers are counted.
pub(crate) struct Transformed {
    pub gradients: GradientsParams,
    transforms: Transforms,
    plans: Vec<EstimatePlan>,
}

impl Chain {
    pub fn init<M: Module>(
        config: &EvolutionStrategyConfig,
        table: &ParameterTable,
        model: &M,
    ) -> Result<Self, ConfigError> {
        let decays = config.anchor_decay.is_some_and(|decay| decay != 0.0);
        let optimizer = config.optimizer.init();
        if config.rate_scale != RateScale::Absolute && !optimizer.steps_on_each() {
            return Err(ConfigError::RateScale(config.rate_scale.to_string()));
        }
        let masters = config.master_weights.then(|| Masters::of(table, model));
        let transforms = match config.transforms.is_empty() {
            true => Transforms::default(),
            false => Transforms::init(&config.transforms, table, &wide(masters.as_ref(), table, model).0)?,
        };
        Ok(Self {
            transforms,
            optimizer,
            anchor: if decays { Some(Arc::new(Anchor::of(table, model)?)) } else { None },
            masters,
        })
    }

    /// Runs the links before the optimizer. Changes nothing.
    pub fn transformed<M: Module>(
        &self,
        config: &EvolutionStrategyConfig,
        table: &ParameterTable,
        model: &M,
        (estimate, plans): (GradientsParams, Vec<EstimatePlan>),
    ) -> Result<Transformed, String> {
        let clipped = match config.clip_norm {
            None => estimate,
            Some(longest) => clip_norm(model, estimate, longest),
        };
        if self.transforms.is_empty() {
            return Ok(Transformed { gradients: clipped, transforms: self.transforms.clone(), plans });
        }
        let (wide, _) = wide(self.masters.as_ref(), table, model);
        let (gradients, transforms) = self.transforms.apply(table, &wide, clipped)?;
        Ok(Transformed { gradients, transforms, plans })
    }

    /// The optimizer's step and the links after it.
    pub fn step<M: Module>(
        &mut self,
        config: &EvolutionStrategyConfig,
        model: &M,
        gradient: Transformed,
        learning_rate: ModuleLearningRate,
        (population, fitness): (&Population, &Fitness),
    ) -> M {
        let (table, sigma) = (&population.perturbation.table, population.perturbation.sigma);
        let rate = rates::of(config, learning_rate, sigma, table, model);
        self.transforms = gradient.transforms;
        let (before, types) = wide(self.masters.as_ref(), table, model);
        let stepped = self.optimizer.step(rate.clone(), before, gradient.gradients);
        let stepped = match (&self.anchor, config.anchor_decay) {
            (Some(anchor), Some(decay)) => anchor.pull(table, stepped, rate.base() * decay),
            _ => stepped,
        };
        let stepped = match (&mut self.masters, types) {
            (Some(masters), Some(types)) => masters.narrow(table, stepped, &types),
            _ => stepped,
        };
        let voted = votes::step(stepped, population, (fitness, gradient.plans), &mut self.optimizer, rate);
        match table.has_tied_fields() {
            true => tie(voted, |id| table.position(id).is_some_and(|position| table.fields(position) > 1)),
            false => voted,
        }
    }

    /// The first transform that remembers something.
    pub fn remembering(&self) -> Option<&str> {
        self.transforms.remembering()
    }

    /// The state of transforms; `None` if there is none.
    pub fn transforms_record(&self) -> Option<KeptTensors> {
        self.transforms.to_record()
    }

    /// f32 master weights; `None` if there are none.
    pub fn masters_record(&self) -> Option<KeptTensors> {
        self.masters.as_ref().and_then(Masters::to_record)
    }

    /// Takes over transforms and master weights of a record.
    pub fn load(
        &mut self,
        table: &ParameterTable,
        masters: Option<KeptTensors>,
        transforms: Option<KeptTensors>,
    ) -> Result<(), RecordError> {
        let masters = match &self.masters {
            Some(own) => Some(own.loaded(table, masters).map_err(RecordError::Masters)?),
            None if masters.is_some() => {
                let reason = "the record has some, and this strategy was made without master_weights".to_owned();
                return Err(RecordError::Masters(reason));
            }
            None => None,
        };
        self.transforms = self.transforms.loaded(transforms).map_err(RecordError::Transforms)?;
        self.masters = masters;
        Ok(())
    }
}

/// The model with master weights in place of half precision, and the types that it had. Tensors are shared, not copied.
fn wide<M: Module>(masters: Option<&Masters>, table: &ParameterTable, model: &M) -> (M, Option<Types>) {
    match masters {
        Some(masters) => {
            let (wide, types) = masters.widen(table, model.clone());
            (wide, Some(types))
        }
        None => (model.clone(), None),
    }
}
