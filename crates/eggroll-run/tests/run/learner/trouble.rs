//! Runs that must not continue as if nothing were wrong: of something else, without numbers, after a panic, with damaged files.

use crate::learner::task::{Scripted, config, layer, log, saved, training};
use crate::reliability::copy;
use eggroll_nn::Linear;
use eggroll_run::Error;
use eggroll_run::*;
use eggroll_train::*;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tempfile::TempDir;

/// A run of 20 generations with checkpoints at 10 and 20.
fn short() -> EsTrainingConfig {
    config(20).with_checkpoint_every(10).with_data(Some("first data".into()))
}

fn run(folder: &Path, config: EsTrainingConfig) -> Result<EsResult<Linear>, Error> {
    training(folder, config).launch(layer(), &mut Scripted::new([1.0; 9]))
}

fn begun() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), short()).unwrap_or_else(|error| panic!("{error}"));
    folder
}

fn digest(outcome: Result<EsResult<Linear>, Error>) -> String {
    parameter_digest(&outcome.unwrap_or_else(|error| panic!("{error}")).model)
}

fn longer() -> EsTrainingConfig {
    EsTrainingConfig { generations: 30, ..short() }
}

/// The run that nothing happened to.
fn straight() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    digest(run(folder.path(), longer()))
}

/// All files below a folder, with what is in them and when it was written.
fn tree(folder: &Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(tree(&path)),
            false => {
                let changed = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
                found.push((path.display().to_string(), fs::read(&path).expect("reads"), changed));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn another_run_is_refused_with_the_field() {
    let folder = begun();
    let before = tree(folder.path());
    let refused = |change: fn(&mut EsTrainingConfig), field: &str| {
        let mut config = longer();
        change(&mut config);
        match run(folder.path(), config).err() {
            Some(Error::Run(RunError::OtherRun { field: found, .. })) => assert!(found.starts_with(field), "{found}"),
            other => panic!("{field}: {other:?}"),
        }
        assert_eq!(tree(folder.path()), before, "{field}: nothing has changed");
    };
    refused(|config| config.strategy.seed = 4, "strategy.seed");
    refused(|config| config.strategy = config.strategy.clone().with_learning_rate(0.4), "strategy.learning_rate");
    refused(|config| config.strategy = config.strategy.clone().with_sigma(0.2), "strategy.sigma");
    refused(|config| config.data = Some("other data".into()), "data");
    refused(|config| config.validate_every = 5, "validate_every");
    refused(|config| config.settings = 1.into(), "settings");
    assert_eq!(digest(run(folder.path(), longer())), straight(), "the same run goes on");
}

/// A checkpoint says whose it is, whatever the files next to it say.
#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let folder = begun();
    let mut other = longer();
    other.strategy.seed = 4;
    fs::write(folder.path().join("training.json"), other.to_string()).expect("writes");
    let refused = |config: EsTrainingConfig| run(folder.path(), config).err().expect("refused").to_string();
    let error = refused(other);
    assert!(error.contains("generation-000000000020/strategy.json belongs to another run: its `seed` is 3"), "{error}");
    let other = longer().with_data(Some("other data".into()));
    fs::write(folder.path().join("training.json"), other.to_string()).expect("writes");
    let error = refused(other);
    assert!(error.contains("its `data` is first data, this run's is other data"), "{error}");

    // Restored under another number: the real ones stay.
    fs::write(folder.path().join("training.json"), longer().to_string()).expect("writes");
    let checkpoints = folder.path().join("checkpoints");
    for name in ["generation-000000000099", "generation-100"] {
        copy(&checkpoints.join("generation-000000000010"), &checkpoints.join(name));
        let error = refused(longer());
        assert!(error.contains(name) && error.contains("its `generation` is 10, this run's is "), "{error}");
        fs::remove_dir_all(checkpoints.join(name)).expect("removes");
    }
    assert_eq!(saved(folder.path(), "checkpoints"), [10, 20]);
}

/// What changes no generation may change, and the log says so.
#[test]
fn changes_are_applied_and_logged() {
    let folder = begun();
    let changed = longer().with_checkpoint_every(5).with_keep_checkpoints(3);
    assert_eq!(digest(run(folder.path(), changed.clone())), straight());
    assert_eq!(saved(folder.path(), "checkpoints"), [20, 25, 30]);
    assert_eq!(EsTrainingConfig::of_run(folder.path()).expect("reads").to_string(), changed.to_string());
    let lines = log(folder.path());
    let noted: Vec<_> = lines.iter().filter(|line| line["split"] == "settings").collect();
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert_eq!(noted[0]["generation"], 19);
    let text = noted[0]["changed"].to_string();
    for change in ["checkpoint_every is 5 from now on, and was 10", "generations is 30", "keep_checkpoints is 3"] {
        assert!(text.contains(change), "{text}");
    }
}

#[test]
fn a_run_that_never_trained_may_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut odd = short();
    odd.strategy.population_size = 3;
    let error = run(folder.path(), odd).err().expect("refused").to_string();
    assert!(error.contains("population") && !folder.path().join("training.json").exists(), "{error}");
    let mut unknown = short().with_keep_best(Some(MetricTarget::highest("Accuracy")));
    unknown.strategy.seed = 9;
    run(folder.path(), unknown).err().expect("no such metric");
    assert!(folder.path().join("training.json").exists(), "canary");
    run(folder.path(), short()).unwrap_or_else(|error| panic!("{error}"));
}

