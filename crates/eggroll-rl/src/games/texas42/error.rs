//! What the rules refuse.

use super::domino::Domino;
use super::suit::Suit;

/// Why a bid, a deal, a play or an observation was refused.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GameError {
    /// A player that is not 0, 1, 2 or 3.
    #[error("there is no player {0}: players are 0, 1, 2 and 3")]
    Player(usize),
    /// A bid that is neither 30 to 42 nor 84.
    #[error("{0} is no bid: bid 30 to 42 points, or 84 for two marks")]
    Bid(u8),
    /// A hand that has not seven dominoes.
    #[error("player {player} has {size} dominoes: deal seven")]
    HandSize {
        /// Whose hand.
        player: usize,
        /// Its dominoes.
        size: usize,
    },
    /// A domino in two hands.
    #[error("{0} is in two hands: deal it once")]
    DealtTwice(Domino),
    /// A domino that the player does not hold.
    #[error("player {player} cannot hold {domino}: play a domino of the hand")]
    NotHeld {
        /// Who played it.
        player: usize,
        /// The domino.
        domino: Domino,
    },
    /// A domino of another suit by a player who can follow.
    #[error("player {player} played {domino} where {led} were led, and can follow: play a domino of the suit")]
    MustFollow {
        /// Who played it.
        player: usize,
        /// The domino.
        domino: Domino,
        /// The suit that was led.
        led: Suit,
    },
    /// A domino that was played before.
    #[error("{0} was played before: play a domino of the hand")]
    PlayedTwice(Domino),
    /// A domino of a suit in which the player did not follow before.
    #[error("player {player} played {domino} of the {suit}, but did not follow them before: check the history")]
    Revoked {
        /// Who played it.
        player: usize,
        /// The domino.
        domino: Domino,
        /// The suit.
        suit: Suit,
    },
    /// A domino after the last trick.
    #[error("{0} was played after the last trick: deal a new hand")]
    Over(Domino),
    /// Hands that are not what an observation says.
    #[error("the hand of player {player} does not agree with what was seen: use the hands of a sampled world")]
    World {
        /// Whose hand does not agree.
        player: usize,
    },
    /// An observation of a player who is not to move.
    #[error("player {player} decides, but player {mover} is to move: ask the player whose turn it is")]
    NotToMove {
        /// Whose observation it is.
        player: usize,
        /// Who is to move.
        mover: usize,
    },
    /// No assignment of the unseen dominoes agrees with the voids and the sizes of hands.
    #[error("no assignment of the {unseen} unseen dominoes agrees with voids and sizes of hands: check the history")]
    NoWorlds {
        /// Unseen dominoes.
        unseen: usize,
    },
}

eggroll_core::debug_is_message!(GameError);
