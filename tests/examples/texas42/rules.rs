//! Dominoes, tricks, legal moves and points against the slow rules.

use super::slow::{self, pips};
use super::support::{Words, after, domino, set, start};
use eggroll_examples::texas42::{
    Bid, Contract, DOMINOES, Deal, Domino, DominoSet, GameError, HAND_POINTS, HandState, Suit, Trumps,
};
use proptest::prelude::*;
use std::collections::HashSet;

fn any_trumps() -> impl Strategy<Value = Trumps> {
    (0..Trumps::ALL.len()).prop_map(|index| Trumps::ALL[index])
}

#[test]
fn dominoes_have_their_index_and_pips() {
    assert_eq!(DominoSet::ALL.iter().map(pips).collect::<HashSet<_>>().len(), DOMINOES);
    for (index, domino) in DominoSet::ALL.iter().enumerate() {
        assert_eq!((domino.index(), Domino::from_index(index)), (index, Some(domino)));
        assert_eq!(Domino::new(domino.low(), domino.high()), Some(domino));
        assert!(domino.low() <= domino.high() && domino.high() <= 6);
    }
    assert_eq!((Domino::from_index(28), Domino::new(7, 0), Domino::new(0, 255)), (None, None, None));
    assert_eq!(domino(4, 6).to_string(), "6-4");
    assert_eq!((domino(6, 4).other(4), domino(6, 4).other(5), domino(5, 5).other(5)), (Some(6), None, Some(5)));
}

#[test]
fn five_dominoes_count() {
    let counting: Vec<(Domino, u8)> =
        DominoSet::ALL.iter().map(|domino| (domino, domino.points())).filter(|&(_, points)| points > 0).collect();
    let expected = [((3, 2), 5), ((4, 1), 5), ((5, 0), 5), ((5, 5), 10), ((6, 4), 10)];
    assert_eq!(counting, expected.map(|((high, low), points)| (domino(high, low), points)));
    assert_eq!(DominoSet::ALL.points() + 7, HAND_POINTS);
}

