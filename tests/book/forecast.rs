//! What an estimate is likely to be worth, next to what it is worth by automatic differentiation.

use burn::optim::GradientsParams;
use eggroll::core::ops::gated_recurrence;
use eggroll::core::scope::acts_later;
use eggroll::nn::conv::{Conv2d, Conv2dConfig};
use eggroll::prelude::*;
use eggroll::train::{ExpectedCosine, gradient_cosine};

const SEEDS: u64 = 6;
const MEMBERS: usize = 1024;

fn sines(count: usize, device: &Device) -> Tensor<1> {
    (Tensor::<1, Int>::arange(0..count as i64, device).float() * 7.31).sin() * 1.5
}

fn labels(count: usize, device: &Device) -> Tensor<1, Int> {
    Tensor::from_ints((0..count as i32).map(|i| i * 7 % 5).collect::<Vec<_>>().as_slice(), device)
}

/// A network, its rows, and logits of every part, `[parts, 5]`; of all members inside `evaluate`.
trait Scored: Module + Sync {
    const PARTS: usize;
    fn logits(&self, repeat: &dyn Fn(Tensor<3>) -> Tensor<3>, device: &Device) -> Tensor<2>;
    fn steps(&self) -> usize {
        1
    }
}

/// A row for each part.
#[derive(Module, Debug)]
struct Mlp {
    first: nn::Linear,
    second: nn::Linear,
}

impl Scored for Mlp {
    const PARTS: usize = 64;

    fn logits(&self, repeat: &dyn Fn(Tensor<3>) -> Tensor<3>, device: &Device) -> Tensor<2> {
        let x = repeat(sines(64 * 24, device).reshape([64, 1, 24]));
        self.second.forward(self.first.forward(x).tanh()).flatten(0, 1)
    }
}

/// Nine patches of 72 values for each part.
#[derive(Module, Debug)]
struct Cnn {
    conv: Conv2d,
    head: nn::Linear,
}

impl Scored for Cnn {
    const PARTS: usize = 48;

    fn logits(&self, repeat: &dyn Fn(Tensor<3>) -> Tensor<3>, device: &Device) -> Tensor<2> {
        let x = repeat(sines(48 * 8 * 25, device).reshape([48, 8, 25]));
        let images = x.reshape([-1, 8, 5, 5]);
        self.head.forward(self.conv.forward(images).tanh().flatten::<2>(1, 3))
    }
}

/// Two rows for each part, whose mean is scored: a prompt.
#[derive(Module, Debug)]
struct Prompts {
    first: nn::Linear,
    second: nn::Linear,
}

impl Scored for Prompts {
    const PARTS: usize = 40;

    fn logits(&self, repeat: &dyn Fn(Tensor<3>) -> Tensor<3>, device: &Device) -> Tensor<2> {
        let x = repeat(sines(40 * 2 * 24, device).reshape([40, 2, 24]));
        self.second.forward(self.first.forward(x).tanh().mean_dim(1)).flatten(0, 1)
    }
}

/// Steps of sequences, of which the first act on the last.
#[derive(Module, Debug)]
struct Recurrent {
    forget: nn::Linear,
    candidate: nn::Linear,
    head: nn::Linear,
}

impl Scored for Recurrent {
    const PARTS: usize = 96;

    fn logits(&self, repeat: &dyn Fn(Tensor<3>) -> Tensor<3>, device: &Device) -> Tensor<2> {
        let x = repeat(sines(96 * 24, device).reshape([12, 8, 24]));
        let [forget, candidate] = [&self.forget, &self.candidate].map(|layer| acts_later(|| layer.forward(x.clone())));
        let [sequences, steps, width] = forget.dims();
        let device = &x.device();
        let (kept, state) = (Tensor::ones([sequences, steps], device), Tensor::zeros([sequences, width], device));
        self.head.forward(gated_recurrence(forget, candidate, kept, state)).flatten(0, 1)
    }

    fn steps(&self) -> usize {
        8
    }
}

