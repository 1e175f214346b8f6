//! Trumps: which dominoes belong to which suit, and which one takes a trick.

use super::suit::SUITS;
use super::{Domino, DominoSet, Suit};
use std::fmt;

/// Places of a table by domino: a power of two, so that an index needs no check of its bound.
const PLACES: usize = 32;
/// Strength of the lowest domino of the suit that was led. Its suit has ranks 0 to 7.
const LED: u8 = 1;
/// Strength of the lowest trump: above every domino of the suit that was led.
const TRUMP: u8 = LED + 8;
/// Rank of a double in the suit of its pips: above 6, the highest other end.
const DOUBLE: u8 = 7;

/// The trumps of a hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trumps {
    /// The dominoes of a suit. Doubles may be that suit; then they belong to no other.
    Suit(Suit),
    /// No trump: the highest domino of the suit that was led takes the trick.
    FollowMe,
}

impl Trumps {
    /// All nine, by index.
    pub const ALL: [Self; 9] = [
        Self::Suit(Suit::Blanks),
        Self::Suit(Suit::Ones),
        Self::Suit(Suit::Twos),
        Self::Suit(Suit::Threes),
        Self::Suit(Suit::Fours),
        Self::Suit(Suit::Fives),
        Self::Suit(Suit::Sixes),
        Self::Suit(Suit::Doubles),
        Self::FollowMe,
    ];

    /// Its index: that of the suit, and 8 for [`FollowMe`](Self::FollowMe).
    pub const fn index(self) -> usize {
        match self {
            Self::Suit(suit) => suit.index(),
            Self::FollowMe => SUITS,
        }
    }

    /// Whether a domino is a trump.
    pub const fn is_trump(self, domino: Domino) -> bool {
        match self {
            Self::Suit(Suit::Doubles) => domino.is_double(),
            Self::Suit(suit) => domino.other(suit as u8).is_some(),
            Self::FollowMe => false,
        }
    }

    /// All trumps.
    pub const fn trumps(self) -> DominoSet {
        match self {
            Self::Suit(suit) => self.members(suit),
            Self::FollowMe => DominoSet::EMPTY,
        }
    }

    /// The dominoes that follow a suit: it when it is the trump, else those with its pips that are no trumps.
    pub const fn members(self, suit: Suit) -> DominoSet {
        DominoSet::from_bits(self.rules().members[suit.index()])
    }

    /// The suit that a domino leads: the trump if it is one, else the suit of its higher pips.
    pub const fn led_suit(self, domino: Domino) -> Suit {
        self.rules().led[domino.index() % PLACES]
    }

    /// The number of pips of which a hand has most dominoes, as trumps; of several the one whose double it has, then
    /// the higher. A simple bidder's choice.
    pub fn longest(hand: DominoSet) -> Self {
        let worth = |suit: &Suit| {
            let members = Self::FollowMe.members(*suit) & hand;
            (members.len(), members.iter().any(Domino::is_double), suit.index())
        };
        let pips = Suit::ALL.into_iter().filter(|suit| suit.pip().is_some());
        Self::Suit(pips.max_by_key(worth).unwrap_or(Suit::Sixes))
    }

    /// Those dominoes of a hand that may be played where a suit was led: its members, and the whole hand if it has
    /// none.
    pub const fn following(self, led: Suit, hand: DominoSet) -> DominoSet {
        let members = hand.bits() & self.members(led).bits();
        if members == 0 { hand } else { DominoSet::from_bits(members) }
    }

    /// How strong a domino is in a trick: the strongest takes it.
    ///
    /// It is `9 + rank` for trumps, else `1 + rank` in the suit that was led, else 0, which takes no trick. The rank is
    /// the number of pips on the other end, and 7 for the double. Doubles as trumps rank by their pips.
    pub const fn strength(self, led: Suit, domino: Domino) -> u8 {
        self.rules().strength[led.index()][domino.index() % PLACES]
    }

    /// The dominoes that are stronger than this one in a trick.
    pub const fn beating(self, led: Suit, domino: Domino) -> DominoSet {
        DominoSet::from_bits(self.rules().beating[led.index()][domino.index() % PLACES])
    }

    /// The tables of this trump.
    pub(super) const fn rules(self) -> &'static Rules {
        &RULES[self.index()]
    }

    /// Rank of a domino in a suit, if it belongs to it.
    const fn rank(self, suit: Suit, domino: Domino) -> Option<u8> {
        if matches!(suit, Suit::Doubles) {
            // Doubles are a suit only as trumps.
            return if matches!(self, Self::Suit(Suit::Doubles)) && domino.is_double() {
                Some(domino.high())
            } else {
                None
            };
        }
        let own = matches!(self, Self::Suit(trump) if trump as u8 == suit as u8);
        match domino.other(suit as u8) {
            Some(_) if self.is_trump(domino) && !own => None,
            Some(_) if domino.is_double() => Some(DOUBLE),
            other => other,
        }
    }
}

impl fmt::Display for Trumps {
    /// As `sixes`, or `follow me`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suit(suit) => suit.fmt(f),
            Self::FollowMe => f.write_str("follow me"),
        }
    }
}

/// The rules of a trump as tables, sets as bits.
pub(super) struct Rules {
    /// Dominoes of each suit.
    pub(super) members: [u32; SUITS],
    /// The suit that each domino leads.
    pub(super) led: [Suit; PLACES],
    /// By the suit that was led and the domino.
    pub(super) strength: [[u8; PLACES]; SUITS],
    /// Dominoes with a higher strength, by the suit that was led and the domino.
    pub(super) beating: [[u32; PLACES]; SUITS],
}

static RULES: [Rules; Trumps::ALL.len()] = {
    let mut rules = [const { tables(Trumps::FollowMe) }; Trumps::ALL.len()];
    let mut index = 0;
    while index < rules.len() {
        rules[index] = tables(Trumps::ALL[index]);
        index += 1;
    }
    rules
};

const fn tables(trumps: Trumps) -> Rules {
    let mut rules = Rules {
        members: [0; SUITS],
        led: [Suit::Blanks; PLACES],
        strength: [[0; PLACES]; SUITS],
        beating: [[0; PLACES]; SUITS],
    };
    let mut suit = 0;
    while suit < SUITS {
        let mut index = 0;
        while let Some(domino) = Domino::from_index(index) {
            let rank = trumps.rank(Suit::ALL[suit], domino);
            if let Some(rank) = rank {
                rules.members[suit] |= 1 << index;
                rules.strength[suit][index] = LED + rank;
            }
            rules.led[index] = Suit::ALL[domino.high() as usize];
            if let Trumps::Suit(trump) = trumps
                && let Some(rank) = trumps.rank(trump, domino)
            {
                rules.led[index] = trump;
                rules.strength[suit][index] = TRUMP + rank;
            }
            index += 1;
        }
        // Strengths of this suit are complete: compare all pairs.
        let mut weak = 0;
        while weak < PLACES {
            let mut strong = 0;
            while strong < PLACES {
                if rules.strength[suit][strong] > rules.strength[suit][weak] {
                    rules.beating[suit][weak] |= 1 << strong;
                }
                strong += 1;
            }
            weak += 1;
        }
        suit += 1;
    }
    rules
}
