//! The solver against minimax without pruning and without a table.

use super::support::{Words, after, start};
use eggroll_examples::texas42::{Bid, Contract, Deal, HandState, Solver, Suit, Trumps};

/// Points of side 0 in the rest of the hand, by definition.
fn minimax(state: &HandState) -> i32 {
    if state.is_over() {
        return 0;
    }
    let values = state.legal_moves().iter().map(|domino| {
        let mut next = *state;
        next.play(domino).expect("a legal domino");
        i32::from(next.points()[0]) - i32::from(state.points()[0]) + minimax(&next)
    });
    if state.mover().is_multiple_of(2) { values.max() } else { values.min() }.expect("a legal domino")
}

/// Compares value and action values of random states with this many dominoes left.
fn compare(solver: &mut Solver, left: usize, states: usize) {
    let mut words = Words::new(left as u64);
    for trumps in Trumps::ALL {
        for _ in 0..states {
            let (state, _) = after(&mut words, trumps, 28 - left);
            let value = minimax(&state);
            assert_eq!(solver.value(&state), value, "{trumps}, {left} dominoes left: {state:?}");
            let total = i32::from(state.points_left());
            let own = |value: i32| if state.mover().is_multiple_of(2) { value } else { total - value };
            let actions = solver.action_values(&state);
            for domino in state.legal_moves() {
                let mut next = state;
                next.play(domino).expect("a legal domino");
                let gained = i32::from(next.points()[0]) - i32::from(state.points()[0]);
                assert_eq!(actions[domino.index()], Some(own(gained + minimax(&next))), "{domino} in {state:?}");
            }
            assert_eq!(actions.iter().flatten().count(), state.legal_moves().len());
            assert_eq!(actions.into_iter().flatten().max(), Some(own(value)));
        }
    }
}

#[test]
fn equals_minimax_with_up_to_three_tricks_left() {
    let mut solver = Solver::new(1 << 12);
    for left in 1..=12 {
        compare(&mut solver, left, 100);
    }
}

#[test]
fn equals_minimax_with_four_tricks_left() {
    let mut solver = Solver::new(1 << 12);
    for left in 13..=16 {
        compare(&mut solver, left, 12);
    }
}

#[test]
fn a_table_that_is_too_small_changes_no_value() {
    let mut words = Words::new(5);
    let (mut small, mut large) = (Solver::new(0), Solver::new(1 << 16));
    for trumps in Trumps::ALL {
        let (state, _) = after(&mut words, trumps, 6);
        assert_eq!(small.action_values(&state), large.action_values(&state), "{state:?}");
    }
}

#[test]
fn the_table_is_kept_for_the_same_deal_only() {
    let mut solver = Solver::new(1 << 16);
    let mut words = Words::new(6);
    let state = start(&mut words, Trumps::Suit(Suit::Fours));
    let value = solver.value(&state);
    let first = solver.visited();
    assert_eq!(solver.value(&state), value);
    assert!(solver.visited() - first <= first / 10, "{} of {first} positions again", solver.visited() - first);
    // More deals than generations of entries, and then the first once more.
    for _ in 0..300 {
        let (state, _) = after(&mut words, Trumps::Suit(Suit::Doubles), 20);
        assert_eq!(solver.value(&state), minimax(&state));
    }
    assert_eq!(solver.value(&state), value);
}

/// The same dominoes are left, but in other hands or with other trumps.
#[test]
fn bounds_of_another_deal_are_not_used() {
    let mut used = Solver::default();
    let mut words = Words::new(8);
    for _ in 0..10 {
        let mut hands = start(&mut words, Trumps::FollowMe).hands();
        for trumps in [Trumps::FollowMe, Trumps::Suit(Suit::Twos)] {
            hands.swap(0, 1);
            let contract = Contract::new(0, trumps, Bid::LOWEST);
            for _ in 0..2 {
                hands.swap(2, 3);
                let state = HandState::new(Deal::new(hands), contract);
                assert_eq!(used.value(&state), Solver::default().value(&state), "{state:?}");
            }
        }
        // The same hands with other trumps.
        for trumps in Trumps::ALL {
            let contract = Contract::new(0, trumps, Bid::LOWEST);
            let state = HandState::new(Deal::new(hands), contract);
            assert_eq!(used.value(&state), Solver::default().value(&state), "{state:?}");
        }
    }
}

/// A work counter: positions of a few deals. It may only fall.
#[test]
fn few_positions_are_visited() {
    let mut solver = Solver::default();
    let mut words = Words::new(7);
    for trumps in Trumps::ALL {
        solver.action_values(&start(&mut words, trumps));
    }
    assert_eq!(solver.visited(), 411_465);
}