#[test]
fn strengths_order_every_pair_as_the_lists_do() {
    for trumps in Trumps::ALL {
        assert_eq!(
            trumps.trumps().iter().map(pips).collect::<HashSet<_>>(),
            slow::trump_suit(trumps).into_iter().collect()
        );
        for lead in DominoSet::ALL {
            let led = trumps.led_suit(lead);
            let members: HashSet<_> = trumps.members(led).iter().map(pips).collect();
            assert_eq!(
                members,
                slow::suit_of_lead(trumps, pips(lead)).into_iter().collect(),
                "{lead} with {trumps} as trumps"
            );
            for first in DominoSet::ALL - DominoSet::of(lead) {
                for second in DominoSet::ALL - DominoSet::of(lead) - DominoSet::of(first) {
                    let trick = [lead, first, second];
                    let strengths = trick.map(|domino| trumps.strength(led, domino));
                    let winner = slow::winner(trumps, &trick.map(pips));
                    for (place, strength) in strengths.into_iter().enumerate().filter(|&(place, _)| place != winner) {
                        assert!(strength < strengths[winner], "{trick:?} with {trumps} as trumps");
                        assert!(trumps.beating(led, trick[place]).contains(trick[winner]));
                        assert!(!trumps.beating(led, trick[winner]).contains(trick[place]));
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_hand_follows_the_slow_rules(seed: u64, trumps in any_trumps()) {
        let mut words = Words::new(seed);
        let mut state = start(&mut words, trumps);
        let mut trick: Vec<(usize, Domino)> = vec![];
        let mut points = [0; 2];
        for place in 0..28 {
            prop_assert!(!state.is_over());
            prop_assert_eq!((state.trick_number(), state.trick().len()), (place / 4, place % 4));
            let mover = if place == 0 { state.contract().declarer() } else { state.mover() };
            prop_assert_eq!(state.mover(), mover);
            let hand: Vec<_> = state.hands()[mover].iter().map(pips).collect();
            let expected = slow::legal(trumps, trick.first().map(|&(_, lead)| pips(lead)), &hand);
            prop_assert_eq!(state.legal_moves().iter().map(pips).collect::<Vec<_>>(), expected);

            let domino = words.pick(state.legal_moves());
            let before = state;
            prop_assert!(state.play(domino).is_ok());
            trick.push((mover, domino));
            prop_assert_eq!(state.played(), before.played() | DominoSet::of(domino));
            prop_assert_eq!(state.hands()[mover], before.hands()[mover] - DominoSet::of(domino));
            let union = state.hands().into_iter().fold(DominoSet::EMPTY, |union, hand| union | hand);
            prop_assert_eq!(union.len(), state.hands().iter().map(|hand| hand.len()).sum::<usize>());
            if trick.len() == 4 {
                let dominoes: Vec<_> = trick.iter().map(|&(_, domino)| pips(domino)).collect();
                let winner = trick[slow::winner(trumps, &dominoes)].0;
                points[winner % 2] += 1 + trick.iter().map(|(_, domino)| domino.points()).sum::<u8>();
                prop_assert_eq!((state.mover(), state.points()), (winner, points));
                trick.clear();
            }
            prop_assert_eq!(state.trick().plays().collect::<Vec<_>>(), trick.clone());
        }
        prop_assert!(state.is_over() && state.legal_moves().is_empty());
        prop_assert_eq!(points[0] + points[1], HAND_POINTS);
        prop_assert_eq!(state.tricks()[0] + state.tricks()[1], 7);
        prop_assert_eq!(state.points_left(), 0);
        prop_assert_eq!(state.play(domino(6, 4)), Err(GameError::Over(domino(6, 4))));
    }

    #[test]
    fn an_illegal_domino_is_refused_by_name(seed: u64, trumps in any_trumps(), plays in 0..28_usize) {
        let (state, _) = after(&mut Words::new(seed), trumps, plays);
        let player = state.mover();
        for domino in DominoSet::ALL - state.legal_moves() {
            let mut next = state;
            let error = next.play(domino).expect_err("not legal");
            let expected = match state.trick().led() {
                Some(led) if state.hands()[player].contains(domino) => GameError::MustFollow(player, domino, led),
                _ => GameError::NotHeld(player, domino),
            };
            prop_assert_eq!(error, expected);
            prop_assert!(error.to_string().contains(&domino.to_string()));
            prop_assert_eq!(next, state);
        }
    }

    #[test]
    fn the_outcome_is_certain_as_soon_as_it_is_told(seed: u64, trumps in any_trumps(), bid in 30..=43_u8) {
        let bid = Bid::new(if bid == 43 { 84 } else { bid });
        let mut words = Words::new(seed);
        let contract = Contract::new(words.below(4), trumps, bid);
        let mut state = HandState::new(Deal::random(&mut || words.next()), contract);
        let mut told = None;
        while !state.is_over() {
            state.play(words.pick(state.legal_moves())).expect("a legal domino");
            prop_assert!(told.is_none() || told == state.outcome());
            told = state.outcome();
        }
        let outcome = told.expect("the hand is over");
        let side = contract.declarer() % 2;
        let needed = if bid == Bid::TWO_MARKS { 42 } else { bid.number() };
        prop_assert_eq!(outcome.made, state.points()[side] >= needed);
        prop_assert_eq!(outcome.side == side, outcome.made);
        prop_assert_eq!(outcome.marks, if bid == Bid::TWO_MARKS { 2 } else { 1 });
        if bid == Bid::TWO_MARKS {
            prop_assert_eq!(outcome.made, state.tricks()[side] == 7);
        }
    }
}

#[test]
fn a_trick_is_played() {
    // Sixes are trumps. Player 0 leads 5-5; player 1 has no five and trumps.
    let hands = [
        set(&[(5, 5), (5, 4), (5, 3), (1, 0), (1, 1), (2, 0), (2, 1)]),
        set(&[(6, 0), (4, 4), (4, 3), (4, 2), (4, 1), (4, 0), (3, 3)]),
        set(&[(6, 5), (5, 2), (6, 6), (6, 4), (6, 3), (6, 2), (6, 1)]),
        set(&[(5, 1), (5, 0), (0, 0), (2, 2), (3, 0), (3, 1), (3, 2)]),
    ];
    let contract = Contract::new(0, Trumps::Suit(Suit::Sixes), Bid::LOWEST);
    let mut state = HandState::new(Deal::new(hands), contract);
    state.play(domino(5, 5)).expect("a lead");
    state.play(domino(6, 0)).expect("no five");
    // 6-5 is a trump and does not follow fives.
    let error = state.play(domino(6, 5));
    assert_eq!(error, Err(GameError::MustFollow(2, domino(6, 5), Suit::Fives)));
    state.play(domino(5, 2)).expect("it follows");
    state.play(domino(5, 0)).expect("it follows");
    assert_eq!((state.mover(), state.points(), state.tricks()), (1, [0, 16], [0, 1]));
    assert_eq!(state.outcome().map(|outcome| (outcome.side, outcome.made)), Some((1, false)));
}
