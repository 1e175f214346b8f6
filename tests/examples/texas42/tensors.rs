//! The rules on tensors against the plain ones, play by play.

use super::support::{Words, devices, matrix, values};
use eggroll_examples::texas42::{Bid, Contract, Deal, DominoSet, Game, Observation, Suit, TensorRules, Trumps};
use proptest::prelude::*;

/// Games of each trump, among them at least one of each declarer.
const GAMES: usize = 9;

fn start(words: &mut Words) -> Vec<Game> {
    let games = (0..GAMES * Trumps::ALL.len()).map(|number| {
        let bid = if number % 2 == 0 { Bid::LOWEST } else { Bid::TWO_MARKS };
        let contract = Contract::new(number % 4, Trumps::ALL[number / GAMES], bid);
        Game::new(Deal::random(&mut || words.next()), contract)
    });
    games.collect()
}

#[test]
fn tensors_follow_the_plain_rules_play_by_play() {
    for device in devices() {
        let (mut words, rules) = (Words::new(21), TensorRules::new(&device));
        let mut games = start(&mut words);
        let mut rows = TensorRules::games(&games, &device);
        while games.iter().any(|game| !game.state().is_over()) {
            let legal = values(rules.legal(&rows));
            let movers = values(TensorRules::mover(rows.clone()));
            let over: Vec<bool> = TensorRules::is_over(rows.clone()).into_data().iter().collect();
            let mut chosen = vec![0.0; legal.len()];
            for (number, game) in games.iter_mut().enumerate() {
                let state = *game.state();
                let row = 28 * number..28 * (number + 1);
                let found = DominoSet::ALL.iter().filter(|domino| legal[row.clone()][domino.index()] == 1.0);
                assert_eq!(found.collect::<DominoSet>(), state.legal_moves(), "{state:?}");
                assert_eq!((movers[number], over[number]), (state.mover() as f32, state.is_over()));
                // Some games wait.
                if !state.is_over() && words.below(5) > 0 {
                    let domino = words.pick(state.legal_moves());
                    chosen[row][domino.index()] = 1.0;
                    game.play(domino).expect("a legal domino");
                }
            }
            rows = rules.advance(rows, matrix(&chosen, games.len(), &device));
            let expected: Vec<f32> = games.iter().flat_map(Game::row).collect();
            assert_eq!(values(rows.clone()), expected, "{device:?}");
        }
    }
}

proptest! {
    #[test]
    fn a_game_is_its_state_and_what_was_shown(seed: u64, trumps in 0..9_usize, plays in 0..=28_usize) {
        let mut words = Words::new(seed);
        let contract = Contract::new(words.below(4), Trumps::ALL[trumps], Bid::LOWEST);
        let deal = Deal::random(&mut || words.next());
        let mut game = Game::new(deal, contract);
        let seen = |player: usize| Observation::new(player, contract, deal.hands()[player]);
        let mut seen = [0, 1, 2, 3].map(seen);
        for _ in 0..plays {
            let domino = words.pick(game.state().legal_moves());
            game.play(domino).expect("a legal domino");
            for seen in &mut seen {
                seen.record(domino);
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
}
