//! A noiser of another crate: trains, is continued bit for bit, and no run is continued under another one.

use crate::reliability::support::*;
use burn::optim::AdamConfig;
use eggroll_core::{CustomNoiser, EggrollConfig, Noiser, NoiserConfig, OpenEsConfig, Role};
use eggroll_run::*;
use eggroll_train::*;

const GENERATIONS: usize = 6;

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

fn wide_only(width: usize) -> NoiserConfig {
    CustomNoiser::new(WideOnly { width }).into()
}

fn strategy(noiser: impl Into<NoiserConfig>) -> EvolutionStrategyConfig {
    config(noiser, AdamConfig::new())
}

/// Where all its roles are EGGROLL's or OpenES's it makes their models; between them its own.
#[test]
fn trains() {
    let folder = tempfile::tempdir().expect("a folder");
    let last = |name: &str, noiser: NoiserConfig| {
        let digests = digests::<Net>(&strategy(noiser), GENERATIONS, &folder.path().join(name));
        assert!(digests.windows(2).all(|pair| pair[0] != pair[1]), "canary: {name} moves");
        digests.last().expect("the first").clone()
    };
    let [all, wide, none] = [0, 6, 7].map(|width| last(&format!("{width}"), wide_only(width)));
    assert_eq!(all, last("eggroll", EggrollConfig::new().into()));
    assert_eq!(none, last("open_es", OpenEsConfig::new().into()));
    assert!(wide != all && wide != none, "canary: {wide}");
}

#[test]
fn continues_from_a_checkpoint_and_a_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, config) = (folder.path().join("log"), strategy(wide_only(6)));
    let straight = digests::<Net>(&config, GENERATIONS, &log);

    let checkpoints = Checkpoints::new(folder.path().join("checkpoints")).with_noiser(wide_only(6));
    let first = Net::start();
    let (begun, model) = replay_from(&log, config.init(&first), first, Some(3)).expect("replays");
    checkpoints.save(&begun, &model).expect("saves");
    let (mut loaded, mut model) = checkpoints.load_latest(Net::start()).expect("loads").expect("saved");
    let mut log = ReplayLog::resume(&log, &loaded).expect("resumes");
    assert_eq!((loaded.generation(), parameter_digest(&model)), (3, straight[3].clone()));
    for expected in &straight[4..] {
        model = generation(&mut loaded, model, &mut log);
        assert_eq!(parameter_digest(&model), *expected);
    }

    // What a program gives for its memory gives its noiser too.
    let of_limits = Checkpoints::new(folder.path().join("checkpoints")).with_limits_of(&config);
    assert!(of_limits.load_latest(Net::start()).expect("loads").is_some());
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
