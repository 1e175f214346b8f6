//! Q-EGGROLL trains the same model everywhere, bit for bit, and refuses what it cannot train.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::SgdConfig;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use eggroll_core::integer::{VoteLevels, Votes};
use eggroll_core::ops::integer::{Rounding, integer_type, log_likelihood};
use eggroll_core::rng::integer::fill_integers;
use eggroll_core::rng::philox::philox4x32;
use eggroll_core::{EggrollConfig, InstructionSet, NoiseKey, NoiseSourceConfig, QEggrollConfig};
use eggroll_nn::LinearConfig;
use eggroll_nn::integer::{EggModel, EggModelConfig, EggState};
use eggroll_run::*;
use eggroll_train::*;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

const VARIABLE: &str = "EGGROLL_INSTRUCTION_SET";
const VOCAB: usize = 256;
const MEMBERS: usize = 16;
const STEPS: usize = 8;
const GENERATIONS: u64 = 20;
/// Of the weights after [`GENERATIONS`]: there is no rounding that a machine, a device or a number of threads could change. Another
/// value means another stream of noise or another formula.
const DIGEST: &str = "b1e5b647d529a87358f05a266aef9cbb3627918b5eb75bf16191a3371a8545ac";

/// The CPU backends that the tests are built with.
#[cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]
fn processors() -> Vec<Device> {
    vec![
        #[cfg(feature = "flex")]
        Device::flex(),
        #[cfg(feature = "ndarray")]
        Device::ndarray(),
    ]
}

/// Other devices; not in a process that tests an instruction set, which is the processor's.
fn accelerators() -> Vec<Device> {
    if std::env::var_os(VARIABLE).is_some() {
        return Vec::new();
    }
    vec![
        #[cfg(feature = "wgpu")]
        Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(feature = "cuda")]
        Device::cuda(0),
        #[cfg(feature = "rocm")]
        Device::rocm(0),
    ]
}

fn devices() -> Vec<Device> {
    let all = [processors(), accelerators()].concat();
    assert!(!all.is_empty(), "no backend to test");
    all
}

/// A model of two layers whose matrices are made on the host.
fn model(device: &Device) -> EggModel {
    struct FillDrawn<'a>(&'a Device, u32);

    impl ModuleMapper for FillDrawn<'_> {
        fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
            let shape = param.dims();
            if D == 1 {
                return param;
            }
            self.1 += 1;
            let mut values = vec![0; shape.iter().product()];
            fill_integers(NoiseKey::new(99, self.1, 0), 0, &mut values);
            let values = TensorData::new(values, shape);
            param.map(|_| Tensor::from_data(values, (self.0, integer_type(self.0))))
        }
    }
    EggModelConfig::new().with_layers(2).with_width(32).init(device).map(&mut FillDrawn(device, 0))
}

/// A sequence for each pair, the same for both members: `[MEMBERS, STEPS + 1]`. Token 0, which starts a document, is among them.
fn tokens(generation: u64, device: &Device) -> Tensor<2, Int> {
    let token = |member: usize, step: usize| match (member / 2, step) {
        (1, 3) => 0,
        (pair, step) => (philox4x32([step as u32, pair as u32, generation as u32, 0], [7; 2])[0] % VOCAB as u32) as i32,
    };
    let all: Vec<i32> = (0..MEMBERS).flat_map(|m| (0..=STEPS).map(move |step| token(m, step))).collect();
    Tensor::from_data(TensorData::new(all, [MEMBERS, STEPS + 1]), device)
}

/// Log-likelihoods of the members' sequences, and the states after them.
fn score(
    model: &EggModel,
    tokens: &Tensor<2, Int>,
    members: &MemberChunk,
    state: EggState,
) -> (Tensor<1, Int>, EggState) {
    let (rows, count) = (members.rows(tokens.clone()), members.count());
    let (logits, state) = model.forward(rows.clone().narrow(1, 0, STEPS), state);
    let targets = rows.narrow(1, 1, STEPS).reshape([count * STEPS]);
    (log_likelihood(logits.reshape([count * STEPS, VOCAB]), targets, count, Rounding::Floor), state)
}

fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::integer(QEggrollConfig::new().with_threshold(4.0, 10))
        .with_population_size(MEMBERS)
        .with_seed(3)
}

/// The result of training.
#[derive(Clone, Debug, PartialEq)]
struct TrainedDigest {
    weights: String,
    states: Vec<i32>,
}

