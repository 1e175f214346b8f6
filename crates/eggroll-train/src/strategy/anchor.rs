//! The anchor that parameters of a strategy decay to.

use super::EvolutionStrategy;
use crate::error::Error;
use crate::update::Anchor;
use burn::module::Module;
use std::sync::Arc;

impl EvolutionStrategy {
    /// Sets `model` as the anchor of [`with_anchor_decay`](crate::EvolutionStrategyConfig::with_anchor_decay), in place of the model that the
    /// strategy was initialized with. Parameters are found by their paths, so `model` may be loaded from the file of a pretrained one. To
    /// continue a run, give the model that it began with, and load the record then. Without anchor decay nothing changes.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Anchor`](crate::ConfigError::Anchor) with a trained float parameter that `model` does not have in the same shape.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::SgdConfig;
    /// use burn::tensor::Device;
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// # fn main() -> Result<(), eggroll_train::Error> {
    /// let device = Device::flex();
    /// let (pretrained, model) = (LinearConfig::new(3, 2).init(&device), LinearConfig::new(3, 2).init(&device));
    /// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_anchor_decay(0.1);
    /// let strategy = config.try_init(&model)?.try_with_anchor(&pretrained)?;
    /// assert_eq!(strategy.anchor_digest(), config.try_init(&pretrained)?.anchor_digest());
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_with_anchor<M: Module>(mut self, model: &M) -> Result<Self, Error> {
        if self.chain.anchor.is_some() {
            self.chain.anchor = Some(Arc::new(Anchor::of(&self.table, model)?));
        }
        Ok(self)
    }

    /// Takes over the anchor of another strategy with the same configuration and model, without a copy.
    ///
    /// # Panics
    ///
    /// Panics if the other strategy has other parameters, with the first path that differs.
    #[track_caller]
    pub fn with_anchor_of(mut self, other: &Self) -> Self {
        if let (Some(_), Some(anchor)) = (&self.chain.anchor, &other.chain.anchor) {
            let pairs = self.table.entries().iter().zip(other.table.entries());
            let mut differing = pairs.filter(|(a, b)| (&a.path, &a.shape, a.role) != (&b.path, &b.shape, b.role));
            let (found, expected) = (other.table.entries().len(), self.table.entries().len());
            assert!(found == expected, "an anchor of {found} parameters for a strategy of {expected}");
            if let Some((expected, found)) = differing.next() {
                panic!(
                    "an anchor with \"{}\" {:?} for \"{}\" {:?}",
                    found.path, found.shape, expected.path, expected.shape
                );
            }
            self.chain.anchor = Some(anchor.clone());
        }
        self
    }

    /// SHA-256 of the anchor, as hexadecimal digits; `None` without anchor decay. The first call reads the anchor to the host.
    pub fn anchor_digest(&self) -> Option<&str> {
        self.chain.anchor.as_ref().map(|anchor| anchor.digest())
    }
}
