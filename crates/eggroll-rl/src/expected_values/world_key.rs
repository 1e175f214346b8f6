//! Where the random words of worlds come from.

use eggroll_core::rng::PhiloxRng;

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
/// use rand::Rng;
///
/// let key = WorldKey::new(1, 0, 7);
/// assert_eq!(key.rng(3).next_u32(), key.rng(3).next_u32());
/// assert_ne!(key.rng(3).next_u32(), key.rng(4).next_u32());
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

    /// The generator of a world.
    #[inline]
    pub fn rng(&self, world: u32) -> PhiloxRng {
        PhiloxRng::new([0, world, self.game, self.decision ^ MARK], [self.seed as u32, (self.seed >> 32) as u32])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eggroll_core::rng::philox::philox4x32;
    use rand::Rng;

    /// Value stability: other words would be other worlds, for every seed.
    #[test]
    fn words_stay_as_they_are() {
        let mut rng = WorldKey::new(1 << 40 | 9, 3, 5).rng(7);
        let found: Vec<u32> = std::iter::repeat_with(|| rng.next_u32()).take(5).collect();
        assert_eq!(found, [718_872_436, 3_438_720_771, 1_823_673_930, 3_476_019_816, 2_481_233_365]);
        let mut next = philox4x32([1, 7, 3, 5 ^ MARK], [9, 256]).into_iter();
        assert_eq!(found.last().copied(), next.next());
    }
}
