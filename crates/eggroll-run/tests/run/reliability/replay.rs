//! Replay logs: what they give back, what they refuse, and what a cut-off end does.

use crate::reliability::support::*;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::integer::VoteLevels;
use eggroll_core::{EggrollConfig, QEggrollConfig};
use eggroll_nn::{Linear, LinearConfig};
use eggroll_run::Error;
use eggroll_run::*;
use eggroll_train::*;
use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const GENERATIONS: usize = 5;

struct Logged {
    /// Removes the file in the end.
    folder: TempDir,
    path: PathBuf,
    digests: Vec<String>,
}

fn adam() -> EvolutionStrategyConfig {
    config(EggrollConfig::new(), AdamConfig::new())
}

fn logged<T: LearningModel>(config: &EvolutionStrategyConfig) -> Logged {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let digests = digests::<T>(config, GENERATIONS, &path);
    Logged { folder, path, digests }
}

fn message<T>(result: Result<T, Error>) -> String {
    result.err().expect("refused").to_string()
}

/// Scores that f32 cannot tell apart, or that tie, are logged so that the replay steps where the run did.
#[test]
fn integers_replay_whatever_their_scores() {
    let large = 1 << 30;
    let mut all: Vec<Vec<i32>> = vec![vec![0; POPULATION], vec![large; POPULATION]];
    all.push((0..POPULATION as i32).map(|member| large + member % 2).collect());
    all.push((0..POPULATION as i32).map(|member| member / 2).collect());
    all.push((0..POPULATION as i32).map(|member| member * member % 5).collect());
    for shaping in [FitnessShaping::Standardized, FitnessShaping::GroupStandardized { size: 4 }] {
        // Every weight moves at every step, also without votes.
        let noiser = QEggrollConfig::new().with_threshold(1.0, 1).into();
        let config = EvolutionStrategyConfig { noiser, shaping: shaping.clone(), ..integer_config() };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut model = IntegerNet::start();
        let mut strategy = config.init(&model);
        let mut log = ReplayLog::create(&path, &strategy, &model).expect("a log");
        let mut digests = vec![parameter_digest(&model)];
        for scores in &all {
            let (population, fitness) = (strategy.ask(), Fitness::from(scores.clone()));
            strategy.tell(&mut model, population, fitness.clone()).expect("a generation");
            log.append(&strategy, &fitness).expect("appends");
            digests.push(parameter_digest(&model));
        }
        for (until, digest) in digests.iter().enumerate() {
            let (_, model) = replay(&path, IntegerNet::start(), Some(until as u64)).expect("replays");
            assert_eq!(parameter_digest(&model), *digest, "{shaping:?}, generation {until}");
        }
    }
}

#[test]
fn a_torn_tail_is_cut() {
    for (torn, generations) in [(0, 5), (1, 4), (16, 4), (68, 4), (70, 3)] {
        let Logged { folder: _folder, path, digests } = logged::<Net>(&adam());
        let bytes = fs::read(&path).expect("reads");
        fs::write(&path, &bytes[..bytes.len() - torn]).expect("writes");
        assert_eq!(replay_range(&path).expect("a log"), 0..generations, "{torn} bytes torn off");
        let (mut strategy, model) = replay(&path, Net::start(), None).expect("replays");
        assert_eq!(parameter_digest(&model), digests[generations as usize]);
        // And the log continues after its last whole record.
        let mut log = ReplayLog::resume(&path, &strategy).expect("resumes");
        let model = generation(&mut strategy, model, &mut log);
        assert_eq!(replay_range(&path).expect("a log"), 0..generations + 1);
        let (_, replayed) = replay(&path, Net::start(), None).expect("replays");
        assert_eq!(parameter_digest(&replayed), parameter_digest(&model));
    }
    // Zeros behind the last record, as some file systems leave them when the power fails.
    let Logged { folder: _folder, path, .. } = logged::<Net>(&adam());
    let mut file = OpenOptions::new().append(true).open(&path).expect("opens");
    file.write_all(&[0; 1000]).expect("writes");
    assert_eq!(replay_range(&path).expect("a log"), 0..5);
}

