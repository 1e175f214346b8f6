//! Positions of many lengths in a batch, against one world at a time in f64: what pads, sorts and cuts the batch must
//! not show.

use burn::tensor::{Bool, Device, Int, Tensor};
use eggroll_rl::{ExpectedValuesConfig, SampledWorlds, WorldKey, WorldSampler};
use rand::Rng;
use std::convert::Infallible;

const ACTIONS: usize = 3;
const LONGEST: usize = 12;
const WORLDS: usize = 50;
const TEMPERATURE: f64 = 1.5;

/// The other player has made moves, with a hidden hand of one to six numbers. A position is the number of moves so far
/// and one, the hand, and a number for each move that was still to come. The last action is legal after an even number
/// of moves.
struct Hidden;

impl Hidden {
    /// The positions of a world: before each move, and now.
    fn positions(moves: &[usize], key: WorldKey, world: u32) -> Vec<Vec<i32>> {
        let mut rng = key.rng(world);
        let mut number = |bound: u32| (rng.next_u32() % bound) as i32;
        let hand: Vec<i32> = (0..=number(6)).map(|_| 1 + number(100)).collect();
        let all: Vec<i32> = hand.into_iter().chain(moves.iter().map(|_| 1 + number(100))).collect();
        (0..=moves.len()).map(|made| [&[1 + made as i32], &all[..all.len() - made]].concat()).collect()
    }
}

impl WorldSampler for Hidden {
    type Observation = Vec<usize>;
    type Error = Infallible;

    fn actions(&self) -> usize {
        ACTIONS
    }

    fn position_size(&self) -> usize {
        LONGEST
    }

    fn sample(&self, moves: &Vec<usize>, key: WorldKey, worlds: &mut SampledWorlds) -> Result<(), Infallible> {
        for world in 0..worlds.count() {
            let positions = Self::positions(moves, key, world);
            worlds.push(&positions[moves.len()]);
            if worlds.weighs_moves() {
                moves.iter().zip(&positions).for_each(|(action, position)| worlds.push_move(position, *action));
            }
        }
        Ok(())
    }

    fn legal(&self, positions: &Tensor<2, Int>) -> Tensor<2, Bool> {
        let is_odd = positions.clone().narrow(1, 0, 1).remainder_scalar(2); // [rows, 1]
        let always = is_odd.ones_like();
        Tensor::cat(vec![always.clone(), always, is_odd], 1).equal_elem(1)
    }
}

/// A value by all that is in the position, and by nothing that follows it: a multiple of a quarter, which f32 holds.
fn value(position: &[i32], action: usize) -> f64 {
    let sum: i32 = position.iter().zip(1..).map(|(integer, weight)| integer * (weight % 7)).sum();
    f64::from((sum + 5 * action as i32) % 23) / 4.0
}

fn oracle(positions: Tensor<2, Int>) -> Tensor<2> {
    let device = positions.device();
    let weights: Vec<i32> = (1..=positions.dims()[1] as i32).map(|weight| weight % 7).collect();
    let weights = Tensor::<1, Int>::from_ints(weights.as_slice(), &device).unsqueeze();
    let actions = Tensor::<1, Int>::arange(0..ACTIONS as i64, &device).unsqueeze::<2>() * 5;
    ((positions * weights).sum_dim(1) + actions).remainder_scalar(23).float() / 4.0 // [rows, 3]
}

/// Legal actions with their expected values, world by world.
fn reference(key: WorldKey, moves: &[usize], temperature: Option<f64>) -> Vec<(usize, f64)> {
    let legal = |made: usize| (0..ACTIONS).filter(move |action| *action < 2 || made.is_multiple_of(2));
    let (mut total, mut sums) = (0.0, [0.0; ACTIONS]);
    for world in 0..WORLDS as u32 {
        let positions = Hidden::positions(moves, key, world);
        let mut likelihood = 1.0;
        for ((made, action), temperature) in moves.iter().enumerate().zip(temperature.into_iter().cycle()) {
            let part = |action: usize| (value(&positions[made], action) / temperature).exp();
            likelihood *= part(*action) / legal(made).map(part).sum::<f64>();
        }
        total += likelihood;
        legal(moves.len()).for_each(|action| sums[action] += likelihood * value(&positions[moves.len()], action));
    }
    legal(moves.len()).map(|action| (action, sums[action] / total)).collect()
}

#[test]
fn a_batch_has_the_values_of_one_world_at_a_time() {
    let games: Vec<(WorldKey, Vec<usize>)> =
        (0..6).map(|game| (WorldKey::new(9, game, 2), (0..game as usize).map(|made| made % 2).collect())).collect();
    for temperature in [None, Some(TEMPERATURE)] {
        let engine = ExpectedValuesConfig::new(WORLDS).with_temperature(temperature);
        let engine = engine.init(&Device::default()).expect("valid settings");
        let decisions = engine.decide(&Hidden, &games, oracle).expect("worlds");
        for (decision, (key, moves)) in decisions.iter().zip(&games) {
            let differs = |temperature| {
                let expected = reference(*key, moves, temperature);
                assert_eq!(decision.actions.len(), expected.len());
                let pairs = decision.actions.iter().zip(expected);
                pairs.into_iter().any(|(found, (action, value))| {
                    found.action != action || (f64::from(found.value) - value).abs() > 1e-4
                })
            };
            assert!(!differs(temperature), "{moves:?}: {decision:?}");
            // Canary: the other weights are other values, where there are moves.
            assert!(moves.is_empty() || differs(temperature.xor(Some(TEMPERATURE))), "{moves:?}: nothing is weighed");
        }
    }
}
