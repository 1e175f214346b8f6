//! Deals: seven dominoes for each player.

use super::domino::DOMINOES;
use super::domino_set::DominoSet;
use super::error::GameError;
use super::uniform::uniform_below;

/// Players: 0 and 2 are partners, and so are 1 and 3.
pub const PLAYERS: usize = 4;
/// Dominoes of a hand, and tricks.
pub const HAND: usize = 7;

/// The hands of a deal: four times seven dominoes.
///
/// # Example
///
/// ```
/// use eggroll_rl::games::texas42::{Deal, DominoSet};
///
/// // Seven dominoes each, in the order of their indices.
/// let hands = [0, 7, 14, 21].map(|first| DominoSet::from_bits(0x7f << first));
/// assert_eq!(Deal::new(hands)?.hands()[0].to_string(), "0-0 1-0 1-1 2-0 2-1 2-2 3-0");
/// # Ok::<(), eggroll_rl::games::texas42::GameError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deal([DominoSet; PLAYERS]);

impl Deal {
    /// A deal of given hands.
    ///
    /// # Errors
    ///
    /// A hand that has not seven dominoes, or a domino in two hands.
    pub fn new(hands: [DominoSet; PLAYERS]) -> Result<Self, GameError> {
        let mut dealt = DominoSet::EMPTY;
        for (player, hand) in hands.into_iter().enumerate() {
            if hand.len() != HAND {
                return Err(GameError::HandSize { player, size: hand.len() });
            }
            if let Some(domino) = (hand & dealt).first() {
                return Err(GameError::DealtTwice(domino));
            }
            dealt = dealt | hand;
        }
        Ok(Self(hands))
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
    #[inline]
    pub const fn hands(self) -> [DominoSet; PLAYERS] {
        self.0
    }
}
