//! The stream of signs: equal to the oracle on every instruction set and from every start, and stable from release to release.

use eggroll_core::rng::rademacher::{GROUP, STREAM_VERSION, fill_signs, fill_signs_on};
use eggroll_core::rng::{fill_noise, normal};
use eggroll_core::{InstructionSet, NoiseDistribution, NoiseKey, reference};

/// Elements of one stream.
const STREAM: usize = 1 << 39;

/// Lengths around the vector widths, the row, the word, the group and several groups.
const LENGTHS: [usize; 16] = [0, 1, 3, 15, 16, 17, 31, 33, 63, 257, 511, 513, 2047, 2048, 2049, 5000];

/// Starts around the same edges, across the 32-bit limit of element indices, and at the end of the stream.
const STARTS: [usize; 13] = [0, 1, 15, 16, 17, 500, 511, 512, 2047, 2048, 1_000_003, (1 << 32) - 33, STREAM - 5000];

/// Addresses with every word at its smallest, at its largest and in between: `(key, pair)`.
fn addresses() -> Vec<(NoiseKey, u32)> {
    vec![
        (key(0, 0, 0), 0),
        (key(42, 3, 7), 11),
        (key(1 << 32, 1, 1), 1),
        (key(0x0123_4567_89ab_cdef, 77, 1 << 31), 1 << 31),
        (key(u64::MAX, NoiseKey::MAX_PARAMETERS - 1, u32::MAX), u32::MAX),
    ]
}

fn key(seed: u64, parameter: u32, generation: u32) -> NoiseKey {
    NoiseKey::new(seed, parameter, generation).with_distribution(NoiseDistribution::Rademacher)
}

fn signs_on(set: InstructionSet, key: NoiseKey, pair: u32, start: usize, len: usize) -> Vec<f32> {
    // NaN, so that an element that is not written shows.
    let mut out = vec![f32::NAN; len];
    fill_signs_on(set, key, pair, start, &mut out);
    out
}

fn signs(key: NoiseKey, pair: u32, start: usize, len: usize) -> Vec<f32> {
    let mut out = vec![f32::NAN; len];
    fill_signs(key, pair, start, &mut out);
    out
}

fn oracle(key: NoiseKey, pair: u32, start: usize, len: usize) -> Vec<f32> {
    (start..start + len).map(|element| reference::rademacher(key, pair, element) as f32).collect()
}

#[test]
fn every_instruction_set_equals_the_oracle() {
    for (key, pair) in addresses() {
        for start in STARTS {
            let expected = oracle(key, pair, start, 5000);
            assert!(expected.iter().all(|sign| sign.abs() == 1.0));
            for len in LENGTHS {
                for set in InstructionSet::available() {
                    let found = signs_on(set, key, pair, start, len);
                    assert_eq!(found, expected[..len], "{set:?}, {key:?}, pair {pair}, {start} + {len}");
                }
                assert_eq!(signs(key, pair, start, len), expected[..len], "{key:?}, pair {pair}, {start} + {len}");
            }
        }
    }
}

/// Canary: the comparison sees one wrong sign, and neighboring addresses agree in about half of the elements.
#[test]
fn other_addresses_give_other_signs() {
    let (base, len) = (signs(key(42, 3, 7), 11, 0, 4096), 4096);
    let mut turned = base.clone();
    turned[4095] = -turned[4095];
    assert_ne!(turned, base);
    let neighbors = [
        ("seed", signs(key(43, 3, 7), 11, 0, len)),
        ("high half of the seed", signs(key(42 | 1 << 32, 3, 7), 11, 0, len)),
        ("parameter", signs(key(42, 4, 7), 11, 0, len)),
        ("generation", signs(key(42, 3, 8), 11, 0, len)),
        ("pair", signs(key(42, 3, 7), 12, 0, len)),
        ("start", signs(key(42, 3, 7), 11, 1, len)),
        ("row", signs(key(42, 3, 7), 11, 16, len)),
        ("word", signs(key(42, 3, 7), 11, 512, len)),
        ("group", signs(key(42, 3, 7), 11, GROUP, len)),
        ("2³² elements on", signs(key(42, 3, 7), 11, 1 << 32, len)),
    ];
    for (name, other) in neighbors {
        let equal = other.iter().zip(&base).filter(|(a, b)| a == b).count();
        // Five standard deviations of 4096 tosses.
        assert!(equal.abs_diff(len / 2) < 160, "{equal} of {len} signs do not depend on the {name}");
    }
}

#[test]
fn any_part_equals_the_whole() {
    for (key, pair) in addresses() {
        for base in [0, (1 << 32) - 1300, STREAM - 3000] {
            let whole = signs(key, pair, base, 3000);
            for skip in (0..=33).chain([255, 257, 511, 512, 513, 1300, 2040, 2047]) {
                for len in [0, 1, 3, 15, 16, 17, 63, 65, 257, 511, 513, 900] {
                    let part = signs(key, pair, base + skip, len);
                    assert_eq!(part, whole[skip..skip + len], "{key:?}, pair {pair}, {base} + {skip}, {len} long");
                }
            }
        }
    }
}

