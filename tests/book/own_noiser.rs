//! A custom noiser.

use burn::optim::AdamConfig;
use eggroll::core::{CustomNoiser, Noiser, ParameterTable, Role};
use eggroll::nn::LinearConfig;
use eggroll::prelude::*;

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

#[test]
fn a_strategy_takes_it() -> Result<(), eggroll::Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let model = LinearConfig::new(4, 8).init(&Device::flex());
    let noiser = NoiserConfig::from(CustomNoiser::new(WideOnly { width: 8 }));
    let strategy = EvolutionStrategyConfig::new(noiser.clone(), AdamConfig::new()).try_init(&model)?;

    let checkpoints = Checkpoints::new(folder.path()).with_noiser(noiser);
    checkpoints.save(&strategy, &model)?;
    let loaded = checkpoints.load_latest(model)?;
    assert_eq!(loaded.expect("saved").0.generation(), 0);
    Ok(())
}
