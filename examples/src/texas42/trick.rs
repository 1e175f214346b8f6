//! A trick: up to four dominoes, in order.

use super::{Domino, PLAYERS, Suit, Trumps};

/// A trick, complete or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trick {
    leader: u8,
    length: u8,
    /// Who played the strongest domino; the leader before the first.
    winner: u8,
    strength: u8,
    points: u8,
    led: Option<Suit>,
    dominoes: [Option<Domino>; PLAYERS],
}

impl Trick {
    /// A trick before its first domino. Players count modulo 4.
    pub const fn new(leader: usize) -> Self {
        let leader = (leader % PLAYERS) as u8;
        Self { leader, length: 0, winner: leader, strength: 0, points: 0, led: None, dominoes: [None; PLAYERS] }
    }

    /// Who leads.
    pub const fn leader(&self) -> usize {
        self.leader as usize
    }

    /// Dominoes that were played, 0 to 4.
    pub const fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether no domino was played.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether all four were played.
    pub const fn is_complete(&self) -> bool {
        self.length as usize == PLAYERS
    }

    /// Who plays next, or led if the trick is complete.
    pub const fn mover(&self) -> usize {
        (self.leader as usize + self.length as usize) % PLAYERS
    }

    /// The suit that was led.
    pub const fn led(&self) -> Option<Suit> {
        self.led
    }

    /// Who has the strongest domino so far.
    pub const fn winner(&self) -> Option<usize> {
        if self.is_empty() { None } else { Some(self.winner as usize) }
    }

    /// Points of its dominoes so far, without that for the trick.
    pub const fn points(&self) -> u8 {
        self.points
    }

    /// Strength of the strongest domino so far, 0 before the lead.
    pub(super) const fn strength(&self) -> u8 {
        self.strength
    }

    /// Players and dominoes, in order.
    pub fn plays(&self) -> impl Iterator<Item = (usize, Domino)> {
        let leader = self.leader();
        self.dominoes.into_iter().flatten().enumerate().map(move |(place, domino)| ((leader + place) % PLAYERS, domino))
    }

    /// Adds the next domino.
    pub(super) const fn push(&mut self, trumps: Trumps, domino: Domino) {
        let led = match self.led {
            Some(led) => led,
            None => trumps.led_suit(domino),
        };
        let strength = trumps.strength(led, domino);
        // No two dominoes are equally strong, except dominoes that take no trick.
        if strength > self.strength {
            self.winner = self.mover() as u8;
            self.strength = strength;
        }
        self.led = Some(led);
        self.points += domino.points();
        self.dominoes[self.length as usize] = Some(domino);
        self.length += 1;
    }
}
