//! Decisions with hidden information: Kuhn poker, whose values are known in closed form.

use eggroll::core::counters;
use eggroll::prelude::*;
use eggroll::rl::{Decision, ExpectedValuesConfig, ExpectedValuesError, SampledWorlds, WorldKey, WorldSampler};
use rand::RngExt;
use std::convert::Infallible;

// ANCHOR: sampler
/// Kuhn poker, for the player who faces a bet. The observation is its card: 0, 1 and 2 are jack, queen and king.
///
/// Actions are 0, to check or fold, and 1, to bet or call. A position is the card of the mover, the card of the other
/// player, and 1 after a bet, else 0.
struct Kuhn;

impl WorldSampler for Kuhn {
    type Observation = i32;
    type Error = Infallible; // every card has worlds

    fn actions(&self) -> usize {
        2
    }

    fn position_size(&self) -> usize {
        3
    }

    fn sample(&self, card: &i32, key: WorldKey, worlds: &mut SampledWorlds) -> Result<(), Infallible> {
        for world in 0..worlds.count() {
            let bit = key.rng(world).random_range(0..2);
            let other = (card + 1 + bit) % 3; // one of the two other cards
            worlds.push(&[*card, other, 1]);
            if worlds.weighs_moves() {
                worlds.push_move(&[other, *card, 0], 1); // the bet
            }
        }
        Ok(())
    }

    fn legal(&self, positions: &Tensor<2, Int>) -> Tensor<2, Bool> {
        Tensor::full([positions.dims()[0], 2], true, &positions.device()) // both actions, everywhere
    }
}
// ANCHOR_END: sampler

const TEMPERATURE: f64 = 0.5;

/// Knows how often the first player bets with each card. Before the bet, its values are logarithms of the probabilities,
/// times the temperature: their soft policy is what the first player does.
struct Oracle {
    /// `[18, 2]`
    values: Tensor<2>,
}

impl Oracle {
    fn new(bets: [f32; 3], device: &Device) -> Self {
        let logit = |probability: f32| TEMPERATURE as f32 * probability.max(1e-9).ln();
        let first = |card: usize| [logit(1.0 - bets[card]), logit(bets[card])];
        let second = |card: usize, other: usize| [-1.0, if card > other { 2.0 } else { -2.0 }];
        let cards = || (0..9).map(|both| (both / 3, both % 3)); // of the mover, of the other player
        let before = cards().flat_map(|(card, _)| first(card));
        let after = cards().flat_map(|(card, other)| second(card, other));
        let values = before.chain(after).collect();
        Self { values: Tensor::from_data(TensorData::new::<f32, _>(values, [18, 2]), device) }
    }

    /// `[rows, 3]` to `[rows, 2]`
    fn forward(&self, positions: Tensor<2, Int>) -> Tensor<2> {
        let column = |at| positions.clone().narrow(1, at, 1).squeeze_dim::<1>(1); // [rows]
        self.values.clone().select(0, column(2) * 9 + column(0) * 3 + column(1))
    }
}

const WORLDS: usize = 10_000;
const JACK: usize = 0;
const KING: usize = 2;

/// For odds of a bet with the jack and with the king: what it is worth to call with the queen, and the effective share
/// of the worlds.
fn closed_form(jack: f64, king: f64) -> (f64, f64) {
    let sum = jack + king;
    (2.0 * (jack - king) / sum, sum * sum / (2.0 * (jack * jack + king * king)))
}

#[test]
fn kuhn_poker() -> Result<(), ExpectedValuesError> {
    let device = Device::flex();
    let decide = |temperature: Option<f64>, bets: [f32; 3]| -> Result<Vec<Decision>, ExpectedValuesError> {
        let oracle = Oracle::new(bets, &device);
        let before = counters::snapshot();
        // ANCHOR: decide
        let engine = ExpectedValuesConfig::new(WORLDS).with_temperature(temperature).init(&device)?;
        // Three games: the second player holds the jack, the queen, the king.
        let games: Vec<(WorldKey, i32)> = (0..3).map(|card| (WorldKey::new(1, card, 0), card as i32)).collect();
        let decisions = engine.decide(&Kuhn, &games, |positions| oracle.forward(positions))?;
        // ANCHOR_END: decide
        assert_eq!((counters::snapshot() - before).host_reads, 1);
        Ok(decisions)
    };
    println!("first player            bets J  bets K    exact  estimate  standard error  worlds");
    for (name, temperature, bets) in [
        ("α = 0.1, not weighed", None, [0.1, 0.0, 0.3]),
        ("α = 0.1", Some(TEMPERATURE), [0.1, 0.0, 0.3]),
        ("α = 0.3", Some(TEMPERATURE), [0.3, 0.0, 0.9]),
        ("bluffs too rarely", Some(TEMPERATURE), [0.05, 0.0, 0.95]),
        ("bluffs too often", Some(TEMPERATURE), [0.6, 0.0, 0.9]),
    ] {
        let decisions = decide(temperature, bets)?;
        let [jack, queen, king] = &decisions[..] else { panic!("{decisions:?}") };
        let odds = |card: usize| if temperature.is_some() { f64::from(bets[card]) } else { 1.0 };
        let (exact, share) = closed_form(odds(JACK), odds(KING));
        let (call, worlds) = (queen.actions[1], f64::from(queen.effective_sample_size));
        let (jacks, kings) = (bets[JACK], bets[KING]);
        println!(
            "{name:<22}  {jacks:>6}  {kings:>6}  {exact:>7.3}  {:>8.3}  {:>14.4}  {worlds:>6.0}",
            call.value, call.standard_error
        );
        let error = f64::from(call.value) - exact;
        assert!(error.abs() < 4.0 * f64::from(call.standard_error), "{call:?}, not {exact}");
        assert!((worlds / (share * WORLDS as f64) - 1.0).abs() < 0.05, "{worlds} worlds");
        // The same in every world: only sums round.
        let certain = [(jack, 1, -2.0), (king, 1, 2.0), (jack, 0, -1.0), (queen, 0, -1.0), (king, 0, -1.0)];
        for (decision, action, exact) in certain {
            assert!((decision.actions[action].value - exact).abs() < 1e-3, "{decision:?}");
        }
    }
    Ok(())
}

#[test]
fn strategy_fusion() -> Result<(), ExpectedValuesError> {
    let device = Device::flex();
    let oracle = Oracle::new([0.1, 0.0, 0.3], &device);
    let engine = ExpectedValuesConfig::new(WORLDS).init(&device)?;
    let queen = [(WorldKey::new(1, 0, 0), 1)];
    // Action 1 is now to wait: to decide one move later, without having learned anything.
    let wait = |positions: Tensor<2, Int>| {
        let values = oracle.forward(positions); // [rows, 2]
        let best = values.clone().max_dim(1); // [rows, 1], of a player who sees the cards
        Tensor::cat(vec![values.narrow(1, 0, 1), best], 1)
    };
    let now = engine.decide(&Kuhn, &queen, |positions| oracle.forward(positions))?[0].actions[1];
    let later = engine.decide(&Kuhn, &queen, wait)?[0].actions[1];
    println!("call {:.2}, wait {:.2}", now.value, later.value); // 0 and 0.5
    assert!(now.value.abs() < 4.0 * now.standard_error && (later.value - 0.5).abs() < 4.0 * later.standard_error);
    Ok(())
}
