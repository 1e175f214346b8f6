//! Errors of rollouts, with the values in them.

use super::head::ActionHead;
use crate::ActionSpace;

/// Errors of rollouts: settings that fit neither each other nor the environment.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RolloutError {
    /// A count of 0.
    #[error("rollouts: {setting} must be at least 1, not 0")]
    Zero {
        /// The setting.
        setting: &'static str,
    },
    /// A count that is too large.
    #[error("rollouts: {setting} must be at most {most}, not {found}")]
    TooMany {
        /// The setting.
        setting: &'static str,
        /// The count.
        found: usize,
        /// The largest that there may be.
        most: usize,
    },
    /// A head that cannot produce actions for the environment.
    #[error(
        "rollouts: the head {head:?} cannot produce actions for {actions:?}: use Greedy for any actions, Sampled for discrete ones, \
         Tanh for continuous ones"
    )]
    Head {
        /// The head.
        head: ActionHead,
        /// Actions of the environment.
        actions: ActionSpace,
    },
    /// Bounds that no action is between.
    #[error(
        "rollouts: there are no actions from {low} to {high}: the lower bound must be a number up to the upper one"
    )]
    Bounds {
        /// The lower bound.
        low: f32,
        /// The upper bound.
        high: f32,
    },
    /// Bounds that a head cannot spread actions between.
    #[error(
        "rollouts: the head {head:?} spreads actions between their bounds, but the range from {low:e} to {high:e} is \
         infinite or exceeds f32. Give finite bounds, or use the head Greedy, which takes outputs unchanged"
    )]
    Unbounded {
        /// The head.
        head: ActionHead,
        /// The lower bound.
        low: f32,
        /// The upper bound.
        high: f32,
    },
    /// Statistics of observations of another size.
    #[error(
        "rollouts: the normalizer has statistics of {found} observed values, and observations here have {expected}: give the \
         normalizer that was saved in this environment"
    )]
    NormalizerSize {
        /// Values of the statistics.
        found: usize,
        /// Values of an observation.
        expected: usize,
    },
    /// Statistics that no observations have: NaN, infinite, or a negative sum of squares.
    #[error("rollouts: the statistics of the normalizer are invalid, {0}: start without a normalizer")]
    NormalizerNumbers(String),
    /// Statistics for observations that are not normalized.
    #[error("rollouts: a normalizer is given, but normalize_observations is false: set it to true")]
    NotNormalized,
}

eggroll_core::debug_is_message!(RolloutError);

impl RolloutError {
    /// Refuses the first setting that is 0.
    pub(super) fn if_zero(settings: &[(&'static str, usize)]) -> Result<(), Self> {
        match settings.iter().copied().find(|(_, count)| *count == 0) {
            Some((setting, _)) => Err(Self::Zero { setting }),
            None => Ok(()),
        }
    }

    /// Refuses actions that a head cannot make.
    pub(super) fn unless_fits(head: ActionHead, actions: ActionSpace) -> Result<(), Self> {
        match actions {
            _ if head.fits(actions) => Ok(()),
            ActionSpace::Continuous { low, high, .. } if !actions.has_values() => Err(Self::Bounds { low, high }),
            ActionSpace::Continuous { low, high, .. } if !actions.is_bounded() => {
                Err(Self::Unbounded { head, low, high })
            }
            _ => Err(Self::Head { head, actions }),
        }
    }

    /// Refuses the first setting that is above what follows it.
    pub(super) fn if_above(settings: &[(&'static str, usize, usize)]) -> Result<(), Self> {
        match settings.iter().copied().find(|(_, found, most)| found > most) {
            Some((setting, found, most)) => Err(Self::TooMany { setting, found, most }),
            None => Ok(()),
        }
    }
}

impl From<RolloutError> for eggroll_train::Error {
    fn from(error: RolloutError) -> Self {
        Self::Rollouts(Box::new(error))
    }
}
