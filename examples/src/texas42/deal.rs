//! Deals: seven dominoes for each player.

use super::{DOMINOES, DominoSet, uniform_below};

/// Players: 0 and 2 are partners, and so are 1 and 3.
pub const PLAYERS: usize = 4;
/// Dominoes of a hand, and tricks.
pub const HAND: usize = 7;

/// The hands of a deal: four times seven dominoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deal([DominoSet; PLAYERS]);

impl Deal {
    /// A deal of given hands.
    ///
    /// # Panics
    ///
    /// Panics if a hand has not seven dominoes, or a domino is in two hands.
    #[track_caller]
    pub fn new(hands: [DominoSet; PLAYERS]) -> Self {
        let dealt = hands.into_iter().fold(DominoSet::EMPTY, |dealt, hand| dealt | hand);
        assert!(dealt == DominoSet::ALL && hands.iter().all(|hand| hand.len() == HAND), "deal each seven dominoes");
        Self(hands)
    }

    /// A random deal, uniform over all `28!/7!⁴`, from random words.
    pub fn random(words: &mut impl FnMut() -> u32) -> Self {
        let mut bits: [u32; DOMINOES] = std::array::from_fn(|index| 1 << index);
        // Fisher and Yates: each place from the second on is swapped with one up to it.
        for place in 1..DOMINOES {
            bits.swap(place, uniform_below(place as u64 + 1, words) as usize);
        }
        Self(std::array::from_fn(|player| DominoSet::from_bits(bits[player * HAND..][..HAND].iter().sum())))
    }

    /// The hands, by player.
    pub const fn hands(self) -> [DominoSet; PLAYERS] {
        self.0
    }
}
