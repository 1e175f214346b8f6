//! Worlds of Texas 42 in a batch, against one world at a time with the plain rules.

use super::support::{Words, start};
use burn::tensor::{Device, Int, Tensor};
use eggroll::rl::{ExpectedValuesConfig, WorldKey};
use eggroll_examples::texas42::{
    Deal, DominoSet, HAND, HandState, Observation, Texas42Worlds, Trumps, Worlds, position,
};
use rand::Rng;

const WORLDS: usize = 12;
const TEMPERATURE: f64 = 1.5;

/// A value of each place of the hand by all that is in the position: a multiple of a quarter, which f32 holds.
fn value(position: &[i32], place: usize) -> f64 {
    let sum: i32 = position.iter().zip(1..).map(|(integer, weight)| integer % 1000 * (weight % 7)).sum();
    f64::from((sum + 5 * place as i32) % 23) / 4.0
}

fn oracle(positions: Tensor<2, Int>) -> Tensor<2> {
    let device = positions.device();
    let weights: Vec<i32> = (1..=positions.dims()[1] as i32).map(|weight| weight % 7).collect();
    let weights = Tensor::<1, Int>::from_ints(weights.as_slice(), &device).unsqueeze();
    let sum = (positions.remainder_scalar(1000) * weights).sum_dim(1); // [rows, 1]
    let places = Tensor::<1, Int>::arange(0..HAND as i64, &device).unsqueeze::<2>() * 5;
    (sum + places).remainder_scalar(23).float() / 4.0
}

/// A hand after some random plays, what the next player knows of it, and its first state.
fn hand(seed: u64, plays: usize) -> (Observation, HandState) {
    let mut words = Words::new(seed);
    let first = start(&mut words, Trumps::ALL[plays % Trumps::ALL.len()]);
    let (mut state, mut played) = (first, vec![]);
    for _ in 0..plays {
        played.push(words.pick(state.legal_moves()));
        state.play(played[played.len() - 1]).expect("a legal domino");
    }
    let player = state.mover();
    (Observation::after(player, state.contract(), first.hands()[player], played), state)
}

/// Expected values by domino, with one world at a time.
fn reference(key: WorldKey, observation: &Observation, temperature: Option<f64>) -> Vec<(usize, f64)> {
    let worlds = Worlds::new(observation).expect("the true one");
    let (mut total, mut sums) = (0.0, [0.0; HAND]);
    for world in 0..WORLDS as u32 {
        let mut rng = key.rng(world);
        let mut hands = worlds.sample(&mut || rng.next_u32());
        let sampled = hands;
        observation.plays().for_each(|play| hands[play.player].insert(play.domino));
        let deal = Deal::new(hands);
        let mut then = HandState::new(deal, observation.progress().contract());
        let mut log_likelihood = 0.0;
        for play in observation.plays() {
            if let Some(temperature) = temperature.filter(|_| play.player != observation.player()) {
                let now = position(&then);
                let hand = || then.hands()[play.player].iter().enumerate();
                let part = |place: usize| (value(&now, place) / temperature).exp();
                let legal = hand().filter(|(_, domino)| then.legal_moves().contains(*domino));
                let all: f64 = legal.map(|(place, _)| part(place)).sum();
                let (place, _) = hand().find(|(_, domino)| *domino == play.domino).expect("a domino of the hand");
                log_likelihood += (part(place) / all).ln();
            }
            then.play(play.domino).expect("legal in every world");
        }
        assert_eq!(then.hands(), sampled);
        let now = position(&then);
        total += f64::exp(log_likelihood);
        (0..HAND).for_each(|place| sums[place] += f64::exp(log_likelihood) * value(&now, place));
    }
    let hand = observation.hand().iter().enumerate();
    let legal = hand.filter(|(_, domino)| observation.legal_moves().contains(*domino));
    legal.map(|(place, _)| (place, sums[place] / total)).collect()
}

#[test]
fn a_batch_has_the_values_of_one_world_at_a_time() {
    let games: Vec<_> = [0, 1, 6, 11, 16, 21, 26, 27].map(|plays| hand(3 + plays as u64, plays)).into();
    let games: Vec<_> = games.into_iter().zip(0..).map(|((seen, _), game)| (WorldKey::new(9, game, 2), seen)).collect();
    let mut weighed = 0;
    for temperature in [None, Some(TEMPERATURE)] {
        let engine = ExpectedValuesConfig::new(WORLDS).with_temperature(temperature);
        let engine = engine.init(&Device::default()).expect("valid settings");
        let decisions = engine.decide(&Texas42Worlds, &games, oracle).expect("worlds");
        for (decision, (key, observation)) in decisions.iter().zip(&games) {
            let differs = |temperature| {
                let expected = reference(*key, observation, temperature);
                let found: Vec<_> = decision.actions.iter().map(|one| (one.action, f64::from(one.value))).collect();
                assert_eq!(found.len(), expected.len());
                found.iter().zip(expected).any(|(found, due)| found.0 != due.0 || (found.1 - due.1).abs() > 1e-4)
            };
            assert!(!differs(temperature), "{decision:?}");
            // Canary: the other weights are other values, but where nobody had a choice or only one world is left.
            weighed += usize::from(differs(temperature.xor(Some(TEMPERATURE))));
        }
    }
    assert!(weighed >= 8, "{weighed} of 16 decisions depend on weights");
}

#[test]
fn positions_say_what_the_rules_say() {
    for seed in 0..40 {
        let (observation, state) = hand(seed, seed as usize % 28);
        let position = position(&state);
        let tokens: Vec<i32> = position[2..].iter().copied().filter(|token| *token != 0).collect();
        let (trick, trumps) = (state.trick(), state.contract().trumps());
        let own = tokens.iter().take(state.hands()[state.mover()].len()).map(|token| token % 28);
        assert!(own.eq(state.hands()[state.mover()].iter().map(|domino| domino.index() as i32)));
        assert_eq!(position.len(), 2 + tokens.len().max(HAND));
        for domino in DominoSet::ALL {
            let token = tokens.iter().find(|token| *token % 28 == domino.index() as i32);
            let (role, relation) = token.map_or((0, 0), |token| (token / 28 % 12, token / 28 / 12));
            assert_eq!(role == 1, observation.legal_moves().contains(domino));
            let holder = (0..4).find(|&seat| state.hands()[(state.mover() + seat) % 4].contains(domino));
            assert_eq!(holder.is_some(), (1..6).contains(&role), "{domino}: role {role}");
            assert_eq!(role == 0, holder.is_none() && trick.plays().all(|(_, played)| played != domino));
            if role != 1 {
                assert_eq!(relation >> 8, 0);
                continue;
            }
            // Played now, does it take the trick so far, and who can still take it?
            let mut next = state;
            next.play(domino).expect("legal");
            let led = trick.led().unwrap_or(trumps.led_suit(domino));
            let beats = trick.plays().all(|(_, played)| trumps.strength(led, played) < trumps.strength(led, domino));
            assert_eq!(relation >> 8 & 1 == 1, beats, "{domino}");
            let after: Vec<usize> = (1..4 - trick.len()).collect();
            for (bit, seats) in [(9, [1, 3].as_slice()), (10, &[2])] {
                let could = |seat: &usize| {
                    let hand = trumps.following(led, state.hands()[(state.mover() + seat) % 4]);
                    after.contains(seat)
                        && hand.iter().any(|other| trumps.strength(led, other) > trumps.strength(led, domino))
                };
                assert_eq!(relation >> bit & 1 == 1, seats.iter().any(could), "{domino}, bit {bit}");
            }
        }
    }
}
