//! Learning rates relative to the noise scale of parameters.

use crate::config::{EvolutionStrategyConfig, RateScale};
use burn::lr_scheduler::module_lr_scheduler::{ModuleLearningRate, ModuleLrScheduler};
use burn::module::{Module, ModuleVisitor, Param, ParamGroup};
use burn::tensor::Tensor;
use eggroll_core::{ParameterKind, ParameterTable};

/// Values for each member up to which noise and steps have full length.
const VALUES_OF_A_MEMBER: f64 = 10.0;

/// `min(1, 10·N/n)`, for `N` members and all `n` trained values of a table.
pub(crate) fn population_share(table: &ParameterTable, members: usize) -> f64 {
    let values: usize =
        table.trained(ParameterKind::Float).map(|(_, entry)| entry.shape.iter().product::<usize>()).sum();
    (VALUES_OF_A_MEMBER * members as f64 / values as f64).min(1.0)
}

/// The learning rate of every parameter, as configured.
pub(super) fn of<M: Module>(
    config: &EvolutionStrategyConfig,
    learning_rate: ModuleLearningRate,
    sigma: f64,
    table: &ParameterTable,
    model: &M,
) -> ModuleLearningRate {
    let rate = learning_rate.base();
    match config.rate_scale {
        RateScale::Absolute => learning_rate,
        RateScale::RelativeToSigma => relative_to_sigma(rate, sigma, table, model),
        RateScale::RelativeToPopulation => {
            let share = population_share(table, config.population_size);
            relative_to_sigma(rate * share, sigma, table, model)
        }
    }
}

/// `rate·σ_p` for the parameters of a table, and `rate·σ` for all others.
fn relative_to_sigma<M: Module>(rate: f64, sigma: f64, table: &ParameterTable, model: &M) -> ModuleLearningRate {
    if table.has_common_sigma() {
        return ModuleLearningRate::from(rate * sigma);
    }
    let mut rates = Rates { rate, sigma, table, found: Vec::new() };
    model.visit(&mut rates);
    let all = ModuleLrScheduler::new(rate * sigma);
    rates.found.into_iter().fold(all, |all, (group, rate)| all.with_group(group, rate)).step()
}

struct Rates<'a> {
    rate: f64,
    sigma: f64,
    table: &'a ParameterTable,
    found: Vec<(ParamGroup, f64)>,
}

impl ModuleVisitor for Rates<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(position) = self.table.position(param.id) {
            let rate = self.rate * self.table.sigma_of(position, self.sigma);
            self.found.push((ParamGroup::ids_from_module(param.clone()), rate));
        }
    }
}
