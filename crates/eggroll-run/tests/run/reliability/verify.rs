//! Logs of which a random share is evaluated again.

use crate::reliability::support::*;
use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use eggroll_core::{EggrollConfig, QEggrollConfig};
use eggroll_nn::{Linear, LinearConfig};
use eggroll_run::{Error, ReplayLog, SavedError, VerifyConfig, parameter_digest, verify};
use eggroll_train::*;
use std::path::Path;

const GENERATIONS: u64 = 4;
const TRIES: u64 = 400;
const SHARE: f64 = 0.05;

/// The scores of members.
type Score<M> = fn(&M, &Population) -> Fitness;

/// A score for every row.
fn by_part(model: &Linear, population: &Population) -> Fitness {
    let x = sines(6, 0.1 + population.generation() as f32).reshape([2, 3]);
    population.evaluate(|members| model.forward_shared(x.clone()).reshape([members.count(), 2]))
}

/// A run that says another score than it has found, in one generation, of one member; the digest of its last model.
fn logged<M: Module>(
    config: &EvolutionStrategyConfig,
    first: &M,
    score: Score<M>,
    path: &Path,
    false_one: Option<u64>,
) -> String {
    let (mut strategy, mut model) = (config.init(first), first.clone());
    let mut log = ReplayLog::create(path, &strategy, &model).expect("a log");
    for generation in 0..GENERATIONS {
        let population = strategy.ask();
        let mut fitness = score(&model, &population);
        if false_one == Some(generation) {
            let (mut scores, tasks) = (fitness.values().to_vec(), fitness.tasks());
            scores[3] += 0.5;
            fitness = Fitness::from(scores).with_tasks(tasks);
        }
        strategy.tell(&mut model, population, fitness.clone()).expect("a generation");
        log.append(&strategy, &fitness).expect("appends");
    }
    parameter_digest(&model)
}

/// How many of all tries refuse the log; what is not refused gives its model.
fn refused<M: Module>(config: &EvolutionStrategyConfig, first: &M, score: Score<M>, path: &Path, digest: &str) -> u64 {
    let of_seed = |seed: u64| {
        let sample = VerifyConfig { share: SHARE, seed, until: None };
        let evaluate = |model: &M, population: &Population, members| Ok(score(model, &population.slice(members)));
        match verify(path, config.init(first), first.clone(), &sample, evaluate) {
            Ok(verified) => {
                assert_eq!(parameter_digest(&verified.model), digest);
                assert!(
                    verified.evaluated < verified.members / 2 + 2 * GENERATIONS,
                    "{} evaluated",
                    verified.evaluated
                );
                0
            }
            Err(Error::Saved(SavedError::ReplayFitness { members, .. })) => {
                assert!(members.contains(&3), "{members:?}");
                1
            }
            Err(error) => panic!("{error}"),
        }
    };
    (0..TRIES).map(of_seed).sum()
}

/// One false score among those of a run that goes on from it is found as often as its pair is looked at, whichever generation it is of; a log without one never
/// raises an alarm.
#[test]
fn a_false_score_is_found_in_the_shares_proportion() {
    fn check<M: Module>(config: &EvolutionStrategyConfig, first: &M, score: Score<M>, false_one: u64) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let digest = logged(config, first, score, &path("true"), None);
        assert_eq!(refused(config, first, score, &path("true"), &digest), 0, "a false alarm");
        let digest = logged(config, first, score, &path("false"), Some(false_one));
        let found = refused(config, first, score, &path("false"), &digest);
        // Four standard deviations of a binomial distribution around 20.
        assert!((3..=37).contains(&found), "{found} of {TRIES}, generation {false_one}");
    }
    let floats = config(EggrollConfig::new(), AdamConfig::new()).with_population_size(40);
    for false_one in [1, GENERATIONS - 1] {
        check(&floats, &Net::start(), |model, population| model.fitness(population), false_one);
    }
    let linear = LinearConfig::new(3, 1).init(&Device::flex());
    // The first pair is looked at in any case, and has no false score.
    check(&floats.clone().with_credit(Credit::Parts), &linear, by_part, 2);
}

/// Whoever changes a log and does not run on from the change has all later generations against him; so has another score.
#[test]
fn other_data_are_found_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let config = config(EggrollConfig::new(), AdamConfig::new()).with_population_size(40);
    let score: Score<Net> = |model, population| model.fitness(population);
    let first = Net::start();
    let digest = logged(&config, &first, score, &path, None);
    let all = VerifyConfig { share: 1.0, seed: 0, until: None };
    let with = |sample: &VerifyConfig, add: f32| {
        let evaluate = |model: &Net, population: &Population, members| {
            let fitness = model.fitness(&population.slice(members));
            let scores = fitness.values().iter().map(|score| score + add * population.generation() as f32);
            Ok(Fitness::from(scores.collect::<Vec<f32>>()))
        };
        verify(&path, config.init(&first), first.clone(), sample, evaluate)
    };
    let found = with(&all, 1e-3).map(drop).expect_err("refused");
    assert!(
        matches!(&found, Error::Saved(SavedError::ReplayFitness { generation: 1, members, .. }) if *members == (0..40)),
        "{found}"
    );
    let verified = with(&all, 0.0).expect("the run's");
    assert_eq!((verified.evaluated, verified.members), (40 * GENERATIONS, 40 * GENERATIONS));
    assert_eq!(parameter_digest(&verified.model), digest);
    // Nothing is evaluated of a share of 0, nor behind the generation that is asked for.
    let verified = with(&VerifyConfig { share: 0.0, ..all }, 1.0).expect("nothing to compare");
    assert_eq!((verified.evaluated, parameter_digest(&verified.model)), (0, digest));
    let verified = with(&VerifyConfig { until: Some(1), ..all }, 1.0).expect("generation 0 is as it was");
    assert_eq!((verified.strategy.generation(), verified.evaluated), (1, 40));
}

/// A sign follows from all members, and is compared for all at once.
#[test]
fn signs_of_integers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let config = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population_size(POPULATION);
    let first = IntegerNet::start();
    let digest = logged(&config, &first, |model, population| model.fitness(population), &path, None);
    let all = VerifyConfig { share: 0.5, seed: 0, until: None };
    let with = |factor: i32| {
        let evaluate = |model: &IntegerNet, population: &Population, members| {
            let fitness = model.fitness(&population.slice(members));
            Ok(fitness.integers().expect("integers").iter().map(|score| factor * score).collect::<Vec<i32>>().into())
        };
        verify(&path, config.init(&first), first.clone(), &all, evaluate)
    };
    let verified = with(1).expect("the run's");
    assert_eq!(
        (verified.evaluated, verified.members),
        (POPULATION as u64 * GENERATIONS, POPULATION as u64 * GENERATIONS)
    );
    assert_eq!(parameter_digest(&verified.model), digest);
    let error = with(-1).map(drop).expect_err("refused");
    assert!(
        matches!(&error, Error::Saved(SavedError::ReplayFitness { members, .. }) if *members == (0..POPULATION)),
        "{error}"
    );
}
