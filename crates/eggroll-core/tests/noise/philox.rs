//! Philox4x32-10 against Random123's known answers.

use eggroll_core::rng::philox::philox4x32;

/// Counter, key, words.
pub type KnownAnswer = ([u32; 4], [u32; 2], [u32; 4]);

/// The `philox4x32 10` lines of Random123's `tests/kat_vectors`.
pub const KNOWN_ANSWERS: [KnownAnswer; 3] = [
    ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
    ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
    (
        [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
        [0xa409_3822, 0x299f_31d0],
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
    ),
];

#[test]
fn matches_random123() {
    for (counter, key, words) in KNOWN_ANSWERS {
        assert_eq!(philox4x32(counter, key), words, "counter {counter:08x?}, key {key:08x?}");
    }
}

/// Canary: every bit of the key and of the counter reaches every word, or the vectors above would prove little.
#[test]
fn one_flipped_bit_changes_every_word() {
    let differs = |a: [u32; 4], b: [u32; 4]| a.iter().zip(b).all(|(a, b)| *a != b);
    for (counter, key, words) in KNOWN_ANSWERS {
        for bit in 0..64 {
            let mut flipped = key;
            flipped[bit / 32] ^= 1 << (bit % 32);
            assert!(differs(philox4x32(counter, flipped), words), "key bit {bit} of {key:08x?}");
        }
        for bit in 0..128 {
            let mut flipped = counter;
            flipped[bit / 32] ^= 1 << (bit % 32);
            assert!(differs(philox4x32(flipped, key), words), "counter bit {bit} of {counter:08x?}");
        }
    }
}
