//! Saving and continuing: equal, bit for bit, to not having stopped.

use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::module::{Module, Param, ParamId};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, AdamWConfig, SgdConfig};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::{EggrollConfig, NoiseDistribution, NoiserConfig, OpenEsConfig};
use eggroll_nn::{Linear, LinearConfig};
use eggroll_run::Error;
use eggroll_run::*;
use eggroll_train::*;
use sha2::{Digest, Sha256};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

fn layer() -> Linear {
    LinearConfig::new(3, 2).init(&Device::flex())
}

fn config(noiser: NoiserConfig, optimizer: OptimizerConfig) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(noiser, optimizer)
        .with_population_size(16)
        .with_sigma(SigmaSchedule::Exponential { initial: 0.1, decay: 0.99, last: None })
        .with_learning_rate(CosineAnnealingLrSchedulerConfig::new(0.05, 40))
        .with_noise_reuse(2)
}

fn train(strategy: &mut EvolutionStrategy, model: Linear, until: u64, loops: TrainingLoop) -> Linear {
    let x = Tensor::<2>::ones([2, 3], &Device::flex());
    let result = loops.run(
        strategy,
        model,
        |model, population| {
            Ok(population.evaluate(|members| -members.mean((model.forward_shared(x.clone()) - 1.0).square())))
        },
        |_, report| Ok(if report.generation + 1 == until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }),
    );
    result.expect("trains")
}

#[test]
fn resume_is_bit_for_bit() {
    let noisers = [
        NoiserConfig::from(EggrollConfig::new().with_rank(2)),
        EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher).into(),
        OpenEsConfig::new().into(),
    ];
    let optimizers: [OptimizerConfig; 4] = [
        SgdConfig::new().into(),
        SgdConfig::new().with_momentum(Some(MomentumConfig::new())).into(),
        AdamConfig::new().into(),
        AdamWConfig::new().into(),
    ];
    for noiser in &noisers {
        for optimizer in &optimizers {
            let start = layer();
            let mut strategy = config(noiser.clone(), optimizer.clone()).init(&start);
            let straight = train(&mut strategy, start.clone(), 20, TrainingLoop::new(20));

            let folder = tempfile::tempdir().expect("a folder");
            let checkpoints = Checkpoints::new(folder.path());
            let loops = TrainingLoop::new(20).with_checkpoints(checkpoints.clone(), 100);
            let mut strategy = config(noiser.clone(), optimizer.clone()).init(&start);
            train(&mut strategy, start, 7, loops.clone());
            let (mut strategy, model) = checkpoints.load_latest(layer()).expect("loads").expect("is there");
            assert_eq!(strategy.generation(), 7);
            let resumed = train(&mut strategy, model, 20, loops);
            assert_eq!(parameter_digest(&resumed), parameter_digest(&straight), "{noiser:?} {optimizer:?}");
        }
    }
}

fn saved(folder: &Path) -> (Checkpoints, Linear) {
    let model = layer();
    let strategy = config(EggrollConfig::new().into(), AdamConfig::new().into()).init(&model);
    let checkpoints = Checkpoints::new(folder);
    checkpoints.save(&strategy, &model).expect("saves");
    (checkpoints, model)
}

#[test]
fn the_model_is_a_plain_burn_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoints, model) = saved(folder.path());
    let path = checkpoints.list().expect("lists")[0].join("model.bpk");
    let record = burn::store::ModuleRecord::load(path).expect("a record");
    let plain = burn::nn::LinearConfig::new(3, 2).init(&Device::flex()).load_record(record);
    assert_eq!(plain.weight.val().into_data(), model.weight.val().into_data());
}

