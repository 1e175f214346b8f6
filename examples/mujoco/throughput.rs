//! Steps of the environment per second: of a population's episodes, and of the same number of environments without a
//! policy.

use crate::args::MujocoSettings;
use crate::task::{Body, Running};
use burn::tensor::Device;
use eggroll::rl::{EpisodeKey, HostRolloutConfig};

use eggroll_examples::{Failure, median};
use serde_json::{Value, json};
use std::num::NonZero;
use std::thread::{available_parallelism, scope};
use std::time::Instant;

/// Rounds, each of one measurement of both.
const ROUNDS: u64 = 5;

/// Both in turn, and their ratio.
pub fn measure<B: Body>(settings: &MujocoSettings, body: &B, device: &Device) -> Result<Value, Failure> {
    device.seed(settings.seed);
    let policy = settings.policy(B::SIZES.0, B::SIZES.1).init(device);
    let mut strategy = settings.strategy().try_init(&policy)?;
    let config = HostRolloutConfig::new().with_normalize_observations(true).with_max_steps(Some(settings.steps));
    let mut rollouts = config.init(Running { body: body.clone(), survival: settings.survival })?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    println!("round   with a policy   without   steps per second");
    for round in 0..ROUNDS {
        let (population, mut model) = (strategy.ask(), policy.clone());
        let start = Instant::now();
        let outcome = rollouts.evaluate(&population, &policy);
        rollouts.update_normalizer(&outcome.episodes);
        let steps = outcome.episodes.env_steps();
        strategy.tell(&mut model, population, outcome.fitness)?;
        with.push(steps as f64 / start.elapsed().as_secs_f64());
        let start = Instant::now();
        // As many steps, by environments that go on when they fall.
        let each = steps / settings.population as u64;
        step_all(body, settings.population, each, round);
        without.push((each * settings.population as u64) as f64 / start.elapsed().as_secs_f64());
        println!("{round:>5} {:>15.0} {:>9.0}", with[round as usize], without[round as usize]);
    }
    let [with, without] = [median(&with), median(&without)];
    println!("median {with:>14.0} {without:>9.0}, ratio {:.2}", with / without);
    Ok(json!({ "env_steps_per_second": with, "without_policy": without, "ratio": with / without }))
}

/// Steps `count` environments, shared out to all cores, under actions that swing.
fn step_all<B: Body>(body: &B, count: usize, steps: u64, round: u64) {
    let threads = available_parallelism().map_or(1, NonZero::get);
    scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for at in (thread..count).step_by(threads) {
                    let mut environment = body.begin(EpisodeKey::new(round, 0, at as u32));
                    for step in 0..steps {
                        let result = environment.step(B::torques(|i| ((step as f64) * 0.3 + i as f64).sin()));
                        if result.done || result.truncated {
                            environment.reset();
                        }
                    }
                }
            });
        }
    });
}
