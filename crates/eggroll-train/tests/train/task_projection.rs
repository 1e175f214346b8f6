//! Estimates by task: which layers they are for, and what is refused.

use burn::module::Module;
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::{Linear, LinearConfig};
use eggroll_train::{EvolutionStrategyConfig, Fitness, FitnessShaping, InputProjection, Population};

const ROWS: usize = 3;

/// The second layer's rows are the mean of the first one's: one for all tasks.
#[derive(Module, Debug)]
struct Net {
    first: Linear,
    pooled: Linear,
}

impl Net {
    fn new() -> Self {
        Device::flex().seed(5);
        let layer = |d_input, d_output| LinearConfig::new(d_input, d_output).init(&Device::flex());
        Self { first: layer(8, 6), pooled: layer(6, 2) }
    }
}

fn rows() -> Tensor<2> {
    Tensor::<1, burn::tensor::Int>::arange(0..8 * ROWS as i64, &Device::flex()).float().sin().reshape([ROWS, 8])
}

fn config(projection: InputProjection, by_task: bool) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
        .with_population_size(16)
        .with_shaping(FitnessShaping::Raw)
        .with_input_projection(projection)
        .with_task_projection(by_task)
}

/// A score for every row, and part of it one of all rows.
fn by_row(model: &Net, population: &Population) -> Fitness {
    population.evaluate(|members| {
        let hidden = model.first.forward_shared(rows()).tanh(); // [members · ROWS, 6]
        let pooled = hidden.clone().reshape([members.count(), ROWS, 6]).mean_dim(1).reshape([members.count(), 6]);
        let all = model.pooled.forward(pooled).sum_dim(1); // [members, 1]
        hidden.square().sum_dim(1).reshape([members.count(), ROWS]) + all
    })
}

#[test]
fn layers_of_other_rows_are_estimated_from_the_mean() {
    let model = Net::new();
    let gradients = |by_task: bool| {
        let strategy = config(InputProjection::Unperturbed, by_task).init(&model);
        let population = strategy.ask();
        let fitness = by_row(&model, &population);
        assert_eq!(fitness.tasks(), ROWS);
        strategy.gradient(&model, &population, &fitness).expect("belongs together").expect("not equal")
    };
    let (mean, task) = (gradients(false), gradients(true));
    let of = |gradients: &burn::optim::GradientsParams, layer: &Linear| {
        gradients.get::<2>(layer.weight.id).expect("a gradient").into_data().try_to_vec::<f32>().expect("f32")
    };
    let largest = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let length = of(&mean, &model.pooled).iter().map(|g| g.abs()).fold(0.0, f32::max);
    assert!(largest(&of(&mean, &model.pooled), &of(&task, &model.pooled)) < 1e-5 * length);
    let length = of(&mean, &model.first).iter().map(|g| g.abs()).fold(0.0, f32::max);
    assert!(largest(&of(&mean, &model.first), &of(&task, &model.first)) > 0.01 * length, "canary");
}

/// Halves add up to the whole, task by task too.
#[test]
fn halves_add_up() {
    let model = Net::new();
    let strategy = config(InputProjection::Shared, true).init(&model);
    let population = strategy.ask();
    let fitness = by_row(&model, &population);
    let id = model.first.weight.id;
    let whole = strategy.gradient(&model, &population, &fitness).expect("belongs together").expect("not equal");
    let halves = strategy.gradient_halves(&model, &population, &fitness).expect("belongs together").expect("not equal");
    let sum = halves.iter().map(|half| half.get::<2>(id).expect("a gradient")).reduce(|a, b| a + b).expect("two");
    let whole = whole.get::<2>(id).expect("a gradient");
    let off: f32 = (whole.clone() - sum).abs().max().into_scalar();
    let largest: f32 = whole.abs().max().into_scalar();
    assert!(off < 1e-5 * largest, "{off} {largest}");
}

#[test]
fn refuses_what_it_cannot_project_by() {
    let model = Net::new();
    let error = config(InputProjection::Off, true).try_init(&model).err().expect("no rows").to_string();
    assert!(error.contains("set input_projection to shared or unperturbed"), "{error}");
    let mut strategy = config(InputProjection::Shared, true).init(&model);
    let population = strategy.ask();
    let fitness = by_row(&model, &population);
    let mean: Vec<f32> = (0..16).map(|member| fitness.score(member) as f32).collect();
    let before = model.clone();
    let mut model = model;
    let error = strategy.tell(&mut model, population, mean.into()).expect_err("one task").to_string();
    assert!(error.contains("scores of 1 tasks") && error.contains("layers have [3] rows"), "{error}");
    assert_eq!(before.first.weight.val().to_data(), model.first.weight.val().to_data());
}
