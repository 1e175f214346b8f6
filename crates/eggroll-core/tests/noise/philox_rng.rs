//! The generator for `rand`: Random123's words, and values that stay.

use crate::philox::KNOWN_ANSWERS;
use eggroll_core::rng::{PhiloxRng, philox::philox4x32};
use rand::{Rng, SeedableRng};

#[test]
fn words_are_random123s() {
    for (counter, key, words) in KNOWN_ANSWERS {
        let mut rng = PhiloxRng::new(counter, key);
        assert_eq!([(); 4].map(|()| rng.next_u32()), words, "counter {counter:08x?}, key {key:08x?}");
        let bytes = key.into_iter().chain(counter).flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
        let mut rng = PhiloxRng::from_seed(bytes.try_into().expect("24 bytes"));
        assert_eq!([(); 4].map(|()| rng.next_u32()), words, "seed of counter {counter:08x?}, key {key:08x?}");
    }
}

/// A counter that does not carry would begin the stream anew, or go to the block of another stream.
#[test]
fn the_counter_carries() {
    let key = [5, 6];
    for (counter, next) in [
        ([7, 8, 9, 10], [8, 8, 9, 10]),
        ([u32::MAX, 8, 9, 10], [0, 9, 9, 10]),
        ([u32::MAX, u32::MAX, u32::MAX, 10], [0, 0, 0, 11]),
        ([u32::MAX; 4], [0; 4]),
    ] {
        let mut rng = PhiloxRng::new(counter, key);
        let words = [(); 8].map(|()| rng.next_u32());
        assert_eq!(words[..4], philox4x32(counter, key), "{counter:08x?}");
        assert_eq!(words[4..], philox4x32(next, key), "behind {counter:08x?}");
    }
}

/// All ways to draw take the same words in the same order, across the borders of blocks.
#[test]
fn wide_integers_and_bytes_are_words_in_order() {
    let mut words = PhiloxRng::seed_from_u64(3);
    let mut next = || words.next_u32();
    let mut rng = PhiloxRng::seed_from_u64(3);
    for _ in 0..3 {
        assert_eq!(rng.next_u32(), next());
        let (low, high) = (next(), next());
        assert_eq!(rng.next_u64(), u64::from(high) << 32 | u64::from(low));
        let mut bytes = [0; 10];
        rng.fill_bytes(&mut bytes);
        let whole = [next(), next(), next()].map(u32::to_le_bytes).concat();
        assert_eq!(bytes[..], whole[..10]); // what is left of the last word is not drawn
    }
}

/// Value stability: another value here would be another episode of every user's environment. Computed by a second implementation.
#[test]
fn values_are_stable() {
    let words = |seed: u64| {
        let mut rng = PhiloxRng::seed_from_u64(seed);
        [(); 5].map(|()| rng.next_u32())
    };
    assert_eq!(words(0), [0xa1bd_fb92, 0x26f4_3c91, 0x74e1_6899, 0x706a_13b9, 0x10f7_30b0]);
    assert_eq!(words(42), [0x283e_f4f6, 0xadd9_bef5, 0x3a05_bfa2, 0xcf0e_a95f, 0x82b9_3289]);
}

/// Clones draw the same words from where they were made.
#[test]
fn a_clone_continues() {
    let mut rng = PhiloxRng::seed_from_u64(9);
    rng.next_u32();
    let mut clone = rng.clone();
    assert_eq!([(); 6].map(|()| clone.next_u32()), [(); 6].map(|()| rng.next_u32()));
}
