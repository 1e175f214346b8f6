//! What everybody sees of a hand: contract, trick and points.

use super::{Contract, Domino, DominoSet, HAND, HAND_POINTS, Outcome, Suit, Trick};

/// The open part of a hand: the same to all players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    contract: Contract,
    trick: Trick,
    points: [u8; 2],
    tricks: [u8; 2],
}

impl Progress {
    /// Before the lead of the declarer.
    pub const fn new(contract: Contract) -> Self {
        Self { contract, trick: Trick::new(contract.declarer()), points: [0; 2], tricks: [0; 2] }
    }

    /// Within a hand. The caller checks that the parts agree.
    pub(super) const fn from_parts(contract: Contract, trick: Trick, points: [u8; 2], tricks: [u8; 2]) -> Self {
        Self { contract, trick, points, tricks }
    }

    /// The contract.
    pub const fn contract(&self) -> Contract {
        self.contract
    }

    /// The trick that is played now. It is never complete.
    pub const fn trick(&self) -> &Trick {
        &self.trick
    }

    /// Who plays next. After the last trick, who won it.
    pub const fn mover(&self) -> usize {
        self.trick.mover()
    }

    /// Points of both sides, of complete tricks.
    pub const fn points(&self) -> [u8; 2] {
        self.points
    }

    /// Tricks of both sides.
    pub const fn tricks(&self) -> [u8; 2] {
        self.tricks
    }

    /// Number of the trick that is played now, from 0. After the last, 7.
    pub const fn trick_number(&self) -> usize {
        (self.tricks[0] + self.tricks[1]) as usize
    }

    /// Whether all seven tricks are complete.
    pub const fn is_over(&self) -> bool {
        self.trick_number() >= HAND
    }

    /// Who wins the marks, as soon as nothing can change it: the declarer's side has the points that it needs, or the
    /// other side has more than `42 − needed`.
    pub const fn outcome(&self) -> Option<Outcome> {
        let bid = self.contract.bid();
        let side = self.contract.declarer() % 2;
        if self.points[side] >= bid.needed() {
            Some(Outcome { side, marks: bid.marks(), made: true })
        } else if self.points[1 - side] > HAND_POINTS - bid.needed() {
            Some(Outcome { side: 1 - side, marks: bid.marks(), made: false })
        } else {
            None
        }
    }

    /// Dominoes of a hand that the next player may play if the hand is theirs: the dominoes that follow, or all if none
    /// does.
    pub const fn legal(&self, hand: DominoSet) -> DominoSet {
        match self.trick.led() {
            Some(led) => self.contract.trumps().following(led, hand),
            None => hand,
        }
    }

    /// The suit that the next player shows to lack by playing a domino: the one that was led, if the domino does not
    /// follow.
    pub(super) const fn void_shown_by(&self, domino: Domino) -> Option<Suit> {
        match self.trick.led() {
            Some(led) if !self.contract.trumps().members(led).contains(domino) => Some(led),
            _ => None,
        }
    }

    /// Plays the next domino, which the caller checks.
    pub(super) const fn play(&mut self, domino: Domino) {
        self.trick.push(self.contract.trumps(), domino);
        if self.trick.is_complete()
            && let Some(winner) = self.trick.winner()
        {
            self.points[winner % 2] += 1 + self.trick.points();
            self.tricks[winner % 2] += 1;
            self.trick = Trick::new(winner);
        }
    }
}
