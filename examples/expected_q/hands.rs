//! Hands side by side: all players of a side decide together, for all hands.

use crate::players::{DecisionCost, Player};
use eggroll::rl::{ExpectedValuesError, WorldKey};
use eggroll_examples::texas42::{
    Bid, Contract, DOMINOES, Deal, Domino, DominoSet, HandState, Observation, PLAYERS, Trumps,
};
use rand::Rng;

/// A hand that is played, and what each player knows of it.
pub struct Hand {
    pub state: HandState,
    pub seen: [Observation; PLAYERS],
    /// Address of its random numbers: a number for each hand of a run.
    number: u32,
}

/// The stream of deals under a seed.
const DEALS: u32 = u32::MAX;

/// A deal before the trumps are named. There is no auction: the player with most dominoes of one number of pips
/// declares, the first of several, and bids 30.
#[derive(Clone, Copy)]
pub struct Dealt {
    deal: Deal,
    declarer: usize,
    number: u32,
}

impl Dealt {
    /// A random deal, of the hand with this number.
    pub fn new(seed: u64, deal: u32, number: u32) -> Self {
        let mut rng = WorldKey::new(seed, deal, DEALS).rng(0);
        let deal = Deal::random(&mut || rng.next_u32());
        let length = |hand: DominoSet| (Trumps::longest(hand).trumps() & hand).len();
        let declarer = (0..PLAYERS).rev().max_by_key(|&player| length(deal.hands()[player])).expect("four players");
        Self { deal, declarer, number }
    }

    pub fn side(&self) -> usize {
        self.declarer % 2
    }

    /// The suit of which the declarer has most.
    pub fn longest(&self) -> Trumps {
        Trumps::longest(self.deal.hands()[self.declarer])
    }

    /// What the declarer would know with these trumps, with the address of naming them.
    pub fn naming(&self, seed: u64, trumps: Trumps) -> (WorldKey, Observation) {
        (WorldKey::new(seed, self.number, DOMINOES as u32), self.seen(self.declarer, trumps))
    }

    fn contract(&self, trumps: Trumps) -> Contract {
        Contract::new(self.declarer, trumps, Bid::LOWEST)
    }

    fn seen(&self, player: usize, trumps: Trumps) -> Observation {
        Observation::new(player, self.contract(trumps), self.deal.hands()[player])
    }

    pub fn hand(self, trumps: Trumps) -> Hand {
        let seen = std::array::from_fn(|player| self.seen(player, trumps));
        Hand { state: HandState::new(self.deal, self.contract(trumps)), seen, number: self.number }
    }
}

impl Hand {
    /// A random deal with the suit of which the declarer has most as trumps.
    pub fn deal(seed: u64, deal: u32) -> Self {
        let dealt = Dealt::new(seed, deal, deal);
        dealt.hand(dealt.longest())
    }

    pub fn play(&mut self, domino: Domino) {
        self.state.play(domino).expect("a legal domino");
        self.seen.iter_mut().for_each(|seen| seen.record(domino));
    }

    /// What the next player knows, with the address of this decision.
    pub fn decision(&self, seed: u64) -> (WorldKey, Observation) {
        let seen = self.seen[self.state.mover()];
        (WorldKey::new(seed, self.number, seen.played().len() as u32), seen)
    }
}

/// Plays hands to their ends: `sides[n]` says which of the players has players 0 and 2 of hand `n`; the other has 1 and
/// 3.
pub fn play(
    hands: &mut [Hand],
    players: [&Player<'_>; 2],
    sides: &[usize],
    seed: u64,
    work: &mut DecisionCost,
) -> Result<(), ExpectedValuesError> {
    for _ in 0..DOMINOES {
        let turns: Vec<usize> = hands.iter().zip(sides).map(|(hand, side)| (hand.state.mover() + side) % 2).collect();
        for (player, number) in players.into_iter().zip(0..) {
            let mine = || hands.iter().zip(&turns).filter(|(_, turn)| **turn == number);
            let games: Vec<_> = mine().map(|(hand, _)| hand.decision(seed)).collect();
            let mut chosen = player.choose(&games, work)?.into_iter();
            let mine = hands.iter_mut().zip(&turns).filter(|(_, turn)| **turn == number);
            mine.zip(&mut chosen).for_each(|((hand, _), domino)| hand.play(domino));
        }
    }
    Ok(())
}