/// Trains `model` from the strategy's generation up to `until`, its members going on from `state`.
fn go_on(
    strategy: &mut EvolutionStrategy,
    (mut model, mut state): (EggModel, EggState),
    until: u64,
) -> (EggModel, EggState) {
    let device = model.head.weight.device();
    while strategy.generation() < until {
        let (population, tokens) = (strategy.ask(), tokens(strategy.generation(), &device));
        let fitness;
        (fitness, state) =
            population.evaluate_with_state(state, |members, state| score(&model, &tokens, members, state));
        assert!(fitness.integers().is_some(), "fitness of integers stays so");
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    (model, state)
}

fn start(device: &Device) -> (EggModel, EggState) {
    let model = model(device);
    let state = model.initial_state(MEMBERS);
    (model, state)
}

fn trained((model, state): (EggModel, EggState)) -> TrainedDigest {
    TrainedDigest { weights: digest(&model), states: state.layers.into_iter().flat_map(integers).collect() }
}

fn run(config: EvolutionStrategyConfig, device: &Device) -> TrainedDigest {
    let start = start(device);
    trained(go_on(&mut config.init(&start.0), start, GENERATIONS))
}

fn integers<const D: usize>(tensor: Tensor<D, Int>) -> Vec<i32> {
    tensor.cast(DType::I32).into_data().try_to_vec().expect("an I32 tensor")
}

/// The integer parameters by path.
fn parameters(model: &EggModel) -> BTreeMap<String, Vec<i32>> {
    #[derive(Default)]
    struct IntegerReader(Vec<String>, BTreeMap<String, Vec<i32>>);

    impl ModuleVisitor for IntegerReader {
        fn enter_module(&mut self, name: &str, _container_type: &str) {
            self.0.push(name.to_owned());
        }

        fn exit_module(&mut self, _name: &str, _container_type: &str) {
            self.0.pop();
        }

        fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
            self.1.insert(self.0.join("."), integers(param.val()));
        }
    }
    let mut reader = IntegerReader::default();
    model.visit(&mut reader);
    assert_eq!(reader.1.len(), 3 + 2 * 10, "all parameters");
    reader.1
}

/// SHA-256 of all weights by path as int8, whatever type they have on their device.
fn digest(model: &EggModel) -> String {
    let mut state = Sha256::new();
    for (path, values) in parameters(model) {
        state.update(path);
        state.update(values.iter().map(|value| i8::try_from(*value).expect("int8") as u8).collect::<Vec<_>>());
    }
    state.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_same_bits_everywhere() {
    let states = run(config(), &devices()[0]).states;
    let expected = TrainedDigest { weights: DIGEST.into(), states };
    let check = |device: &Device, chunk: usize| {
        let found = run(config().with_chunk_size(chunk), device);
        assert_eq!(found, expected, "{device:?}, chunks of {chunk}");
    };
    for device in processors() {
        [MEMBERS, 6, 2].iter().for_each(|chunk| check(&device, *chunk));
        assert_eq!(run(config(), &device), expected, "{device:?}, chunks by memory");
    }
    // A software driver takes a minute or so for each.
    for device in accelerators() {
        [MEMBERS, 10].iter().for_each(|chunk| check(&device, *chunk));
    }
    for device in devices() {
        assert_ne!(run(config().with_seed(4), &device).weights, DIGEST, "canary: another seed, {device:?}");
    }
    assert_ne!(digest(&model(&devices()[0])), DIGEST, "canary: the start");
}

#[test]
fn the_same_bits_by_other_instruction_sets() {
    if std::env::var_os(VARIABLE).is_some() {
        return;
    }
    for set in InstructionSet::available() {
        let run = std::process::Command::new(std::env::current_exe().expect("a test binary"))
            .args(["integer::the_same_bits_everywhere", "--exact"])
            .env(VARIABLE, set.name())
            .output()
            .expect("the test binary runs");
        let output = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && output.contains("1 passed"), "{set:?}:\n{output}");
    }
}

/// A table is another stream: of its own, and the same on every device.
#[test]
fn noise_of_a_table() {
    let with = |len| config().with_noise_source(NoiseSourceConfig::Table { len });
    let first = &devices()[0];
    let expected = run(with(1 << 14).with_chunk_size(4), first);
    assert_ne!(expected.weights, DIGEST);
    assert_ne!(run(with(1 << 15), first), expected, "canary: another table");
    for device in devices() {
        assert_eq!(run(with(1 << 14), &device), expected, "{device:?}");
    }
    let error = with(287).try_init(&model(first)).err().expect("too short").to_string();
    assert!(error.contains("287") && error.contains("288") && error.contains("weight"), "{error}");
}

#[test]
fn votes_of_signs() {
    let noiser = |votes| QEggrollConfig::new().with_threshold(4.0, 10).with_votes(votes);
    let with = |votes| EvolutionStrategyConfig { noiser: noiser(votes).into(), ..config() };
    let first = &devices()[0];
    let expected = run(with(Votes::Signs).with_chunk_size(4), first);
    assert_ne!(expected.weights, DIGEST, "signs count otherwise than values");
    assert_eq!(run(with(Votes::Values), first).weights, DIGEST);
    for device in devices() {
        assert_eq!(run(with(Votes::Signs), &device), expected, "{device:?}");
    }
}

