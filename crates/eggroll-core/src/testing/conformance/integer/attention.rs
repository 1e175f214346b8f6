//! Rotations and attention: on devices too these are the portable operations.

use super::{found, integers, oracle};
use crate::ops::integer::{attention, rotary};
use crate::testing::conformance::implementations;

#[test]
fn rotations_equal_oracle() {
    for (heads, d, steps, first) in [(1, 2, 1, 0), (4, 16, 7, 0), (3, 4, 5, 11), (2, 40, 3, 5), (2, 64, 3, 2045)] {
        let mut x = integers(2 * steps * heads * d, 127, 1);
        x[..2].fill(-128);
        let head = |(at, x): (usize, &[i8])| oracle::rotary(x, first + at / heads % steps);
        let expected: Vec<i8> = x.chunks(d).enumerate().flat_map(head).collect();
        for on in implementations() {
            let x = on.ints(&x, [2 * steps, heads * d]);
            assert!(found(on.integer_rotary(x, steps, first, heads)) == expected, "{}, {heads} × {d}", on.name);
        }
    }
}

/// At position 0 nothing turns: heads are only stretched.
#[test]
fn first_position_does_not_turn() {
    for on in implementations() {
        let y = found(on.integer_rotary(on.ints(&[3, -6, 0, 1, 4, 2, 8, 0], [1, 8]), 1, 0, 2));
        assert_eq!(y, [64, -127, 0, 21, 64, 32, 127, 0], "{}", on.name);
    }
}

struct AttentionCase {
    query: Vec<i8>,
    keys: Vec<i8>,
    values: Vec<i8>,
    /// Sequences, steps, context, heads, size of a head.
    sizes: [usize; 5],
}

impl AttentionCase {
    fn new(sizes: [usize; 5], largest: i8) -> Self {
        let [sequences, steps, context, heads, d] = sizes;
        let held = |salt| {
            let mut values = integers(sequences * context * heads * d, 127, salt);
            values[0] = -128;
            values
        };
        let query = integers(sequences * steps * heads * d, largest, 1);
        Self { query, keys: held(2), values: held(3), sizes }
    }

    fn expected(&self) -> Vec<i8> {
        let [_, steps, context, heads, d] = self.sizes;
        let head = |(at, query): (usize, &[i8])| {
            let (head, row) = (at % heads, at / heads);
            let (sequence, visible) = (row / steps, context - steps + row % steps + 1);
            let part = |held: &[i8]| -> Vec<i8> {
                let of = |j: usize| &held[((sequence * context + j) * heads + head) * d..][..d];
                (0..visible).flat_map(of).copied().collect()
            };
            oracle::attention(query, &part(&self.keys), &part(&self.values))
        };
        self.query.chunks(d).enumerate().flat_map(head).collect()
    }
}

#[test]
fn attention_equals_oracle() {
    // One position; whole sequences; one query behind others; heads of no whole vector; wide heads; as many positions
    // as there can be.
    let cases = [
        ([1, 1, 1, 1, 2], 127),
        ([3, 5, 5, 4, 16], 10),
        ([2, 1, 9, 2, 6], 127),
        ([2, 33, 70, 2, 40], 127),
        ([1, 4, 40, 1, 128], 10),
        ([1, 3, 2048, 1, 4], 127),
    ];
    for (sizes @ [sequences, steps, context, heads, d], largest) in cases {
        let case = AttentionCase::new(sizes, largest);
        let expected = case.expected();
        for on in implementations() {
            let query = on.ints(&case.query, [sequences * steps, heads * d]);
            let held = [&case.keys, &case.values].map(|held| on.ints(held, [sequences, context, heads * d]));
            let found = found(on.integer_attention(query, held, heads));
            assert!(found == expected, "{}, {sizes:?}, up to {largest}", on.name);
        }
    }
}

#[test]
fn canary_the_future_is_not_seen() {
    let case = AttentionCase::new([1, 6, 6, 2, 8], 127);
    let mut other = AttentionCase::new([1, 6, 6, 2, 8], 127);
    other.values[5 * 16..].fill(50); // the values of the last position
    let (seen, changed) = (case.expected(), other.expected());
    assert!(seen[..5 * 16] == changed[..5 * 16] && seen[5 * 16..] != changed[5 * 16..]);
}

/// A query of 0 weighs all values alike.
#[test]
fn equal_scores_average() {
    for on in implementations() {
        let held = |values: [i8; 6]| on.ints(&values, [1, 3, 2]);
        let y = on.integer_attention(
            on.ints(&[0, 0], [1, 2]),
            [held([1, 2, 3, 4, 5, 6]), held([10, -10, 20, -20, 31, -32])],
            1,
        );
        assert_eq!(found(y), [20, -21], "{}", on.name);
    }
}

#[test]
#[should_panic(expected = "rows of 6 do not fit 2 heads of an even size, at most 65536")]
fn refuses_odd_heads() {
    let on = &implementations()[0];
    rotary(on.ints(&[0; 6], [1, 6]), 1, 0, 2);
}

#[test]
#[should_panic(expected = "2 positions from 2047 on: they must be below 2048")]
fn refuses_far_positions() {
    let on = &implementations()[0];
    rotary(on.ints(&[0; 8], [2, 4]), 2, 2047, 2);
}

#[test]
#[should_panic(expected = "a context of 3 positions for 4 queries")]
fn refuses_a_short_context() {
    let on = &implementations()[0];
    attention(on.ints(&[0; 8], [4, 2]), on.ints(&[0; 6], [1, 3, 2]), on.ints(&[0; 6], [1, 3, 2]), 1);
}