/// Logs can be all that is left of a run: whatever begins again in its folder, they are moved aside.
#[test]
fn logs_without_checkpoints_are_moved_aside() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let logged = short().with_replay_log(true);
    let first = digest(run(folder.path(), logged.clone()));
    for (turn, seed) in [(1, 3), (2, 9)] {
        fs::remove_dir_all(at("checkpoints")).expect("removes");
        let mut other = logged.clone();
        other.strategy.seed = seed;
        run(folder.path(), other).unwrap_or_else(|error| panic!("{error}"));
        let lines: Vec<serde_json::Value> = JsonLines::read(at(&format!("log.jsonl.previous-{turn}"))).expect("reads");
        assert_eq!(lines.iter().filter(|line| line["split"] == "train").count(), 20);
        let (_, model) = replay(&at(&format!("run.replay.previous-{turn}")), layer(), None).expect("replays");
        assert_eq!(parameter_digest(&model), first, "of the same seed until then");
    }
}

/// A checkpoint that the user saves in the middle of a run, through a handle of the loop's or its own.
#[test]
fn a_loop_shares_its_lock() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path());
    let model = layer();
    let strategy = config(1).strategy.init(&model);
    let training = TrainingLoop::new(1).with_checkpoints(checkpoints.clone(), 1);
    let other = Checkpoints::new(folder.path());
    let trained = training.run(
        &mut config(1).strategy.init(&model),
        model.clone(),
        |model, population| Scripted::default().evaluate(model, population),
        |_, _| {
            checkpoints.save(&strategy, &model)?;
            assert!(matches!(other.save(&strategy, &model), Err(Error::Run(RunError::InUse { .. }))), "canary");
            Ok(std::ops::ControlFlow::Continue(()))
        },
    );
    trained.unwrap_or_else(|error| panic!("{error}"));
    other.save(&strategy, &model).expect("free again");
}

/// An error of the step itself, here of a sigma that its schedule takes out of f32: the generations before are saved.
#[test]
fn an_error_of_the_step_saves_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(1000).with_checkpoint_every(1000);
    config.strategy = config.strategy.with_sigma(SigmaSchedule::Exponential { initial: 0.02, decay: 0.5, last: None });
    let error = run(folder.path(), config).err().expect("ends").to_string();
    assert!(error.contains("sigma of generation"), "{error}");
    let saved = saved(folder.path(), "checkpoints");
    assert!(saved.len() == 1 && saved[0] > 50, "{saved:?}: {error}");
}

