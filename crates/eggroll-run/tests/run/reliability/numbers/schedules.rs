//! Burn's learning-rate schedules.

use super::strategies::generation_of;
use super::walk::walk;
use crate::reliability::support::*;
use burn::lr_scheduler::LrSchedulerConfig;
use burn::lr_scheduler::composed::ComposedLrSchedulerConfig;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use burn::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::lr_scheduler::noam::NoamLrSchedulerConfig;
use burn::lr_scheduler::sequential::SequentialLrSchedulerConfig;
use burn::lr_scheduler::step::StepLrSchedulerConfig;
use burn::optim::SgdConfig;
use eggroll_core::EggrollConfig;
use eggroll_train::*;

fn all() -> Vec<LrSchedulerConfig> {
    let linear = || LinearLrSchedulerConfig::new(0.1, 0.01, 10);
    let schedules: Vec<LrSchedulerConfig> = vec![
        LrSchedulerConfig::Constant(0.1),
        linear().into(),
        CosineAnnealingLrSchedulerConfig::new(0.1, 10).with_min_lr(0.01).into(),
        ExponentialLrSchedulerConfig::new(0.1, 0.9).into(),
        NoamLrSchedulerConfig::new(1.0).into(),
        StepLrSchedulerConfig::new(0.1, 10).into(),
        ComposedLrSchedulerConfig::new()
            .linear(linear())
            .exponential(ExponentialLrSchedulerConfig::new(0.9, 0.5))
            .into(),
        SequentialLrSchedulerConfig::new(vec![linear().into(), StepLrSchedulerConfig::new(0.1, 10).into()], vec![5])
            .into(),
    ];
    for schedule in &schedules {
        // A schedule that is new does not compile here: let it be walked.
        match schedule {
            LrSchedulerConfig::Constant(_)
            | LrSchedulerConfig::Linear(_)
            | LrSchedulerConfig::Cosine(_)
            | LrSchedulerConfig::Exponential(_)
            | LrSchedulerConfig::Noam(_)
            | LrSchedulerConfig::Step(_)
            | LrSchedulerConfig::Composed(_)
            | LrSchedulerConfig::Sequential(_) => {}
        }
    }
    schedules
}

fn with(schedule: LrSchedulerConfig) -> EvolutionStrategyConfig {
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
    config.with_population_size(POPULATION).with_learning_rate(schedule)
}

#[test]
fn learning_rates() {
    for schedule in all() {
        walk(&schedule.to_string(), &schedule, |schedule: LrSchedulerConfig| generation_of::<Net>(with(schedule)));
    }
}

/// Each number fits, and what the schedule makes of them does not: nothing is updated by it.
#[test]
fn a_schedule_that_leaves_f32_is_an_error() {
    let schedule = StepLrSchedulerConfig::new(1.0, 1).with_gamma(1e30).into();
    let mut model = Net::start();
    let mut strategy = with(schedule).init(&model);
    for generation in 0..3 {
        let population = strategy.ask();
        let scores: Vec<f32> = (0..POPULATION).map(|member| member as f32).collect();
        let told = strategy.tell(&mut model, population, scores.into());
        if generation < 2 {
            told.expect("a generation");
        } else {
            let error = told.map(drop).expect_err("refused").to_string();
            assert!(error.starts_with("the learning rate of generation 2 is 1"), "{error}");
        }
    }
    assert_eq!(strategy.generation(), 2);
}
