//! Addresses in noise tables: always inside, whatever the key, the pair and the lengths.

use crate::reliability::support::check;
use burn::tensor::Device;
use eggroll_core::ops::integer::table_noise;
use eggroll_core::ops::{PairRange, table_start};
use eggroll_core::rng::integer::table_index;
use eggroll_core::{NoiseDistribution, NoiseKey};
use proptest::prelude::*;

fn key() -> impl Strategy<Value = NoiseKey> {
    (any::<u64>(), 0..NoiseKey::MAX_PARAMETERS, any::<u32>(), any::<bool>()).prop_map(|(seed, parameter, t, signs)| {
        let distribution = if signs { NoiseDistribution::Rademacher } else { NoiseDistribution::Normal };
        NoiseKey::new(seed, parameter, t).with_distribution(distribution)
    })
}

/// Lengths of tables, with those at the ends of number types.
fn len() -> impl Strategy<Value = usize> {
    prop_oneof![0..100usize, any::<u32>().prop_map(|len| len as usize), Just(1 << 34), Just(usize::MAX), any::<usize>()]
}

#[test]
fn a_run_lies_in_its_table() {
    check(2000, &(key(), any::<u32>(), len(), any::<prop::sample::Index>()), |(key, pair, len, elements)| {
        let elements = if len == usize::MAX { elements.index(len) } else { elements.index(len + 1) };
        let start = table_start(key, pair, elements, len);
        prop_assert!(start <= len - elements && start.is_multiple_of(16), "{start} + {elements} of {len}");
        Ok(())
    });
}

/// Starts are spread over the whole table: the first and the last place are reached, and no other.
#[test]
fn every_place_is_reached() {
    let starts = |elements, len| {
        let mut starts: Vec<usize> =
            (0..200).map(|pair| table_start(NoiseKey::new(1, 2, 3), pair, elements, len)).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    };
    assert_eq!(starts(20, 20 + 3 * 16 + 15), [0, 16, 32, 48]);
    assert_eq!(starts(20, 20), [0]);
}

#[test]
fn integer_runs_lie_in_their_table() {
    let table: Vec<i8> = (0..64).collect();
    check(200, &(key(), 0..u32::MAX - 8, 1..=64usize), |(key, pair, elements)| {
        let noise = table_noise(&table, key, PairRange::new(pair, 2), elements, &Device::flex());
        let noise: Vec<i64> = noise.into_data().iter::<i64>().collect();
        // A run of consecutive entries, from where the reference's hash says.
        let start = table_index(key, pair) as usize % (64 - elements + 1);
        prop_assert!((0..elements).all(|i| noise[i] == (start + i) as i64), "{noise:?}");
        Ok(())
    });
}
