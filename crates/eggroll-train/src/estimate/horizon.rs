//! Unrolls over several generations: the noise that has acted on the members' state since it was reset.

use crate::config::EvolutionStrategyConfig;
use crate::error::ConfigError;
use crate::population::Population;
use eggroll_core::scope::Perturbation;
use eggroll_core::{NoiseSourceConfig, ParameterKind, ParameterTable};
use std::sync::Arc;

/// Refuses sums over several noise epochs for parameters that are updated by votes: votes count the noise of one.
pub(crate) fn validate_parameters(config: &EvolutionStrategyConfig, table: &ParameterTable) -> Result<(), ConfigError> {
    let Some(horizon) = config.unroll_horizon.filter(|horizon| *horizon != config.noise_reuse) else {
        return Ok(());
    };
    match table.trained(ParameterKind::Integer).next() {
        Some((_, entry)) => {
            Err(ConfigError::UnrollVotes { horizon, noise_reuse: config.noise_reuse, path: entry.path.clone() })
        }
        None => Ok(()),
    }
}

/// How the members were perturbed since their state was reset: once for every noise epoch, the oldest first and the
/// population's own last.
pub(crate) fn perturbations(config: &EvolutionStrategyConfig, population: &Population) -> Vec<Perturbation> {
    let now = &population.perturbation;
    let start = config.unroll_start(population.generation);
    let earlier = (population.generation - start).checked_div(config.noise_reuse).unwrap_or(0) as u32;
    let held = match config.noise_source {
        // What is held is the noise of this generation; that of others is drawn, with the same bits.
        NoiseSourceConfig::Cached => Arc::default(),
        NoiseSourceConfig::OnTheFly | NoiseSourceConfig::Table { .. } => now.held.clone(),
    };
    let at = |generation| Perturbation { generation, held: held.clone(), ..now.clone() };
    (now.generation - earlier..now.generation).map(at).chain([now.clone()]).collect()
}