/// Text of noisers from before there was a choice of distributions is read and written as it was; the choice is kept.
#[test]
fn distributions_of_noise_as_text() {
    for (old, noiser) in [
        (r#"{"name":"eggroll","rank":3,"freeze_non_matrix":true}"#, {
            NoiserConfig::from(EggrollConfig::new().with_rank(3).with_freeze_non_matrix(true))
        }),
        (r#"{"name":"open_es","freeze_non_matrix":false}"#, OpenEsConfig::new().into()),
    ] {
        assert_eq!(serde_json::from_str::<NoiserConfig>(old).expect("reads"), noiser);
        assert_eq!(serde_json::to_string(&noiser).expect("writes"), old);
    }
    let signs: NoiserConfig = OpenEsConfig::new().with_distribution(NoiseDistribution::Rademacher).into();
    let text = serde_json::to_string(&signs).expect("writes");
    assert_eq!(text, r#"{"name":"open_es","freeze_non_matrix":false,"distribution":"rademacher"}"#);
    assert_eq!(serde_json::from_str::<NoiserConfig>(&text).expect("reads"), signs);
    let unknown = text.replace("rademacher", "cauchy");
    let error = serde_json::from_str::<NoiserConfig>(&unknown).expect_err("refused").to_string();
    assert!(error.contains("unknown variant `cauchy`, expected `normal` or `rademacher`"), "{error}");
}

fn refused(checkpoints: &Checkpoints, model: Linear) -> Error {
    checkpoints.load_latest(model).err().expect("refused")
}

/// The latest checkpoint's file of this name.
fn file(checkpoints: &Checkpoints, name: &str) -> PathBuf {
    checkpoints.list().expect("lists").pop().expect("one").join(name)
}

const FILES: [&str; 5] = ["model.bpk", "optimizer.bpk", "schedule.bpk", "strategy.json", "SHA256SUMS"];

#[test]
fn damaged_and_missing_files_are_refused_by_name() {
    for name in FILES {
        let folder = tempfile::tempdir().expect("a folder");
        let (checkpoints, _) = saved(folder.path());
        let path = file(&checkpoints, name);
        let whole = fs::read(&path).expect("reads");
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 4;
        fs::write(&path, &damaged).expect("writes");
        match refused(&checkpoints, layer()) {
            Error::Saved(SavedError::Checksum { path: named, expected, found }) => {
                assert!((named == path || name == "SHA256SUMS") && expected != found, "{named:?}: {expected} {found}");
            }
            other => panic!("{name}: {other}"),
        }
        fs::write(&path, &whole[..whole.len() - 2]).expect("writes");
        match refused(&checkpoints, layer()) {
            Error::Saved(SavedError::FileLength { path: named, expected, found }) => {
                assert_eq!((named, expected, found), (path.clone(), whole.len() as u64, whole.len() as u64 - 2));
            }
            // Their lengths stand nowhere.
            Error::Saved(SavedError::Checksum { .. }) if ["strategy.json", "SHA256SUMS"].contains(&name) => {}
            other => panic!("{name}: {other}"),
        }
        fs::remove_file(&path).expect("removes");
        let error = refused(&checkpoints, layer());
        assert!(matches!(error, Error::Io { .. }) && error.to_string().contains(name), "{error}");
        fs::write(&path, &whole).expect("writes");
        assert!(checkpoints.load_latest(layer()).is_ok(), "canary: the whole one loads");
    }
}

/// Writes the state anew, with its checksum.
fn rewrite_state(checkpoints: &Checkpoints, change: impl Fn(&str) -> String) {
    let [state, sums] = ["strategy.json", "SHA256SUMS"].map(|name| file(checkpoints, name));
    let text = change(&fs::read_to_string(&state).expect("reads"));
    let sum: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(&state, &text).expect("writes");
    let others = fs::read_to_string(&sums).expect("reads");
    let others = others.lines().filter(|line| !line.ends_with("strategy.json"));
    let lines: Vec<String> = others.map(str::to_owned).chain([format!("{sum}  strategy.json\n")]).collect();
    fs::write(&sums, lines.join("\n")).expect("writes");
}

#[test]
fn other_formats_and_noise_streams_are_refused_with_both_versions() {
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoints, _) = saved(folder.path());
    rewrite_state(&checkpoints, str::to_owned);
    assert!(checkpoints.load_latest(layer()).is_ok(), "canary: what is rewritten loads");
    rewrite_state(&checkpoints, |text| text.replace("\"noise_stream\": 1", "\"noise_stream\": 99"));
    let error = refused(&checkpoints, layer());
    assert!(matches!(error, Error::Saved(SavedError::NoiseStream { found: 99, known: 1, .. })), "{error}");
    rewrite_state(&checkpoints, |text| text.replace("\"format\": 2", "\"format\": 3"));
    let error = refused(&checkpoints, layer());
    assert!(matches!(error, Error::Saved(SavedError::Format { found: 3, known: 2, .. })), "{error}");
    assert!(error.to_string().ends_with("strategy.json: it has format 3, but this version reads format 2"), "{error}");
    rewrite_state(&checkpoints, |_| "{}".to_owned());
    let error = refused(&checkpoints, layer());
    assert!(
        matches!(error, Error::Saved(SavedError::Checkpoint { .. })) && error.to_string().contains("format"),
        "{error}"
    );
}

