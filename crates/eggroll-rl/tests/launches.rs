//! What a step of decisions launches on a device: a process of its own, because kernels are counted by process.

#![cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))]

use burn::tensor::{Bool, Int, Tensor};
use eggroll_core::{DeviceName, LaunchCount};
use eggroll_rl::{ExpectedValuesConfig, SampledWorlds, WorldKey, WorldSampler};
use rand::Rng;
use std::convert::Infallible;

const ACTIONS: usize = 7;

/// The other player holds a card and has made as many moves as the observation says; a position is the card, as often
/// as moves are to come.
struct Cards;

impl WorldSampler for Cards {
    type Observation = usize;
    type Error = Infallible;

    fn actions(&self) -> usize {
        ACTIONS
    }

    fn position_size(&self) -> usize {
        30
    }

    fn sample(&self, moves: &usize, key: WorldKey, worlds: &mut SampledWorlds) -> Result<(), Infallible> {
        for world in 0..worlds.count() {
            let card = (key.rng(world).next_u32() % 4) as i32;
            worlds.push(&[card; 8]);
            if worlds.weighs_moves() {
                (0..*moves).for_each(|left| worlds.push_move(&vec![card; 8 + left], left % ACTIONS));
            }
        }
        Ok(())
    }

    fn legal(&self, positions: &Tensor<2, Int>) -> Tensor<2, Bool> {
        positions.clone().narrow(1, 0, ACTIONS).lower_elem(4)
    }
}

fn oracle(positions: Tensor<2, Int>) -> Tensor<2> {
    positions.narrow(1, 0, ACTIONS).float() * 1e-3
}

/// Without weights the counts are equal. With weights Burn's Fusion joins operations by its choice, which depends on
/// shapes: 36 to 42 kernels on software Vulkan. A loop over games, worlds or moves would add as many as there are.
#[test]
fn a_step_launches_as_much_for_one_game_as_for_many() {
    let device = DeviceName::of_tests();
    for (temperature, choice) in [(None, 0), (Some(1.0), 8)] {
        let launches = |(games, worlds, moves): (u32, usize, usize)| {
            let engine = ExpectedValuesConfig::new(worlds).with_temperature(temperature).init(&device);
            let engine = engine.expect("valid settings");
            let games: Vec<_> = (0..games).map(|game| (WorldKey::new(1, game, 0), moves)).collect();
            let decide = || engine.decide(&Cards, &games, oracle).expect("worlds");
            decide(); // kernels are tried out
            let launched = LaunchCount::start();
            decide();
            launched.kernels()
        };
        let counts = [(1, 2, 0), (1, 40, 5), (3, 16, 13), (16, 30, 22)].map(launches);
        let (least, most) = (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
        assert!(least > 0 && most - least <= choice, "{temperature:?}: {counts:?}");
    }
}
