//! What a player knows: voids, counts, and refused histories.

use super::slow::{self, pips};
use super::support::{Words, after, domino, set, start};
use eggroll_rl::games::texas42::{Bid, Contract, GameError, Observation, Play, Suit, Trumps};
use proptest::prelude::*;

/// A contract of player 0, sixes as trumps, seen by player 0 after plays.
fn seen(hand: &[(u8, u8)], plays: &[(u8, u8)]) -> Result<Observation, GameError> {
    let contract = Contract::new(0, Trumps::Suit(Suit::Sixes), Bid::LOWEST).expect("a player below 4");
    Observation::after(0, contract, set(hand), plays.iter().map(|&(high, low)| domino(high, low)))
}

const HAND: [(u8, u8); 7] = [(5, 5), (5, 4), (4, 4), (1, 0), (1, 1), (2, 0), (6, 6)];

proptest! {
    #[test]
    fn it_agrees_with_the_hand(seed: u64, trumps in 0..9_usize, plays in 0..=28_usize, player in 0..4_usize) {
        let trumps = Trumps::ALL[trumps];
        let (state, plays) = after(&mut Words(seed), trumps, plays);
        let expected = slow::players(trumps, state.contract().declarer(), &plays);
        let hand = slow::first_hands(state.hands(), &expected)[player];
        let observation = Observation::after(player, state.contract(), hand, plays.iter().copied()).expect("legal plays");
        prop_assert_eq!(observation.progress(), state.progress());
        prop_assert_eq!((observation.player(), observation.hand()), (player, state.hands()[player]));
        prop_assert_eq!(observation.played(), state.played());
        prop_assert_eq!(observation.counts().map(usize::from), state.hands().map(|hand| hand.len()));
        prop_assert_eq!(observation.unseen().len() + observation.hand().len() + plays.len(), 28);
        prop_assert_eq!(observation.state(state.hands()), Ok(state));
        let listed: Vec<_> = observation.plays().map(|Play { player, domino }| (player, domino)).collect();
        prop_assert_eq!(&listed, &expected);
        if state.mover() == player {
            prop_assert_eq!(observation.legal_moves(), state.legal_moves());
        } else {
            prop_assert!(observation.legal_moves().is_empty());
        }
        for other in 0..4 {
            prop_assert!(state.hands()[other].is_subset(observation.may_hold(other)));
            // Excluded are the suits of leads which the player did not follow.
            let mut excluded = vec![];
            for trick in expected.chunks(4) {
                let suit = slow::suit_of_lead(trumps, pips(trick[0].1));
                if trick.iter().any(|&(player, domino)| player == other && !suit.contains(&pips(domino))) {
                    excluded.extend(suit);
                }
            }
            let possible = observation.unseen().iter().filter(|domino| !excluded.contains(&pips(*domino))).collect();
            prop_assert_eq!(observation.may_hold(other), if other == player { observation.hand() } else { possible });
        }
    }
}

#[test]
fn a_player_who_does_not_follow_is_void() {
    // Player 1 follows fives, player 2 trumps, player 3 throws 0-0 off.
    let observation = seen(&HAND, &[(5, 5), (5, 3), (6, 1), (0, 0)]).expect("legal plays");
    let voids = |player| Suit::ALL.into_iter().filter(|&suit| observation.is_void(player, suit)).collect::<Vec<_>>();
    assert_eq!([0, 1, 2, 3].map(voids), [vec![], vec![], vec![Suit::Fives], vec![Suit::Fives]]);
    // 6-5 is a trump, so that players without fives may hold it.
    assert!(observation.may_hold(3).contains(domino(6, 5)) && !observation.may_hold(3).contains(domino(5, 2)));
    assert_eq!((observation.counts(), observation.progress().mover()), ([6; 4], 2));
}

#[test]
fn impossible_plays_are_refused() {
    let [five, lead] = [domino(5, 2), domino(5, 5)];
    let not_held = |player, domino| Err(GameError::NotHeld { player, domino });
    assert_eq!(seen(&HAND, &[(5, 2)]), not_held(0, five));
    assert_eq!(seen(&HAND, &[(5, 5), (5, 4)]), not_held(1, domino(5, 4)));
    assert_eq!(seen(&HAND, &[(5, 5), (5, 5)]), Err(GameError::PlayedTwice(lead)));
    let revoked = GameError::Revoked { player: 1, domino: five, suit: Suit::Fives };
    assert_eq!(seen(&HAND, &[(5, 5), (0, 0), (5, 3), (5, 1), (1, 0), (5, 2)]), Err(revoked));
    // Player 1 takes the first trick and leads a four.
    let must_follow = GameError::MustFollow { player: 0, domino: domino(1, 0), led: Suit::Fours };
    assert_eq!(seen(&HAND, &[(5, 5), (6, 0), (5, 3), (5, 1), (4, 3), (4, 2), (4, 1), (1, 0)]), Err(must_follow));
    assert_eq!(seen(&HAND[..6], &[]), Err(GameError::HandSize { player: 0, size: 6 }));
    let state = start(&mut Words(0), Trumps::FollowMe);
    assert_eq!(Observation::new(4, state.contract(), state.hands()[0]), Err(GameError::Player(4)));
}

#[test]
fn hands_that_do_not_agree_are_refused() {
    let state = start(&mut Words(3), Trumps::Suit(Suit::Doubles));
    let observation = Observation::new(2, state.contract(), state.hands()[2]).expect("seven dominoes");
    let mut hands = state.hands();
    hands.swap(1, 2);
    assert_eq!(observation.state(hands), Err(GameError::World { player: 1 }));
    let mut hands = state.hands();
    hands[3] = hands[0];
    assert_eq!(observation.state(hands), Err(GameError::World { player: 3 }));
}