/// The first format had no checksums.
#[test]
fn the_first_format_is_refused_by_its_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoints, _) = saved(folder.path());
    rewrite_state(&checkpoints, |_| r#"{"format":1,"noise_stream":1,"generation":7,"config":{}}"#.to_owned());
    fs::remove_file(file(&checkpoints, "SHA256SUMS")).expect("removes");
    let error = refused(&checkpoints, layer());
    assert!(matches!(error, Error::Saved(SavedError::Format { found: 1, known: 2, .. })), "{error}");
}

#[test]
fn other_models_are_refused_with_the_difference() {
    #[derive(Module, Debug)]
    struct Wrapped {
        layer: Linear,
    }

    /// The same parameters in another order: other noise for each.
    #[derive(Module, Debug)]
    struct Turned {
        bias: Param<Tensor<1>>,
        weight: Param<Tensor<2>>,
    }

    #[derive(Module, Debug)]
    struct IntegerLayer {
        weight: Param<Tensor<2, Int>>,
        bias: Param<Tensor<1>>,
    }

    fn refused<M: Module>(folder: &Path, model: M, parts: [&str; 2]) {
        match Checkpoints::new(folder).load_latest(model).err().expect("refused") {
            Error::Saved(SavedError::OtherModel { difference, .. }) => {
                assert!(parts.iter().all(|part| difference.contains(part)), "{difference}");
            }
            other => panic!("{other}"),
        }
    }

    let (folder, device) = (tempfile::tempdir().expect("a folder"), Device::flex());
    saved(folder.path());
    let (weight, bias) =
        (Param::from_tensor(Tensor::ones([3, 2], &device)), Param::from_tensor(Tensor::ones([2], &device)));
    let wide = LinearConfig::new(4, 2).init(&device);
    refused(folder.path(), wide, ["it has \"weight\" of shape [3, 2] (Float)", "has \"weight\" of shape [4, 2]"]);
    refused(folder.path(), Wrapped { layer: layer() }, ["\"weight\"", "\"layer.weight\""]);
    refused(folder.path(), LinearConfig::new(3, 2).with_bias(false).init(&device), ["2 tensors", "1"]);
    refused(folder.path(), Turned { bias: bias.clone(), weight }, ["it has \"weight\"", "has \"bias\""]);
    let integers = Param::initialized(ParamId::new(), Tensor::ones([3, 2], &device));
    refused(folder.path(), IntegerLayer { weight: integers, bias }, ["(Float)", "(Integer)"]);
}

/// A checkpoint that is saved again is there all the time, under its own name or, between two renames, under another.
#[test]
fn a_replaced_checkpoint_is_never_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoints, first) = saved(folder.path());
    let name = "generation-000000000000";
    let [target, replaced] = [name.to_owned(), format!(".{name}.replaced")].map(|name| folder.path().join(name));
    // A kill between the renames.
    fs::rename(&target, &replaced).expect("renames");
    assert_eq!(checkpoints.list().expect("lists"), std::slice::from_ref(&replaced));
    let (strategy, model) = checkpoints.load_latest(layer()).expect("loads").expect("is there");
    assert_eq!(parameter_digest(&model), parameter_digest(&first));
    checkpoints.save(&strategy, &layer()).expect("saves");
    let names: Vec<_> = fs::read_dir(folder.path()).expect("reads").map(|entry| entry.expect("one").path()).collect();
    assert_eq!(names, [target], "nothing is left over");
    let (_, model) = checkpoints.load_latest(layer()).expect("loads").expect("is there");
    assert_ne!(parameter_digest(&model), parameter_digest(&first), "canary: it is the new one");
}

