//! A noiser of another crate: no run is continued under another one.

use crate::reliability::support::*;
use burn::optim::AdamConfig;
use eggroll_core::{CustomNoiser, EggrollConfig, Noiser, NoiserConfig, OpenEsConfig, Role};
use eggroll_run::*;
use eggroll_train::*;

/// Low-rank noise for matrices of at least `width` columns, dense noise for other parameters.
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

pub fn wide_only(width: usize) -> NoiserConfig {
    CustomNoiser::new(WideOnly { width }).into()
}

fn strategy(noiser: impl Into<NoiserConfig>) -> EvolutionStrategyConfig {
    config(noiser, AdamConfig::new())
}

#[test]
fn no_run_continues_under_another_noiser() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |saved: &NoiserConfig, given: Option<&NoiserConfig>, name: &str| {
        let checkpoints = Checkpoints::new(folder.path().join(name));
        let model = Net::start();
        checkpoints.save(&strategy(saved.clone()).init(&model), &model).expect("saves");
        let checkpoints = given.map_or(checkpoints.clone(), |given| checkpoints.with_noiser(given.clone()));
        checkpoints.load_latest(model).map(drop).expect_err("another noiser").to_string()
    };
    let (saved, given) = (wide_only(6), wide_only(7));
    let error = refused(&saved, Some(&given), "custom");
    assert!(error.contains("WideOnly { width: 6 }") && error.contains("WideOnly { width: 7 }"), "{error}");
    let error = refused(&saved, Some(&EggrollConfig::new().into()), "registered");
    assert!(error.contains("WideOnly { width: 6 }") && error.contains("EggrollConfig"), "{error}");
    let error = refused(&EggrollConfig::new().into(), Some(&saved), "eggroll");
    assert!(error.contains("WideOnly { width: 6 }") && error.contains("EggrollConfig"), "{error}");
    let error = refused(&EggrollConfig::new().into(), Some(&OpenEsConfig::new().into()), "both registered");
    assert!(error.contains("OpenEsConfig") && error.contains("EggrollConfig"), "{error}");
    let error = refused(&saved, None, "nothing");
    assert!(error.contains("WideOnly { width: 6 }"), "{error}");

    let log = folder.path().join("log");
    digests::<Net>(&strategy(saved), 2, &log);
    let other = strategy(given).init(&Net::start());
    let error = replay_from(&log, other, Net::start(), None).map(drop).expect_err("another noiser").to_string();
    assert!(error.contains("WideOnly { width: 6 }") && error.contains("WideOnly { width: 7 }"), "{error}");
    let error = replay(&log, Net::start(), None).map(drop).expect_err("only a name").to_string();
    assert!(error.contains("WideOnly { width: 6 }"), "{error}");
    assert_eq!(replay_range(&log).expect("a log"), 0..2);
}
