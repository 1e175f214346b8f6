//! Which moves to try first: the moves that mostly settle a position.

use super::super::{HAND, PLAYERS};
use super::search::{Hands, OpenTrick, Search, points};

/// Moves by descending score, sorted only as far as they are asked for.
pub(super) struct Moves {
    scored: [(i32, u8); HAND],
    next: usize,
    length: usize,
}

impl Moves {
    #[inline]
    pub(super) fn new(moves: u32, score: impl Fn(u32) -> i32) -> Self {
        let mut scored = [(0, 0); HAND];
        let mut left = moves;
        let mut length = 0;
        // One move needs no score.
        if moves.is_power_of_two() {
            scored[0].1 = moves.trailing_zeros() as u8;
            return Self { scored, next: 0, length: 1 };
        }
        for place in &mut scored {
            if left == 0 {
                break;
            }
            let domino = left.trailing_zeros();
            *place = (score(domino), domino as u8);
            left &= left - 1;
            length += 1;
        }
        Self { scored, next: 0, length }
    }

    /// The move with the highest score that is left.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u32> {
        let left = self.scored[..self.length].get_mut(self.next..)?;
        let mut highest = 0;
        for place in 1..left.len() {
            if left[place].0 > left[highest].0 {
                highest = place;
            }
        }
        let domino = left.get(highest)?.1;
        left.swap(0, highest);
        self.next += 1;
        Some(domino.into())
    }
}

impl Search<'_> {
    /// All leads, in order.
    pub(super) fn leads(&self, hands: &Hands, leader: usize, known: Option<u32>) -> Moves {
        Moves::new(hands[leader], |domino| self.lead_score(hands, leader, domino, known))
    }

    /// All dominoes that may follow, in order.
    pub(super) fn follows(&self, hands: &Hands, trick: &OpenTrick) -> Moves {
        let moves = self.following(hands[trick.mover], trick.led);
        let next = if trick.missing > 1 { self.following(hands[(trick.mover + 1) % PLAYERS], trick.led) } else { 0 };
        Moves::new(moves, |domino| self.follow_score(trick, next, domino))
    }

    /// The known lead; then leads that no opponent can beat, with many points; then those with which the partner may
    /// help, with few points.
    fn lead_score(&self, hands: &Hands, leader: usize, domino: u32, known: Option<u32>) -> i32 {
        if known == Some(domino) {
            return 10_000;
        }
        let led = self.led(domino);
        let beating = self.beating(led, domino);
        let beats = |seat: usize| self.following(hands[(leader + seat) % PLAYERS], led) & beating != 0;
        let (points, weak) = (points(1 << domino), beating.count_ones() as i32);
        if !beats(1) && !beats(3) {
            1000 + 10 * points - weak
        } else {
            let help = if beats(2) { 100 } else { 0 };
            help - 5 * points - weak
        }
    }

    /// Where the side will have the trick, as far as the next player's moves say: many points, and the weakest domino.
    /// Else few points.
    fn follow_score(&self, trick: &OpenTrick, next: u32, domino: u32) -> i32 {
        let beating = self.beating(trick.led, domino);
        let (points, weak) = (points(1 << domino), beating.count_ones() as i32);
        if trick.beating & 1 << domino != 0 {
            return if next & beating == 0 { 200 + 10 * points + weak } else { 50 - 5 * points + weak };
        }
        if trick.winner % 2 == trick.mover % 2 {
            return if next & trick.beating == 0 { 300 + 5 * points + weak } else { 100 + 5 * points + weak };
        }
        weak - 10 * points
    }
}
