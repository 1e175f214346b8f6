//! What a player knows: voids, counts.

use super::slow::{self, pips};
use super::support::{Words, after, domino, set};
use eggroll_examples::texas42::{Bid, Contract, Observation, Play, Suit, Trumps};
use proptest::prelude::*;

proptest! {
    #[test]
    fn it_agrees_with_the_hand(seed: u64, trumps in 0..9_usize, plays in 0..=28_usize, player in 0..4_usize) {
        let trumps = Trumps::ALL[trumps];
        let (state, plays) = after(&mut Words::new(seed), trumps, plays);
        let expected = slow::players(trumps, state.contract().declarer(), &plays);
        let hand = slow::first_hands(state.hands(), &expected)[player];
        let observation = Observation::after(player, state.contract(), hand, plays.iter().copied());
        prop_assert_eq!(observation.progress(), &*state);
        prop_assert_eq!((observation.player(), observation.hand()), (player, state.hands()[player]));
        prop_assert_eq!(observation.played(), state.played());
        prop_assert_eq!(observation.counts().map(usize::from), state.hands().map(|hand| hand.len()));
        prop_assert_eq!(observation.unseen().len() + observation.hand().len() + plays.len(), 28);
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
    let contract = Contract::new(0, Trumps::Suit(Suit::Sixes), Bid::LOWEST);
    let hand = set(&[(5, 5), (5, 4), (4, 4), (1, 0), (1, 1), (2, 0), (6, 6)]);
    let plays = [(5, 5), (5, 3), (6, 1), (0, 0)].map(|(high, low)| domino(high, low));
    let observation = Observation::after(0, contract, hand, plays);
    let voids = |player| Suit::ALL.into_iter().filter(|&suit| observation.is_void(player, suit)).collect::<Vec<_>>();
    assert_eq!([0, 1, 2, 3].map(voids), [vec![], vec![], vec![Suit::Fives], vec![Suit::Fives]]);
    // 6-5 is a trump, so that players without fives may hold it.
    assert!(observation.may_hold(3).contains(domino(6, 5)) && !observation.may_hold(3).contains(domino(5, 2)));
    assert_eq!((observation.counts(), observation.progress().mover()), ([6; 4], 2));
}
