//! A noiser of one's own.

use eggroll::core::{Noiser, ParameterTable, Role};
use eggroll::nn::LinearConfig;
use eggroll::prelude::Device;

// ANCHOR: noiser
/// Low-rank noise for matrices of at least `width` columns, dense noise for everything smaller.
#[derive(Debug)]
struct WideOnly {
    width: usize,
}

impl Noiser for WideOnly {
    fn role(&self, shape: &[usize]) -> Role {
        match *shape {
            [_, columns] if columns >= self.width => Role::LowRank { rank: 1 },
            _ => Role::Dense,
        }
    }
}
// ANCHOR_END: noiser

#[test]
fn roles_by_shape() {
    let roles = |columns: usize| {
        let model = LinearConfig::new(4, columns).with_bias(false).init(&Device::flex());
        let table = ParameterTable::new(&model, &WideOnly { width: 8 }, &[]).expect("a table");
        table.entries()[0].role
    };
    assert_eq!((roles(8), roles(7)), (Role::LowRank { rank: 1 }, Role::Dense));
}
