//! The smallest program: a network learns exclusive or from a score, without a gradient.
//! `cargo run --release -p eggroll --example minimal` runs in less than a second.

use eggroll::prelude::*;

#[derive(Module, Debug)]
struct Mlp {
    first: nn::Linear, // eggroll's layer, in place of burn::nn::Linear
    second: nn::Linear,
}

impl Mlp {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::tanh(self.first.forward_shared(x)))
    }
}

fn main() -> Result<(), eggroll::Error> {
    let device = Device::flex();
    let x = Tensor::<2>::from_floats([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], &device);
    let labels = Tensor::<1, Int>::from_ints([0, 1, 1, 0], &device);

    let first = nn::LinearConfig::new(2, 16).init(&device);
    let mut model = Mlp { first, second: nn::LinearConfig::new(16, 2).init(&device) };
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let mut strategy = config.with_population_size(256).with_sigma(0.05).with_learning_rate(0.02).try_init(&model)?;
    for generation in 1..=100 {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| {
            let logits = model.forward(x.clone()); // [members · 4, 2]: every member's answers
            -members.cross_entropy(logits, labels.clone()) // [members]: one score each, higher is better
        });
        let report = strategy.tell(&mut model, population, fitness)?;
        if generation % 20 == 0 {
            println!("{report}");
        }
    }
    println!("answers {}, expected {}", model.forward(x).argmax(1).reshape([4]).into_data(), labels.into_data());
    Ok(())
}