#[test]
fn two_runs_in_one_folder() {
    struct Twice<'a>(&'a Path, Scripted);

    impl EsTask<Linear> for Twice<'_> {
        type Output = Scalars;

        fn evaluate(&mut self, model: &Linear, population: &Population) -> Result<Fitness, UserError> {
            match run(self.0, short()).err() {
                Some(Error::Run(RunError::InUse { process, .. })) if population.generation() == 0 => {
                    assert_eq!(process, cfg!(unix).then(std::process::id));
                }
                other => panic!("{other:?}"),
            }
            self.1.evaluate(model, population)
        }
    }

    let folder = tempfile::tempdir().expect("a folder");
    let config = EsTrainingConfig { generations: 1, ..short() };
    let outcome = training(folder.path(), config).launch(layer(), &mut Twice(folder.path(), Scripted::default()));
    assert_eq!(outcome.unwrap_or_else(|error| panic!("{error}")).stop, StopReason::Finished);
}

/// Fitness that is NaN from a generation on.
struct Turning {
    at: u64,
    inner: Scripted,
}

impl EsTask<Linear> for Turning {
    type Output = Scalars;

    fn evaluate(&mut self, model: &Linear, population: &Population) -> Result<Fitness, UserError> {
        let fitness = self.inner.evaluate(model, population)?;
        let nan = vec![f32::NAN; fitness.values().len()];
        Ok(if population.generation() < self.at { fitness } else { nan.into() })
    }
}

#[test]
fn a_run_without_a_finite_fitness_ends() {
    let run = |patience: u64| {
        let folder = tempfile::tempdir().expect("a folder");
        let config = config(100).with_checkpoint_every(20).with_patience(patience);
        let mut task = Turning { at: 50, inner: Scripted::default() };
        let training = EsTraining::new(folder.path(), config).with_display(Display::Progress);
        (training.launch(layer(), &mut task), folder)
    };
    let (outcome, folder) = run(10);
    let error = outcome.err().expect("ends").to_string();
    assert_eq!(
        error,
        "no fitness was finite in 10 generations, from generation 50 on, so nothing is learned. Check the scores, \
                    or lower sigma and the learning rate"
    );
    // All of them left the model as it was.
    assert_eq!(saved(folder.path(), "checkpoints"), [40, 60]);
    let last = &log(folder.path())[59];
    for name in ["fitness_mean", "fitness_best", "fitness_worst"] {
        assert!(last[name].is_null(), "{name} of {last}: not a number");
    }
    let (strategy, model) =
        Checkpoints::new(folder.path().join("checkpoints")).load_latest(layer()).expect("loads").expect("saved");
    assert!(model.weight.val().into_data().iter::<f32>().all(f32::is_finite) && strategy.generation() == 60);
    let (outcome, _folder) = run(0);
    assert_eq!(outcome.unwrap_or_else(|error| panic!("{error}")).stop, StopReason::Finished, "if nobody minds");
}

/// A second score of every member, which is never finite.
struct HalfBroken(Scripted);

impl EsTask<Linear> for HalfBroken {
    type Output = Scalars;

    fn evaluate(&mut self, model: &Linear, population: &Population) -> Result<Fitness, UserError> {
        let fitness = self.0.evaluate(model, population)?;
        let broken = vec![f32::NAN; fitness.values().len()];
        Ok(Fitness::from([fitness.values(), &broken].concat()).with_tasks(2))
    }
}

#[test]
fn a_run_with_some_finite_scores_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let training = EsTraining::new(folder.path(), config(20).with_patience(10)).with_display(Display::Progress);
    let outcome = training.launch(layer(), &mut HalfBroken(Scripted::default()));
    assert_eq!(outcome.unwrap_or_else(|error| panic!("{error}")).stop, StopReason::Finished);
}

/// Fitness that looks at nothing, or at the parameters.
struct Blind(bool);

impl EsTask<Linear> for Blind {
    type Output = Scalars;

    fn evaluate(&mut self, model: &Linear, _population: &Population) -> Result<Fitness, UserError> {
        let is_finite = model.weight.val().into_data().iter::<f32>().all(f32::is_finite);
        let score = |member: usize| if is_finite || self.0 { member as f32 } else { f32::NAN };
        Ok((0..16).map(score).collect::<Vec<_>>().into())
    }
}

