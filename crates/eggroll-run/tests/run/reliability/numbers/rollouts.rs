//! Settings of rollouts, a generation of each, and of decisions.

use super::walk::{Outcome, walk};
use burn::optim::SgdConfig;
use burn::tensor::{Bool, Device, Int, Tensor};
use burn_rl::{Environment, StepResult};
use eggroll_core::{EggrollConfig, check_finite};
use eggroll_nn::{Mlp, MlpConfig};
use eggroll_rl::*;
use eggroll_train::EvolutionStrategyConfig;
use std::convert::Infallible;

/// Stays where it is told to be.
struct Place(f64);

impl Environment for Place {
    type State = f64;
    type Action = f64;

    const MAX_STEPS: usize = 5;

    fn state(&self) -> f64 {
        self.0
    }

    fn step(&mut self, action: f64) -> StepResult<f64> {
        self.0 += action;
        StepResult { next_state: self.0, reward: -self.0.abs(), done: false, truncated: false }
    }

    fn reset(&mut self) {}
}

struct Middle;

impl HostTask for Middle {
    type Environment = Place;

    fn observation_size(&self) -> usize {
        1
    }

    fn begin(&self, key: EpisodeKey) -> Place {
        Place(key.uniform_in(-1.0, 1.0, 0, 0).into())
    }

    fn observe(&self, state: &f64, observation: &mut [f32]) {
        observation[0] = *state as f32;
    }

    fn act(&self, outputs: &[f32]) -> f64 {
        outputs[0].into()
    }
}

fn generation<E, C: Runner<E>>(rollouts: Result<Rollouts<E, C>, RolloutError>, sizes: [usize; 2]) -> Outcome {
    let mut rollouts = match rollouts {
        Ok(rollouts) => rollouts,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let mut policy: Mlp = MlpConfig::new(sizes.to_vec()).init(&Device::flex());
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(4);
    let mut strategy = config.init(&policy);
    let population = strategy.ask();
    let outcome = rollouts.evaluate(&population, &policy);
    rollouts.update_normalizer(&outcome.episodes);
    match strategy.tell(&mut policy, population, outcome.fitness) {
        Ok(_) => Outcome::Used(check_finite(&policy).err().map(|error| error.to_string())),
        Err(error) => Outcome::Refused(error.to_string()),
    }
}

#[test]
fn rollouts() {
    for fused in [true, false] {
        let config = RolloutConfig::new().with_normalize_observations(true).with_fused(fused);
        walk("RolloutConfig", &config, |config: RolloutConfig| generation(config.init(CartPole::new()), [4, 2]));
    }
    let config = HostRolloutConfig::new().with_max_steps(Some(3)).with_normalize_observations(true);
    walk("HostRolloutConfig", &config, |config: HostRolloutConfig| generation(config.init(Middle), [1, 1]));
}

/// The other player holds 0 or 1 and has chosen the first of two actions.
struct Card;

impl WorldSampler for Card {
    type Observation = ();
    type Error = Infallible;

    fn actions(&self) -> usize {
        2
    }

    fn position_size(&self) -> usize {
        2
    }

    fn sample(&self, _: &(), key: WorldKey, worlds: &mut SampledWorlds) -> Result<(), Infallible> {
        for world in 0..worlds.count() {
            let position = [(key.words(world).next_word() % 2) as i32, 1];
            worlds.push(&position);
            if worlds.weighs_moves() {
                worlds.push_move(&position, 0);
            }
        }
        Ok(())
    }

    fn legal(&self, positions: &Tensor<2, Int>) -> Tensor<2, Bool> {
        positions.clone().lower_elem(2)
    }
}

#[test]
fn decisions() {
    let config = ExpectedValuesConfig::new(2).with_temperature(Some(0.5));
    walk("ExpectedValuesConfig", &config, |config: ExpectedValuesConfig| {
        let oracle = |positions: Tensor<2, Int>| positions.float();
        let engine = match config.init(&Device::flex()) {
            Ok(engine) => engine,
            Err(error) => return Outcome::Refused(error.to_string()),
        };
        match engine.decide(&Card, &[(WorldKey::new(0, 0, 0), ())], oracle) {
            Ok(decisions) => Outcome::Used(decisions[0].best().is_none().then(|| "no decision".to_owned())),
            Err(error) => Outcome::Refused(error.to_string()),
        }
    });
}
