//! A hand with its public history, and the same as a row of floats.

use super::columns::{
    BEFORE, BID, DECLARER, GAME, IN_TRICK, LEADER, LED, LENGTH, NOT_LED, OWNER, POINTS, STRENGTH, TRICK_POINTS, TRICKS,
    TRUMPS, VOIDS, WINNER,
};
use super::contract::{Bid, Contract, HAND_POINTS};
use super::deal::{Deal, HAND, PLAYERS};
use super::domino::Domino;
use super::domino_set::DominoSet;
use super::error::GameError;
use super::progress::Progress;
use super::state::State;
use super::suit::{SUITS, Suit};
use super::trick::Trick;
use super::trumps::Trumps;

/// A [`State`] with what the players have shown: who played which domino, and the suits that a player did not follow.
///
/// As a row of floats, with the columns of [`columns`](super::columns), it is a game of [`TensorRules`](super::TensorRules). Plays on
/// either side give the same row.
///
/// # Example
///
/// ```
/// use eggroll_rl::games::texas42::{Bid, Contract, Deal, DominoSet, Game, Suit, Trumps, columns};
///
/// let deal = Deal::new([0, 7, 14, 21].map(|first| DominoSet::from_bits(0x7f << first)))?;
/// let mut game = Game::new(deal, Contract::new(3, Trumps::Suit(Suit::Sixes), Bid::LOWEST)?);
/// game.play(game.state().legal_moves().first().expect("seven dominoes"))?; // 6-0, which nobody follows
/// game.play(game.state().legal_moves().first().expect("seven dominoes"))?;
/// assert!(game.is_void(0, Suit::Sixes));
/// let row = game.row();
/// assert_eq!((row[columns::LENGTH], row[columns::LED], row[columns::OWNER + 21]), (2.0, 6.0, 4.0 + 3.0));
/// assert_eq!(Game::from_row(&row), game);
/// # Ok::<(), eggroll_rl::games::texas42::GameError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Game {
    state: State,
    /// By who played them.
    played: [DominoSet; PLAYERS],
    /// Suits by player, as bits.
    voids: [u8; PLAYERS],
}

impl Game {
    /// The game before the lead of the declarer.
    pub const fn new(deal: Deal, contract: Contract) -> Self {
        Self { state: State::new(deal, contract), played: [DominoSet::EMPTY; PLAYERS], voids: [0; PLAYERS] }
    }

    /// Hands, trick and points.
    #[inline]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Dominoes that a player has played, those of the current trick included.
    ///
    /// # Panics
    ///
    /// Panics if there is no such player.
    #[inline]
    #[track_caller]
    pub const fn played(&self, player: usize) -> DominoSet {
        assert!(player < PLAYERS, "players are 0, 1, 2 and 3");
        self.played[player]
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

    /// Plays a domino of the next player.
    ///
    /// # Errors
    ///
    /// Those of [`State::play`]. Then the game stays as it is.
    pub fn play(&mut self, domino: Domino) -> Result<(), GameError> {
        let (player, void) = (self.state.mover(), self.state.progress().void_shown_by(domino));
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

    /// The game of a row, as [`row`](Self::row) makes it. Of other rows it means nothing.
    #[inline]
    pub fn from_row(row: &[f32; GAME]) -> Self {
        // A float that is too large, negative or NaN becomes some integer in bounds: so no row panics, here or later.
        let number = |column: usize, most: u8| (row[column] as u8).min(most);
        let (mut hands, mut played) = ([DominoSet::EMPTY; PLAYERS], [DominoSet::EMPTY; PLAYERS]);
        let mut in_trick = [None; PLAYERS];
        for domino in DominoSet::ALL {
            let owner = usize::from(number(OWNER + domino.index(), (BEFORE + PLAYERS - 1) as u8));
            let player = owner % PLAYERS;
            if owner < IN_TRICK {
                hands[player].insert(domino);
            } else {
                played[player].insert(domino);
            }
            if (IN_TRICK..BEFORE).contains(&owner) {
                in_trick[player] = Some(domino);
            }
        }
        let trumps = Trumps::ALL[usize::from(number(TRUMPS, Trumps::FollowMe.index() as u8))];
        let bid = Bid::new(number(BID, u8::MAX)).unwrap_or(Bid::LOWEST);
        let contract = Contract::modulo(number(DECLARER, u8::MAX).into(), trumps, bid);
        let mut trick = Trick::new(number(LEADER, u8::MAX).into());
        for _ in 0..number(LENGTH, PLAYERS as u8 - 1) {
            if let Some(domino) = in_trick[trick.mover()] {
                trick.push(trumps, domino);
            }
        }
        // Both sides together have at most so many.
        let two = |column: usize, most: u8| {
            let first = number(column, most);
            [first, number(column + 1, most - first)]
        };
        let progress = Progress::from_parts(contract, trick, two(POINTS, HAND_POINTS), two(TRICKS, HAND as u8));
        let void = |player: usize, suit: usize| u8::from(row[VOIDS + SUITS * player + suit] > 0.5) << suit;
        let voids = std::array::from_fn(|player| (0..SUITS).map(|suit| void(player, suit)).sum());
        Self { state: State::from_parts(hands, progress), played, voids }
    }
}
