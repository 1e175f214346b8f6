//! Clones of a model, which keep its identifiers, next to it and in its place.

use crate::support::{bytes, layer, message, sines};
use burn::module::Module;
use burn::nn;
use burn::optim::SgdConfig;
use burn::tensor::activation::tanh;
use burn::tensor::{DType, Tensor};
use eggroll_core::{EggrollConfig, Role};
use eggroll_nn::Linear;
use eggroll_nn::graph::PopulationGraph;
use eggroll_train::{Error, EvolutionStrategy, EvolutionStrategyConfig, Fitness, MemberChunk, Population, TellError};

fn config() -> EvolutionStrategyConfig {
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_learning_rate(1.0);
    config.with_population_size(8).with_sigma(0.1)
}

fn input() -> Tensor<2> {
    sines(20).reshape([5, 4])
}

fn score(members: &MemberChunk, y: Tensor<2>) -> Tensor<1> {
    -members.mean((y - 0.3).square())
}

#[derive(Module, Debug)]
struct ClonedMlp {
    layers: Vec<Linear>,
}

impl ClonedMlp {
    fn new() -> Self {
        Self { layers: vec![layer(4, 5), layer(5, 2)] }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.layers[1].forward(tanh(self.layers[0].forward(x)))
    }
}

/// How far a student is from its teacher, whichever is computed first.
fn distances(population: &Population, student: &ClonedMlp, teacher: &ClonedMlp, teacher_first: bool) -> Fitness {
    population.evaluate(|members| {
        let x = members.repeat(input());
        let taught = teacher_first.then(|| teacher.forward(x.clone()));
        let y = student.forward(x.clone());
        members.mean((y - taught.unwrap_or_else(|| teacher.forward(x))).square())
    })
}

/// After some generations; the teacher is a clone from before them.
fn trained(generations: usize) -> (EvolutionStrategy, ClonedMlp, ClonedMlp) {
    let mut model = ClonedMlp::new();
    let teacher = model.clone();
    let mut strategy = config().init(&model);
    for _ in 0..generations {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| score(members, model.forward(members.repeat(input()))));
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    (strategy, model, teacher)
}

#[test]
fn a_teacher_without_gradient_is_never_perturbed() {
    for generations in [0, 3] {
        let (mut strategy, mut model, teacher) = trained(generations);
        let population = strategy.ask();
        let target = teacher.forward(input());
        let expected = population.evaluate(|members| {
            members.mean((model.forward(members.repeat(input())) - members.repeat(target.clone())).square())
        });
        assert!(expected.values().iter().all(|distance| *distance > 1e-4), "{expected:?}");
        let teacher = teacher.no_grad();
        for teacher_first in [false, true] {
            assert_eq!(
                distances(&population, &model, &teacher, teacher_first),
                expected,
                "{generations} {teacher_first}"
            );
        }
        let inside = population.evaluate(|members| {
            let (x, teacher) = (members.repeat(input()), teacher.clone());
            members.mean((model.forward(x.clone()) - teacher.forward(x)).square())
        });
        assert_eq!(inside, expected);
        strategy.tell(&mut model, population, expected).expect("a generation");
        // Alone: nothing is perturbed.
        let population = strategy.ask();
        let alone = population.evaluate(|members| members.mean(teacher.forward(members.repeat(input()))));
        assert!(alone.values().iter().all(|value| *value == alone.values()[0]));
        let told = strategy.tell(&mut model, population, Fitness::from(vec![1.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]));
        assert!(matches!(told, Err(Error::Tell(TellError::NeverPerturbed(_)))), "{told:?}");
    }
}

#[test]
fn a_clone_next_to_the_model_is_refused() {
    for generations in [0, 3] {
        let (strategy, model, teacher) = trained(generations);
        let population = strategy.ask();
        for teacher_first in [false, true] {
            let panic = message(|| drop(distances(&population, &model, &teacher, teacher_first)));
            assert!(panic.contains("layers.0.weight") && panic.contains("no_grad()"), "{panic}");
        }
        let panic = message(|| {
            population.evaluate(|members| {
                let (x, teacher) = (members.repeat(input()), teacher.clone());
                members.mean((model.forward(x.clone()) - teacher.forward(x)).square())
            });
        });
        assert!(panic.contains("clone"), "{panic}");
        // The panic breaks nothing.
        population.evaluate(|members| score(members, model.forward(members.repeat(input()))));
    }
}

/// A clone that shares all values is the model; one of an earlier generation is not what `tell` moves.
#[test]
fn a_clone_alone_stands_for_the_model_of_its_values() {
    for (generations, is_model) in [(0, true), (3, false)] {
        let (mut strategy, mut model, clone) = trained(generations);
        let population = strategy.ask();
        let of =
            |model: &ClonedMlp| population.evaluate(|members| score(members, model.forward(members.repeat(input()))));
        assert_eq!(of(&clone) == of(&model), is_model);
        let population = strategy.ask();
        let fitness = population.evaluate(|members| score(members, clone.forward(members.repeat(input()))));
        let told = strategy.tell(&mut model, population, fitness);
        match told {
            Ok(_) => assert!(is_model),
            Err(Error::Tell(TellError::OtherValues(path))) => assert!(!is_model && path == "layers.0.weight"),
            Err(error) => panic!("{error}"),
        }
        let population = strategy.ask();
        let fitness = population.evaluate_each(&clone, |member: ClonedMlp| member.forward(input()).mean());
        let told = strategy.tell(&mut model, population, fitness);
        assert!(matches!(told, Err(Error::Tell(TellError::OtherValues(_)))), "the clone is behind by now: {told:?}");
    }
}

