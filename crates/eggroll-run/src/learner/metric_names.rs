//! The metrics of a dashboard.

use std::collections::BTreeSet;

/// Names of metrics.
#[cfg_attr(not(feature = "tui"), expect(dead_code, reason = "only a dashboard asks for them"))]
pub(super) struct MetricNames {
    /// Metrics of the validation.
    pub valid: BTreeSet<String>,
    /// Metrics of the learner.
    pub built_in: BTreeSet<String>,
}