/// Steps that leave the range of f32: the last finite checkpoint stays, and the run says so, at the next save or when its fitness shows it.
#[test]
fn parameters_that_are_not_finite_are_not_saved() {
    for (is_blind, every) in [(true, 1), (true, 7), (false, 1000)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = config(2000).with_checkpoint_every(every);
        config.strategy = config.strategy.with_learning_rate(2e38);
        let training = EsTraining::new(folder.path(), config).with_display(Display::Progress);
        // Near the largest of f32.
        let large = Linear { weight: layer().weight.map(|weight| weight.full_like(3.3e38)), bias: None };
        let error = training.launch(large, &mut Blind(is_blind)).err().expect("ends");
        let Error::Run(RunError::NonFiniteParameters { generation, parameter, count }) = &error else {
            panic!("{error}");
        };
        assert!(parameter == "weight" && *count > 0, "{error}");
        let latest = Checkpoints::new(folder.path().join("checkpoints")).load_latest(layer()).expect("loads");
        assert_eq!(latest.is_some(), every < 1000);
        if let Some((strategy, model)) = latest {
            assert_eq!(strategy.generation(), generation + 1 - every, "the one before");
            assert!(model.weight.val().into_data().iter::<f32>().all(f32::is_finite));
        }
    }
}

/// Panics in a generation.
struct Panicking(u64, Scripted);

impl EsTask<Linear> for Panicking {
    type Output = Scalars;

    fn evaluate(&mut self, model: &Linear, population: &Population) -> Result<Fitness, UserError> {
        assert_ne!(population.generation(), self.0, "the simulator is gone");
        self.1.evaluate(model, population)
    }
}

#[test]
fn a_panic_saves_the_last_complete_generation() {
    let config = |generations: u64| config(generations).with_checkpoint_every(1000).with_report_every(100);
    let train = |folder: &Path, generations: u64, at: u64| {
        let training = EsTraining::new(folder, config(generations)).with_display(Display::Progress);
        training.launch(layer(), &mut Panicking(at, Scripted::default()))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let payload =
        catch_unwind(AssertUnwindSafe(|| train(folder.path(), 950, 900))).err().expect("it goes on unwinding");
    let text = payload.downcast_ref::<String>().expect("its own message");
    assert!(text.contains("the simulator is gone"), "{text}");
    assert_eq!(saved(folder.path(), "checkpoints"), [900]);
    let straight = tempfile::tempdir().expect("a folder");
    let again = train(folder.path(), 950, u64::MAX);
    assert_eq!(digest(again), digest(train(straight.path(), 950, u64::MAX)));
}

/// A task that fails where no checkpoint can be saved either.
#[test]
fn the_first_of_two_errors_is_not_lost() {
    struct Failing<'a>(&'a Path, Scripted);

    impl EsTask<Linear> for Failing<'_> {
        type Output = Scalars;

        fn evaluate(&mut self, model: &Linear, population: &Population) -> Result<Fitness, UserError> {
            if population.generation() == 3 {
                fs::remove_dir_all(self.0.join("checkpoints")).expect("removes");
                fs::write(self.0.join("checkpoints"), "in the way").expect("writes");
            }
            self.1.evaluate(model, population)
        }
    }

    let folder = tempfile::tempdir().expect("a folder");
    let mut task = Failing(folder.path(), Scripted { fail: Some(3), ..Scripted::default() });
    let training = EsTraining::new(folder.path(), config(9)).with_display(Display::Progress);
    match training.launch(layer(), &mut task).err() {
        Some(error @ Error::Two { .. }) => {
            let text = error.to_string();
            assert!(text.starts_with("the simulator is gone; then: ") && text.contains("checkpoints"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

/// Every file of the latest checkpoint is damaged in its turn: the run continues from the one before, and ends as if nothing had happened.
#[test]
fn a_damaged_checkpoint_is_passed_over() {
    let whole = begun();
    let latest = "checkpoints/generation-000000000020";
    let files: Vec<String> = fs::read_dir(whole.path().join(latest))
        .expect("a folder")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(files.len() >= 5, "{files:?}");
    let expected = straight();
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).expect("reads");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        fs::write(path, bytes).expect("writes");
    };
    let cut = |path: &Path| fs::write(path, &fs::read(path).expect("reads")[1..]).expect("writes");
    let damages: [&dyn Fn(&Path); 4] =
        [&flip, &cut, &|path| fs::write(path, "").expect("writes"), &|path| fs::remove_file(path).expect("removes")];
    for (file, damage) in files.iter().flat_map(|file| damages.iter().map(move |damage| (file, damage))) {
        let folder = tempfile::tempdir().expect("a folder");
        for inside in ["", "checkpoints/generation-000000000010", latest] {
            let from = whole.path().join(inside);
            fs::create_dir_all(folder.path().join(inside)).expect("makes");
            let entries = fs::read_dir(&from).expect("a folder").map(|entry| entry.expect("an entry").path());
            for path in entries.filter(|path| path.is_file()) {
                fs::copy(&path, folder.path().join(inside).join(path.file_name().expect("a name"))).expect("copies");
            }
        }
        damage(&folder.path().join(latest).join(file));
        let strict = Checkpoints::new(folder.path().join("checkpoints")).with_fallback(false);
        let error = strict.load_latest(layer()).map(drop).expect_err("canary: it is damaged").to_string();
        assert!(error.contains("generation-000000000020"), "{error}");
        assert_eq!(digest(run(folder.path(), longer())), expected, "{file}");
    }
}

/// A run that is over can be looked at where nothing can be written: nothing is.
#[test]
fn a_finished_run_writes_nothing() {
    let folder = begun();
    let before = tree(folder.path());
    let outcome = run(folder.path(), short()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((outcome.stop, outcome.strategy.generation()), (StopReason::Finished, 20));
    assert_eq!(tree(folder.path()), before);
}

/// A log is read as bytes: whatever a line has become, it is dropped and the run continues.
#[test]
fn every_flipped_bit_of_a_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("curve.jsonl");
    let text: String = (0..4).map(|generation| format!("{{\"generation\":{generation},\"loss\":0.5}}\n")).collect();
    let mut dropped = 0;
    for bit in 0..8 * text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).expect("writes");
        let mut log = JsonLines::open(&path, 4).unwrap_or_else(|error| panic!("bit {bit}: {error}"));
        log.write(&serde_json::json!({ "generation": 4, "loss": 0.25 })).expect("writes");
        let lines: Vec<serde_json::Value> = JsonLines::read(&path).expect("reads");
        assert!((3..=6).contains(&lines.len()), "bit {bit}: {lines:?}");
        assert_eq!(lines.last().expect("the new one")["loss"], 0.25);
        dropped += usize::from(lines.len() < 5);
    }
    assert!(dropped > 100, "canary");
}

