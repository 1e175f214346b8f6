//! The integer transformer: reading in parts and beyond the context, members' states, and training that gives the same bits everywhere.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::integer::VoteLevels;
use eggroll_core::ops::integer::{Rounding, log_likelihood};
use eggroll_core::rng::philox::philox4x32;
use eggroll_core::{MemberState, QEggrollConfig};
use eggroll_nn::integer::transformer::{Transformer, TransformerConfig, TransformerState};
use eggroll_run::diagnostics::ActivationStatistics;
use eggroll_run::text::{ByteStreams, Sampler, Text, bits_per_byte};
use eggroll_train::{EvolutionStrategyConfig, MemberChunk};

const CONTEXT: usize = 8;
const TEXT: &[u8] = b"The quick brown fox jumps over the lazy dog, and the dog does not mind at all.";

/// The devices that the tests are built with.
#[cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]
fn devices() -> Vec<Device> {
    vec![
        #[cfg(feature = "flex")]
        Device::flex(),
        #[cfg(feature = "ndarray")]
        Device::ndarray(),
        #[cfg(feature = "wgpu")]
        Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
    ]
}

/// The same weights on every device.
fn model(device: &Device) -> Transformer {
    let config = TransformerConfig::new().with_layers(2).with_width(16).with_heads(2).with_context(CONTEXT);
    config.init(device).map(&mut DrawnWeights { parameter: 0 })
}

/// Weights by the parameter's place: from −40 to 40 in matrices, small numbers more in vectors.
struct DrawnWeights {
    parameter: u32,
}

impl ModuleMapper for DrawnWeights {
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        self.parameter += 1;
        let span = if D == 2 { 81 } else { 9 };
        let value = |i: u32| (philox4x32([i, self.parameter, 0, 0], [7; 2])[0] % span) as i32 - span as i32 / 2;
        param.map(|old| {
            let values: Vec<i32> = (0..old.shape().num_elements() as u32).map(value).collect();
            let new = Tensor::from_data(TensorData::new(values, old.shape()), (&old.device(), old.dtype()));
            if D == 2 { new } else { old + new }
        })
    }
}

fn tokens(text: &[u8], rows: usize, device: &Device) -> Tensor<2, Int> {
    let tokens: Vec<i32> = text.iter().map(|byte| i32::from(*byte)).collect();
    Tensor::<1, Int>::from_ints(tokens.as_slice(), device).reshape([rows, text.len() / rows])
}

fn logits(logits: Tensor<3, Int>) -> Vec<i32> {
    logits.into_data().try_to_vec().expect("I32")
}

/// Whatever the parts that a text is read in, also where it is longer than the context.
#[test]
fn parts_change_nothing() {
    let device = Device::flex();
    let model = model(&device);
    let text = tokens(&TEXT[..54], 2, &device); // [2, 27]
    let whole = logits(model.forward(text.clone(), TransformerState::default()).0);
    for parts in [vec![1; 27], vec![8, 8, 8, 3], vec![3, 17, 7]] {
        let (mut state, mut read, mut found, mut at) = (TransformerState::default(), 0, Vec::new(), 0);
        for steps in &parts {
            let (part, next) = model.forward(text.clone().narrow(1, at, *steps), state);
            (state, at, read) = (next, at + steps, read + steps);
            found.push(part);
        }
        assert_eq!(read, 27);
        assert_eq!(logits(Tensor::cat(found, 1)), whole, "{parts:?}");
        assert!(state.positions() <= CONTEXT);
    }
    let (nothing, state) = model.forward(Tensor::zeros([2, 0], &device), TransformerState::default());
    assert_eq!((nothing.dims(), state.positions()), ([2, 0, 256], 0));
    let other = logits(model.forward(tokens(&TEXT[1..55], 2, &device), TransformerState::default()).0);
    assert_ne!(whole, other, "canary");
}

/// A byte is predicted from those of half a context before it, and not from farther ones.
#[test]
fn context_is_limited() {
    let device = Device::flex();
    let model = model(&device);
    let last = |text: &[u8]| {
        let all = logits(model.forward(tokens(text, 1, &device), TransformerState::default()).0);
        all[all.len() - 256..].to_vec()
    };
    // The 13th byte is the first of the second context after two halves: it sees the four before it.
    let (text, mut far, mut near) = (TEXT[..13].to_vec(), TEXT[..13].to_vec(), TEXT[..13].to_vec());
    far[3] = b'X';
    near[9] = b'X';
    assert_eq!(last(&text), last(&far));
    assert_ne!(last(&text), last(&near), "canary");
}

#[test]
fn states_are_cut_and_joined() {
    let device = Device::flex();
    let model = model(&device);
    let text = tokens(&TEXT[..60], 4, &device); // [4, 15]
    let (_, state) = model.forward(text.clone().narrow(1, 0, 5), TransformerState::default());
    let next = text.narrow(1, 5, 6);
    let whole = logits(model.forward(next.clone(), state.clone()).0);
    let joined = TransformerState::join(vec![state.rows(0..1), state.rows(1..4)]);
    assert_eq!(logits(model.forward(next.clone(), joined).0), whole);
    let swapped = TransformerState::join(vec![state.rows(2..4), state.rows(0..2)]);
    assert_ne!(logits(model.forward(next, swapped).0), whole, "canary");
    assert_eq!(TransformerState::join(vec![TransformerState::default(); 2]).positions(), 0);
}

