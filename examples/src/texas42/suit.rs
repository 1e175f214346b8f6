//! Suits of dominoes.

use std::fmt;

/// Suits, doubles included.
pub(super) const SUITS: usize = 8;

/// A suit: the dominoes with a number of pips, or the doubles where they are trumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Suit {
    /// Dominoes with a blank end.
    Blanks,
    /// Dominoes with a one (aces).
    Ones,
    /// Dominoes with a two (deuces).
    Twos,
    /// Dominoes with a three (treys).
    Threes,
    /// Dominoes with a four.
    Fours,
    /// Dominoes with a five.
    Fives,
    /// Dominoes with a six.
    Sixes,
    /// Doubles: a suit only where they are trumps.
    Doubles,
}

impl Suit {
    /// All suits, by index.
    pub const ALL: [Self; SUITS] =
        [Self::Blanks, Self::Ones, Self::Twos, Self::Threes, Self::Fours, Self::Fives, Self::Sixes, Self::Doubles];

    /// Its number of pips. `None` for doubles.
    pub const fn pip(self) -> Option<u8> {
        match self {
            Self::Doubles => None,
            suit => Some(suit as u8),
        }
    }

    /// Its index: the number of pips, and 7 for doubles.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Suit {
    /// As `sixes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["blanks", "ones", "twos", "threes", "fours", "fives", "sixes", "doubles"][self.index()])
    }
}
