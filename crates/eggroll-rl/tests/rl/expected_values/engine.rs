//! Expectations, weights, errors and refusals, in a game of cards from 0 to 3.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use eggroll_core::counters;
use eggroll_rl::{
    Decision, ExpectedValues, ExpectedValuesConfig, ExpectedValuesError, SampledWorlds, WorldKey, WorldSampler,
};
use rand::Rng;

/// Cards that the other player may hold.
const CARDS: usize = 4;
const ACTIONS: usize = 3;

/// The other player holds a card and has chosen actions; positions are a card, and how many moves were made.
struct Cards;

/// What the other player did.
#[derive(Clone)]
struct Seen(Vec<usize>);

#[derive(Debug, thiserror::Error)]
#[error("nobody holds a card")]
struct NoCards;

impl WorldSampler for Cards {
    type Observation = Seen;
    type Error = NoCards;

    fn actions(&self) -> usize {
        ACTIONS
    }

    fn position_size(&self) -> usize {
        2
    }

    fn sample(&self, seen: &Seen, key: WorldKey, worlds: &mut SampledWorlds) -> Result<(), NoCards> {
        if seen.0.contains(&99) {
            return Err(NoCards);
        }
        for world in 0..worlds.count() {
            let card = card(key, world);
            worlds.push(&[card, seen.0.len() as i32]);
            for (made, &action) in seen.0.iter().enumerate() {
                // Those who hold the highest card had no choice but once.
                if worlds.weighs_moves() && (card < CARDS as i32 - 1 || made == 0) {
                    worlds.push_move(&[card, made as i32], action);
                }
            }
        }
        Ok(())
    }

    fn legal(&self, positions: &Tensor<2, Int>) -> Tensor<2, Bool> {
        let device = positions.device();
        let legal = Tensor::<1>::from_floats([1.0, 0.0, 1.0], &device).unsqueeze();
        (positions.clone().narrow(1, 0, 1).float() * 0.0 + legal).greater_elem(0.5)
    }
}

fn card(key: WorldKey, world: u32) -> i32 {
    (key.rng(world).next_u32() % CARDS as u32) as i32
}

/// `card` for the first action, `9 − 2·card − made` for the last; what is not legal is not a number.
fn oracle(positions: Tensor<2, Int>) -> Tensor<2> {
    let (card, made) = (positions.clone().narrow(1, 0, 1).float(), positions.narrow(1, 1, 1).float());
    let last = card.clone() * -2.0 - made + 9.0;
    Tensor::cat(vec![card.clone(), card * f32::NAN, last], 1)
}

fn value(card: i32, made: usize, action: usize) -> f64 {
    [f64::from(card), f64::NAN, 9.0 - 2.0 * f64::from(card) - made as f64][action]
}

/// The same decision in f64, world by world.
fn reference(key: WorldKey, seen: &Seen, worlds: u32, temperature: Option<f64>) -> (Vec<[f64; 2]>, f64) {
    let log_likelihood = |card: i32| -> f64 {
        let Some(temperature) = temperature else { return 0.0 };
        let moves = seen.0.iter().enumerate().filter(|(made, _)| card < CARDS as i32 - 1 || *made == 0);
        let logits = |made: usize| [0, 2].map(|action| value(card, made, action) / temperature);
        let log_sum = |logits: [f64; 2]| {
            let most = logits[0].max(logits[1]);
            most + logits.map(|logit| (logit - most).exp()).iter().sum::<f64>().ln()
        };
        moves.map(|(made, &action)| value(card, made, action) / temperature - log_sum(logits(made))).sum()
    };
    let cards: Vec<i32> = (0..worlds).map(|world| card(key, world)).collect();
    let logs: Vec<f64> = cards.iter().map(|&card| log_likelihood(card)).collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp() / total).collect();
    let of = |action: usize| {
        let value = |card: &i32| value(*card, seen.0.len(), action);
        let expected: f64 = cards.iter().zip(&weights).map(|(card, weight)| weight * value(card)).sum();
        let spread: f64 = cards.iter().zip(&weights).map(|(card, p)| (p * (value(card) - expected)).powi(2)).sum();
        [expected, (spread * f64::from(worlds) / f64::from(worlds - 1)).sqrt()]
    };
    (vec![of(0), of(2)], 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>())
}

fn engine(worlds: usize, temperature: Option<f64>) -> ExpectedValues {
    ExpectedValuesConfig::new(worlds).with_temperature(temperature).init(&Device::default()).expect("valid settings")
}

fn games(games: u32) -> Vec<(WorldKey, Seen)> {
    let seen =
        |game: u32| Seen((0..game % 4).map(|made| if (game + made).is_multiple_of(3) { 0 } else { 2 }).collect());
    (0..games).map(|game| (WorldKey::new(5, game, 1), seen(game))).collect()
}

