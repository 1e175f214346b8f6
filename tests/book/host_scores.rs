//! Scores that Rust code computes from the outputs of all members.

use eggroll::prelude::*;

fn population(model: &nn::Linear) -> Population {
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(8);
    config.init(model).ask()
}

// ANCHOR: simulator
/// How far a ball flies that is thrown at an angle, in radians: any Rust code, or a call of another program.
fn simulate(angle: f32) -> f32 {
    (2.0 * angle).sin()
}

fn fitness(population: &Population, model: &nn::Linear, x: &Tensor<2>) -> Fitness {
    population.evaluate(|members| {
        let angles = model.forward_shared(x.clone()); // [members · rows, 1]
        let angles: Vec<f32> = angles.into_data().try_to_vec().expect("f32");
        let rows = angles.len() / members.count();
        let score = |angles: &[f32]| angles.iter().map(|angle| simulate(*angle)).sum::<f32>() / rows as f32;
        angles.chunks_exact(rows).map(score).collect::<Vec<f32>>() // one score for each member
    })
}
// ANCHOR_END: simulator

#[test]
fn a_simulator_scores() {
    let device = Device::flex();
    let model = nn::LinearConfig::new(3, 1).init(&device);
    let x = Tensor::<2>::from_floats([[0.1, 0.2, 0.3], [0.5, -0.2, 0.4]], &device);
    let population = population(&model);
    let found = fitness(&population, &model, &x);
    let expected = population.evaluate(|members| members.mean((model.forward_shared(x.clone()) * 2.0).sin()));
    assert!(found.values().iter().zip(expected.values()).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?} {expected:?}");
}

#[test]
fn a_score_can_fail() {
    let model = nn::LinearConfig::new(3, 1).init(&Device::flex());
    let x = Tensor::<2>::ones([2, 3], &Device::flex());
    let population = population(&model);
    let call = |outputs: &[f32]| -> Result<f32, std::io::Error> {
        if outputs.len() == 2 { Ok(outputs[0]) } else { Err(std::io::Error::other("no answer")) }
    };
    let run = || -> Result<Fitness, std::io::Error> {
        let fitness = population.try_evaluate(|members| {
            let outputs: Vec<f32> = model.forward_shared(x.clone()).into_data().try_to_vec().expect("f32");
            let rows = outputs.len() / members.count();
            outputs.chunks_exact(rows).map(call).collect::<Result<Vec<f32>, _>>()
        })?;
        Ok(fitness)
    };
    assert_eq!(run().expect("answers").values().len(), 8);
    let failed = population.try_evaluate(|_| call(&[]).map(|score| vec![score]));
    assert_eq!(failed.expect_err("no answer").to_string(), "no answer");
}

#[test]
fn several_tasks_and_whole_members() {
    let model = nn::LinearConfig::new(3, 1).init(&Device::flex());
    let population = population(&model);
    let x = Tensor::<2>::ones([4, 3], &Device::flex());
    // ANCHOR: tasks
    let fitness = population.evaluate(|members| {
        let answers = model.forward_shared(x.clone()); // [members · tasks, 1]
        answers.reshape([members.count() as i32, -1]) // [members, tasks]
    });
    // ANCHOR_END: tasks
    assert_eq!(fitness.tasks(), 4);
    // ANCHOR: each
    let fitness = population.evaluate_each(&model, |member| {
        let answer: f32 = member.forward(x.clone()).mean().into_scalar(); // a plain model: any code
        simulate(answer)
    });
    let best = fitness.best().expect("a finite score");
    let best_member = population.member(&model, best);
    // ANCHOR_END: each
    let again: f32 = best_member.forward(x).mean().into_scalar();
    assert_eq!(simulate(again), fitness.values()[best]);
}
