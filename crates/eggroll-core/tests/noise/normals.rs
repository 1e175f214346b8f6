//! The stream of Gaussian values: the same bits on every instruction set and from every start, close to the f64 oracle,
//! and stable from release to release.

use eggroll_core::rng::normal::{GROUP, MAX_ERROR, STREAM_VERSION, fill_normals, fill_normals_on};
use eggroll_core::{InstructionSet, NoiseKey, reference};

/// Elements of one stream.
const STREAM: usize = 1 << 34;

/// Lengths around the vector widths, the group and several groups.
const LENGTHS: [usize; 16] = [0, 1, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257, 1000];

/// Starts around the same edges, across the 32-bit limit of element indices, and at the end of the stream.
const STARTS: [usize; 14] =
    [0, 1, 15, 16, 17, 31, 47, 63, 64, 65, 1_000_003, (1 << 31) - 7, (1 << 32) - 33, STREAM - 1000];

/// Addresses with every word at its smallest, at its largest and in between: `(key, pair)`.
fn addresses() -> Vec<(NoiseKey, u32)> {
    vec![
        (NoiseKey::new(0, 0, 0), 0),
        (NoiseKey::new(42, 3, 7), 11),
        (NoiseKey::new(1 << 32, 1, 1), 1),
        (NoiseKey::new(0x0123_4567_89ab_cdef, 77, 1 << 31), 1 << 31),
        (NoiseKey::new(u64::MAX, NoiseKey::MAX_PARAMETERS - 1, u32::MAX), u32::MAX),
    ]
}

fn normals_on(set: InstructionSet, key: NoiseKey, pair: u32, start: usize, len: usize) -> Vec<f32> {
    // NaN, so that an element that is not written shows.
    let mut out = vec![f32::NAN; len];
    fill_normals_on(set, key, pair, start, &mut out);
    out
}

fn normals(key: NoiseKey, pair: u32, start: usize, len: usize) -> Vec<f32> {
    let mut out = vec![f32::NAN; len];
    fill_normals(key, pair, start, &mut out);
    out
}

/// Bits, because `==` takes 0 for −0 and never a NaN for itself.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    for (key, pair) in addresses() {
        for start in STARTS {
            for len in LENGTHS {
                let expected = bits(&normals_on(InstructionSet::Portable, key, pair, start, len));
                for set in InstructionSet::available() {
                    let actual = bits(&normals_on(set, key, pair, start, len));
                    assert_eq!(actual, expected, "{set:?}, {key:?}, pair {pair}, {start} + {len}");
                }
                assert_eq!(bits(&normals(key, pair, start, len)), expected, "{key:?}, pair {pair}, {start} + {len}");
            }
        }
    }
}

/// Enough draws to meet all octaves of the radius and all quadrants of the angle many times.
#[test]
fn every_instruction_set_gives_the_same_bits_in_bulk() {
    let (key, pair, len) = (NoiseKey::new(2026, 5, 9), 4, 1 << 20);
    let expected = normals_on(InstructionSet::Portable, key, pair, 0, len);
    for set in InstructionSet::available() {
        let actual = normals_on(set, key, pair, 0, len);
        let different = actual.iter().zip(&expected).position(|(a, b)| a.to_bits() != b.to_bits());
        assert_eq!(different, None, "{set:?}: first different element");
    }
}

/// Canary: the comparison of bits sees a difference of one unit in the last place, and neighboring addresses.
#[test]
fn other_addresses_give_other_bits() {
    let (key, pair) = (NoiseKey::new(42, 3, 7), 11);
    let base = normals(key, pair, 0, 257);
    let mut nudged = base.clone();
    nudged[256] = nudged[256].next_up();
    assert_ne!(bits(&nudged), bits(&base));
    let neighbors = [
        ("seed", normals(NoiseKey::new(43, 3, 7), pair, 0, 257)),
        ("high half of the seed", normals(NoiseKey::new(42 | 1 << 32, 3, 7), pair, 0, 257)),
        ("parameter", normals(NoiseKey::new(42, 4, 7), pair, 0, 257)),
        ("generation", normals(NoiseKey::new(42, 3, 8), pair, 0, 257)),
        ("pair", normals(key, pair + 1, 0, 257)),
        ("start", normals(key, pair, 1, 257)),
        ("group", normals(key, pair, GROUP, 257)),
        ("2³² elements on", normals(key, pair, 1 << 32, 257)),
    ];
    for (name, other) in neighbors {
        let equal = bits(&other).iter().zip(bits(&base)).filter(|(a, b)| **a == *b).count();
        // 257 coincidences of one in about 2²³ each.
        assert_eq!(equal, 0, "{equal} of 257 elements do not depend on the {name}");
    }
}

/// Largest distance of `len` Gaussian values from the oracle displaced by `offset` elements.
fn oracle_distance(set: InstructionSet, key: NoiseKey, pair: u32, start: usize, len: usize, offset: usize) -> f64 {
    let normals = normals_on(set, key, pair, start, len);
    let distances = normals.iter().zip(start + offset..).map(|(normal, element)| {
        let distance = (f64::from(*normal) - reference::normal(key, pair, element)).abs();
        assert!(distance.is_finite(), "element {element}: {normal}");
        distance
    });
    distances.fold(0.0, f64::max)
}

#[test]
fn normals_are_near_the_oracle() {
    let draws = 1 << 21;
    let distance = oracle_distance(InstructionSet::Portable, NoiseKey::new(7, 1, 2), 3, 0, draws, 0);
    println!("largest distance of {draws} normals from the oracle: {distance:e}");
    assert!(distance <= MAX_ERROR, "{distance:e}");
    // A bound that is far from what is met would let errors through.
    assert!(distance > 0.5 * MAX_ERROR, "{distance:e}");
    for (key, pair) in addresses() {
        for start in STARTS {
            for set in InstructionSet::available() {
                let distance = oracle_distance(set, key, pair, start, 1000, 0);
                assert!(distance <= MAX_ERROR, "{distance:e} on {set:?} at {key:?}, pair {pair}, element {start}");
            }
        }
    }
}

