//! Counts of a coordinator over its workers' messages.

use super::collection::Rejection;
use std::collections::{BTreeMap, BTreeSet};

/// Messages since the coordinator started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Results that were taken.
    pub accepted: u64,
    /// Results that were there already, the same bit for bit.
    pub duplicates: u64,
    /// Results that were not taken, by reason.
    pub rejected: BTreeMap<Rejection, u64>,
    /// Results that were taken, by node.
    pub by_node: BTreeMap<String, u64>,
    /// Slices that were offered again.
    pub offered_again: u64,
    /// Slices that the coordinator has evaluated itself to verify results.
    pub evaluated: u64,
    /// Failures that workers have reported.
    pub failed: u64,
    /// Messages in the stream of fitness that no coordinator of this run has put there.
    pub foreign: u64,
    /// Generations whose fitness the server had when this coordinator started.
    pub found: u64,
    /// Those of them that were not evaluated again.
    pub recovered: u64,
    /// What speaks against nodes, which have shown their key for it.
    pub strikes: BTreeMap<String, u32>,
    /// Nodes whose results are not looked at any more.
    pub ignored: BTreeSet<String>,
}