#[test]
fn keeps_the_latest_and_survives_drafts() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path().join("deep/er")).with_keep(3);
    assert!(checkpoints.load_latest(layer()).expect("no folder yet").is_none());
    let model = layer();
    let mut strategy = config(EggrollConfig::new().into(), SgdConfig::new().into()).init(&model);
    train(&mut strategy, model, 100, TrainingLoop::new(10).with_checkpoints(checkpoints.clone(), 2));
    let names: Vec<String> = checkpoints
        .list()
        .expect("lists")
        .iter()
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, ["generation-000000000006", "generation-000000000008", "generation-000000000010"]);
    // What a run killed while saving leaves behind is not taken for a checkpoint, and is overwritten.
    let draft = folder.path().join("deep/er/.generation-000000000010.draft");
    fs::create_dir_all(draft.join("half")).expect("a folder");
    let (strategy, model) = checkpoints.load_latest(layer()).expect("loads").expect("is there");
    checkpoints.save(&strategy, &model).expect("saves");
    assert!(!draft.exists());
}

/// What is no folder is no checkpoint, whatever its name: it is neither loaded nor counted, and no save fails of it.
#[test]
fn odd_things_among_checkpoints_are_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoints, first) = saved(folder.path());
    let checkpoints = checkpoints.with_keep(1);
    let path = |name: &str| folder.path().join(name);
    for name in ["generation-000000000999", "generation-1000", ".generation-000000000003.aB3xYz.draft"] {
        fs::write(path(name), "not a folder").expect("writes");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", path("generation-000000000998")).expect("a link");
    let listed = checkpoints.list().expect("lists");
    assert_eq!(listed, [path("generation-000000000000")]);
    let (strategy, model) = checkpoints.load_latest(layer()).expect("loads").expect("is there");
    assert_eq!(parameter_digest(&model), parameter_digest(&first));
    checkpoints.save(&strategy, &model).expect("saves");
    assert_eq!(checkpoints.list().expect("lists"), listed);
    // Folders that hold no checkpoint are damaged ones.
    fs::create_dir(path("generation-000000000997")).expect("a folder");
    fs::create_dir_all(path("generation-000000000996/strategy.json")).expect("a folder");
    let (_, model) = checkpoints.load_latest(layer()).expect("loads").expect("is there");
    assert_eq!(parameter_digest(&model), parameter_digest(&first));
}

#[test]
fn errors_of_the_user_save_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path());
    let model = layer();
    let mut strategy = config(EggrollConfig::new().into(), SgdConfig::new().into()).init(&model);
    let result = TrainingLoop::new(9).with_checkpoints(checkpoints.clone(), 100).run(
        &mut strategy,
        model,
        |_, population| match population.generation() {
            3 => Err("the simulator is gone".into()),
            _ => Ok((0..16).map(|i| i as f32).collect::<Vec<_>>().into()),
        },
        |_, _| Ok(ControlFlow::Continue(())),
    );
    assert_eq!(result.expect_err("fails").to_string(), "the simulator is gone");
    assert_eq!(checkpoints.load_latest(layer()).expect("loads").expect("is there").0.generation(), 3);
}

/// A folder with later checkpoints of another run: what has just been saved stays.
#[test]
fn the_latest_save_is_never_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoints, model) = saved(folder.path());
    let mut strategy = config(EggrollConfig::new().into(), AdamConfig::new().into()).init(&model);
    let loops = TrainingLoop::new(9).with_checkpoints(checkpoints.clone(), 3);
    train(&mut strategy, model.clone(), 9, loops);
    let names = || -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().expect("named").to_string_lossy().into_owned();
        checkpoints.list().expect("lists").iter().map(name).collect()
    };
    assert_eq!(names(), ["generation-000000000006", "generation-000000000009"]);
    let strategy = config(EggrollConfig::new().into(), AdamConfig::new().into()).init(&model);
    let path = checkpoints.save(&strategy, &model).expect("saves");
    assert!(path.exists());
    assert_eq!(names(), ["generation-000000000000", "generation-000000000009"]);
}

#[test]
fn limits_are_those_of_the_machine_that_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoints, model) = saved(folder.path());
    let (strategy, _) = checkpoints.load_latest(model.clone()).expect("loads").expect("is there");
    assert_eq!((strategy.config().chunk_size, strategy.config().memory_limit), (None, None));
    let here = strategy.config().clone().with_chunk_size(4).with_memory_limit(1 << 30);
    let (strategy, _) = checkpoints.with_limits_of(&here).load_latest(model).expect("loads").expect("is there");
    assert_eq!((strategy.config().chunk_size, strategy.config().memory_limit), (Some(4), Some(1 << 30)));
}