#[test]
fn a_damaged_record_with_others_behind_it_is_refused() {
    let Logged { folder: _folder, path, .. } = logged::<Net>(&adam());
    let mut bytes = fs::read(&path).expect("reads");
    let record = 4 * POPULATION + 21;
    let offset = bytes.len() - 3 * record;
    bytes[offset + 20] ^= 1;
    fs::write(&path, &bytes).expect("writes");
    let expected = format!("the record of generation 2, at byte {offset}, is damaged, and other records follow it");
    for message in [message(replay(&path, Net::start(), None)), message(replay_range(&path))] {
        assert!(message.ends_with(&expected), "{message}");
    }
    // Up to there it is good.
    assert!(replay(&path, Net::start(), Some(2)).is_ok());
}

#[test]
fn other_logs_models_strategies_and_generations_are_refused() {
    let Logged { folder: _folder, path, digests } = logged::<Net>(&adam());
    let wrong = |message: String, part: &str| assert!(message.contains(part), "{message}");
    wrong(
        message(replay(&path, Net::start(), Some(6))),
        "it reproduces the models of generations 0 to 5, not that of 6",
    );
    let (strategy, model) = replay(&path, Net::start(), Some(3)).expect("replays");
    wrong(
        message(replay_from(&path, strategy, model.clone(), Some(2))),
        "it reproduces the models of generations 3 to 5, not that of 2",
    );
    wrong(message(replay(&path, model, None)), &format!("the first model has the digest {} in the log", digests[0]));
    let other = LinearConfig::new(3, 2).init(&Device::flex());
    wrong(message(replay(&path, other, None)), "saved from another model");
    let other = adam().with_seed(9).init(&Net::start());
    wrong(message(ReplayLog::resume(&path, &other)), r#""seed":9"#);
    wrong(message(ReplayLog::create(&path, &other, &Net::start())), "run.replay");
    wrong(message(replay(&path.with_extension("none"), Net::start(), None)), "run.none");
    fs::write(&path, "something else").expect("writes");
    wrong(message(replay(&path, Net::start(), None)), "this is not a replay log");
}

/// The header of a log, written anew with its check.
fn rewrite_header(path: &Path, change: impl Fn(&str) -> String) {
    let magic = b"eggroll replay log\n";
    let bytes = fs::read(path).expect("reads");
    let (len, rest) = bytes[magic.len()..].split_first_chunk::<4>().expect("a length");
    let json = std::str::from_utf8(&rest[..u32::from_le_bytes(*len) as usize]).expect("JSON");
    let changed = change(json);
    let len = (changed.len() as u32).to_le_bytes();
    let check = &Sha256::digest([&len[..], changed.as_bytes()].concat())[..8];
    let records = &rest[json.len() + check.len()..];
    fs::write(path, [&magic[..], &len, changed.as_bytes(), check, records].concat()).expect("writes");
}

/// Of floats and of integers, whose streams have versions of their own.
#[test]
fn other_formats_and_noise_streams_are_refused_with_both_versions() {
    fn check<T: LearningModel>(config: &EvolutionStrategyConfig) {
        let Logged { folder: _folder, path, .. } = logged::<T>(config);
        rewrite_header(&path, str::to_owned);
        assert!(replay(&path, T::start(), None).is_ok(), "canary: what is rewritten is read");
        let known = config.noiser.stream_version();
        let stream = |version: u32| format!("\"noise_stream\":{version},");
        rewrite_header(&path, |json| json.replace(&stream(known), &stream(99)));
        let error = replay(&path, T::start(), None).map(drop).expect_err("refused");
        assert!(
            matches!(&error, Error::Saved(SavedError::NoiseStream { found: 99, known: k, .. }) if *k == known),
            "{error}"
        );
        assert!(ReplayLog::resume(&path, &config.init(&T::start())).is_err());
        rewrite_header(&path, |json| json.replace("{\"format\":1,", "{\"format\":7,"));
        let error = replay_range(&path).expect_err("refused");
        assert!(matches!(error, Error::Saved(SavedError::Format { found: 7, known: 1, .. })), "{error}");
    }
    check::<Net>(&adam());
    check::<IntegerNet>(&integer_config());
}

/// A loop that is stopped and continues from its checkpoint keeps one log, of which the checkpoint comes out.
#[test]
fn the_training_loop_logs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoints, path) = (Checkpoints::new(folder.path().join("checkpoints")), folder.path().join("log"));
    let run = |strategy: &mut EvolutionStrategy, model: Net, until: u64| {
        let loops = TrainingLoop::new(until).with_checkpoints(checkpoints.clone(), 2).with_replay_log(&path);
        loops.run(
            strategy,
            model,
            |model, population| Ok(model.fitness(population)),
            |_, _| Ok(ControlFlow::Continue(())),
        )
    };
    let begin = |model: Net, until: u64| run(&mut adam().init(&model), model, until);
    begin(Net::start(), 5).expect("trains");
    let last = checkpoints.list().expect("lists").pop().expect("saved");
    fs::remove_dir_all(last).expect("removes");
    assert_eq!(replay_range(&path).expect("a log"), 0..5, "canary: ahead of the checkpoint of generation 4");
    let (mut strategy, model) = checkpoints.load_latest(Net::start()).expect("loads").expect("saved");
    run(&mut strategy, model, 9).expect("trains");
    let (strategy, model) = checkpoints.load_latest(Net::start()).expect("loads").expect("saved");
    let (replayed, again) = replay(&path, Net::start(), None).expect("replays");
    assert_eq!((replayed.generation(), strategy.generation()), (9, 9));
    assert_eq!(parameter_digest(&again), parameter_digest(&model));

    // A run that never reached a checkpoint, and begins anew with another model: so does its log.
    let other = Net::start().map(&mut Halve);
    begin(other.clone(), 3).expect("trains");
    assert!(replay(&path, other, None).is_ok() && replay(&path, Net::start(), None).is_err());
    // The log of another strategy is not written over.
    let error = message(run(&mut adam().with_seed(9).init(&Net::start()), Net::start(), 3));
    assert!(error.contains("logged with the configuration"), "{error}");
    assert_eq!(replay_range(&path).expect("a log"), 0..3);
}