#[test]
fn votes_in_levels() {
    let noiser = |levels| QEggrollConfig::new().with_threshold(4.0, 10).with_levels(levels);
    let with = |levels| EvolutionStrategyConfig { noiser: noiser(levels).into(), ..config() };
    let first = &devices()[0];
    assert_eq!(run(with(VoteLevels::Sign), first).weights, DIGEST);
    let expected = [VoteLevels::Three, VoteLevels::Five].map(|levels| run(with(levels).with_chunk_size(4), first));
    assert_ne!(expected[0].weights, expected[1].weights, "canary");
    for expected in &expected {
        assert_ne!(expected.weights, DIGEST, "levels count otherwise than signs");
    }
    for device in devices() {
        for (levels, expected) in [VoteLevels::Three, VoteLevels::Five].into_iter().zip(&expected) {
            assert_eq!(run(with(levels), &device), *expected, "{levels:?}, {device:?}");
        }
    }
    let table = with(VoteLevels::Five).with_noise_source(NoiseSourceConfig::Table { len: 1 << 14 });
    let error = table.try_init(&model(first)).err().expect("refused").to_string();
    assert!(error.contains("VoteLevels::Three"), "{error}");
}

/// A generation in which no pair votes moves nothing, though scores differ by task.
#[test]
fn no_votes_move_nothing() {
    let device = &devices()[0];
    for levels in [VoteLevels::Three, VoteLevels::Five] {
        let noiser = QEggrollConfig::new().with_threshold(1.0, 1).with_levels(levels); // without a vote every weight would move
        let config = EvolutionStrategyConfig { noiser: noiser.into(), ..config() };
        let mut trained = model(device);
        let before = parameter_digest(&trained);
        let mut strategy = config.try_init(&trained).expect("a strategy");
        // Of two tasks: the sums of both members are equal in all pairs.
        let mut scores = vec![1; 2 * MEMBERS];
        (scores[0], scores[1], scores[MEMBERS], scores[MEMBERS + 1]) = (2, 0, 5, 7);
        let fitness = Fitness::from(scores).with_tasks(2);
        let population = strategy.ask();
        population.evaluate_with_state(trained.initial_state(MEMBERS), |members, state| {
            score(&trained, &tokens(0, device), members, state)
        });
        strategy.tell(&mut trained, population, fitness).expect("told");
        assert_eq!(parameter_digest(&trained), before, "{levels:?}");
    }
}

/// A replay log holds scores where signs do not make the same update.
#[test]
fn votes_in_levels_are_replayed() {
    let device = &devices()[0];
    for levels in [VoteLevels::Sign, VoteLevels::Five] {
        let noiser = QEggrollConfig::new().with_threshold(4.0, 10).with_levels(levels);
        let config = EvolutionStrategyConfig { noiser: noiser.into(), ..config() };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("replay.log");
        let (first, mut trained) = (model(device), model(device));
        let mut strategy = config.try_init(&trained).expect("a strategy");
        let mut log = ReplayLog::create(&path, &strategy, &trained).expect("a log");
        for _ in 0..3 {
            let scores = fitness(&strategy, &trained);
            let population = strategy.ask();
            strategy.tell(&mut trained, population, scores.clone()).expect("told");
            log.append(&strategy, &scores).expect("appended");
        }
        log.sync().expect("written");
        let (_, replayed) = replay(&path, first, None).expect("replayed");
        assert_eq!(parameter_digest(&replayed), parameter_digest(&trained), "{levels:?}");
    }
}

/// The fitness of a generation in which nothing is told.
fn fitness(strategy: &EvolutionStrategy, model: &EggModel) -> Fitness {
    let tokens = tokens(0, &model.head.weight.device());
    let state = model.initial_state(MEMBERS);
    strategy.ask().evaluate_with_state(state, |members, state| score(model, &tokens, members, state)).0
}

/// Equal fitness moves nothing, though at a threshold of 0 a weight without votes would move; noise changes when it is due.
#[test]
fn equal_fitness_and_noise_reuse() {
    for device in devices() {
        let mut model = model(&device);
        for (reuse, changes) in [(1, [true; 4]), (2, [false, true, false, true]), (0, [false; 4])] {
            let mut strategy = config().with_noise_reuse(reuse).init(&model);
            let mut last = fitness(&strategy, &model);
            for changed in changes {
                let population = strategy.ask();
                let before = parameters(&model);
                strategy.tell(&mut model, population, vec![-7; MEMBERS].into()).expect("a generation");
                assert_eq!(parameters(&model), before);
                assert!(!strategy.report().expect("told").stepped);
                let now = fitness(&strategy, &model);
                assert_eq!(now != last, changed, "reuse {reuse}, generation {}", strategy.generation());
                last = now;
            }
        }
    }
}

