//! A hand as it is played, all dominoes open.

use super::contract::{Contract, Outcome};
use super::deal::{Deal, PLAYERS};
use super::domino::Domino;
use super::domino_set::DominoSet;
use super::error::GameError;
use super::progress::Progress;
use super::trick::Trick;

/// A hand between two plays: the dominoes of all players, the trick and the points. Small and `Copy`, for search.
///
/// # Example
///
/// ```
/// use eggroll_rl::EpisodeKey;
/// use eggroll_rl::games::texas42::{Bid, Contract, Deal, State, Suit, Trumps};
///
/// let (key, mut draw) = (EpisodeKey::new(1, 0, 0), 0..);
/// let deal = Deal::random(&mut || key.word(0, draw.next().expect("endless")));
/// let contract = Contract::new(0, Trumps::Suit(Suit::Sixes), Bid::LOWEST)?;
/// let mut state = State::new(deal, contract);
/// while let Some(domino) = state.legal_moves().first() {
///     state.play(domino)?;
/// }
/// assert_eq!(state.points().iter().sum::<u8>(), 42);
/// # Ok::<(), eggroll_rl::games::texas42::GameError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    hands: [DominoSet; PLAYERS],
    progress: Progress,
}

impl State {
    /// The state before the lead of the declarer.
    pub const fn new(deal: Deal, contract: Contract) -> Self {
        Self { hands: deal.hands(), progress: Progress::new(contract) }
    }

    /// Hands that agree with the progress, which the caller checks.
    pub(super) const fn from_parts(hands: [DominoSet; PLAYERS], progress: Progress) -> Self {
        Self { hands, progress }
    }

    /// What everybody sees.
    #[inline]
    pub const fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The contract.
    #[inline]
    pub const fn contract(&self) -> Contract {
        self.progress.contract()
    }

    /// Dominoes that the players still hold.
    #[inline]
    pub const fn hands(&self) -> [DominoSet; PLAYERS] {
        self.hands
    }

    /// Dominoes that nobody holds any more, those of the current trick included.
    #[inline]
    pub fn played(&self) -> DominoSet {
        let [a, b, c, d] = self.hands;
        !(a | b | c | d)
    }

    /// The trick that is played now.
    #[inline]
    pub const fn trick(&self) -> &Trick {
        self.progress.trick()
    }

    /// Who plays next. After the last trick, who won it.
    #[inline]
    pub const fn mover(&self) -> usize {
        self.progress.mover()
    }

    /// Points of both sides, of complete tricks.
    #[inline]
    pub const fn points(&self) -> [u8; 2] {
        self.progress.points()
    }

    /// Points that are still to win, with those of the current trick.
    #[inline]
    pub const fn points_left(&self) -> u8 {
        let [first, second] = self.points();
        // Of a row that is no game both together may have more.
        super::contract::HAND_POINTS.saturating_sub(first).saturating_sub(second)
    }

    /// Tricks of both sides.
    #[inline]
    pub const fn tricks(&self) -> [u8; 2] {
        self.progress.tricks()
    }

    /// Number of the trick that is played now, from 0. After the last, 7.
    #[inline]
    pub const fn trick_number(&self) -> usize {
        self.progress.trick_number()
    }

    /// Whether all seven tricks are complete.
    #[inline]
    pub const fn is_over(&self) -> bool {
        self.progress.is_over()
    }

    /// Who wins the marks, as soon as nothing can change it. See [`Progress::outcome`].
    pub const fn outcome(&self) -> Option<Outcome> {
        self.progress.outcome()
    }

    /// Dominoes that the next player may play: those that follow, or all if none does. None once the hand is over.
    #[inline]
    pub const fn legal_moves(&self) -> DominoSet {
        self.progress.legal(self.hands[self.mover()])
    }

    /// Plays a domino of the next player.
    ///
    /// # Errors
    ///
    /// A domino that the player does not hold or may not play, or any after the last trick. Then the state stays as it is.
    pub fn play(&mut self, domino: Domino) -> Result<(), GameError> {
        let player = self.mover();
        if self.is_over() {
            return Err(GameError::Over(domino));
        }
        if !self.hands[player].contains(domino) {
            return Err(GameError::NotHeld { player, domino });
        }
        if let Some(led) = self.trick().led()
            && !self.legal_moves().contains(domino)
        {
            return Err(GameError::MustFollow { player, domino, led });
        }
        self.play_unchecked(domino);
        Ok(())
    }

    /// Plays a domino without a check, for search. After an illegal one the state means nothing.
    ///
    /// # Panics
    ///
    /// Panics on an illegal domino in debug builds.
    #[inline]
    pub fn play_unchecked(&mut self, domino: Domino) {
        debug_assert!(self.legal_moves().contains(domino), "player {} may not play {domino}", self.mover());
        self.hands[self.mover()].remove(domino);
        self.progress.play(domino);
    }
}
