//! Random hands for the tests.

use eggroll_rl::games::texas42::{Bid, Contract, Deal, Domino, DominoSet, State, Trumps};

/// SplitMix64: the upper half of its words.
pub struct Words(pub u64);

impl Words {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 32) as u32
    }

    pub fn below(&mut self, bound: usize) -> usize {
        eggroll_rl::games::texas42::uniform_below(bound as u64, &mut || self.next()) as usize
    }

    pub fn pick(&mut self, set: DominoSet) -> Domino {
        let number = self.below(set.len());
        set.iter().nth(number).expect("a set that is not empty")
    }
}

pub fn domino(high: u8, low: u8) -> Domino {
    Domino::new(high, low).expect("pips up to 6")
}

pub fn set(dominoes: &[(u8, u8)]) -> DominoSet {
    dominoes.iter().map(|&(high, low)| domino(high, low)).collect()
}

/// A random deal with a random declarer and one of the nine trumps.
pub fn start(words: &mut Words, trumps: Trumps) -> State {
    let contract = Contract::new(words.below(4), trumps, Bid::LOWEST).expect("a player below 4");
    State::new(Deal::random(&mut || words.next()), contract)
}

/// A state after random legal plays, with the plays.
pub fn after(words: &mut Words, trumps: Trumps, plays: usize) -> (State, Vec<Domino>) {
    let mut state = start(words, trumps);
    let mut played = Vec::new();
    for _ in 0..plays {
        let domino = words.pick(state.legal_moves());
        state.play(domino).expect("a legal domino");
        played.push(domino);
    }
    (state, played)
}
