//! Columns of a game as a row of floats, all of them small integers.

use super::suit::SUITS;
use super::{DOMINOES, Domino, DominoSet, Suit, Trumps};

/// Where each of the 28 dominoes is: `p` in the hand of player `p`. Played by `p` it is `4 + p` in the current
/// trick, and `8 + p` in a complete trick.
pub const OWNER: usize = 0;
/// Index of the trumps, 0 to 8.
pub const TRUMPS: usize = OWNER + DOMINOES;
/// The declarer.
pub const DECLARER: usize = TRUMPS + 1;
/// Number of the bid.
pub const BID: usize = TRUMPS + 2;
/// Who leads the current trick. After the last trick, who won it.
pub const LEADER: usize = TRUMPS + 3;
/// Dominoes of the current trick, 0 to 3.
pub const LENGTH: usize = TRUMPS + 4;
/// Index of the suit that was led, 8 before the lead.
pub const LED: usize = TRUMPS + 5;
/// Who has the strongest domino of the current trick; the leader before the lead.
pub const WINNER: usize = TRUMPS + 6;
/// Strength of that domino, 0 before the lead.
pub const STRENGTH: usize = TRUMPS + 7;
/// Points of the dominoes of the current trick.
pub const TRICK_POINTS: usize = TRUMPS + 8;
/// Points of both sides, of complete tricks: two columns.
pub const POINTS: usize = TRUMPS + 9;
/// Complete tricks of both sides: two columns.
pub const TRICKS: usize = POINTS + 2;
/// Whether player `p` did not follow suit `s`, at `8·p + s`: 1 or 0.
pub const VOIDS: usize = TRICKS + 2;
/// What may be led: a suit, or nothing yet. Tables by trumps, lead and domino have the row `28·(9·trumps + led) +
/// domino`.
pub const LEADS: usize = SUITS + 1;
/// Columns of a game.
pub const GAME: usize = VOIDS + 4 * SUITS;

/// Of an owner: the domino is in the current trick.
pub(super) const IN_TRICK: usize = 4;
/// Of an owner: the domino is in a complete trick.
pub(super) const BEFORE: usize = 8;
/// The suit that was led before the lead.
pub(super) const NOT_LED: usize = SUITS;

/// Trumps, suit that was led, and domino of every row of a table, in order.
pub(super) fn leads() -> impl Iterator<Item = (Trumps, Option<Suit>, Domino)> {
    let by_lead = |trumps| (0..LEADS).map(move |led| (trumps, Suit::ALL.get(led).copied()));
    let pairs = Trumps::ALL.into_iter().flat_map(by_lead);
    pairs.flat_map(|(trumps, led)| DominoSet::ALL.into_iter().map(move |domino| (trumps, led, domino)))
}
