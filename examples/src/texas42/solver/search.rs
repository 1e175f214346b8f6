//! Alpha-beta search with an empty window, trick by trick.

use super::super::trumps::Rules;
use super::super::{DominoSet, PLAYERS, Suit, Trick, Trumps};
use super::table::TranspositionTable;

/// The dominoes of each player, as bits.
pub(super) type Hands = [u32; PLAYERS];

/// Worse than any value, of the player who minimizes.
const NO_MOVE: i32 = 1000;

/// Points of dominoes, without those for tricks.
#[inline]
pub(super) fn points(dominoes: u32) -> i32 {
    i32::from(DominoSet::from_bits(dominoes).points())
}

/// A trick with one to three dominoes.
#[derive(Clone, Copy)]
pub(super) struct OpenTrick {
    pub(super) mover: usize,
    /// Players that are still to play, 1 to 3.
    pub(super) missing: usize,
    pub(super) led: Suit,
    pub(super) winner: usize,
    /// Dominoes that are stronger than all in the trick.
    pub(super) beating: u32,
    pub(super) points: i32,
}

impl OpenTrick {
    /// The same trick. `None` before the lead.
    pub(super) fn of(trick: &Trick, trumps: Trumps) -> Option<Self> {
        let led = trick.led()?;
        let beating = trick.plays().fold(!0, |beating, (_, domino)| beating & trumps.beating(led, domino).bits());
        Some(Self {
            mover: trick.mover(),
            missing: PLAYERS - trick.len(),
            led,
            winner: trick.winner()?,
            beating,
            points: i32::from(trick.points()),
        })
    }
}

/// The best value so far of a player who maximizes or minimizes the points of side 0.
struct Best {
    maximizes: bool,
    value: i32,
    domino: u32,
}

impl Best {
    fn new(player: usize) -> Self {
        let maximizes = player.is_multiple_of(2);
        Self { maximizes, value: if maximizes { -NO_MOVE } else { NO_MOVE }, domino: 0 }
    }

    /// Takes a value if it is better, and says whether it settles on which side of the target the position is.
    #[inline]
    fn settles(&mut self, value: i32, domino: u32, target: i32) -> bool {
        if if self.maximizes { value > self.value } else { value < self.value } {
            (self.value, self.domino) = (value, domino);
        }
        (self.value >= target) == self.maximizes
    }
}

/// A search of one deal. All values are points of side 0, players 0 and 2, in the tricks that are not complete.
///
/// With an empty window at a target `t` a search returns `v ≥ t` if the value is at least `v`, and `v < t` if it is at
/// most `v`.
pub(super) struct Search<'a> {
    pub(super) rules: &'static Rules,
    pub(super) trumps: u32,
    table: &'a mut TranspositionTable,
    visited: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(trumps: Trumps, table: &'a mut TranspositionTable) -> Self {
        Self { rules: trumps.rules(), trumps: trumps.trumps().bits(), table, visited: 0 }
    }

    pub(super) fn visited(&self) -> u64 {
        self.visited
    }

    /// The dominoes of a hand that may be played after a lead.
    #[inline]
    pub(super) fn following(&self, hand: u32, led: Suit) -> u32 {
        let members = hand & self.rules.members[led.index()];
        if members == 0 { hand } else { members }
    }

    /// The suit that a domino leads.
    #[inline]
    pub(super) fn led(&self, domino: u32) -> Suit {
        self.rules.led[domino as usize % self.rules.led.len()]
    }

    /// The dominoes that are stronger than one after a lead.
    #[inline]
    pub(super) fn beating(&self, led: Suit, domino: u32) -> u32 {
        let beating = &self.rules.beating[led.index()];
        beating[domino as usize % beating.len()]
    }

    /// A position before a lead.
    pub(super) fn lead(&mut self, hands: Hands, leader: usize, target: i32) -> i32 {
        let left = hands.iter().fold(0, |left, hand| left | hand);
        let tricks = hands[leader].count_ones();
        let total = tricks as i32 + points(left);
        // Without a search: no value is below 0 or above the total.
        if target <= 0 || target > total {
            return if target <= 0 { 0 } else { total };
        }
        self.visited += 1;
        if tricks == 1 {
            return if self.last_winner(hands, leader).is_multiple_of(2) { total } else { 0 };
        }
        let key = left | (leader as u32) << 28;
        let known = self.table.get(key);
        let (mut lower, mut upper) = known.map_or_else(
            || self.bounds(&hands, leader, total),
            |entry| (i32::from(entry.lower), i32::from(entry.upper)),
        );
        if lower >= target || upper < target {
            return if lower >= target { lower } else { upper };
        }
        let mut best = Best::new(leader);
        let mut moves = self.leads(&hands, leader, known.map(|entry| entry.lead.into()));
        while let Some(domino) = moves.next() {
            let led = self.led(domino);
            let mut next = hands;
            next[leader] ^= 1 << domino;
            let trick = OpenTrick {
                mover: (leader + 1) % PLAYERS,
                missing: PLAYERS - 1,
                led,
                winner: leader,
                beating: self.beating(led, domino),
                points: points(1 << domino),
            };
            if best.settles(self.follow(next, trick, target), domino, target) {
                break;
            }
        }
        if best.value >= target {
            lower = best.value;
        } else {
            upper = best.value;
        }
        self.table.put(key, lower as i8, upper as i8, best.domino as u8);
        best.value
    }

    /// A position within a trick.
    pub(super) fn follow(&mut self, hands: Hands, trick: OpenTrick, target: i32) -> i32 {
        let mut best = Best::new(trick.mover);
        let mut moves = self.follows(&hands, &trick);
        while let Some(domino) = moves.next() {
            let mut next = hands;
            next[trick.mover] ^= 1 << domino;
            let mut after = trick;
            after.points += points(1 << domino);
            if trick.beating & 1 << domino != 0 {
                (after.winner, after.beating) = (trick.mover, self.beating(trick.led, domino));
            }
            let value = if trick.missing == 1 {
                let gained = if after.winner.is_multiple_of(2) { after.points + 1 } else { 0 };
                gained + self.lead(next, after.winner, target - gained)
            } else {
                (after.mover, after.missing) = ((trick.mover + 1) % PLAYERS, trick.missing - 1);
                self.follow(next, after, target)
            };
            if best.settles(value, domino, target) {
                break;
            }
        }
        best.value
    }

    /// Who wins the last trick, in which nobody has a choice.
    fn last_winner(&self, hands: Hands, leader: usize) -> usize {
        let lead = hands[leader].trailing_zeros();
        let led = self.led(lead);
        let mut winner = leader;
        let mut beating = self.beating(led, lead);
        for (player, hand) in hands.into_iter().enumerate() {
            if hand & beating != 0 {
                (winner, beating) = (player, self.beating(led, hand.trailing_zeros()));
            }
        }
        winner
    }
}
