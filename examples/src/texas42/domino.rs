//! The 28 dominoes of a double-six set.

use std::fmt;

/// Dominoes of a set.
pub const DOMINOES: usize = 28;

/// Pips of every domino, the higher first: `h-l` is at `h·(h + 1)/2 + l`.
const PIPS: [[u8; 2]; DOMINOES] = {
    let mut pips = [[0; 2]; DOMINOES];
    let mut high = 0;
    while high <= 6 {
        let mut low = 0;
        while low <= high {
            pips[(high * (high + 1) / 2 + low) as usize] = [high, low];
            low += 1;
        }
        high += 1;
    }
    pips
};

/// A domino, as its index: `h-l` with `h ≥ l` is `h·(h + 1)/2 + l`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domino(u8);

impl Domino {
    /// The domino with two numbers of pips, in either order. `None` if one is above 6.
    pub const fn new(first: u8, second: u8) -> Option<Self> {
        let (high, low) = if first >= second { (first, second) } else { (second, first) };
        if high <= 6 { Some(Self(high * (high + 1) / 2 + low)) } else { None }
    }

    /// The domino with an index. `None` from 28 on.
    pub const fn from_index(index: usize) -> Option<Self> {
        if index < DOMINOES { Some(Self(index as u8)) } else { None }
    }

    /// Its index, `0 .. 28`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The higher number of pips.
    pub const fn high(self) -> u8 {
        PIPS[self.index()][0]
    }

    /// The lower number of pips; of a double the same as the higher.
    pub const fn low(self) -> u8 {
        PIPS[self.index()][1]
    }

    /// Whether both numbers are the same.
    pub const fn is_double(self) -> bool {
        self.high() == self.low()
    }

    /// The pips on the other end, if one end has this many. Of a double the same number.
    pub const fn other(self, pip: u8) -> Option<u8> {
        if self.high() == pip {
            Some(self.low())
        } else if self.low() == pip {
            Some(self.high())
        } else {
            None
        }
    }

    /// Points for the side that wins it, the count: the sum of pips where it is 5 or 10, else 0.
    pub const fn points(self) -> u8 {
        match self.high() + self.low() {
            count @ (5 | 10) => count,
            _ => 0,
        }
    }
}

impl fmt::Display for Domino {
    /// As `6-4`, the higher number first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.high(), self.low())
    }
}
