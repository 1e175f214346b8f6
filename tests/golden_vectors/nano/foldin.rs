//! Where a pair's noise begins in a noise table: `nano_foldin.npz`.

use super::{assert_differs, assert_equal};
use crate::loader::Golden;
use eggroll::core::NoiseKey;
use eggroll::core::rng::integer::{fold_in, table_index};
use eggroll::core::rng::philox::philox4x32;

/// Starts are indices below 2³⁰.
fn start(hash: u32) -> u32 {
    hash % (1 << 30)
}

#[test]
fn hash_and_start() {
    let golden = Golden::open("nano_foldin.npz");
    let inputs = || golden.values("key_word0").iter().zip(golden.values("thread_idx"));
    let hash = |add: u32| inputs().map(move |(word, pair)| fold_in(*word as u32, *pair as u32 ^ add));
    let hashes = |add: u32| -> Vec<f64> { hash(add).map(|hash| (hash as i32).into()).collect() };
    let starts = |add: u32| -> Vec<f64> { hash(add).map(|hash| start(hash).into()).collect() };
    assert_equal("hash", &hashes(0), golden.values("result"));
    assert_equal("start", &starts(0), golden.values("start_2p30"));
    assert_differs("hash of another pair", &hashes(1), golden.values("result"));
    assert_differs("start of another pair", &starts(1), golden.values("start_2p30"));
}

/// The start of a pair's run is that of the hash, its key word a word of the parameter's own.
#[test]
fn table_starts_are_of_this_hash() {
    let (key, address) = (NoiseKey::new(0x1234_5678_9abc, 5, 7), [0, 0, 7, (1 << 24) | 5]);
    let word = philox4x32(address, [0x5678_9abc, 0x1234])[0];
    for pair in [0, 1, 65_536, u32::MAX] {
        assert_eq!(table_index(key, pair), start(fold_in(word, pair)), "{pair}");
        assert_ne!(table_index(key, pair), start(fold_in(word, pair ^ 1)), "canary, {pair}");
    }
}
