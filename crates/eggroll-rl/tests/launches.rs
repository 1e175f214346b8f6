//! What a step of decisions launches on a device: a process of its own, because kernels are counted by process.

#![cfg(any(feature = "wgpu", feature = "cuda"))]

use burn::tensor::{Int, Tensor};
use eggroll_core::{DeviceName, LaunchCount};
use eggroll_rl::games::texas42::{
    Bid, Contract, Deal, Domino, DominoSet, HAND, Observation, State, Texas42Worlds, Trumps,
};
use eggroll_rl::{ExpectedValuesConfig, WorldKey};

/// What the next player knows after some plays of the first legal domino.
fn observation(plays: usize) -> Observation {
    let deal = Deal::new([0, 7, 14, 21].map(|first| DominoSet::from_bits(0x7f << first))).expect("four hands of seven");
    let mut state = State::new(deal, Contract::new(1, Trumps::FollowMe, Bid::LOWEST).expect("a player below 4"));
    let mut played: Vec<Domino> = vec![];
    while played.len() < plays {
        played.extend(state.legal_moves().first());
        state.play(played[played.len() - 1]).expect("a legal domino");
    }
    Observation::after(state.mover(), state.contract(), deal.hands()[state.mover()], played).expect("legal plays")
}

fn oracle(positions: Tensor<2, Int>) -> Tensor<2> {
    positions.narrow(1, 2, HAND).float() * 1e-3
}

/// Without weights the counts are equal. With weights Burn's Fusion joins operations by its choice, which depends on shapes: 36 to 42 kernels on
/// software Vulkan. A loop over games, worlds or moves would add as many as there are.
#[test]
fn a_step_launches_as_much_for_one_game_as_for_many() {
    let device = DeviceName::of_tests();
    for (temperature, choice) in [(None, 0), (Some(1.0), 8)] {
        let launches = |(games, worlds, plays): (u32, usize, usize)| {
            let engine = ExpectedValuesConfig::new(worlds).with_temperature(temperature).init(&device);
            let engine = engine.expect("valid settings");
            let games: Vec<_> = (0..games).map(|game| (WorldKey::new(1, game, 0), observation(plays))).collect();
            let decide = || engine.decide(&Texas42Worlds, &games, oracle).expect("worlds");
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
