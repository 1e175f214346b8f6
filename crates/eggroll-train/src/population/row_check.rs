//! Checks of the rows that a layer is given.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Whether the rows that a parameter is given belong to parts: checked in the first generation in which it would learn by
/// part. [`credits`](super::Population::credits) follow it from then on, and [records](crate::StrategyRecord::rows) hold
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RowCheck {
    /// Not looked at.
    Unknown,
    /// No score responded to them, as behind a head of zeros, or scores are drawn anew in each call. Their number decides, and they are checked again in
    /// generations 1, 2, 4, 8 and so on.
    Silent,
    /// They belong to the parts.
    OfParts,
    /// Scores of other parts depend on the rows that would be a part's.
    Mixed,
    /// They differ whenever the closure is called.
    Redrawn,
    /// Members are given different ones.
    ByMember,
}

impl fmt::Display for RowCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "its rows were not looked at",
            Self::Silent => "no score answered to its rows",
            Self::OfParts => "its rows belong to the parts",
            Self::Mixed => "scores of other parts depend on a part's rows",
            Self::Redrawn => "its rows are others in every call of the closure",
            Self::ByMember => "members were given different rows",
        })
    }
}

impl RowCheck {
    /// Whether the rows may belong to the parts.
    pub(super) fn allows_parts(self) -> bool {
        matches!(self, Self::Unknown | Self::Silent | Self::OfParts)
    }

    /// Whether a generation looks at the rows.
    pub(super) fn is_due(self, generation: u64) -> bool {
        self == Self::Unknown || self == Self::Silent && generation.is_power_of_two()
    }
}
