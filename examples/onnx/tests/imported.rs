//! What burn-onnx imports answers as PyTorch did, and `PopulationGraph` trains it unchanged or names what it does not take.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use eggroll::nn::graph::GraphError;
use eggroll::prelude::{AdamConfig, EggrollConfig, EvolutionStrategyConfig, PopulationGraph};
use eggroll_onnx::*;

/// Images whose logits PyTorch has recorded.
const RECORDED: usize = 16;
/// Largest difference between the two frameworks' logits: 100 roundings of numbers about 10.
const TOLERANCE: f32 = 1e-4;
const MEMBERS: usize = 16;

/// A forward of an imported model.
type Forward<M, const D: usize> = fn(&M, Tensor<D>) -> Tensor<2>;

/// The first test images, and what PyTorch answered.
fn recorded(name: &str) -> (Digits, Tensor<2>) {
    let device = Device::flex();
    let digits = Digits::read("t10k", 0..RECORDED, &device).expect("the digits");
    let logits: serde_json::Value = serde_json::from_str(include_str!("../models/logits.json")).expect("logits");
    let rows = logits[name].as_array().expect("rows").iter().flat_map(|row| row.as_array().expect("a row"));
    let logits: Vec<f32> = rows.map(|logit| logit.as_f64().expect("a number") as f32).collect();
    (digits, Tensor::from_data(TensorData::new(logits, [RECORDED, 10]), &device))
}

/// Compares the imported model with PyTorch, and records it for a population.
fn graph<M: Module + 'static, const D: usize>(
    name: &str,
    model: &M,
    shape: [usize; D],
    forward: Forward<M, D>,
) -> Result<PopulationGraph<M, Tensor<D>, Tensor<2>>, GraphError> {
    let (digits, expected) = recorded(name);
    let images = digits.images.reshape(shape);
    let found = forward(model, images.clone());
    let difference: f32 = (found - expected).abs().max().into_scalar();
    assert!(difference < TOLERANCE, "{name}: off by {difference} from PyTorch");
    PopulationGraph::trace(model, images, forward)
}

/// Mean squared difference of every member's logits from PyTorch's, by the graph and one by one.
fn differences<M: Module + Sync + 'static, const D: usize>(
    (name, sigma): (&str, f64),
    model: &M,
    graph: &PopulationGraph<M, Tensor<D>, Tensor<2>>,
    shape: [usize; D],
    forward: Forward<M, D>,
) -> [Vec<f32>; 2] {
    let (digits, expected) = recorded(name);
    let images = digits.images.reshape(shape);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let population = config.with_population_size(MEMBERS).with_sigma(sigma).init(model).ask();
    let batched =
        population.evaluate(|members| members.mse(graph.forward_shared(model, images.clone()), expected.clone()));
    let alone = population
        .evaluate_each(model, |member: M| (forward(&member, images.clone()) - expected.clone()).square().mean());
    [batched, alone].map(|fitness| fitness.values().to_vec())
}

/// `shape` has the rows of [`RECORDED`] images.
fn learns<M: Module + Sync + 'static, const D: usize>(
    name: &str,
    mut model: M,
    shape: [usize; D],
    forward: Forward<M, D>,
) {
    let graph = graph(name, &model, shape, forward).unwrap_or_else(|error| panic!("{name}: {error}"));
    // Noise below the tolerance: every member is PyTorch's model.
    let [still, _] = differences((name, 1e-7), &model, &graph, shape, forward);
    assert!(still.iter().all(|error| error.sqrt() < TOLERANCE), "{name}: {still:?}");
    let [batched, alone] = differences((name, 0.02), &model, &graph, shape, forward);
    for (member, (batched, alone)) in batched.iter().zip(&alone).enumerate() {
        assert!((batched - alone).abs() < 1e-3 * alone, "{name}, member {member}: {batched} in batch, {alone} alone");
        assert!(*batched > 1e3 * TOLERANCE.powi(2), "{name}, canary: the noise is seen, {batched}");
    }
    let distinct: std::collections::HashSet<u32> = batched.iter().map(|value| value.to_bits()).collect();
    assert_eq!(distinct.len(), MEMBERS, "{name}: members differ, {batched:?}");

    let train = Digits::read("train", 6_000..6_512, &Device::flex()).expect("the digits");
    let mut rows = shape;
    rows[0] = 512;
    let images = train.images.clone().reshape(rows);
    let accuracy = |model: &M| train.accuracy(forward(model, images.clone()));
    let before = accuracy(&model);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let mut strategy = config.with_population_size(64).with_sigma(0.02).with_learning_rate(0.005).init(&model);
    for _ in 0..30 {
        let population = strategy.ask();
        let fitness = population
            .evaluate(|members| members.accuracy(graph.forward_shared(&model, images.clone()), train.labels.clone()));
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    let after = accuracy(&model);
    println!("{name}: {before:.1} % before, {after:.1} % after");
    assert!(after > before + 2.0, "{name}: {before} % before, {after} % after");
}

#[test]
fn a_perceptron() {
    let model = perceptron::Model::from_embedded(&Device::flex());
    learns("perceptron", model, [RECORDED, 784], perceptron::Model::forward);
}

#[test]
fn a_convolutional_network() {
    let model = convolutional::Model::from_embedded(&Device::flex());
    learns("convolutional", model, [RECORDED, 1, 28, 28], convolutional::Model::forward);
}

#[test]
fn a_transformer() {
    let model = transformer::Model::from_embedded(&Device::flex());
    learns("transformer", model, [RECORDED, 28, 28], transformer::Model::forward);
}

#[test]
fn a_recurrent_network() {
    let model = recurrent::Model::from_embedded(&Device::flex());
    learns("recurrent", model, [RECORDED, 28, 28], recurrent::Model::forward);
}

#[test]
fn a_learned_token() {
    let model = blank_token::Model::from_embedded(&Device::flex());
    learns("blank_token", model, [RECORDED, 28, 28], blank_token::Model::forward);
}

/// Tensors outside of layers are constants to burn-onnx: without gradient, they may be used in any way.
#[test]
fn a_parameter_that_is_not_taken_is_named() {
    let model = blank_token::Model::from_embedded(&Device::flex()).set_require_grad(true);
    let refused = graph("blank_token", &model, [RECORDED, 28, 28], blank_token::Model::forward);
    assert_eq!(
        refused.expect_err("no perturbed form").to_string(),
        "the parameter \"constant1\" is used by MaskWhere, which has no perturbed form"
    );
}

/// A limit: members lie on the leading axis.
#[test]
fn a_sequence_on_the_leading_axis_is_named() {
    let model = sequence_first::Model::from_embedded(&Device::flex());
    let refused = graph("sequence_first", &model, [RECORDED, 28, 28], sequence_first::Model::forward);
    assert_eq!(
        refused.expect_err("the batch is elsewhere").to_string(),
        "Reshape joins rows of the batch into a tensor [1792, 16]: members of a population would mix"
    );
}

#[test]
fn an_operation_that_mixes_members_is_named() {
    let model = batch_statistics::Model::from_embedded(&Device::flex());
    let refused = graph("batch_statistics", &model, [RECORDED, 784], batch_statistics::Model::forward);
    assert_eq!(
        refused.expect_err("rows mix").to_string(),
        "MeanDim joins rows of the batch into a tensor [1, 8]: members of a population would mix"
    );
}