/// Estimates by part depend on rows, which a log does not have: it is replayed by evaluating again, and by nothing else.
#[test]
fn runs_by_part_replay_by_evaluating_again() {
    for integers in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.replay");
        let config = adam().with_credit(Credit::Parts);
        let first = Net::start();
        let score = |model: &Net, population: &Population, factor: f32| {
            let scores = model.fitness(population).values().iter().map(|score| score * factor).collect::<Vec<_>>();
            match integers {
                true => scores.iter().map(|score| (score * 1e6) as i32).collect::<Vec<_>>().into(),
                false => Fitness::from(scores),
            }
        };
        let mut strategy = config.init(&first);
        let mut model = first.clone();
        let mut log = ReplayLog::create(&path, &strategy, &model).expect("a log");
        let mut digests = vec![parameter_digest(&model)];
        for _ in 0..6 {
            let population = strategy.ask();
            let fitness = score(&model, &population, 1.0);
            strategy.tell(&mut model, population, fitness.clone()).expect("a generation");
            log.append(&strategy, &fitness).expect("appends");
            digests.push(parameter_digest(&model));
        }
        drop(log);
        for until in [0, 3, 6] {
            let again = |model: &Net, population: &Population| Ok(score(model, population, 1.0));
            let (strategy, model) =
                replay_evaluated(&path, config.init(&first), first.clone(), Some(until), again).expect("replays");
            assert_eq!((strategy.generation(), &parameter_digest(&model)), (until, &digests[until as usize]));
            let (strategy, model) = replay_evaluated(&path, strategy, model, None, again).expect("goes on");
            assert_eq!((strategy.generation(), &parameter_digest(&model)), (6, &digests[6]));
        }
        let error = message(replay(&path, first.clone(), None));
        assert!(
            error.contains("credit parts and the scores of 1 parts") && error.contains("replay_evaluated"),
            "{error}"
        );
        let error = message(replay_from(&path, config.init(&first), first.clone(), None));
        assert!(error.contains("credit parts"), "{error}");

        // Other data, or another score, from a generation on.
        let changed = |model: &Net, population: &Population| {
            Ok(score(model, population, if population.generation() < 3 { 1.0 } else { 1.001 }))
        };
        let error = replay_evaluated(&path, config.init(&first), first, None, changed).map(drop).expect_err("refused");
        assert!(matches!(error, Error::Saved(SavedError::ReplayFitness { generation: 3, .. })), "{error}");
        assert!(error.to_string().contains("generation 3 does not give the logged fitness"), "{error}");
    }
}

