//! A hand with its public history, and the same as a row of floats.

use super::columns::{
    BEFORE, BID, DECLARER, GAME, IN_TRICK, LEADER, LED, LENGTH, NOT_LED, OWNER, POINTS, STRENGTH, TRICK_POINTS, TRICKS,
    TRUMPS, VOIDS, WINNER,
};
use super::suit::SUITS;
use super::{Bid, Contract, Deal, Domino, DominoSet, GameError, HandState, PLAYERS, Progress, Suit, Trick, Trumps};

/// A [`HandState`] with what the players have shown: who played which domino, and the suits that a player did not follow.
///
/// As a row of floats, with the columns of [`columns`](super::columns), it is a game of
/// [`TensorRules`](super::TensorRules). Plays on either side give the same row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Game {
    state: HandState,
    /// By who played them.
    played: [DominoSet; PLAYERS],
    /// Suits by player, as bits.
    voids: [u8; PLAYERS],
}

impl Game {
    /// The game before the lead of the declarer.
    pub const fn new(deal: Deal, contract: Contract) -> Self {
        Self { state: HandState::new(deal, contract), played: [DominoSet::EMPTY; PLAYERS], voids: [0; PLAYERS] }
    }

    /// Hands, trick and points.
    pub const fn state(&self) -> &HandState {
        &self.state
    }

    /// Dominoes that a player has played, also in the current trick.
    pub const fn played(&self, player: usize) -> DominoSet {
        self.played[player]
    }

    /// Whether a player did not follow a suit.
    pub const fn is_void(&self, player: usize, suit: Suit) -> bool {
        self.voids[player] & 1 << suit.index() != 0
    }

    /// Plays a domino of the next player.
    ///
    /// # Errors
    ///
    /// The errors of [`HandState::play`]. Then the game stays as it is.
    pub fn play(&mut self, domino: Domino) -> Result<(), GameError> {
        let (player, void) = (self.state.mover(), self.state.void_shown_by(domino));
        self.state.play(domino)?;
        if let Some(suit) = void {
            self.voids[player] |= 1 << suit.index();
        }
        self.played[player].insert(domino);
        Ok(())
    }

    /// The game as a row.
    pub fn row(&self) -> [f32; GAME] {
        let mut row = [0.0; GAME];
        for (player, (hand, played)) in self.state.hands().into_iter().zip(self.played).enumerate() {
            hand.iter().for_each(|domino| row[OWNER + domino.index()] = player as f32);
            played.iter().for_each(|domino| row[OWNER + domino.index()] = (BEFORE + player) as f32);
            for suit in 0..SUITS {
                row[VOIDS + SUITS * player + suit] = f32::from(self.voids[player] >> suit & 1);
            }
        }
        let (contract, trick) = (self.state.contract(), self.state.trick());
        trick.plays().for_each(|(player, domino)| row[OWNER + domino.index()] = (IN_TRICK + player) as f32);
        row[TRUMPS] = contract.trumps().index() as f32;
        row[DECLARER] = contract.declarer() as f32;
        row[BID] = contract.bid().number().into();
        row[LEADER] = trick.leader() as f32;
        row[LENGTH] = trick.len() as f32;
        row[LED] = trick.led().map_or(NOT_LED, Suit::index) as f32;
        row[WINNER] = trick.winner().unwrap_or(trick.leader()) as f32;
        row[STRENGTH] = trick.strength().into();
        row[TRICK_POINTS] = trick.points().into();
        for side in 0..2 {
            row[POINTS + side] = self.state.points()[side].into();
            row[TRICKS + side] = self.state.tricks()[side].into();
        }
        row
    }

    /// The game of a row, as [`row`](Self::row) makes it.
    ///
    /// # Panics
    ///
    /// Panics if it names no trumps, bid or declarer. Of other rows that are no game the result means nothing.
    pub fn from_row(row: &[f32; GAME]) -> Self {
        let number = |column: usize| row[column] as usize;
        let (mut hands, mut played) = ([DominoSet::EMPTY; PLAYERS], [DominoSet::EMPTY; PLAYERS]);
        let mut in_trick = [None; PLAYERS];
        for domino in DominoSet::ALL {
            let owner = number(OWNER + domino.index());
            let player = owner % PLAYERS;
            let of = if owner < IN_TRICK { &mut hands } else { &mut played };
            of[player].insert(domino);
            if (IN_TRICK..BEFORE).contains(&owner) {
                in_trick[player] = Some(domino);
            }
        }
        let trumps = Trumps::ALL[number(TRUMPS)];
        let mut trick = Trick::new(number(LEADER));
        for _ in 0..number(LENGTH) {
            trick.push(trumps, in_trick[trick.mover()].expect("a domino of each who has played"));
        }
        let two = |column: usize| [number(column) as u8, number(column + 1) as u8];
        let contract = Contract::new(number(DECLARER), trumps, Bid::new(number(BID) as u8));
        let progress = Progress::from_parts(contract, trick, two(POINTS), two(TRICKS));
        let void = |player: usize, suit: usize| u8::from(row[VOIDS + SUITS * player + suit] > 0.5) << suit;
        let voids = std::array::from_fn(|player| (0..SUITS).map(|suit| void(player, suit)).sum());
        Self { state: HandState::from_parts(hands, progress), played, voids }
    }
}
