//! What a coordinator has seen of its workers.

use super::collection::Rejection;
use std::collections::{BTreeMap, BTreeSet};

/// What has arrived since the coordinator started.
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
    /// Slices that the coordinator has evaluated itself, to tell who is right.
    pub evaluated: u64,
    /// Generations whose fitness the server had already.
    pub recovered: u64,
    /// Nodes whose results are not looked at any more.
    pub ignored: BTreeSet<String>,
}
