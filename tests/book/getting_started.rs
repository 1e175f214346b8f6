//! A first model: exclusive or, by fitness alone.

use eggroll::prelude::*;

#[derive(Module, Debug)]
struct Mlp {
    first: nn::Linear,
    second: nn::Linear,
}

impl Mlp {
    fn new(device: &Device) -> Self {
        Self { first: nn::LinearConfig::new(2, 16).init(device), second: nn::LinearConfig::new(16, 2).init(device) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::tanh(self.first.forward_shared(x)))
    }
}

fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
        .with_population_size(256)
        .with_sigma(0.05)
        .with_learning_rate(0.05)
}

fn train(mut model: Mlp, x: Tensor<2>, labels: Tensor<1, Int>) -> Result<Mlp, eggroll::Error> {
    // ANCHOR: loop
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let mut strategy = config.with_population_size(256).with_sigma(0.05).with_learning_rate(0.05).try_init(&model)?;
    for _ in 0..150 {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| {
            let logits = model.forward(x.clone()); // [members · rows, 2]
            -members.cross_entropy(logits, labels.clone()) // [members]
        });
        strategy.tell(&mut model, population, fitness)?;
    }
    // ANCHOR_END: loop
    Ok(model)
}

// ANCHOR: accuracy
/// The share of rows that each member gets right: no gradient anywhere.
fn accuracy(model: &Mlp, members: &MemberChunk, x: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    members.accuracy(model.forward(x), labels)
}
// ANCHOR_END: accuracy

// ANCHOR: resume
fn run(folder: &std::path::Path, generations: u64) -> Result<Mlp, eggroll::Error> {
    let (x, labels) = data();
    let checkpoints = Checkpoints::new(folder);
    let model = Mlp::new(&Device::flex());
    let (mut strategy, model) = match checkpoints.load_latest(model.clone())? {
        Some(saved) => saved,
        None => (config().try_init(&model)?, model),
    };
    let model = TrainingLoop::new(generations).with_checkpoints(checkpoints, 10).run(
        &mut strategy,
        model,
        |model, population| {
            let score = |members: &MemberChunk| -members.cross_entropy(model.forward(x.clone()), labels.clone());
            Ok(population.evaluate(score))
        },
        |_model, _report| Ok(std::ops::ControlFlow::Continue(())),
    )?;
    Ok(model)
}
// ANCHOR_END: resume

fn data() -> (Tensor<2>, Tensor<1, Int>) {
    let device = Device::flex();
    let x = Tensor::from_floats([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], &device);
    (x, Tensor::from_ints([0, 1, 1, 0], &device))
}

#[test]
fn learns_exclusive_or() {
    let (x, labels) = data();
    let loss = |model: &Mlp| -> f32 { cross_entropy(model.forward(x.clone()), labels.clone()).mean().into_scalar() };
    let model = Mlp::new(&Device::flex());
    let before = loss(&model);
    let model = train(model, x.clone(), labels.clone()).expect("trains");
    assert!(loss(&model) < 0.5 * before, "{before} {}", loss(&model));
}

#[test]
fn accuracy_is_a_fitness() {
    let (x, labels) = data();
    let model = Mlp::new(&Device::flex());
    let mut strategy = config().try_init(&model).expect("a strategy");
    let population = strategy.ask();
    let fitness = population.evaluate(|members| accuracy(&model, members, x.clone(), labels.clone()));
    assert!(fitness.values().iter().all(|share| (share * 4.0).fract() == 0.0 && (0.0..=1.0).contains(share)));
    strategy.tell(&mut model.clone(), population, fitness).expect("a generation");
}

#[test]
fn a_run_goes_on_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let [there, stopped] = ["whole", "stopped"].map(|name| folder.path().join(name));
    run(&stopped, 3).expect("runs");
    // The other run begins with the same model: a checkpoint of it.
    let name = "generation-000000000003";
    std::fs::create_dir_all(there.join(name)).expect("a folder");
    for file in std::fs::read_dir(stopped.join(name)).expect("a checkpoint") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), there.join(name).join(file.file_name())).expect("copies");
    }
    let whole = run(&there, 9).expect("runs");
    run(&stopped, 6).expect("runs");
    let resumed = run(&stopped, 9).expect("runs");
    assert_eq!(parameter_digest(&whole), parameter_digest(&resumed));
}