#[test]
fn the_key_chooses_the_distribution() {
    let (rademacher, plain) = (key(42, 3, 7), NoiseKey::new(42, 3, 7));
    let fill = |key| {
        let mut out = vec![f32::NAN; 100];
        fill_noise(key, 5, 3, &mut out);
        out
    };
    assert_eq!(fill(rademacher), signs(rademacher, 5, 3, 100));
    let mut normals = vec![0.0; 100];
    normal::fill_normals(plain, 5, 3, &mut normals);
    assert_eq!(fill(plain), normals);
    assert_eq!(reference::noise(rademacher, 5, 3), f64::from(fill(rademacher)[0]));
    assert_eq!(reference::noise(plain, 5, 3), reference::normal(plain, 5, 3));
}

/// Keys of Gaussian values are written as they were before there was a choice.
#[test]
fn keys_as_text() {
    let text = r#"{"seed":42,"parameter":3,"generation":7}"#;
    assert_eq!(serde_json::to_string(&NoiseKey::new(42, 3, 7)).expect("text"), text);
    assert_eq!(serde_json::from_str::<NoiseKey>(text).expect("a key"), NoiseKey::new(42, 3, 7));
    let signs = serde_json::to_string(&key(42, 3, 7)).expect("text");
    assert_eq!(serde_json::from_str::<NoiseKey>(&signs).expect("a key"), key(42, 3, 7));
    assert_ne!(signs, text);
}

/// 32 signs from chosen addresses on, the first in the highest bit, −1 as 1:
/// `(seed, parameter, generation, pair, element, bits)`.
///
/// If one of these changes, the noise of every user's run changes: that is value-breaking, and needs a new
/// `STREAM_VERSION` and a "Value-breaking" entry in the CHANGELOG.
#[rustfmt::skip]
const STABLE: [(u64, u32, u32, u32, usize, u32); 9] = [
    (0, 0, 0, 0, 0, 0x9f08_0bc7),
    (0, 0, 0, 0, 500, 0xf881_433a),
    (0, 0, 0, 0, 2040, 0xae0e_00e0),
    (42, 0, 0, 1, 5, 0xa223_fcc0),
    (42, 0, 1, 0, 1024, 0x133b_e8b3),
    (42, 1, 0, 0, 38, 0x2619_4aed),
    (0x0123_4567_89ab_cdef, 77, 1 << 31, 1 << 31, 1_000_003, 0x671d_f7c5),
    (42, 3, 7, 11, 1 << 32, 0xa13e_b1cc),
    (u64::MAX, NoiseKey::MAX_PARAMETERS - 1, u32::MAX, u32::MAX, STREAM - 32, 0xd1c6_731c),
];

#[test]
fn values_are_stable() {
    assert_eq!(STREAM_VERSION, 1, "a new stream needs new values here");
    for set in InstructionSet::available() {
        let actual = STABLE.map(|(seed, parameter, generation, pair, element, _)| {
            let signs = signs_on(set, key(seed, parameter, generation), pair, element, 32);
            let bits = signs.iter().fold(0, |bits, sign| bits << 1 | u32::from(*sign < 0.0));
            (seed, parameter, generation, pair, element, bits)
        });
        assert_eq!(actual, STABLE, "on {set:?}; bits {:#010x?}", actual.map(|address| address.5));
    }
}

#[test]
fn the_whole_stream_can_be_reached() {
    assert_eq!(signs(key(0, 0, 0), 0, STREAM - 65, 65).len(), 65);
    assert_eq!(signs(key(0, 0, 0), 0, STREAM, 0).len(), 0);
}

#[test]
#[should_panic(expected = "elements 549755813887 + 2 are beyond the 2^39 elements")]
fn panics_across_the_end_of_the_stream() {
    signs(key(0, 0, 0), 0, STREAM - 1, 2);
}

#[test]
#[should_panic(expected = "beyond the 2^39 elements")]
fn panics_where_the_end_overflows() {
    signs_on(InstructionSet::Portable, key(0, 0, 0), 0, usize::MAX, 1);
}

#[test]
#[should_panic(expected = "the noise of this key is Normal, not Rademacher")]
fn refuses_to_draw_signs_for_a_key_of_normals() {
    signs(NoiseKey::new(0, 0, 0), 0, 0, 1);
}

#[test]
#[should_panic(expected = "the noise of this key is Rademacher, not Normal")]
fn refuses_to_draw_normals_for_a_key_of_signs() {
    normal::fill_normals(key(0, 0, 0), 0, 0, &mut [0.0]);
}