/// As above with scores of parts, whose number the log does not have.
#[test]
fn scores_of_parts_are_not_replayed_by_fitness_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let first = LinearConfig::new(3, 1).init(&Device::flex());
    let config = adam();
    let (mut strategy, mut model) = (config.init(&first), first.clone());
    let mut log = ReplayLog::create(&path, &strategy, &model).expect("a log");
    let evaluate = |model: &Linear, population: &Population| {
        let x = Tensor::<2>::from_floats([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]], &Device::flex());
        population.evaluate(|members| model.forward_shared(x.clone()).reshape([members.count(), 2]))
    };
    for _ in 0..2 {
        let population = strategy.ask();
        let fitness = evaluate(&model, &population);
        strategy.tell(&mut model, population, fitness.clone()).expect("a generation");
        log.append(&strategy, &fitness).expect("appends");
    }
    let error = message(replay(&path, first.clone(), None));
    assert!(error.contains("credit auto and the scores of 2 parts"), "{error}");
    for members in [0..2, 0..config.population_size] {
        let some = |model: &Linear, population: &Population| Ok(evaluate(model, &population.slice(members.clone())));
        let (_, again) = replay_evaluated(&path, config.init(&first), first.clone(), None, some).expect("replays");
        assert_eq!(parameter_digest(&again), parameter_digest(&model), "{members:?}");
    }
    // Of others than the first, or of other data.
    let last = |model: &Linear, population: &Population| Ok(evaluate(model, &population.slice(2..4)));
    assert!(message(replay_evaluated(&path, config.init(&first), first.clone(), None, last)).contains("generation 0"));
    let failing = |_: &Linear, _: &Population| Err("no data".into());
    assert_eq!(message(replay_evaluated(&path, config.init(&first), first, None, failing)), "no data");
}

/// NaN counts as the worst score of its task, in the run and in its replay.
#[test]
fn scores_of_tasks_are_replayed_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let first = IntegerNet::start();
    let noiser = QEggrollConfig::new().with_levels(VoteLevels::Three);
    let config = EvolutionStrategyConfig::integer(noiser).with_population_size(8);
    let (mut strategy, mut model) = (config.init(&first), first.clone());
    let mut log = ReplayLog::create(&path, &strategy, &model).expect("a log");
    for generation in 0..6 {
        let population = strategy.ask();
        model.fitness(&population); // uses all parameters
        let task = |scale: f32| (0..8).map(move |member| scale * ((member * 5 + generation * 3) as f32).sin());
        let mut scores: Vec<f32> = task(1.0).chain(task(0.1).map(|score| score - 1000.0)).collect();
        scores[2 * (generation % 4)] = f32::NAN;
        let fitness = Fitness::from(scores).with_tasks(2);
        strategy.tell(&mut model, population, fitness.clone()).expect("a generation");
        log.append(&strategy, &fitness).expect("appends");
    }
    assert_ne!(parameter_digest(&model), parameter_digest(&first), "canary: weights move");
    let (_, again) = replay(&path, first, None).expect("replays");
    assert_eq!(parameter_digest(&again), parameter_digest(&model));
}

struct Halve;

impl ModuleMapper for Halve {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| tensor * 0.5)
    }
}

#[test]
fn a_log_takes_one_generation_after_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut strategy = adam().init(&Net::start());
    let model = Net::start();
    let mut log = ReplayLog::create(folder.path().join("log"), &strategy, &model).expect("a log");
    let fitness = |len: usize| Fitness::from(vec![0.5; len]);
    let early = message(log.append(&strategy, &fitness(POPULATION)));
    assert!(early.contains("the record of generation 0 is due, but the strategy was told nothing yet"), "{early}");
    strategy = adam().init(&model);
    let mut model = generation(&mut strategy, model, &mut log);
    let short = message(log.append(&strategy, &fitness(POPULATION)));
    assert!(
        short.contains("the record of generation 1 is due, but the strategy was told generation 0 last"),
        "{short}"
    );
    let population = strategy.ask();
    strategy.tell(&mut model, population, fitness(POPULATION)).expect("a generation");
    let short = message(log.append(&strategy, &fitness(4)));
    assert!(short.contains("of a population of 12, found 4 values"), "{short}");
    log.sync().expect("flushes");
}
