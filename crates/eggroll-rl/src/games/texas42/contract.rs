//! Bids and contracts.

use super::error::GameError;
use super::trumps::Trumps;

/// Points of a hand: seven tricks and 35 of dominoes.
pub const HAND_POINTS: u8 = 42;

/// A bid: 30 to 42 points for one mark, or two marks for all 42 points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bid(u8);

impl Bid {
    /// The lowest bid, 30 points.
    pub const LOWEST: Self = Self(30);
    /// Two marks, written 84: all tricks are needed.
    pub const TWO_MARKS: Self = Self(2 * HAND_POINTS);

    /// A bid of 30 to 42 points, or 84.
    ///
    /// # Errors
    ///
    /// Other numbers.
    pub const fn new(bid: u8) -> Result<Self, GameError> {
        match bid {
            30..=HAND_POINTS | 84 => Ok(Self(bid)),
            _ => Err(GameError::Bid(bid)),
        }
    }

    /// The number: 30 to 42, or 84.
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Points that the side of the declarer needs: `min(bid, 42)`.
    #[inline]
    pub const fn needed(self) -> u8 {
        if self.0 < HAND_POINTS { self.0 } else { HAND_POINTS }
    }

    /// Marks that the hand is worth to who wins it.
    #[inline]
    pub const fn marks(self) -> u8 {
        if self.0 > HAND_POINTS { 2 } else { 1 }
    }
}

/// Who plays for what: declarer, trumps and bid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Contract {
    declarer: u8,
    trumps: Trumps,
    bid: Bid,
}

impl Contract {
    /// A contract of the declarer, who leads the first trick.
    ///
    /// # Errors
    ///
    /// A declarer that is not 0, 1, 2 or 3.
    pub const fn new(declarer: usize, trumps: Trumps, bid: Bid) -> Result<Self, GameError> {
        match declarer {
            0..4 => Ok(Self { declarer: declarer as u8, trumps, bid }),
            _ => Err(GameError::Player(declarer)),
        }
    }

    /// A contract of the declarer, counted modulo 4.
    #[inline]
    pub(super) const fn modulo(declarer: usize, trumps: Trumps, bid: Bid) -> Self {
        Self { declarer: (declarer % 4) as u8, trumps, bid }
    }

    /// The player who named the trumps.
    #[inline]
    pub const fn declarer(self) -> usize {
        self.declarer as usize
    }

    /// The trumps.
    #[inline]
    pub const fn trumps(self) -> Trumps {
        self.trumps
    }

    /// The bid.
    #[inline]
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
