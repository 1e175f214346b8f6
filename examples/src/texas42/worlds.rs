//! Worlds: assignments of the unseen dominoes to the other players, counted, sampled and listed.

use super::{DominoSet, GameError, HAND, Observation, PLAYERS, uniform_below};

/// Players other than the observer.
const OTHERS: usize = PLAYERS - 1;
/// Sets of these players, the empty one included.
const MASKS: usize = 1 << OTHERS;
/// Places that a hand may have left, 0 to 7.
const SIZES: usize = HAND + 1;
/// Unseen dominoes at most, and one.
const ROWS: usize = OTHERS * HAND + 1;

/// `n` choose `k`, by `n` and `k`.
const CHOOSE: [[u64; SIZES]; ROWS] = {
    let mut choose = [[0; SIZES]; ROWS];
    let mut n = 0;
    while n < ROWS {
        choose[n][0] = 1;
        let mut k = 1;
        while n > 0 && k < SIZES {
            choose[n][k] = choose[n - 1][k - 1] + choose[n - 1][k];
            k += 1;
        }
        n += 1;
    }
    choose
};

/// All worlds that agree with an observation: with the sizes of hands and the voids, nothing else. They count as
/// equally likely.
///
/// Unseen dominoes form groups by who may hold them, a set `m` of the three other players. If `kₘₚ` dominoes of group
/// `m` go to player `p`, the group has `nₘ!/Πₚ kₘₚ!` ways, with `nₘ = Σₚ kₘₚ`. The number of worlds is the sum of
/// `Πₘ nₘ!/Πₚ kₘₚ!` over all `k` where `Σₘ kₘₚ` is the size of the hand of `p`. The sums over the last groups are kept by
/// the places that are left. So the world of any number is found without a search: first `k`, group after group, then
/// which dominoes of the group.
#[derive(Clone, Debug)]
pub struct Worlds {
    observer: usize,
    hand: DominoSet,
    others: [usize; OTHERS],
    /// Unseen dominoes by who may hold them.
    groups: [DominoSet; MASKS],
    /// Sizes of the other hands.
    sizes: [usize; OTHERS],
    /// Ways to fill hands with the groups from one on: by that group and the places left in the first two hands. Those
    /// in the third follow.
    ways: [[[u64; SIZES]; SIZES]; MASKS + 1],
}

impl Worlds {
    /// The worlds of an observation.
    ///
    /// # Errors
    ///
    /// No world agrees with it.
    pub fn new(observation: &Observation) -> Result<Self, GameError> {
        let observer = observation.player();
        let others: [usize; OTHERS] = std::array::from_fn(|other| (observer + 1 + other) % PLAYERS);
        let mut groups = [DominoSet::EMPTY; MASKS];
        for domino in observation.unseen() {
            let mask = (0..OTHERS).filter(|&other| observation.may_hold(others[other]).contains(domino));
            groups[mask.map(|other| 1 << other).sum::<usize>()].insert(domino);
        }
        let sizes = others.map(|player| usize::from(observation.counts()[player]));
        let mut worlds =
            Self { observer, hand: observation.hand(), others, groups, sizes, ways: [[[0; SIZES]; SIZES]; MASKS + 1] };
        worlds.fill();
        // A domino that nobody may hold stays in group 0.
        if worlds.count() == 0 || !worlds.groups[0].is_empty() {
            return Err(GameError::NoWorlds(observation.unseen().len()));
        }
        Ok(worlds)
    }

    /// Counts from the last group to the first.
    fn fill(&mut self) {
        self.ways[MASKS][0][0] = 1;
        for mask in (1..MASKS).rev() {
            for first in 0..=self.sizes[0] {
                for second in 0..=self.sizes[1] {
                    let total =
                        self.splits(mask, [first, second]).map(|split| self.weight(mask, [first, second], split)).sum();
                    self.ways[mask][first][second] = total;
                }
            }
        }
    }

    /// How many dominoes of a group go to the first and the second hand: all pairs with places for them. Where the
    /// third hand has too few places for the others, later groups have no ways.
    fn splits(&self, mask: usize, left: [usize; 2]) -> impl Iterator<Item = [usize; 2]> + use<> {
        let size = self.groups[mask].len();
        let most = |other: usize| if mask & 1 << other != 0 { size.min(left[other]) } else { 0 };
        let (most, third) = ([most(0), most(1)], mask & 1 << 2 != 0);
        (0..=most[0])
            .flat_map(move |first| (0..=most[1]).map(move |second| [first, second]))
            .filter(move |[first, second]| if third { first + second <= size } else { first + second == size })
    }

    /// Ways of the groups from one on, of which the first is split like this.
    fn weight(&self, mask: usize, left: [usize; 2], [first, second]: [usize; 2]) -> u64 {
        let size = self.groups[mask].len();
        let choices = CHOOSE[size][first] * CHOOSE[size - first][second];
        choices * self.ways[mask + 1][left[0] - first][left[1] - second]
    }

    /// The number of worlds, at least 1.
    pub fn count(&self) -> u64 {
        self.ways[1][self.sizes[0]][self.sizes[1]]
    }

    /// A world, exactly uniform if the random words are: all hands, by player.
    ///
    /// It takes one word, and with a probability below `count/2³²` more.
    pub fn sample(&self, words: &mut impl FnMut() -> u32) -> [DominoSet; PLAYERS] {
        self.world(uniform_below(self.count(), words))
    }

    /// The world with a number below [`count`](Self::count).
    pub fn world(&self, mut number: u64) -> [DominoSet; PLAYERS] {
        let mut hands = [DominoSet::EMPTY; PLAYERS];
        hands[self.observer] = self.hand;
        let mut left = [self.sizes[0], self.sizes[1]];
        for mask in 1..MASKS {
            // The splits have intervals of numbers, one after the other.
            let mut chosen = [0; 2];
            for split in self.splits(mask, left) {
                let weight = self.weight(mask, left, split);
                if number < weight {
                    chosen = split;
                    break;
                }
                number -= weight;
            }
            left = [left[0] - chosen[0], left[1] - chosen[1]];
            // number = later + ways of later groups·(choice of the second + choices of the second·choice of the first)
            let later = self.ways[mask + 1][left[0]][left[1]];
            let (choice, rest) = (number / later, number % later);
            number = rest;
            let group = self.groups[mask];
            let seconds = CHOOSE[group.len() - chosen[0]][chosen[1]];
            let first = subset(group, chosen[0], choice / seconds);
            let second = subset(group - first, chosen[1], choice % seconds);
            for (player, part) in self.others.into_iter().zip([first, second, group - first - second]) {
                hands[player] = hands[player] | part;
            }
        }
        hands
    }
}

/// The subset of a size with a number, in the order of binary numbers with that many ones.
///
/// Of `n` dominoes `C(n − 1, k)` subsets lack the last, and come first.
fn subset(group: DominoSet, mut size: usize, mut number: u64) -> DominoSet {
    let mut bits = group.bits();
    let mut chosen = 0;
    while size > 0 && bits != 0 {
        let last = 1 << bits.ilog2();
        bits ^= last;
        let without = CHOOSE[bits.count_ones() as usize][size];
        if number >= without {
            number -= without;
            chosen |= last;
            size -= 1;
        }
    }
    DominoSet::from_bits(chosen)
}
