//! A policy learns to balance a pole: `cargo run --release --features rl --example cartpole_minimal` takes about a second.

use eggroll::prelude::*;
use eggroll::rl::CartPole;

fn main() -> Result<(), eggroll::Error> {
    let device = Device::flex();
    let mut policy = nn::MlpConfig::new(vec![4, 32, 32, 2]).init(&device);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let mut strategy = config.with_population_size(128).with_sigma(0.3).with_learning_rate(0.1).try_init(&policy)?;

    let rollouts = RolloutConfig::new().init(CartPole::new())?;
    for generation in 1..=50 {
        let population = strategy.ask();
        let outcome = rollouts.evaluate(&population, &policy); // one episode of every member
        let report = strategy.tell(&mut policy, population, outcome.fitness)?; // fitness is the return
        if generation % 10 == 0 {
            println!("{report}");
        }
    }
    let episodes = rollouts.evaluate_model(&policy, &EvaluationConfig::new(100), &device); // the policy without noise
    println!("mean return of 100 episodes: {:.1} (500 is the maximum)", episodes.mean_return());
    Ok(())
}