#[test]
#[should_panic(expected = "a state of 4 sequences and 2 blocks for 2 sequences")]
fn refuses_a_state_of_others() {
    let device = Device::flex();
    let model = model(&device);
    let (_, state) = model.forward(tokens(&TEXT[..20], 4, &device), TransformerState::default());
    model.forward(tokens(&TEXT[..10], 2, &device), state);
}

#[test]
#[should_panic(expected = "d_model 30 must be n_heads 4 times an even number")]
fn refuses_uneven_heads() {
    TransformerConfig::new().with_width(30).init(&Device::flex());
}

#[test]
#[should_panic(expected = "context must be at least 1 and at most 2048, not 4096")]
fn refuses_a_long_context() {
    TransformerConfig::new().with_context(4096).init(&Device::flex());
}

/// The loss of training is the exact one but for rounding.
#[test]
fn bits_are_those_of_training() {
    let model = model(&Device::flex());
    let bits = bits_per_byte(&model, TEXT, 3);
    assert!((bits.exact - bits.integer).abs() < 0.02, "{bits:?}");
    assert!((bits.exact - 8.0).abs() < 1.0, "{bits:?}: a random model knows nothing");
}

#[test]
fn samples_continue_beyond_the_context() {
    let model = model(&Device::flex());
    let sampler = Sampler::new(0.7, 3).and_then(|sampler| sampler.with_min_p(0.05)).expect("a sampler");
    let sample = sampler.sample(&model, b"The quick", 40);
    assert_eq!(sample.len(), 40);
    assert_eq!(sample, sampler.sample(&model, b"The quick", 40));
    assert_ne!(sample, sampler.sample(&model, b"The quack", 40), "canary");
}

/// Trains on a text for some generations.
fn train(mut model: Transformer, levels: VoteLevels, chunk: usize) -> Transformer {
    const MEMBERS: usize = 32;
    let device = model.embedding.weight.device();
    let streams =
        ByteStreams::new(Text::from_bytes(TEXT.repeat(20)).expect("a text"), MEMBERS / 2, CONTEXT).expect("streams");
    let config = EvolutionStrategyConfig::integer(QEggrollConfig::new().with_levels(levels).with_rank(2))
        .with_population_size(MEMBERS)
        .with_chunk_size(chunk)
        .with_seed(5);
    let mut strategy = config.try_init(&model).expect("a strategy");
    for _ in 0..3 {
        let population = strategy.ask();
        let batch = streams.batch(population.generation(), 2, &device);
        let fitness = population.evaluate(|members: &MemberChunk| {
            let (logits, _) = model.forward(members.rows(batch.inputs.clone()), TransformerState::default());
            let targets = members.rows(batch.targets.clone()).flatten::<1>(0, 1);
            log_likelihood(logits.flatten::<2>(0, 1), targets, members.count(), Rounding::Nearest)
        });
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    model
}

/// All weights, whatever type a device holds them in.
fn weights(model: &Transformer) -> Vec<i64> {
    struct IntegerValues(Vec<i64>);
    impl ModuleVisitor for IntegerValues {
        fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
            self.0.extend(param.val().into_data().iter::<i64>());
        }
    }
    let mut values = IntegerValues(Vec::new());
    model.visit(&mut values);
    values.0
}

/// The same weights after training, on every device, whatever the chunks.
#[test]
fn trains_to_the_same_bits() {
    for levels in [VoteLevels::Sign, VoteLevels::Five] {
        let expected = weights(&train(model(&Device::flex()), levels, 32));
        assert_ne!(expected, weights(&model(&Device::flex())), "canary: nothing moved");
        for device in devices() {
            for chunk in [4, 32] {
                let found = weights(&train(model(&device), levels, chunk));
                assert!(found == expected, "{device:?}, {levels:?}, chunks of {chunk}");
            }
        }
    }
}

#[test]
fn statistics_of_activations() {
    let model = model(&Device::flex());
    let statistics = ActivationStatistics::new(&model, TEXT);
    let paths: Vec<&str> = statistics.tensors.iter().map(|tensor| tensor.path.as_str()).collect();
    assert_eq!(paths[..5], ["embedding", "mlp.norm", "mlp.expand", "mlp.contract", "mlp.sum"]);
    assert!(paths.contains(&"blocks.1.attention.attended") && paths.last() == Some(&"norm"), "{paths:?}");
    // Nine texts of eight bytes: 1 to 8 positions are seen.
    let most = (1..=8).map(|visible| f64::from(visible).log2()).sum::<f64>() / 8.0;
    for block in &statistics.attention {
        assert!((block.most - most).abs() < 1e-12 && block.entropy > 0.0 && block.entropy < most, "{block:?}");
    }
    let mut narrow = statistics.attention[0].clone();
    narrow.entropy = 0.0;
    assert!(narrow.warnings()[0].contains("one position only"), "{:?}", narrow.warnings());
    narrow.entropy = narrow.most;
    assert!(narrow.warnings()[0].contains("all positions alike"), "{:?}", narrow.warnings());
    let mut saturated = statistics.tensors[3].clone();
    saturated.saturated = 0.5;
    assert!(saturated.activation_warnings()[0].contains("weight decay"), "{:?}", saturated.activation_warnings());
}
