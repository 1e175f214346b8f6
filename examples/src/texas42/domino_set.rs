//! Sets of dominoes, as bits.

use super::{DOMINOES, Domino};
use std::fmt;
use std::ops::{BitAnd, BitOr, Not, Sub};

/// Dominoes that count five points: 5-0, 4-1, 3-2.
const FIVES: u32 = of_points(5);
/// Dominoes that count ten points: 5-5, 6-4.
const TENS: u32 = of_points(10);

const fn of_points(points: u8) -> u32 {
    let mut bits = 0;
    let mut index = 0;
    while let Some(domino) = Domino::from_index(index) {
        if domino.points() == points {
            bits |= 1 << index;
        }
        index += 1;
    }
    bits
}

/// A set of dominoes: bit `i` is the domino with index `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DominoSet(u32);

impl DominoSet {
    /// No domino.
    pub const EMPTY: Self = Self(0);
    /// All 28 dominoes.
    pub const ALL: Self = Self((1 << DOMINOES) - 1);

    /// The set of the lowest 28 bits. Higher bits are dropped.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Its bits, of which the highest four are 0.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set of one domino.
    pub const fn of(domino: Domino) -> Self {
        Self(1 << domino.index())
    }

    /// How many dominoes it has.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether it has none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it has this domino.
    pub const fn contains(self, domino: Domino) -> bool {
        self.0 & Self::of(domino).0 != 0
    }

    /// Whether all its dominoes are in another set.
    pub const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Adds a domino.
    pub const fn insert(&mut self, domino: Domino) {
        self.0 |= Self::of(domino).0;
    }

    /// Takes a domino out, if it is in.
    pub const fn remove(&mut self, domino: Domino) {
        self.0 &= !Self::of(domino).0;
    }

    /// The domino with the lowest index.
    pub const fn first(self) -> Option<Domino> {
        Domino::from_index(self.0.trailing_zeros() as usize)
    }

    /// Points of all its dominoes together, without those for tricks. All 28 have 35.
    pub const fn points(self) -> u8 {
        (5 * (self.0 & FIVES).count_ones() + 10 * (self.0 & TENS).count_ones()) as u8
    }

    /// Its dominoes by index.
    pub const fn iter(self) -> Dominoes {
        Dominoes(self)
    }
}

impl BitOr for DominoSet {
    type Output = Self;

    /// Union.
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for DominoSet {
    type Output = Self;

    /// Intersection.
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Sub for DominoSet {
    type Output = Self;

    /// Difference.
    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl Not for DominoSet {
    type Output = Self;

    /// Complement, among the 28 dominoes.
    fn not(self) -> Self {
        Self::ALL - self
    }
}

impl FromIterator<Domino> for DominoSet {
    fn from_iter<I: IntoIterator<Item = Domino>>(dominoes: I) -> Self {
        dominoes.into_iter().fold(Self::EMPTY, |set, domino| set | Self::of(domino))
    }
}

impl IntoIterator for DominoSet {
    type Item = Domino;
    type IntoIter = Dominoes;
    fn into_iter(self) -> Dominoes {
        self.iter()
    }
}

impl fmt::Display for DominoSet {
    /// As `6-4 5-5`, by index.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, domino) in self.iter().enumerate() {
            write!(f, "{}{domino}", if place == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// The dominoes of a [`DominoSet`], by index.
#[derive(Clone, Debug)]
pub struct Dominoes(DominoSet);

impl Iterator for Dominoes {
    type Item = Domino;
    fn next(&mut self) -> Option<Domino> {
        let domino = self.0.first()?;
        self.0.0 &= self.0.0 - 1; // the lowest bit
        Some(domino)
    }
}
