//! What one player knows of a hand.

use super::{Contract, DOMINOES, Domino, DominoSet, HAND, PLAYERS, Progress, Suit};

/// A domino and who played it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Play {
    /// Who played it.
    pub player: usize,
    /// The domino.
    pub domino: Domino,
}

/// What one player knows: the own hand, the contract and all plays in order. From them follow the voids of each player:
/// the suits in which a player did not follow.
///
/// It is updated play by play with [`record`](Self::record).
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
    /// # Panics
    ///
    /// Panics if there is no such player, or the hand has not seven dominoes.
    #[track_caller]
    pub fn new(player: usize, contract: Contract, hand: DominoSet) -> Self {
        assert!(player < PLAYERS && hand.len() == HAND, "player {player} with {hand}: give one of 4 seven dominoes");
        Self {
            player,
            hand,
            progress: Progress::new(contract),
            plays: [None; DOMINOES],
            played: DominoSet::EMPTY,
            counts: [HAND as u8; PLAYERS],
            voids: [0; PLAYERS],
            excluded: [DominoSet::EMPTY; PLAYERS],
        }
    }

    /// What a player with seven dominoes at first knows after legal plays, in order.
    pub fn after(player: usize, contract: Contract, hand: DominoSet, plays: impl IntoIterator<Item = Domino>) -> Self {
        let mut observation = Self::new(player, contract, hand);
        plays.into_iter().for_each(|domino| observation.record(domino));
        observation
    }

    /// Adds the next play, of the player whose turn it is. It has to be legal, which
    /// [`HandState::play`](super::HandState::play) knows.
    pub fn record(&mut self, domino: Domino) {
        let player = self.progress.mover();
        if let Some(led) = self.progress.void_shown_by(domino) {
            self.voids[player] |= 1 << led.index();
            self.excluded[player] = self.excluded[player] | self.progress.contract().trumps().members(led);
        }
        self.plays[self.played.len()] = Some((player as u8, domino));
        self.played.insert(domino);
        self.hand.remove(domino);
        self.counts[player] -= 1;
        self.progress.play(domino);
    }

    /// The observer.
    pub const fn player(&self) -> usize {
        self.player
    }

    /// Dominoes that the observer still holds.
    pub const fn hand(&self) -> DominoSet {
        self.hand
    }

    /// Contract, trick and points, which everybody sees.
    pub const fn progress(&self) -> &Progress {
        &self.progress
    }

    /// All plays, in order.
    pub fn plays(&self) -> impl Iterator<Item = Play> {
        self.plays.into_iter().flatten().map(|(player, domino)| Play { player: player.into(), domino })
    }

    /// All dominoes that were played.
    pub const fn played(&self) -> DominoSet {
        self.played
    }

    /// Dominoes that the other players hold.
    pub fn unseen(&self) -> DominoSet {
        !(self.hand | self.played)
    }

    /// How many dominoes each player still holds.
    pub const fn counts(&self) -> [u8; PLAYERS] {
        self.counts
    }

    /// Whether a player did not follow a suit.
    pub const fn is_void(&self, player: usize, suit: Suit) -> bool {
        self.voids[player] & 1 << suit.index() != 0
    }

    /// Unseen dominoes that a player may hold by the voids; of the observer the hand.
    pub fn may_hold(&self, player: usize) -> DominoSet {
        if player == self.player { self.hand } else { self.unseen() - self.excluded[player] }
    }

    /// Dominoes that the observer may play, if it is the observer's turn. Else none.
    pub fn legal_moves(&self) -> DominoSet {
        if self.progress.mover() == self.player { self.progress.legal(self.hand) } else { DominoSet::EMPTY }
    }
}
