//! New hands: a deal, a declarer, trumps.

use super::super::{Bid, Contract, Deal, Game, Trumps};
use super::opponent::NUMBERS;
use eggroll::rl::EpisodeKey;

/// Draws of the reset: numbers of the opponents, the declarer, and from here on the deal.
const DEAL: u32 = NUMBERS as u32 + 1;

/// The hand of a key before the lead, and the numbers of the opponents.
pub(super) fn hand(key: EpisodeKey, numbers: &mut [f32]) -> Game {
    key.fill_uniform(0.0, 1.0, numbers);
    // The highest two bits.
    let declarer = (key.word(0, DEAL - 1) >> 30) as usize;
    let mut draws = DEAL..;
    let deal = Deal::random(&mut || key.word(0, draws.next().expect("a deal takes few words")));
    let trumps = Trumps::longest(deal.hands()[declarer]);
    Game::new(deal, Contract::new(declarer, trumps, Bid::LOWEST))
}
