//! The learner as several replicas in one folder.

use crate::distribution::support::*;
use eggroll_run::distribution::Distribution;
use eggroll_run::*;
use eggroll_train::*;
use std::fs;
use std::path::Path;

/// Sets sigma while it runs. Fails in a generation, if so wanted, and counts the calls that are rank 0's.
#[derive(Default)]
struct ReplicaTask {
    fails: Option<u64>,
    validations: usize,
}

impl EsTask<ReplicaNet> for ReplicaTask {
    type Output = Scalars;

    fn evaluate(&mut self, net: &ReplicaNet, population: &Population) -> Result<Fitness, UserError> {
        match self.fails == Some(population.generation()) {
            true => Err("no data".into()),
            false => Ok(population.evaluate(|members| score(net, members))),
        }
    }

    fn before_generation(&mut self, strategy: &mut EvolutionStrategy, _net: &ReplicaNet) -> Result<(), UserError> {
        Ok(strategy.set_sigma(0.1 / (1 + strategy.generation()) as f64)?)
    }

    fn validate(&mut self, _net: &ReplicaNet, _report: &GenerationReport) -> Result<Vec<Scalars>, UserError> {
        self.validations += 1;
        Ok(vec![Scalars::from([("Error", 1.0)])])
    }
}

fn run(folder: &Path, distribution: Distribution, fails: Option<u64>) -> (RunDigest, usize) {
    let config = EsTrainingConfig::new(config(), 20).with_validate_every(5).with_checkpoint_every(4);
    let mut task = ReplicaTask { fails, validations: 0 };
    let outcome = EsTraining::new(folder, config)
        .with_display(Display::Progress)
        .metric_valid(ScalarMetric::new("Error"))
        .with_distribution(distribution)
        .launch(ReplicaNet::new(0.4), &mut task);
    (outcome.map(|outcome| parameter_digest(&outcome.model)), task.validations)
}

fn lines(folder: &Path) -> usize {
    fs::read_to_string(folder.join("log.jsonl")).expect("a log").lines().count()
}

#[test]
fn one_folder_and_one_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let [alone, shared, broken] = ["alone", "shared", "broken"].map(|name| folder.path().join(name));
    let expected = run(&alone, Distribution::default(), None).0.expect("a run");

    let outcomes = replicas(3, |threads| run(&shared, Distribution::new(threads), None));
    for (rank, (digest, validations)) in outcomes.into_iter().enumerate() {
        assert_eq!(digest.expect("a run"), expected);
        assert_eq!(validations, if rank == 0 { 4 } else { 0 });
    }
    assert_eq!(lines(&shared), lines(&alone));

    // Rank 1 fails; another number of replicas continues from the checkpoint.
    let outcomes = replicas(2, |threads| {
        let distribution = Distribution::new(threads);
        let fails = (!distribution.leads()).then_some(13);
        run(&broken, distribution, fails).0.expect_err("rank 1 fails").to_string()
    });
    assert_eq!(outcomes, ["rank 1 has failed: see its own error message", "no data"]);
    let outcomes = replicas(3, |threads| run(&broken, Distribution::new(threads), None));
    assert!(outcomes.into_iter().all(|(digest, _)| digest.expect("a run") == expected));
    assert_eq!(lines(&broken), lines(&alone));
}
