//! The rules on tensors against the plain ones, play by play.

use super::support::{Words, domino};
use crate::environments::support::{devices, matrix, values};
use burn::tensor::{Bool, Device, Tensor, TensorData};
use eggroll_rl::TensorEnvironment;
use eggroll_rl::games::texas42::{
    Bid, Contract, Deal, Domino, Game, HAND_POINTS, Observation, Suit, TensorRules, Texas42, Trumps, columns,
};
use proptest::prelude::*;

/// Games of each trump, among them at least one of each declarer.
const GAMES: usize = 9;

fn start(words: &mut Words) -> Vec<Game> {
    let games = (0..GAMES * Trumps::ALL.len()).map(|number| {
        let bid = if number % 2 == 0 { Bid::LOWEST } else { Bid::TWO_MARKS };
        let contract = Contract::new(number % 4, Trumps::ALL[number / GAMES], bid).expect("a player below 4");
        Game::new(Deal::random(&mut || words.next()), contract)
    });
    games.collect()
}

fn mask(active: &[bool], device: &Device) -> Tensor<2, Bool> {
    Tensor::from_data(TensorData::new(active.to_vec(), [active.len(), 1]), device)
}

fn assert_games(found: &Tensor<2>, expected: &[Game], what: &str) {
    let expected: Vec<f32> = expected.iter().flat_map(Game::row).collect();
    assert_eq!(values(found.clone()), expected, "{what}");
}

#[test]
fn tensors_follow_the_plain_rules_play_by_play() {
    for (device, _) in devices() {
        let (mut words, rules) = (Words(21), TensorRules::new(&device));
        let mut games = start(&mut words);
        let mut rows = TensorRules::games(&games, &device);
        let mut steps = 0;
        while games.iter().any(|game| !game.state().is_over()) {
            let legal: Vec<bool> = rules.legal_moves(rows.clone()).into_data().iter().collect();
            let movers = values(TensorRules::mover(rows.clone()));
            let over: Vec<bool> = TensorRules::is_over(rows.clone()).into_data().iter().collect();
            for (number, game) in games.iter().enumerate() {
                let state = game.state();
                let expected =
                    (0..28).map(|index| state.legal_moves().contains(Domino::from_index(index).expect("below 28")));
                assert!(expected.eq(legal[28 * number..][..28].iter().copied()), "{state:?}");
                assert_eq!((movers[number], over[number]), (state.mover() as f32, state.is_over()));
            }
            // Any domino of the set, legal or not, where not a legal one: then the game has to stay.
            let plays: Vec<Domino> = games
                .iter()
                .map(|game| match game.state().legal_moves() {
                    legal if legal.is_empty() || words.below(4) == 0 => words.pick(!legal),
                    legal => words.pick(legal),
                })
                .collect();
            let active: Vec<bool> = games.iter().map(|_| words.below(5) > 0).collect();
            for ((game, play), active) in games.iter_mut().zip(&plays).zip(&active) {
                let before = *game;
                if *active && game.play(*play).is_err() {
                    assert_eq!(*game, before);
                }
            }
            let indices: Vec<f32> = plays.iter().map(|domino| domino.index() as f32).collect();
            rows = rules.play(rows, matrix(&indices, games.len(), &device), mask(&active, &device));
            assert_games(&rows, &games, &format!("{device:?}, step {steps}"));
            steps += 1;
        }
        let points = values(rows.narrow(1, columns::POINTS, 2).sum_dim(1));
        assert!(steps > 28 && points.iter().all(|points| *points == f32::from(HAND_POINTS)));
    }
}

#[test]
fn numbers_that_name_no_domino_change_nothing() {
    for (device, _) in devices() {
        let (mut words, rules) = (Words(22), TensorRules::new(&device));
        let games = start(&mut words);
        let rows = TensorRules::games(&games, &device);
        let active = vec![true; games.len()];
        for number in [-1.0, 0.5, 28.0, 1e9, f32::INFINITY, f32::NAN] {
            let dominoes = matrix(&vec![number; games.len()], games.len(), &device);
            assert_games(&rules.play(rows.clone(), dominoes, mask(&active, &device)), &games, &format!("{number}"));
        }
    }
}

#[test]
#[should_panic(expected = "dominoes of shape [1, 1], active of shape [2, 1], for 2 games: both must be [2, 1]")]
fn plays_that_do_not_fit_panic_with_all_shapes() {
    let device = &devices()[0].0;
    let rows = TensorRules::games(&start(&mut Words(1))[..2], device);
    let _ = TensorRules::new(device).play(rows, matrix(&[0.0], 1, device), mask(&[true; 2], device));
}

#[test]
#[should_panic(expected = "games of shape [2, 7]: give [2, 73]")]
fn games_that_do_not_fit_panic_with_both() {
    let device = &devices()[0].0;
    let _ = TensorRules::mover(matrix(&[0.0; 14], 2, device));
}

proptest! {
    #[test]
    fn a_game_is_its_state_and_what_was_shown(seed: u64, trumps in 0..9_usize, plays in 0..=28_usize) {
        let mut words = Words(seed);
        let contract = Contract::new(words.below(4), Trumps::ALL[trumps], Bid::LOWEST).expect("a player below 4");
        let deal = Deal::random(&mut || words.next());
        let mut game = Game::new(deal, contract);
        let seen = |player: usize| Observation::new(player, contract, deal.hands()[player]).expect("seven dominoes");
        let mut seen = [0, 1, 2, 3].map(seen);
        for _ in 0..plays {
            let domino = words.pick(game.state().legal_moves());
            game.play(domino).expect("a legal domino");
            for seen in &mut seen {
                seen.record(domino).expect("a legal domino");
            }
        }
        prop_assert_eq!(Game::from_row(&game.row()), game);
        for (player, observation) in seen.iter().enumerate() {
            let played = observation.plays().filter(|play| play.player == player).map(|play| play.domino);
            prop_assert_eq!(game.played(player), played.collect());
            prop_assert_eq!(observation.hand(), game.state().hands()[player]);
            for suit in Suit::ALL {
                for observer in &seen {
                    prop_assert_eq!(game.is_void(player, suit), observer.is_void(player, suit));
                }
            }
        }
    }

    /// Rows that no game has mean nothing, but do no harm.
    #[test]
    fn no_row_panics(numbers in proptest::collection::vec(prop_oneof![-1.0..30.0_f32, proptest::num::f32::ANY], columns::GAME + 14)) {
        let mut game = Game::from_row(numbers.first_chunk().expect("73 floats"));
        for domino in [domino(6, 4)].into_iter().chain(game.state().legal_moves()) {
            let _ = game.play(domino);
        }
        let mut state = *game.state();
        for _ in 0..28 {
            let _ = (state.points_left(), state.outcome());
            let Some(domino) = state.legal_moves().first() else { break };
            let _ = state.play(domino);
        }
        let mut state = numbers.clone();
        for _ in 0..3 {
            Texas42::default().step_host(&mut state, &numbers[..28]);
            Texas42::default().observe_host(&state, &mut [0.0; 302]);
        }
        prop_assert!(game.row().iter().chain(&state[..columns::GAME]).all(|number| number.is_finite()));
    }
}
