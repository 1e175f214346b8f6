//! Uniform integers from random words.

/// An integer below a bound, exactly uniform if the words are. Takes one word for bounds up to `2³²`, else two, and
/// more with a probability below `bound/2³²` (`bound/2⁶⁴`).
///
/// With words of `b` bits, `x·bound` has the result as its bits from `b` on. Words whose lower bits are below `2ᵇ mod
/// bound` are drawn again; then every result has the same number of words.
///
/// # Panics
///
/// Panics if the bound is 0.
///
/// # References
///
/// Lemire, "Fast random integer generation in an interval", arXiv 1805.10941.
#[track_caller]
pub fn uniform_below(bound: u64, words: &mut impl FnMut() -> u32) -> u64 {
    assert!(bound > 0, "no integer is below 0: give a bound of 1 or more");
    if bound <= 1 << 32 {
        let excess = (1_u64 << 32) % bound;
        loop {
            let product = u64::from(words()) * bound;
            if product & 0xffff_ffff >= excess {
                return product >> 32;
            }
        }
    }
    let excess = (1_u128 << 64) % u128::from(bound);
    loop {
        let word = u64::from(words()) << 32 | u64::from(words());
        let product = u128::from(word) * u128::from(bound);
        if product & u128::from(u64::MAX) >= excess {
            return (product >> 64) as u64;
        }
    }
}
