//! Saving and continuing: equal, bit for bit, to not having stopped.

use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::module::Module;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, AdamWConfig, SgdConfig};
use burn::tensor::{Device, Tensor};
use eggroll_core::{EggrollConfig, NoiseDistribution, NoiserConfig, OpenEsConfig};
use eggroll_nn::{Linear, LinearConfig};
use eggroll_train::*;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

fn layer() -> Linear {
    LinearConfig::new(3, 2).init(&Device::flex())
}

fn config(noiser: NoiserConfig, optimizer: OptimizerConfig) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(noiser, optimizer)
        .with_population(16)
        .with_sigma(SigmaSchedule::Exponential { initial: 0.1, decay: 0.99 })
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

#[test]
fn damaged_checkpoints_are_refused_with_the_file() {
    for (file, content, part) in [
        ("strategy.json", "{", "EOF"),
        ("strategy.json", r#"{"format":1}"#, "noise_stream"),
        ("model.bpk", "not a record", "model.bpk"),
        ("optimizer.bpk", "", "optimizer.bpk"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let (checkpoints, _) = saved(folder.path());
        let path = checkpoints.list().expect("lists")[0].join(file);
        fs::write(&path, content).expect("writes");
        let error = checkpoints.load_latest(layer()).err().expect("refused").to_string();
        assert!(error.contains(file) && error.contains(part), "{error}");
        fs::remove_file(&path).expect("removes");
        let error = checkpoints.load_latest(layer()).err().expect("refused").to_string();
        assert!(error.contains(file), "{error}");
    }
}

#[test]
fn other_versions_and_models_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoints, _) = saved(folder.path());
    let other = LinearConfig::new(4, 2).init(&Device::flex());
    let error = checkpoints.load_latest(other).err().expect("refused").to_string();
    assert!(error.contains("shape mismatch"), "{error}");
    let path = checkpoints.list().expect("lists")[0].join("strategy.json");
    let text = fs::read_to_string(&path).expect("reads").replace("\"noise_stream\": 1", "\"noise_stream\": 99");
    fs::write(&path, text).expect("writes");
    let error = checkpoints.load_latest(layer()).err().expect("refused").to_string();
    assert!(error.contains("(1, 99)"), "{error}");
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
