//! A hand as it is played, all dominoes open.

use super::{Contract, Deal, Domino, DominoSet, GameError, HAND_POINTS, PLAYERS, Progress};
use std::ops::Deref;

/// A hand between two plays: the dominoes of all players, and the [`Progress`] that everybody sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandState {
    hands: [DominoSet; PLAYERS],
    progress: Progress,
}

impl Deref for HandState {
    type Target = Progress;

    fn deref(&self) -> &Progress {
        &self.progress
    }
}

impl HandState {
    /// The state before the lead of the declarer.
    pub const fn new(deal: Deal, contract: Contract) -> Self {
        Self { hands: deal.hands(), progress: Progress::new(contract) }
    }

    /// Hands that agree with the progress, which the caller checks.
    pub(super) const fn from_parts(hands: [DominoSet; PLAYERS], progress: Progress) -> Self {
        Self { hands, progress }
    }

    /// Dominoes that the players still hold.
    pub const fn hands(&self) -> [DominoSet; PLAYERS] {
        self.hands
    }

    /// Dominoes that have been played, also in the current trick.
    pub fn played(&self) -> DominoSet {
        let [a, b, c, d] = self.hands;
        !(a | b | c | d)
    }

    /// Points that are still to win, including the current trick's.
    pub fn points_left(&self) -> u8 {
        HAND_POINTS - self.points().iter().sum::<u8>()
    }

    /// Dominoes that the next player may play: the dominoes that follow, or all if none does. None once the hand is
    /// over.
    pub fn legal_moves(&self) -> DominoSet {
        self.legal(self.hands[self.mover()])
    }

    /// Plays a domino of the next player.
    ///
    /// # Errors
    ///
    /// A domino that the player does not hold or may not play, or any after the last trick. Then the state stays as it
    /// is.
    pub fn play(&mut self, domino: Domino) -> Result<(), GameError> {
        let player = self.mover();
        if self.is_over() {
            return Err(GameError::Over(domino));
        }
        if !self.hands[player].contains(domino) {
            return Err(GameError::NotHeld(player, domino));
        }
        if let Some(led) = self.trick().led()
            && !self.legal_moves().contains(domino)
        {
            return Err(GameError::MustFollow(player, domino, led));
        }
        self.hands[player].remove(domino);
        self.progress.play(domino);
        Ok(())
    }
}