/// Canary: the oracle's neighboring element is far away.
#[test]
fn normals_are_far_from_the_neighbor_in_the_oracle() {
    for offset in [1, 16, GROUP] {
        let distance = oracle_distance(InstructionSet::Portable, NoiseKey::new(7, 1, 2), 3, 0, 1000, offset);
        assert!(distance > 1.0, "offset {offset}: {distance}");
    }
}

/// The largest value that the definition allows is √(48 ln 2).
#[test]
fn normals_are_finite_and_bounded() {
    let largest = normals(NoiseKey::new(11, 0, 0), 0, 0, 1 << 22).into_iter().fold(0.0, |largest: f32, normal| {
        assert!(normal.is_finite());
        largest.max(normal.abs())
    });
    assert!((4.5..=5.77).contains(&largest), "{largest}");
}

#[test]
fn any_part_equals_the_whole() {
    for (key, pair) in addresses() {
        for base in [0, (1 << 32) - 300, STREAM - 600] {
            let whole = bits(&normals(key, pair, base, 600));
            for skip in (0..=2 * GROUP).chain([255, 257, 343]) {
                for len in [0, 1, 3, 15, 16, 17, 63, 64, 65, 255, 257] {
                    let part = bits(&normals(key, pair, base + skip, len));
                    assert_eq!(part, whole[skip..skip + len], "{key:?}, pair {pair}, {base} + {skip}, {len} long");
                }
            }
        }
    }
}

#[test]
fn one_element_at_a_time_equals_the_whole() {
    let (key, pair) = (NoiseKey::new(42, 3, 7), 11);
    let single: Vec<f32> = (0..200).map(|element| normals(key, pair, element, 1)[0]).collect();
    assert_eq!(bits(&single), bits(&normals(key, pair, 0, 200)));
}

/// Bits at chosen addresses: `(seed, parameter, generation, pair, element, bits)`.
///
/// If one of these changes, the noise of every user's run changes: that is value-breaking, and needs a new
/// `STREAM_VERSION` and a "Value-breaking" entry in the CHANGELOG.
#[rustfmt::skip]
const STABLE: [(u64, u32, u32, u32, usize, u32); 13] = [
    (0, 0, 0, 0, 0, 0xbf6c_b6af),
    (0, 0, 0, 0, 16, 0xbf7d_bb34),
    (0, 0, 0, 0, 32, 0xbf1e_1b9f),
    (0, 0, 0, 0, 48, 0x3ef6_d1b1),
    (0, 0, 0, 0, 63, 0x3d80_4454),
    (0, 0, 0, 0, 64, 0xbf16_c51b),
    (42, 0, 0, 1, 5, 0x3f04_185a),
    (42, 0, 1, 0, 21, 0xbfc0_47a3),
    (42, 1, 0, 0, 38, 0xbf26_26cf),
    (42 << 32, 0, 0, 0, 59, 0x3f94_943a),
    (0x0123_4567_89ab_cdef, 77, 1 << 31, 1 << 31, 1_000_003, 0xbead_fb63),
    (42, 3, 7, 11, 1 << 32, 0xc006_4026),
    (u64::MAX, NoiseKey::MAX_PARAMETERS - 1, u32::MAX, u32::MAX, STREAM - 1, 0xbfb7_0ae9),
];

#[test]
fn values_are_stable() {
    assert_eq!(STREAM_VERSION, 1, "a new stream needs new values here");
    for set in InstructionSet::available() {
        let actual = STABLE.map(|(seed, parameter, generation, pair, element, _)| {
            let normal = normals_on(set, NoiseKey::new(seed, parameter, generation), pair, element, 1)[0];
            (seed, parameter, generation, pair, element, normal.to_bits())
        });
        assert_eq!(actual, STABLE, "on {set:?}; bits {:#010x?}", actual.map(|address| address.5));
    }
}

#[test]
fn the_whole_stream_can_be_reached() {
    assert_eq!(normals(NoiseKey::new(0, 0, 0), 0, STREAM - 65, 65).len(), 65);
    assert_eq!(normals(NoiseKey::new(0, 0, 0), 0, STREAM, 0).len(), 0);
}

#[test]
#[should_panic(expected = "beyond the 2^34 elements")]
fn panics_at_the_end_of_the_stream() {
    normals(NoiseKey::new(0, 0, 0), 0, STREAM, 1);
}

#[test]
#[should_panic(expected = "beyond the 2^34 elements")]
fn panics_across_the_end_of_the_stream() {
    normals(NoiseKey::new(0, 0, 0), 0, STREAM - 64, 65);
}

#[test]
#[should_panic(expected = "beyond the 2^34 elements")]
fn panics_where_the_end_overflows() {
    normals(NoiseKey::new(0, 0, 0), 0, usize::MAX, 1);
}

#[test]
#[should_panic(expected = "beyond the 2^34 elements")]
fn panics_beyond_the_stream_on_a_given_set() {
    normals_on(InstructionSet::Portable, NoiseKey::new(0, 0, 0), 0, STREAM, 1);
}

#[test]
fn the_last_parameter_is_allowed() {
    NoiseKey::new(0, NoiseKey::MAX_PARAMETERS - 1, 0);
}

#[test]
#[should_panic(expected = "parameter index 16777216 is not below 16777216")]
fn panics_beyond_the_last_parameter() {
    NoiseKey::new(0, NoiseKey::MAX_PARAMETERS, 0);
}
