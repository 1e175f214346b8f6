//! Baseline subtraction: EGGROLL with unperturbed members in every group (as in HyperscaleES, the code of Sarkar et al., "Evolution
//! Strategies at the Hyperscale", arXiv 2511.16652).

use super::eggroll::Eggroll;
use super::{EggrollConfig, Noiser, NoiserError, NoiserProperties};
use crate::noise::role::Role;
use serde::{Deserialize, Serialize};

/// Settings of baseline subtraction: members come in groups of `group` consecutive ones, and the first two of each group,
/// `m mod group < 2`, are baselines without noise. All others are members of EGGROLL.
///
/// For reproduction only: members are mirrored pairs, and `(f₊ − f₀) − (f₋ − f₀) = f₊ − f₋`, so a baseline `f₀` cancels in every pair.
/// Only the division by each group's standard deviation remains of `FitnessShaping::BaselineSubtraction` in `eggroll-train`, at the cost
/// of `2/group` of the evaluations. `FitnessShaping::GroupStandardized` has it without that cost.
///
/// The noise of a baseline is 0 for every use: it does not contribute to an estimate, with any score.
///
/// # Example
///
/// ```
/// use eggroll_core::{BaselineSubtractionConfig, EggrollConfig, NoiserConfig};
///
/// let config = NoiserConfig::from(BaselineSubtractionConfig::new(8).with_eggroll(EggrollConfig::new().with_rank(4)));
/// assert_eq!(config.baselines(), Some(8));
/// assert!(BaselineSubtractionConfig::new(7).init().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BaselineSubtractionConfig {
    /// Members of a group: even, at least 4.
    pub group: usize,
    /// The members that are perturbed.
    pub eggroll: EggrollConfig,
}

impl Default for BaselineSubtractionConfig {
    fn default() -> Self {
        Self::new(8)
    }
}

impl BaselineSubtractionConfig {
    /// Groups of `group` members, two of them baselines; the others EGGROLL's of rank 1.
    pub fn new(group: usize) -> Self {
        Self { group, eggroll: EggrollConfig::new() }
    }

    /// Sets how members that are not baselines are perturbed.
    pub fn with_eggroll(mut self, eggroll: EggrollConfig) -> Self {
        self.eggroll = eggroll;
        self
    }

    /// Builds the noiser.
    ///
    /// # Errors
    ///
    /// [`NoiserError::BaselineGroup`] if a group has no pair other than its baselines, or half a pair; [`NoiserError::Rank`] if the rank
    /// is 0.
    pub fn init(&self) -> Result<impl Noiser + use<>, NoiserError> {
        let pairs = u32::try_from(self.group / 2).ok().filter(|pairs| *pairs >= 2 && self.group.is_multiple_of(2));
        let pairs = pairs.ok_or(NoiserError::BaselineGroup(self.group))?;
        Ok(Baseline { pairs, eggroll: self.eggroll.build()? })
    }
}

#[derive(Debug)]
struct Baseline {
    /// Of a group.
    pairs: u32,
    eggroll: Eggroll,
}

impl Noiser for Baseline {
    fn role(&self, shape: &[usize]) -> Role {
        self.eggroll.role(shape)
    }

    fn properties(&self) -> NoiserProperties {
        NoiserProperties { baselines: self.pairs, ..self.eggroll.properties() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_groups_without_pairs() {
        for group in [0, 2, 3, 5, usize::MAX - 1] {
            let error = BaselineSubtractionConfig::new(group).init().map(drop).unwrap_err();
            assert!(error.to_string().contains(&group.to_string()), "{error}");
        }
        let rank = BaselineSubtractionConfig::new(4).with_eggroll(EggrollConfig::new().with_rank(0));
        assert_eq!(rank.init().map(drop), Err(NoiserError::Rank(0)));
    }
}