fn differs(decision: &Decision, (values, effective): &(Vec<[f64; 2]>, f64)) -> bool {
    let close = |found: f32, expected: f64| (f64::from(found) - expected).abs() < 1e-4 * (1.0 + expected.abs());
    let close_value = |(found, [value, error]): (&eggroll_rl::ActionValue, &[f64; 2])| {
        close(found.value, *value) && close(found.standard_error, *error)
    };
    let numbers: Vec<usize> = decision.actions.iter().map(|action| action.action).collect();
    numbers != [0, 2]
        || !decision.actions.iter().zip(values).all(close_value)
        || !close(decision.effective_sample_size, *effective)
}

#[test]
fn values_errors_and_sample_sizes_are_those_of_f64() {
    let games = games(9);
    for temperature in [None, Some(1e3), Some(2.0), Some(0.05)] {
        let decisions = engine(40, temperature).decide(&Cards, &games, oracle).expect("worlds");
        for (decision, (key, seen)) in decisions.iter().zip(&games) {
            let expected = reference(*key, seen, 40, temperature);
            assert!(
                !differs(decision, &expected),
                "{temperature:?}, {seen:?}: {decision:?} for {expected:?}",
                seen = seen.0
            );
            // Canary: another temperature is another decision, where moves were seen.
            let other = reference(*key, seen, 40, temperature.map_or(Some(1.0), |temperature| Some(3.0 * temperature)));
            let same = seen.0.is_empty() || matches!(temperature, Some(1e3 | 0.05));
            assert!(same || differs(decision, &other), "{temperature:?}: nothing was weighed");
        }
    }
}

#[test]
fn a_game_is_decided_as_it_is_alone() {
    let games = games(7);
    for temperature in [None, Some(1.0)] {
        let engine = engine(16, temperature);
        let together = engine.decide(&Cards, &games, oracle).expect("worlds");
        for (game, together) in games.iter().zip(together) {
            let alone = engine.decide(&Cards, std::slice::from_ref(game), oracle).expect("worlds").remove(0);
            let expected =
                alone.actions.iter().map(|one| [f64::from(one.value), f64::from(one.standard_error)]).collect();
            assert!(!differs(&together, &(expected, f64::from(alone.effective_sample_size))), "{together:?} {alone:?}");
        }
    }
}

#[test]
fn one_world_is_its_value_and_has_no_error() {
    let games = games(3);
    for (decision, (key, seen)) in
        engine(1, Some(1.0)).decide(&Cards, &games, oracle).expect("worlds").iter().zip(&games)
    {
        let card = card(*key, 0);
        assert_eq!(f64::from(decision.actions[1].value), value(card, seen.0.len(), 2));
        assert!(decision.actions[0].standard_error.is_infinite());
        assert_eq!(decision.effective_sample_size, 1.0);
    }
}

#[test]
fn a_step_is_one_read_whatever_its_size() {
    for (count, worlds, temperature) in [(1, 1, None), (5, 33, None), (1, 7, Some(1.0)), (8, 64, Some(0.5))] {
        let (engine, games) = (engine(worlds, temperature), games(count));
        let before = counters::snapshot();
        engine.decide(&Cards, &games, oracle).expect("worlds");
        assert_eq!((counters::snapshot() - before).host_reads, 1);
    }
    assert!(engine(4, None).decide(&Cards, &[], oracle).expect("no games").is_empty());
}

#[test]
fn refusals_name_what_is_wrong() {
    let device = Device::default();
    let refused = |config: ExpectedValuesConfig| config.init(&device).expect_err("refused").to_string();
    assert_eq!(refused(ExpectedValuesConfig::new(0)), "expected values: worlds must be 1 to 4294967295, not 0");
    for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-60] {
        let text = refused(ExpectedValuesConfig::new(1).with_temperature(Some(temperature)));
        assert!(
            text.contains(&format!("temperature must be a positive number that f32 can hold, not {temperature}")),
            "{text}"
        );
    }
    let text = engine(u32::MAX as usize, None).decide(&Cards, &games(2), oracle).expect_err("too many").to_string();
    assert!(
        text.contains("2 games of 4294967295 worlds each give 8589934590 positions") && text.contains("16777216"),
        "{text}"
    );
    let mut games = games(3);
    games[1].1 = Seen(vec![99]);
    games[2].1 = Seen(vec![99]);
    let error = engine(2, None).decide(&Cards, &games, oracle).expect_err("no worlds");
    assert!(matches!(error, ExpectedValuesError::Sampler { game: 1, .. }));
    assert_eq!(
        error.to_string(),
        "expected values: the worlds of game 1 of the batch cannot be sampled: nobody holds a card"
    );
    games.truncate(1);
    let infinite = |positions| oracle(positions) * f32::INFINITY;
    let error = engine(2, None).decide(&Cards, &games, infinite).expect_err("no numbers").to_string();
    assert!(error.contains("of game 0 of the batch is worth"), "{error}");
}

