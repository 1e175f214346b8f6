//! Fine-tuning as a run of the learner.

use super::{settings as means, *};
use eggroll_lm::Lessons;
use eggroll_run::distribution::{Distribution, on_devices};
use eggroll_run::{EsTraining, ScalarMetric, Scalars, StopReason, UserError};
use eggroll_train::GenerationReport;
use std::path::PathBuf;

/// By token: a run that continues sees again what layers were given.
fn settings() -> FinetuneConfig {
    means().with_credit(Credit::Auto)
}

/// The same items in every generation, until one from which on there is an error.
struct Repeated {
    items: Vec<Item>,
    until: u64,
    /// Where the run's folder is copied to as it is during the validation of this step: as a kill would leave it.
    killed: Option<(u64, PathBuf, PathBuf)>,
}

impl Repeated {
    fn until(items: &[Item], until: u64) -> Self {
        Self { items: items.to_vec(), until, killed: None }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &name);
        } else {
            std::fs::copy(&path, &name).unwrap();
        }
    }
}

impl Lessons<Llama> for Repeated {
    fn lesson(&mut self, generation: u64) -> Result<Lesson<'_>, UserError> {
        if generation >= self.until {
            return Err("no more of it".into());
        }
        Ok(Lesson::Completions(Items::Shared(&self.items)))
    }

    fn validate(&mut self, finetune: &Finetune<Llama>, report: &GenerationReport) -> Result<Scalars, UserError> {
        assert_eq!(finetune.steps(), report.generation + 1);
        if let Some((_, from, to)) = self.killed.take_if(|(step, ..)| *step == finetune.steps()) {
            copy(&from, &to);
        }
        let scored = finetune.score(&self.items)?;
        let mean = scored.iter().map(|item| f64::from(item.mean_log_probability())).sum::<f64>();
        Ok(Scalars::from([("Mean score", mean / scored.len() as f64)]))
    }
}

fn training(finetune: &Finetune<Llama>, folder: &Path, steps: u64) -> EsTraining {
    let config = finetune.training_config(steps).with_validate_every(2);
    EsTraining::new(folder, config).metric_valid(ScalarMetric::new("Mean score"))
}

/// A run equals the same steps made by hand, and so does one that was ended by an error and continued from its log: the scores that it validates are
/// those of the model of that step.
#[test]
fn a_run_equals_its_steps_and_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let mut by_hand = finetune(settings());
    let items = items(&by_hand);
    let mut means = Vec::new();
    for step in 1..=6 {
        by_hand.learn(Items::Shared(&items)).unwrap();
        if step % 2 == 0 {
            let scored = by_hand.score(&items).unwrap();
            means.push(scored.iter().map(|item| f64::from(item.mean_log_probability())).sum::<f64>() / 3.0);
        }
    }
    let run = |name: &str, until: u64| {
        let (mut finetune, path) = (finetune(settings()), folder.path().join(name));
        let training = training(&finetune, &path, 6);
        let result = finetune.train(training, &mut Repeated::until(&items, until));
        result.map(|stop| (stop, finetune))
    };
    let (stop, whole) = run("whole", 99).unwrap();
    assert_eq!(stop, StopReason::Finished);
    let error = run("parts", 3).map(drop).unwrap_err().to_string();
    assert!(error.contains("no more of it"), "{error}");
    let (_, parts) = run("parts", 99).unwrap();
    for finetune in [&whole, &parts] {
        assert_eq!(finetune.steps(), 6);
        assert_eq!(parameter_digest(finetune.model()), parameter_digest(by_hand.model()));
        // Members run on a copy of it.
        assert_eq!(finetune.score(&items).unwrap(), by_hand.score(&items).unwrap());
    }
    for name in ["whole", "parts"] {
        let log = std::fs::read_to_string(folder.path().join(name).join("log.jsonl")).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let found: Vec<f64> = lines.filter_map(|line| line["mean_score"].as_f64()).collect();
        assert_eq!(found.len(), 3, "{name}: {log}");
        assert!(found.iter().zip(&means).all(|(a, b)| (a - b).abs() < 1e-4), "{name}: {found:?}, not {means:?}");
        let checkpoints = eggroll_run::Checkpoints::new(folder.path().join(name).join("checkpoints"));
        assert!(checkpoints.list().unwrap().is_empty(), "a checkpoint has all weights");
    }
}

