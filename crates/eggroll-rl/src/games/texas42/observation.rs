//! What one player knows of a hand.

use super::contract::Contract;
use super::deal::{HAND, PLAYERS};
use super::domino::{DOMINOES, Domino};
use super::domino_set::DominoSet;
use super::error::GameError;
use super::progress::Progress;
use super::state::State;
use super::suit::Suit;

/// A domino and who played it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Play {
    /// Who played it.
    pub player: usize,
    /// The domino.
    pub domino: Domino,
}

/// What one player knows: the own hand, the contract and all plays in order. From them follow the voids of each player: the suits in which
/// a player did not follow.
///
/// It is updated play by play with [`record`](Self::record).
///
/// # Example
///
/// ```
/// use eggroll_rl::games::texas42::{Bid, Contract, Domino, DominoSet, Observation, Suit, Trumps};
///
/// // Player 1 holds the seven dominoes with the lowest indices, and sees a lead of 5-5 by player 0.
/// let contract = Contract::new(0, Trumps::FollowMe, Bid::LOWEST)?;
/// let mut seen = Observation::new(1, contract, DominoSet::from_bits(0x7f))?;
/// seen.record(Domino::new(5, 5).expect("a domino"))?;
/// assert_eq!(seen.legal_moves(), seen.hand());
/// seen.record(Domino::new(0, 0).expect("a domino"))?;
/// assert!(seen.is_void(1, Suit::Fives) && seen.unseen().len() == 20);
/// # Ok::<(), eggroll_rl::games::texas42::GameError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Observation {
    player: usize,
    hand: DominoSet,
    progress: Progress,
    plays: [Option<(u8, Domino)>; DOMINOES],
    played: DominoSet,
    counts: [u8; PLAYERS],
    /// Suits by player, as bits.
    voids: [u8; PLAYERS],
    /// Dominoes of these suits.
    excluded: [DominoSet; PLAYERS],
}

impl Observation {
    /// What a player knows before the first lead.
    ///
    /// # Errors
    ///
    /// A player that is not 0, 1, 2 or 3, or a hand that has not seven dominoes.
    pub const fn new(player: usize, contract: Contract, hand: DominoSet) -> Result<Self, GameError> {
        if player >= PLAYERS {
            return Err(GameError::Player(player));
        }
        if hand.len() != HAND {
            return Err(GameError::HandSize { player, size: hand.len() });
        }
        Ok(Self {
            player,
            hand,
            progress: Progress::new(contract),
            plays: [None; DOMINOES],
            played: DominoSet::EMPTY,
            counts: [HAND as u8; PLAYERS],
            voids: [0; PLAYERS],
            excluded: [DominoSet::EMPTY; PLAYERS],
        })
    }

    /// What a player with seven dominoes at first knows after plays, in order.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new) and [`record`](Self::record).
    pub fn after(
        player: usize,
        contract: Contract,
        hand: DominoSet,
        plays: impl IntoIterator<Item = Domino>,
    ) -> Result<Self, GameError> {
        let mut observation = Self::new(player, contract, hand)?;
        plays.into_iter().try_for_each(|domino| observation.record(domino))?;
        Ok(observation)
    }

    /// Adds the next play, of the player whose turn it is.
    ///
    /// # Errors
    ///
    /// A play that the rules exclude by what the observer knows: after the last trick, of a domino that was played, that is in another hand,
    /// that does not follow from the own hand, or of a suit in which the player is void. Then the observation stays as it is.
    pub fn record(&mut self, domino: Domino) -> Result<(), GameError> {
        let player = self.progress.mover();
        self.check(player, domino)?;
        if let Some(led) = self.progress.void_shown_by(domino) {
            self.voids[player] |= 1 << led.index();
            self.excluded[player] = self.excluded[player] | self.progress.contract().trumps().members(led);
        }
        self.plays[self.played.len()] = Some((player as u8, domino));
        self.played.insert(domino);
        self.hand.remove(domino);
        self.counts[player] -= 1;
        self.progress.play(domino);
        Ok(())
    }

    fn check(&self, player: usize, domino: Domino) -> Result<(), GameError> {
        if self.progress.is_over() {
            return Err(GameError::Over(domino));
        }
        if self.played.contains(domino) {
            return Err(GameError::PlayedTwice(domino));
        }
        if self.hand.contains(domino) != (player == self.player) {
            return Err(GameError::NotHeld { player, domino });
        }
        let trumps = self.progress.contract().trumps();
        let void = |suit: &Suit| self.is_void(player, *suit) && trumps.members(*suit).contains(domino);
        if let Some(suit) = Suit::ALL.into_iter().find(void) {
            return Err(GameError::Revoked { player, domino, suit });
        }
        if player == self.player
            && let Some(led) = self.progress.trick().led()
            && !self.progress.legal(self.hand).contains(domino)
        {
            return Err(GameError::MustFollow { player, domino, led });
        }
        Ok(())
    }

    /// The observer.
    #[inline]
    pub const fn player(&self) -> usize {
        self.player
    }

    /// Dominoes that the observer still holds.
    #[inline]
    pub const fn hand(&self) -> DominoSet {
        self.hand
    }

    /// Contract, trick and points, which everybody sees.
    #[inline]
    pub const fn progress(&self) -> &Progress {
        &self.progress
    }

    /// All plays, in order.
    pub fn plays(&self) -> impl Iterator<Item = Play> {
        self.plays.into_iter().flatten().map(|(player, domino)| Play { player: player.into(), domino })
    }

    /// All dominoes that were played.
    #[inline]
    pub const fn played(&self) -> DominoSet {
        self.played
    }

    /// Dominoes that the other players hold.
    #[inline]
    pub fn unseen(&self) -> DominoSet {
        !(self.hand | self.played)
    }

    /// How many dominoes each player still holds.
    #[inline]
    pub const fn counts(&self) -> [u8; PLAYERS] {
        self.counts
    }

    /// Whether a player did not follow a suit.
    ///
    /// # Panics
    ///
    /// Panics if there is no such player.
    #[inline]
    #[track_caller]
    pub const fn is_void(&self, player: usize, suit: Suit) -> bool {
        assert!(player < PLAYERS, "players are 0, 1, 2 and 3");
        self.voids[player] & 1 << suit.index() != 0
    }

    /// Unseen dominoes that a player may hold by the voids; of the observer the hand.
    ///
    /// # Panics
    ///
    /// Panics if there is no such player.
    #[inline]
    #[track_caller]
    pub fn may_hold(&self, player: usize) -> DominoSet {
        assert!(player < PLAYERS, "there is no player {player}: players are 0, 1, 2 and 3");
        if player == self.player { self.hand } else { self.unseen() - self.excluded[player] }
    }

    /// Dominoes that the observer may play, if it is the observer's turn. Else none.
    pub fn legal_moves(&self) -> DominoSet {
        if self.progress.mover() == self.player { self.progress.legal(self.hand) } else { DominoSet::EMPTY }
    }

    /// The state in a world: all hands, by player.
    ///
    /// # Errors
    ///
    /// A hand that has a domino which the player cannot hold, or too many or too few.
    pub fn state(&self, world: [DominoSet; PLAYERS]) -> Result<State, GameError> {
        let mut held = DominoSet::EMPTY;
        for (player, hand) in world.into_iter().enumerate() {
            let fits = hand.is_subset(self.may_hold(player)) && (hand & held).is_empty();
            if !fits || hand.len() != usize::from(self.counts[player]) {
                return Err(GameError::World { player });
            }
            held = held | hand;
        }
        Ok(State::from_parts(world, self.progress))
    }
}
