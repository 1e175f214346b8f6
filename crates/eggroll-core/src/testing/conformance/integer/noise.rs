//! int8 noise.

use super::{Implementation, found, with_portable_devices};
use crate::ops::integer::{integer_type, table_noise};
use crate::rng::integer::{fill_integers, table, table_index};
use crate::rng::key::{NoiseKey, PairRange};
use crate::testing::conformance::implementations;

fn drawn(key: NoiseKey, pairs: PairRange, elements: usize) -> Vec<i8> {
    let mut noise = vec![0; pairs.count as usize * elements];
    for (pair, noise) in noise.chunks_mut(elements).enumerate() {
        fill_integers(key, pairs.first + pair as u32, noise);
    }
    noise
}

fn check(on: &Implementation, key: NoiseKey, pairs: PairRange, elements: usize) {
    let noise = on.integer_noise(key, pairs, elements);
    assert_eq!(noise.dtype(), integer_type(&on.device), "{}", on.name);
    let noise = found(noise);
    assert!(noise == drawn(key, pairs, elements), "{}, {pairs:?}, {elements}", on.name);
    let next = PairRange::new(pairs.first + 1, pairs.count);
    assert!(elements < 16 || noise != drawn(key, next, elements), "canary: {}, {elements}", on.name);
}

#[test]
fn equals_stream() {
    let key = NoiseKey::new(0xfedc_ba98_7654_3210, 7, 0x8000_0001);
    // Part of a group of 256 elements, one group, and one element more.
    for elements in [1, 19, 256, 257] {
        for pairs in [PairRange::new(0, 1), PairRange::new(0x7fff_fffe, 5)] {
            with_portable_devices().iter().for_each(|on| check(on, key, pairs, elements));
        }
    }
}

#[test]
fn table_runs() {
    let (key, pairs, table) = (NoiseKey::new(4, 1, 0), PairRange::new(3, 5), table(9, 5000));
    let run = |q: u32| {
        let start = table_index(key, q) as usize % (5000 - 70 + 1);
        table[start..start + 70].to_vec()
    };
    let expected: Vec<i8> = (3..8).flat_map(run).collect();
    for on in implementations() {
        assert!(found(table_noise(&table, key, pairs, 70, &on.device)) == expected, "{}", on.name);
        let other = found(table_noise(&table, NoiseKey::new(4, 2, 0), pairs, 70, &on.device));
        assert!(other != expected, "canary: {}", on.name);
    }
}

#[test]
#[should_panic(expected = "a noise table of 10 has no run of 11 elements")]
fn refuses_short_table() {
    table_noise(&[0; 10], NoiseKey::new(0, 0, 0), PairRange::new(0, 1), 11, &implementations()[0].device);
}