#[test]
fn frozen_parameters_stay() {
    let frozen = ["embedding", "blocks.1.gru", "norm.weight"];
    for device in devices() {
        let start = start(&device);
        let before = parameters(&start.0);
        let mut strategy = config().with_frozen(frozen).init(&start.0);
        let (model, _) = go_on(&mut strategy, start, 3);
        let after = parameters(&model);
        for (path, values) in before {
            let stays = frozen.iter().any(|name| path == *name || path.starts_with(&format!("{name}.")));
            assert_eq!(after[&path] == values, stays, "{path}");
        }
    }
}

#[test]
fn parameters_left_out_are_an_error() {
    let model = model(&devices()[0]);
    let mut strategy = config().init(&model);
    let population = strategy.ask();
    let fitness = population.evaluate(|members| {
        let x = Tensor::<2, Int>::ones([members.count(), 32], (&devices()[0], integer_type(&devices()[0])));
        model.head.forward(members.assume_repeated(x)).sum_dim(1).reshape([members.count()])
    });
    let Err(eggroll_train::Error::Tell(TellError::NeverPerturbed(paths))) =
        strategy.tell(&mut model.clone(), population, fitness)
    else {
        panic!("all but the head are left out");
    };
    let all = parameters(&model).into_keys().filter(|path| path != "head.weight");
    let mut paths = paths;
    paths.sort();
    assert_eq!(paths, all.collect::<Vec<_>>());
    assert_eq!(strategy.generation(), 0);
}

#[test]
fn resume_is_bit_for_bit() {
    for device in devices() {
        let folder = tempfile::tempdir().expect("a folder");
        let checkpoints = Checkpoints::new(folder.path());
        let start = start(&device);
        let mut strategy = config().init(&start.0);
        let (model, state) = go_on(&mut strategy, start, 7);
        checkpoints.save(&strategy, &model).expect("saves");
        let other = EggModelConfig::new().with_layers(2).with_width(32).init(&device);
        let (mut strategy, loaded) = checkpoints.load_latest(other).expect("loads").expect("is there");
        assert_eq!((strategy.generation(), digest(&loaded)), (7, digest(&model)));
        assert_eq!(loaded.head.weight.val().dtype(), integer_type(&device));
        // States are the caller's: as they were.
        let resumed = trained(go_on(&mut strategy, (loaded, state), GENERATIONS));
        assert_eq!(resumed.weights, DIGEST, "{device:?}");
    }
}

/// A noiser of integers has nothing to do in a float model, nor one of floats in an integer model.
#[test]
fn models_without_parameters_for_the_noiser_are_refused() {
    let device = &devices()[0];
    let float = LinearConfig::new(3, 2).init(device);
    let error = config().try_init(&float).err().expect("refused").to_string();
    assert!(error.contains("the noiser is for 2 of its parameters") && error.contains("QEggrollConfig"), "{error}");
    let floats = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
    let error = floats.try_init(&model(device)).err().expect("refused").to_string();
    assert!(error.contains("the noiser is for 0 of its parameters"), "{error}");
}

/// Log-likelihood of the plain model, summed over all sequences.
fn plain(model: &EggModel) -> i32 {
    let tokens = tokens(0, &model.head.weight.device());
    let (likelihoods, _) = score(model, &tokens, &MemberChunk::new(0, MEMBERS), model.initial_state(MEMBERS));
    integers(likelihoods).iter().sum()
}

/// By how many sixteenths of a bit the plain model's log-likelihood grows in training on `sign` times that of the members.
fn growth(source: NoiseSourceConfig, sign: i32) -> i32 {
    const REPEATS: usize = 16;
    let device = &devices()[0];
    let (mut model, tokens) = (model(device), tokens(0, device).repeat_dim(0, REPEATS));
    let config = config().with_population_size(MEMBERS * REPEATS).with_noise_source(source);
    let mut strategy = config.init(&model);
    let before = plain(&model);
    for _ in 0..GENERATIONS {
        let population = strategy.ask();
        let fitness = population
            .evaluate(|members| score(&model, &tokens, members, model.initial_state(members.count())).0 * sign);
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    plain(&model) - before
}

#[test]
fn learns_its_sequences() {
    for source in [NoiseSourceConfig::OnTheFly, NoiseSourceConfig::Table { len: 1 << 16 }] {
        let growth = [1, -1].map(|sign| growth(source, sign));
        // A third of a bit for each of 128 tokens.
        assert!(growth[0] > 128 * 16 / 3 && growth[1] < 0, "{source:?}: {growth:?}");
    }
}