/// A model of the same values in other tensors, or in another type, is the model.
#[test]
fn a_copy_of_the_same_values_is_the_model() {
    let mut model = layer(4, 2);
    let mut strategy = config().init(&model);
    let cast = |layer: Linear, dtype: DType| Linear {
        weight: layer.weight.map(|weight| weight.cast(dtype)),
        bias: layer.bias.map(|bias| bias.map(|bias| bias.cast(dtype))),
    };
    for dtype in [DType::F32, DType::F64] {
        let copy = cast(cast(model.clone(), DType::F64), dtype);
        let population = strategy.ask();
        let fitness = population.evaluate(|members| {
            let y = copy.forward(members.repeat(input()).cast(dtype));
            score(members, y.cast(DType::F32))
        });
        let before = bytes(&model);
        strategy.tell(&mut model, population, fitness).expect("the same values");
        assert_ne!(bytes(&model), before);
    }
}

#[test]
fn clones_in_graphs() {
    let stock = || nn::Linear::from(layer(4, 2));
    let model = stock();
    let graph = PopulationGraph::trace(&model, input(), |model: &nn::Linear, x| model.forward(x)).expect("a graph");
    let population = config().init(&model).ask();
    let target = model.forward(input());
    let expected = population.evaluate(|members| {
        members.mean((graph.forward(&model, members.repeat(input())) - members.repeat(target.clone())).square())
    });
    assert!(expected.values().iter().all(|distance| *distance > 1e-4), "{expected:?}");
    let distances = |teacher: &nn::Linear| {
        population.evaluate(|members| {
            let x = members.repeat(input());
            members.mean((graph.forward(&model, x.clone()) - graph.forward(teacher, x)).square())
        })
    };
    assert_eq!(distances(&model.clone().no_grad()), expected);
    let panic = message(|| drop(distances(&model.clone())));
    assert!(panic.contains("\"weight\"") && panic.contains("no_grad()"), "{panic}");
}

#[derive(Module, Debug)]
struct Distilled {
    student: nn::Linear,
    teacher: nn::Linear,
}

#[test]
fn clones_among_members() {
    let student = nn::Linear::from(layer(4, 2));
    let population = config().init(&student).ask();
    let target = student.forward(input());
    let distance = |y: Tensor<2>, target: Tensor<2>| (y - target).square().mean();
    let expected = population.evaluate_each(&student, |member| distance(member.forward(input()), target.clone()));
    let found = |teacher: nn::Linear| {
        let both = Distilled { student: student.clone(), teacher };
        population
            .evaluate_each(&both, |member| distance(member.student.forward(input()), member.teacher.forward(input())))
    };
    assert_eq!(found(student.clone().no_grad()), expected);
    let panic = message(|| drop(found(student.clone())));
    assert!(panic.contains("\"weight\"") && panic.contains("no_grad()"), "{panic}");
}

#[test]
fn no_grad_freezes() {
    let mut model = ClonedMlp { layers: vec![layer(4, 5).no_grad(), layer(5, 2)] };
    let mut strategy = config().init(&model);
    let roles: Vec<bool> = strategy.parameters().entries().iter().map(|entry| entry.role == Role::Frozen).collect();
    assert_eq!(roles, [true, true, false, false]);
    let before = model.clone();
    let population = strategy.ask();
    let y = tanh(model.layers[0].forward(input()));
    let expected = population.evaluate(|members| score(members, model.layers[1].forward(members.repeat(y.clone()))));
    let fitness = population.evaluate(|members| score(members, model.forward(members.repeat(input()))));
    assert_eq!(fitness, expected, "the first layer has no noise");
    strategy.tell(&mut model, population, fitness).expect("a generation");
    assert_eq!(bytes(&model.layers[0]), bytes(&before.layers[0]));
    assert_ne!(bytes(&model.layers[1]), bytes(&before.layers[1]));

    let all = config().try_init(&ClonedMlp::new().no_grad()).err().expect("refused");
    assert!(all.to_string().contains("4 have no_grad()"), "{all}");
    // A strategy of before does not move it either.
    let mut model = ClonedMlp::new();
    let mut strategy = config().init(&model);
    let population = strategy.ask();
    let fitness = population.evaluate(|members| score(members, model.forward(members.repeat(input()))));
    model = model.no_grad();
    let told = strategy.tell(&mut model, population, fitness);
    assert!(matches!(&told, Err(error) if error.to_string().contains("no_grad()")), "{told:?}");
}
