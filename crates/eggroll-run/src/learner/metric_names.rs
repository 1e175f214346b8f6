//! Which metrics a dashboard shows.

use std::collections::BTreeSet;

/// Names of metrics.
#[cfg_attr(not(feature = "tui"), expect(dead_code, reason = "only a dashboard asks for them"))]
pub(super) struct MetricNames {
    /// Of the validation.
    pub valid: BTreeSet<String>,
    /// Of the learner's.
    pub built_in: BTreeSet<String>,
}