/// The cosines of an estimate with the gradient: foretold and found, by what each layer learns from and by mean.
fn cosines<M: Scored>(model: &M) -> [ExpectedCosine; 2] {
    let device = Device::flex();
    let train = model.clone().train();
    let logits = train.logits(&|x| Tensor::from_inner(x), &device);
    let loss = cross_entropy(logits, Tensor::from_inner(labels(M::PARTS, &device))).mean();
    let truth = GradientsParams::from_grads(loss.backward(), &train);
    let mut sums = [ExpectedCosine::default(); 2];
    for seed in 0..SEEDS {
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
        let strategy = config.with_population_size(MEMBERS).with_sigma(0.01).with_seed(seed).init(model);
        let population = strategy.ask();
        let fitness = population.evaluate(|members| {
            let logits = model.logits(&|x| members.repeat(x), &device);
            let losses = members.row_cross_entropy(logits, labels(M::PARTS, &device));
            -losses.reshape([members.count(), M::PARTS / model.steps(), model.steps()])
        });
        let found = |fitness: &Fitness| {
            let estimate = strategy.gradient(model, &population, fitness).expect("belongs together");
            gradient_cosine(model, &estimate.expect("members differ"), &truth).expect("gradients")
        };
        let forecast = strategy.forecast(model, &population, &fitness).expect("belongs together").expect("differ");
        let means = Fitness::from(fitness.values().chunks(MEMBERS).fold(vec![0.0; MEMBERS], |mut sum, part| {
            sum.iter_mut().zip(part).for_each(|(sum, score)| *sum += score);
            sum
        }));
        let by = [forecast.all, ExpectedCosine { cosine: found(&fitness), by_mean: found(&means) }];
        for (sum, by) in sums.iter_mut().zip(by) {
            sum.cosine += by.cosine / SEEDS as f64;
            sum.by_mean += by.by_mean / SEEDS as f64;
        }
    }
    sums
}

/// Within a fifth, and mean scores within `by_mean`, as the documentation says.
fn foretells<M: Scored>(name: &str, model: &M, by_mean: f64) {
    let [foretold, found] = cosines(model);
    println!("{name}: foretold {foretold:?}, found {found:?}");
    let near = |foretold: f64, found: f64, bound: f64| (foretold / found - 1.0).abs() < bound;
    assert!(near(foretold.cosine, found.cosine, 0.2), "{name}: {foretold:?} {found:?}");
    assert!(near(foretold.by_mean, found.by_mean, by_mean), "{name}: {foretold:?} {found:?}");
    assert!(!near(found.by_mean, found.cosine, 0.2), "canary: {name}");
}

fn linear(d_input: usize, d_output: usize) -> nn::Linear {
    nn::LinearConfig::new(d_input, d_output).with_bias(false).init(&Device::flex())
}

#[test]
fn a_row_for_each_part() {
    Device::flex().seed(1);
    foretells("MLP", &Mlp { first: linear(24, 32), second: linear(32, 5) }, 0.2);
}

#[test]
fn patches() {
    Device::flex().seed(2);
    let conv = Conv2dConfig::new([8, 12], [3, 3]).with_bias(false).init(&Device::flex());
    foretells("CNN", &Cnn { conv, head: linear(12 * 9, 5) }, 0.2);
}

#[test]
fn rows_of_prompts() {
    Device::flex().seed(4);
    foretells("prompts", &Prompts { first: linear(24, 32), second: linear(32, 5) }, 0.2);
}

/// What is told of mean scores is relative to the discounted estimate, which is longer than the gradient.
#[test]
fn steps_that_act_later() {
    Device::flex().seed(3);
    let [forget, candidate] = [linear(24, 24), linear(24, 24)];
    foretells("recurrent", &Recurrent { forget, candidate, head: linear(24, 5) }, 0.5);
}

#[test]
fn before_training() -> Result<(), eggroll::Error> {
    let device = Device::flex();
    let model = linear(24, 5);
    let images = sines(64 * 24, &device).reshape([64, 24]);
    let targets = labels(64, &device);
    let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).try_init(&model)?;
    let population = strategy.ask();
    let fitness = population.evaluate(|members| {
        -members.row_cross_entropy(model.forward_shared(images.clone()), targets.clone()) // [members, images]
    });
    if let Some(forecast) = strategy.forecast(&model, &population, &fitness)? {
        println!("{forecast}");
    }
    let forecast = strategy.forecast(&model, &population, &fitness)?.expect("members differ");
    let text = forecast.to_string();
    assert!(text.lines().count() == 3 && text.contains("weight") && text.contains("by part"), "{text}");
    assert!(forecast.all.cosine > forecast.all.by_mean + 0.1, "{text}");
    // Four times the members: about twice a small cosine.
    let small = ExpectedCosine { cosine: 0.1, by_mean: 0.0 };
    assert_eq!(small.members_to_double(64), Some(264));
    assert_eq!(ExpectedCosine { cosine: 0.6, by_mean: 0.0 }.members_to_double(64), None);
    Ok(())
}
