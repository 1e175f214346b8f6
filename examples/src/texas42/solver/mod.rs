//! The value of a hand with all dominoes open, when both sides play best.

mod bounds;
mod order;
mod search;
mod table;

use super::{DOMINOES, DominoSet, HandState, PLAYERS, Trumps};
use search::{OpenTrick, Search};
use table::TranspositionTable;

/// A solver of hands with all dominoes open (perfect information, double dummy). Its values are exact.
///
/// It asks whether players 0 and 2 get at least `t` points, by alpha-beta search with an empty window, and narrows the
/// interval of values until one is left. Bounds of positions before a lead are kept in a transposition table; they stay
/// for later states of the same deal.
///
/// # References
///
/// - Knuth and Moore, "An analysis of alpha-beta pruning", Artificial Intelligence 6, 1975
/// - Plaat et al., "Best-first fixed-depth minimax algorithms", Artificial Intelligence 87, 1996: repeated searches
///   with an empty window and a table
#[derive(Clone, Debug)]
pub struct Solver {
    table: TranspositionTable,
    visited: u64,
    /// The deal whose bounds are in the table: who held which domino, and the trumps.
    hands: [DominoSet; PLAYERS],
    trumps: Option<Trumps>,
}

impl Default for Solver {
    /// A solver with a table of `2¹⁶` positions, which most deals do not fill.
    fn default() -> Self {
        Self::new(1 << 16)
    }
}

impl Solver {
    /// A solver with a table of at least this many positions, at most `2³⁰`, eight bytes each. The table does not grow:
    /// with a small one it is slower.
    pub fn new(capacity: usize) -> Self {
        Self { table: TranspositionTable::new(capacity), visited: 0, hands: [DominoSet::EMPTY; PLAYERS], trumps: None }
    }

    /// How many positions before a lead were searched so far. It depends on nothing but the states that were asked for,
    /// and the table's size.
    #[inline]
    pub const fn visited(&self) -> u64 {
        self.visited
    }

    /// Forgets the bounds that it has.
    fn clear(&mut self) {
        self.table.clear();
        (self.hands, self.trumps) = ([DominoSet::EMPTY; PLAYERS], None);
    }

    /// Points that players 0 and 2 get from here on, including the current trick's. Complete tricks do not count.
    pub fn value(&mut self, state: &HandState) -> i32 {
        self.keep_or_clear(state);
        self.narrow(state, guess(state))
    }

    /// The value of each legal move to the side of the next player, by index of the domino. The value is the points
    /// that the side gets from here on, including the current trick's. `None` for all other dominoes.
    pub fn action_values(&mut self, state: &HandState) -> [Option<i32>; DOMINOES] {
        self.keep_or_clear(state);
        let total = i32::from(state.points_left());
        let mut values = [None; DOMINOES];
        let mut expected = guess(state);
        for domino in state.legal_moves() {
            let mut next = *state;
            next.play(domino).expect("a legal domino");
            let gained = i32::from(next.points()[0]) - i32::from(state.points()[0]);
            // Values of moves are often the same.
            expected = gained + self.narrow(&next, expected - gained);
            values[domino.index()] = Some(if state.mover().is_multiple_of(2) { expected } else { total - expected });
        }
        values
    }

    /// Keeps the table if the state is of the same deal: then the dominoes that are left still say who holds them.
    fn keep_or_clear(&mut self, state: &HandState) {
        let trumps = state.contract().trumps();
        let same_deal = state.hands().iter().zip(&self.hands).all(|(now, then)| now.is_subset(*then));
        if !same_deal || self.trumps != Some(trumps) {
            self.clear();
            (self.hands, self.trumps) = (state.hands(), Some(trumps));
        }
    }

    /// The value, by searches with an empty window: first at the one that is expected and its neighbor, then by halves.
    fn narrow(&mut self, state: &HandState, expected: i32) -> i32 {
        if state.is_over() {
            return 0;
        }
        let (mut lower, mut upper) = (0, i32::from(state.points_left()));
        let mut target = expected;
        let mut searches = 0;
        while lower < upper {
            let bound = self.search(state, target.clamp(lower + 1, upper));
            let reached = bound >= target.clamp(lower + 1, upper);
            (lower, upper) = if reached { (bound, upper) } else { (lower, bound) };
            searches += 1;
            target = match (searches, reached) {
                (1, true) => bound + 1,
                (1, false) => bound,
                _ => (lower + upper + 1) / 2,
            };
        }
        lower
    }

    /// A bound of the value: a lower one from the target on, else an upper one.
    fn search(&mut self, state: &HandState, target: i32) -> i32 {
        let trumps = state.contract().trumps();
        let hands = state.hands().map(DominoSet::bits);
        let mut search = Search::new(trumps, &mut self.table);
        let bound = match OpenTrick::of(state.trick(), trumps) {
            Some(trick) => search.follow(hands, trick, target),
            None => search.lead(hands, state.mover(), target),
        };
        self.visited += search.visited();
        bound
    }
}

/// A first guess of the value: the side that plays next mostly gets more than half.
fn guess(state: &HandState) -> i32 {
    let total = i32::from(state.points_left());
    let own = total * 5 / 8;
    if state.mover().is_multiple_of(2) { own } else { total - own }
}
