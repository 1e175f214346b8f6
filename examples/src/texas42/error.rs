//! What the rules refuse.

use super::{Domino, Suit};

/// Why a play or an observation was refused. The first number is the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GameError {
    /// A domino that the player does not hold.
    #[error("player {0} cannot hold {1}: play a domino of the hand")]
    NotHeld(usize, Domino),
    /// A domino of another suit than the one led, by a player who can follow.
    #[error("player {0} played {1} where {2} were led, and can follow: play a domino of the suit")]
    MustFollow(usize, Domino, Suit),
    /// A domino after the last trick.
    #[error("{0} was played after the last trick: deal a new hand")]
    Over(Domino),
    /// An observation of a player who is not to move; the second number is who is.
    #[error("player {0} decides, but player {1} is to move: ask the player whose turn it is")]
    NotToMove(usize, usize),
    /// No assignment of so many unseen dominoes agrees with the voids and the sizes of hands.
    #[error("no assignment of the {0} unseen dominoes agrees with voids and sizes of hands: check the history")]
    NoWorlds(usize),
}
