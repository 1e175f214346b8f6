//! No noise and no update: to measure the cost of evaluation alone, or to run a training program over a model that must not change.

use super::{Noiser, NoiserProperties};
use crate::noise::role::Role;

/// The noiser that freezes every parameter, for all roles of a strategy.
#[derive(Debug)]
pub(super) struct NoOp;

impl Noiser for NoOp {
    fn role(&self, _shape: &[usize]) -> Role {
        Role::Frozen
    }

    fn properties(&self) -> NoiserProperties {
        NoiserProperties { no_op: true, ..NoiserProperties::default() }
    }
}
