//! Which run a node belongs to.

use super::config::NatsConfig;
use super::error::NatsError;
use crate::digest::hex;
use crate::distribution::replica::{arithmetic, trains_floats};
use crate::error::{Error, RunError, SavedError};
use crate::replay::check;
use eggroll_train::EvolutionStrategy;
use std::fmt;

/// Which run a message belongs to: a hash of name, settings, the version of score and data, strategy and the names, shapes and roles of all parameters; where floats
/// are trained also of the kind of device and the instruction set, which they are rounded by. Where noise is relative to the spreads of parameters,
/// or these decay to those of a first model, of the spreads and of that model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId(pub [u8; 8]);

impl RunId {
    /// The run of a strategy under these settings. Chunks and memory, which change no bit, have no part in it.
    ///
    /// # Errors
    ///
    /// [`NatsError::Training`] if the configuration cannot be written, or its updates need more than fitness
    /// ([`SavedError::ReplayCredit`]).
    pub fn of(config: &NatsConfig, strategy: &EvolutionStrategy) -> Result<Self, NatsError> {
        let (credit, parts) = (strategy.credit(), config.tasks);
        if credit.projects(parts) {
            return Err(Error::from(SavedError::ReplayCredit { credit: credit.to_string(), parts }).into());
        }
        let settings = strategy.config().of_updates();
        let json = serde_json::to_vec(&settings).map_err(|error| Error::from(RunError::Settings(error.to_string())))?;
        let NatsConfig { run, slice_members, tasks, integers, pair_signs, digest_every, version, .. } = config;
        let len = version.len();
        let own = format!("{run} {slice_members} {tasks} {integers} {pair_signs} {digest_every} {len} {version} ");
        let entries = strategy.parameters().entries().iter();
        let model: String = entries
            .map(|entry| format!("{} {:?} {:?} {:?}\n", entry.path, entry.shape, entry.kind, entry.role))
            .collect();
        let stream = settings.noiser.stream_version().to_le_bytes();
        let arithmetic =
            if trains_floats(strategy) { arithmetic(strategy.parameters().devices()) } else { String::new() };
        let spreads = strategy.parameters().spreads().unwrap_or_default().iter();
        let spreads: Vec<u8> = spreads.flat_map(|spread| spread.to_le_bytes()).collect();
        let anchor = strategy.anchor_digest().unwrap_or_default();
        let parts =
            [own.as_bytes(), &stream, &json, model.as_bytes(), arithmetic.as_bytes(), &spreads, anchor.as_bytes()];
        Ok(Self(check(&parts)))
    }

    /// The error that another run was `found` under this one's name.
    pub(super) fn refuse(&self, config: &NatsConfig, found: &Self) -> NatsError {
        NatsError::OtherRun { run: config.run.clone(), expected: self.to_string(), found: found.to_string() }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::module::{Module, ModuleMapper, Param};
    use burn::optim::SgdConfig;
    use burn::tensor::{Device, Tensor};
    use eggroll_core::EggrollConfig;
    use eggroll_nn::LinearConfig;
    use eggroll_train::{EvolutionStrategyConfig, NoiseScale};

    struct Twice;

    impl ModuleMapper for Twice {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|value| value * 2)
        }
    }

    /// Of another first model only where something of it acts for the whole run.
    #[test]
    fn a_run_is_that_of_its_start() {
        let first = LinearConfig::new(3, 2).with_bias(false).init(&Device::flex());
        let other = first.clone().map(&mut Twice);
        let differ = |config: &EvolutionStrategyConfig| {
            let id = |model| RunId::of(&NatsConfig::new("", "run"), &config.init(model)).expect("a run");
            assert_eq!(id(&first), id(&first));
            id(&first) != id(&other)
        };
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
        assert!(!differ(&config));
        assert!(differ(&config.clone().with_noise_scale(NoiseScale::RelativeToSpread)));
        assert!(differ(&config.with_anchor_decay(0.5)));
    }
}