/// What changes the steps is refused where the run is continued, a step before the run as well.
#[test]
fn other_runs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let items = items(&finetune(settings()));
    let start = |mut finetune: Finetune<Llama>| {
        let training = training(&finetune, folder.path(), 2);
        finetune.train(training, &mut Repeated::until(&items, 99))
    };
    start(finetune(settings())).unwrap();
    let error = start(finetune(settings().with_sigma(0.2))).unwrap_err().to_string();
    assert!(error.contains("sigma") && error.contains("0.2"), "{error}");
    // A strategy is given twice, and differs.
    let mut own = finetune(settings());
    let config = finetune(settings().with_population_size(20)).training_config(2);
    let error = own.train(EsTraining::new(folder.path(), config), &mut Repeated::until(&items, 99)).unwrap_err();
    let Error::OtherStrategy { field, run, .. } = &error else { panic!("{error}") };
    assert_eq!((field.as_str(), run.as_str()), ("population_size", "20"));
    let mut late = finetune(settings());
    late.learn(Items::Shared(&items)).unwrap();
    assert!(matches!(start(late), Err(Error::TooLate { call: "train", steps: 1, logged: false })));
}

/// What a kill during a validation, or before the last checkpoint, leaves is continued with nothing lost.
#[test]
fn what_a_kill_leaves_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let items = items(&finetune(settings()));
    let run = |name: &str, every: u64, mut lessons: Repeated| {
        let (mut finetune, path) = (finetune(settings()), folder.path().join(name));
        let config = finetune.training_config(6).with_validate_every(2).with_checkpoint_every(every);
        let training = EsTraining::new(path, config).metric_valid(ScalarMetric::new("Mean score"));
        finetune.train(training, &mut lessons).map(|_| parameter_digest(finetune.model()))
    };
    let log = |name: &str| std::fs::read_to_string(folder.path().join(name).join("log.jsonl")).unwrap();
    let validations = |name: &str| log(name).lines().filter(|line| line.contains("mean_score")).count();
    let checkpoints = |name: &str| folder.path().join(name).join("checkpoints");
    for every in [0, 4] {
        let [whole, killed] = ["whole", "killed"].map(|name| format!("{name}-{every}"));
        let [from, to] = [&whole, &killed].map(|name| folder.path().join(name));
        let lessons = Repeated { killed: Some((4, from, to)), ..Repeated::until(&items, 99) };
        let expected = run(&whole, every, lessons).unwrap();
        assert_eq!(validations(&killed), 1, "the second was cut off");
        assert_eq!(run(&killed, every, Repeated::until(&items, 99)).unwrap(), expected);
        assert_eq!(validations(&killed), 3);
        // Nothing is left to do but the last checkpoint.
        if every > 0 {
            let last = eggroll_run::Checkpoints::new(checkpoints(&killed)).list().unwrap().pop().unwrap();
            std::fs::remove_dir_all(&last).unwrap();
            assert_eq!(run(&killed, every, Repeated::until(&items, 99)).unwrap(), expected);
            assert!(last.exists());
        }
    }
    // A checkpoint of before the first step.
    run("first", 2, Repeated::until(&items, 0)).unwrap_err();
    assert!(!eggroll_run::Checkpoints::new(checkpoints("first")).list().unwrap().is_empty());
    assert_eq!(
        run("first", 2, Repeated::until(&items, 99)).unwrap(),
        run("again", 2, Repeated::until(&items, 99)).unwrap()
    );
}

/// Threads that share the members of every step end with the bits of one process, from means and by token; a run that failed is continued by all.
#[test]
fn replicas_equal_one_process() {
    for credit in [Credit::Mean, Credit::Auto] {
        let settings = || means().with_credit(credit).with_population_size(10);
        let folder = tempfile::tempdir().unwrap();
        let items = items(&finetune(settings()));
        let run = |path: PathBuf, distribution: Distribution, until: u64| {
            let mut finetune = finetune(settings());
            let training = training(&finetune, &path, 6).with_distribution(distribution);
            let stop = finetune.train(training, &mut Repeated::until(&items, until))?;
            assert_eq!((stop, finetune.steps()), (StopReason::Finished, 6));
            // Members run on a copy of the model.
            let mut fresh = finetune.score(&items).unwrap();
            fresh.extend(finetune_with(finetune.model(), settings()).score(&items).unwrap());
            assert_eq!(fresh[..3], fresh[3..]);
            Ok::<_, Error>(parameter_digest(finetune.model()))
        };
        let expected = run(folder.path().join("alone"), Distribution::default(), 99).unwrap();
        for replicas in [2, 4] {
            let path = folder.path().join(format!("{replicas}"));
            let devices = vec![Device::flex(); replicas];
            // All are ended by an error, and then continued from the log of the first.
            let failed = on_devices(&devices, |replica, _| run(path.clone(), Distribution::new(replica), 3));
            assert!(failed.iter().all(Result::is_err));
            let found = on_devices(&devices, |replica, _| run(path.clone(), Distribution::new(replica), 99));
            assert!(found.into_iter().all(|found| found.unwrap() == expected), "{replicas} replicas, {credit:?}");
        }
    }
}
