//! Rows of an embedding that no member has looked up: a projected estimate leaves them as they are.

use crate::support::layer;
use burn::module::{Module, Param};
use burn::optim::AdamConfig;
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::{EggrollConfig, NoiseDistribution, NoiserConfig, OpenEsConfig, SparseConfig};
use eggroll_nn::{Embedding, Linear};
use eggroll_train::*;

const VOCABULARY: usize = 30;
const WIDTH: usize = 8;
const MEMBERS: usize = 32;
const TOKENS: usize = 3;

/// The mean of tokens' vectors, and a layer behind it.
#[derive(Module, Debug)]
struct Bag {
    embedding: Embedding,
    output: Linear,
}

impl Bag {
    fn new() -> Self {
        let weight = Param::from_tensor(layer(VOCABULARY, WIDTH).weight.val());
        Self { embedding: Embedding { weight }, output: layer(WIDTH, 1) }
    }

    fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<2> {
        self.output.forward(self.embedding.forward(tokens).mean_dim(1).squeeze_dim(1)) // [rows, 1]
    }

    fn rows(&self) -> Vec<Vec<f32>> {
        let values: Vec<f32> = self.embedding.weight.val().into_data().try_to_vec().expect("f32");
        values.chunks(WIDTH).map(<[f32]>::to_vec).collect()
    }
}

/// Whether any member ever looks up the token.
fn is_read(token: usize) -> bool {
    token < 16 && token.is_multiple_of(2)
}

/// Each pair has its tokens: `[MEMBERS, TOKENS]`.
fn tokens() -> Tensor<2, Int> {
    let token = |i: usize| (2 * (i / TOKENS / 2) + 4 * (i % TOKENS)) % 16;
    let tokens: Vec<i32> = (0..MEMBERS * TOKENS).map(|i| token(i) as i32).collect();
    Tensor::<1, Int>::from_ints(&tokens[..], &Device::flex()).reshape([MEMBERS, TOKENS])
}

fn config(noiser: impl Into<NoiserConfig>, projection: InputProjection) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(noiser, AdamConfig::new())
        .with_population_size(MEMBERS)
        .with_sigma(0.1)
        .with_input_projection(projection)
}

fn evaluate(model: &Bag, population: &Population) -> Fitness {
    population.evaluate(|members| -members.mean((model.forward(members.rows(tokens())) - 1.0).square()))
}

fn run(config: &EvolutionStrategyConfig) -> Vec<Vec<f32>> {
    let mut model = Bag::new();
    let mut strategy = config.init(&model);
    for _ in 0..4 {
        let population = strategy.ask();
        let fitness = evaluate(&model, &population);
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    model.rows()
}

#[test]
fn rows_that_nobody_reads_stay() {
    let signs = EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher);
    let noisers: [NoiserConfig; 5] = [
        EggrollConfig::new().with_rank(2).into(),
        signs.into(),
        NoiserConfig::SignEggroll(EggrollConfig::new()),
        OpenEsConfig::new().into(),
        SparseConfig::new().into(),
    ];
    let before = Bag::new().rows();
    let moved = |after: &[Vec<f32>], token: usize| after[token] != before[token];
    for noiser in noisers {
        for projection in [InputProjection::Shared, InputProjection::Unperturbed] {
            let config = config(noiser.clone(), projection);
            let after = run(&config);
            for token in 0..VOCABULARY {
                assert_eq!(moved(&after, token), is_read(token), "{noiser:?}, {projection}, token {token}");
            }
            assert_eq!(run(&config.with_chunk_size(6)), after, "{noiser:?}, {projection}: chunks");
        }
        let plain = run(&config(noiser.clone(), InputProjection::Off));
        assert!((0..VOCABULARY).all(|token| moved(&plain, token)), "canary: {noiser:?}");
    }
}

/// What is read has the estimate that it has without a projection, bit for bit.
#[test]
fn rows_that_are_read_have_their_estimate() {
    let model = Bag::new();
    let estimate = |projection| {
        let strategy = config(EggrollConfig::new(), projection).init(&model);
        let population = strategy.ask();
        let fitness = evaluate(&model, &population);
        let gradients = strategy.gradient(&model, &population, &fitness).expect("belongs together").expect("not equal");
        let gradient = gradients.get::<2>(model.embedding.weight.id).expect("a gradient");
        gradient.into_data().try_to_vec::<f32>().expect("f32")
    };
    let (plain, masked) = (estimate(InputProjection::Off), estimate(InputProjection::Shared));
    for (token, (plain, masked)) in plain.chunks(WIDTH).zip(masked.chunks(WIDTH)).enumerate() {
        assert_eq!(masked, if is_read(token) { plain } else { &[0.0; WIDTH] }, "token {token}");
        assert_ne!(plain, [0.0; WIDTH], "canary");
    }
}

/// An output layer reads all rows.
#[test]
fn rows_of_a_tied_head_move() {
    let mut model = Bag::new();
    let before = model.rows();
    let mut strategy = config(EggrollConfig::new(), InputProjection::Shared).init(&model);
    let population = strategy.ask();
    let fitness = population.evaluate(|members| {
        let hidden = model.embedding.forward(members.rows(tokens())).mean_dim(1).squeeze_dim::<2>(1);
        let logits = model.embedding.forward_transposed(hidden.clone()); // [members, VOCABULARY]
        -members.mean((logits + model.output.forward(hidden) - 1.0).square())
    });
    strategy.tell(&mut model, population, fitness).expect("a generation");
    assert!(model.rows().iter().zip(&before).all(|(after, before)| after != before));
}

/// A projection onto the rows of one chunk would take away what others have learned.
#[test]
#[should_panic(expected = "the rows given to forward_shared differ between chunks of one generation")]
fn projected_rows_are_those_of_all_chunks() {
    let model = layer(6, 1);
    let config = config(EggrollConfig::new(), InputProjection::Shared).with_chunk_size(4);
    config.init(&model).ask().evaluate_mut(|members| {
        let x = Tensor::<2>::full([2, 6], members.first() as f32, &Device::flex());
        -members.mean(model.forward_shared(x).square())
    });
}