#[test]
#[should_panic(expected = "an oracle's values of shape [4, 2], where [4, 3] is due")]
fn values_of_another_shape_panic() {
    let narrow = |positions| oracle(positions).narrow(1, 0, 2);
    let _ = engine(4, None).decide(&Cards, &games(1), narrow);
}

/// A sampler that forgets worlds, or writes other positions.
struct Wrong(usize, usize);

impl WorldSampler for Wrong {
    type Observation = ();
    type Error = NoCards;

    fn actions(&self) -> usize {
        1
    }

    fn position_size(&self) -> usize {
        2
    }

    fn sample(&self, _: &(), _: WorldKey, worlds: &mut SampledWorlds) -> Result<(), NoCards> {
        (0..self.0).for_each(|_| worlds.push(&vec![0; self.1]));
        Ok(())
    }

    fn legal(&self, positions: &Tensor<2, Int>) -> Tensor<2, Bool> {
        let rows = positions.dims()[0];
        Tensor::from_data(TensorData::new(vec![true; rows], [rows, 1]), &positions.device())
    }
}

fn decide_wrong(wrong: Wrong) -> Result<Vec<Decision>, ExpectedValuesError> {
    let zeros = |positions: Tensor<2, Int>| positions.narrow(1, 0, 1).float();
    engine(3, None).decide(&wrong, &[(WorldKey::new(0, 0, 0), ())], zeros)
}

#[test]
fn too_few_worlds_are_an_error() {
    let error = decide_wrong(Wrong(2, 2)).expect_err("too few").to_string();
    assert_eq!(error, "expected values: the sampler gave 2 worlds of game 0 of the batch, where 3 are due");
    assert!(decide_wrong(Wrong(3, 2)).is_ok());
}

#[test]
#[should_panic(expected = "more worlds than the 3 that are due")]
fn too_many_worlds_panic() {
    let _ = decide_wrong(Wrong(4, 2));
}

#[test]
#[should_panic(expected = "a position of 5 integers, where 1 to 2 are due")]
fn positions_of_another_size_panic() {
    let _ = decide_wrong(Wrong(3, 5));
}

/// A move that is not legal makes its world impossible: here those of card 0, so that the others have all of the
/// weight.
#[test]
fn worlds_of_illegal_moves_have_no_weight() {
    struct Impossible;

    impl WorldSampler for Impossible {
        type Observation = ();
        type Error = NoCards;

        fn actions(&self) -> usize {
            ACTIONS
        }

        fn position_size(&self) -> usize {
            2
        }

        fn sample(&self, _: &(), key: WorldKey, worlds: &mut SampledWorlds) -> Result<(), NoCards> {
            for world in 0..worlds.count() {
                let card = card(key, world);
                worlds.push(&[card, 0]);
                worlds.push_move(&[card, 0], if card == 0 { 1 } else { 2 });
            }
            Ok(())
        }

        fn legal(&self, positions: &Tensor<2, Int>) -> Tensor<2, Bool> {
            Cards.legal(positions)
        }
    }

    let key = WorldKey::new(3, 0, 0);
    let cards: Vec<i32> = (0..40).map(|world| card(key, world)).collect();
    let possible = cards.iter().filter(|card| **card != 0).count();
    assert!((1..40).contains(&possible));
    // At this temperature all legal moves are as likely.
    let decision = engine(40, Some(1e9)).decide(&Impossible, &[(key, ())], oracle).expect("worlds").remove(0);
    let mean = cards.iter().sum::<i32>() as f32 / possible as f32;
    assert!((decision.actions[0].value - mean).abs() < 1e-4, "{decision:?}, expected {mean}");
    assert!((decision.effective_sample_size - possible as f32).abs() < 1e-2, "{decision:?}, expected {possible}");
}

/// The standard error is the standard deviation of values over 400 keys, within 20 %.
#[test]
fn standard_errors_are_the_spread_over_samples() {
    let games: Vec<_> = (0..400).map(|game| (WorldKey::new(11, game, 0), Seen(vec![0]))).collect();
    for temperature in [None, Some(4.0)] {
        let decisions = engine(60, temperature).decide(&Cards, &games, oracle).expect("worlds");
        let values: Vec<f64> = decisions.iter().map(|decision| f64::from(decision.actions[1].value)).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let spread = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
        let told = decisions.iter().map(|decision| f64::from(decision.actions[1].standard_error)).sum::<f64>() / count;
        assert!((told / spread - 1.0).abs() < 0.2, "{temperature:?}: told {told}, found {spread}");
    }
}