/// 0 and the largest number in every field of a run's configuration: an error that names the field, or a run that ends.
#[test]
fn every_number_of_a_run() {
    fn leaves(path: &str, value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| leaves(&format!("{path}/{name}"), value, found));
            }
            serde_json::Value::Number(_) => found.push(path.to_owned()),
            _ => {}
        }
    }

    let score = MetricTarget::highest("Score");
    let stopping = EarlyStoppingConfig::new(score.clone(), 5).with_warmup(Some(1));
    let whole = config(3).with_validate_every(1).with_keep_best(Some(score)).with_early_stopping(Some(stopping));
    let value = serde_json::to_value(&whole).expect("JSON");
    let mut fields = Vec::new();
    leaves("", &value, &mut fields);
    // The strategy's own are walked elsewhere; a run of so many generations ends never.
    fields.retain(|field| !field.starts_with("/strategy") && field != "/generations");
    assert!(fields.len() >= 7 && fields.contains(&"/early_stopping/patience".to_owned()), "{fields:?}");
    for (field, number) in fields.iter().flat_map(|field| [(field, 0), (field, u64::MAX)]) {
        let mut value = value.clone();
        *value.pointer_mut(field).expect("a field") = number.into();
        let config = serde_json::from_value(value).expect("a configuration");
        let folder = tempfile::tempdir().expect("a folder");
        match run(folder.path(), config) {
            Ok(outcome) => {
                assert!(matches!(outcome.stop, StopReason::Finished | StopReason::Early { .. }), "{field} = {number}")
            }
            Err(error) => {
                let name = field.rsplit('/').next().expect("a name");
                assert!(error.to_string().contains(name) && number == 0, "{field} = {number}: {error}");
            }
        }
    }
}
