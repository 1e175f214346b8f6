//! Bids and contracts.

use super::{PLAYERS, Trumps};

/// Points of a hand: seven tricks and 35 of dominoes.
pub const HAND_POINTS: u8 = 42;

/// A bid: 30 to 42 points for one mark, or two marks for all 42 points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bid(u8);

impl Bid {
    /// The lowest bid, 30 points.
    pub const LOWEST: Self = Self(30);
    /// Two marks, written 84: all tricks are needed.
    pub const TWO_MARKS: Self = Self(2 * HAND_POINTS);

    /// A bid of 30 to 42 points, or 84.
    ///
    /// # Panics
    ///
    /// Panics on other numbers.
    #[track_caller]
    pub fn new(bid: u8) -> Self {
        assert!(matches!(bid, 30..=HAND_POINTS | 84), "{bid} is not a bid: bid 30 to 42 points, or 84 for two marks");
        Self(bid)
    }

    /// The number: 30 to 42, or 84.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Points that the side of the declarer needs: `min(bid, 42)`.
    pub const fn needed(self) -> u8 {
        if self.0 < HAND_POINTS { self.0 } else { HAND_POINTS }
    }

    /// Marks that the hand is worth to who wins it.
    pub const fn marks(self) -> u8 {
        if self.0 > HAND_POINTS { 2 } else { 1 }
    }
}

/// Who plays for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Contract {
    declarer: u8,
    trumps: Trumps,
    bid: Bid,
}

impl Contract {
    /// A contract of the declarer, who leads the first trick.
    ///
    /// # Panics
    ///
    /// Panics if there is no such player.
    #[track_caller]
    pub fn new(declarer: usize, trumps: Trumps, bid: Bid) -> Self {
        assert!(declarer < PLAYERS, "there is no player {declarer}: players are 0, 1, 2 and 3");
        Self { declarer: declarer as u8, trumps, bid }
    }

    /// The player who named the trumps.
    pub const fn declarer(self) -> usize {
        self.declarer as usize
    }

    /// The trumps.
    pub const fn trumps(self) -> Trumps {
        self.trumps
    }

    /// The bid.
    pub const fn bid(self) -> Bid {
        self.bid
    }
}

/// Who wins the marks of a hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The side that wins them: 0 of players 0 and 2, 1 of players 1 and 3.
    pub side: usize,
    /// Its marks.
    pub marks: u8,
    /// Whether the declarer made the bid. Otherwise the declarer was set.
    pub made: bool,
}
