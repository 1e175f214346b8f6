//! Where the random words of worlds come from.

use eggroll_core::rng::philox::philox4x32;

/// Marks the words of worlds in the counter: of decisions and of streams of episodes below 2²⁸ none have a word in
/// common under the same seed.
const MARK: u32 = 0x574f_524c;

/// The address of a decision: the same key gives the same worlds, in any batch and on any backend.
///
/// The words of a world are Philox4x32-10 at the counters `(block, world, game, decision ^ mark)` under the seed.
///
/// # Example
///
/// ```
/// use eggroll_rl::WorldKey;
///
/// let key = WorldKey::new(1, 0, 7);
/// assert_eq!(key.words(3).next_word(), key.words(3).next_word());
/// assert_ne!(key.words(3).next_word(), key.words(4).next_word());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorldKey {
    seed: u64,
    game: u32,
    decision: u32,
}

impl WorldKey {
    /// Decision `decision` of game `game` under `seed`.
    pub fn new(seed: u64, game: u32, decision: u32) -> Self {
        Self { seed, game, decision }
    }

    /// The words of a world.
    pub fn words(&self, world: u32) -> WorldWords {
        WorldWords {
            counter: [0, world, self.game, self.decision ^ MARK],
            key: [self.seed as u32, (self.seed >> 32) as u32],
            block: [0; 4],
            used: 4,
        }
    }
}

/// Uniform words of 32 bits, 2³⁴ of them: see [`WorldKey::words`].
#[derive(Clone, Debug)]
pub struct WorldWords {
    counter: [u32; 4],
    key: [u32; 2],
    block: [u32; 4],
    used: usize,
}

impl WorldWords {
    /// The next word.
    #[inline]
    pub fn next_word(&mut self) -> u32 {
        if self.used == self.block.len() {
            self.block = philox4x32(self.counter, self.key);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value stability: other words would be other worlds, for every seed.
    #[test]
    fn words_stay_as_they_are() {
        let mut words = WorldKey::new(1 << 40 | 9, 3, 5).words(7);
        let found: Vec<u32> = std::iter::repeat_with(|| words.next_word()).take(5).collect();
        assert_eq!(found, [718_872_436, 3_438_720_771, 1_823_673_930, 3_476_019_816, 2_481_233_365]);
        let mut next = philox4x32([1, 7, 3, 5 ^ MARK], [9, 256]).into_iter();
        assert_eq!(found.last().copied(), next.next());
    }
}
