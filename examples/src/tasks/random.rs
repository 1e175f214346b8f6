//! The generator of the tasks' data: SplitMix64.
//!
//! Its stream is part of the data: a change of it changes every generated problem and every split of words, and is
//! value-breaking.
//!
//! Steele, Lea & Flood, *Fast Splittable Pseudorandom Number Generators* (OOPSLA 2014).

/// What a step adds to the state: 2⁶⁴ divided by the golden ratio, made odd.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A generator of 64 bits at a time.
#[derive(Clone, Debug)]
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A uniform integer below `bound`, without bias: a product's high half, drawn anew where its low half falls among
    /// the `2⁶⁴ mod bound` values that would come too often (Lemire 2019).
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let excess = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            if product as u64 >= excess {
                return (product >> 64) as u64;
            }
        }
    }

    /// Shuffles by Fisher and Yates, from the last place to the second.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// A hash of some integers, in their order.
pub(super) fn hash(integers: impl IntoIterator<Item = u64>) -> u64 {
    integers.into_iter().fold(0, |state, integer| mix((state ^ integer).wrapping_add(STEP)))
}

/// The output function of SplitMix64, a bijection.
fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published outputs of SplitMix64.
    #[test]
    fn known_answers() {
        let mut zero = SplitMix64::new(0);
        assert_eq!(
            [(); 3].map(|()| zero.next()),
            [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]
        );
        assert_eq!(SplitMix64::new(1_234_567).next(), 6_457_827_717_110_365_317);
    }

    /// Products alone would give every third of these values twice as often.
    #[test]
    fn bounds_have_no_bias() {
        let mut random = SplitMix64::new(2);
        let thirds = (0..6000).filter(|_| random.below(3 << 62).is_multiple_of(3)).count();
        assert!(thirds.abs_diff(2000) < 220, "{thirds}"); // six standard deviations, √(6000 · 1/3 · 2/3) = 36.5
    }
}
