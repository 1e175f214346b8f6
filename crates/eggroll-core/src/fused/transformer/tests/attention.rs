//! Attention against a naive softmax in f64.

use super::super::{AttentionScores, KeyValues};
use super::*;
use std::ops::Range;

/// `[layers, query heads, key heads, head_dim]`
type Heads = [usize; 4];

/// Queries, keys and values of `rows` positions in every layer.
struct AttentionInputs {
    heads: Heads,
    queries: Vec<Vec<f32>>,
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
    scores: AttentionScores,
}

impl AttentionInputs {
    fn new(heads: Heads, rows: usize, size: f32) -> Self {
        let [layers, query, key, dim] = heads;
        let of = |heads: usize, salt: u32, size: f32| {
            let layer = |l: usize| inputs(rows * heads * dim, 10 * l as u32 + salt).iter().map(|x| x * size).collect();
            (0..layers).map(layer).collect::<Vec<Vec<f32>>>()
        };
        let scores = AttentionScores::of_dimension(dim);
        Self { heads, queries: of(query, 1, size), keys: of(key, 2, size), values: of(key, 3, 1.0), scores }
    }

    /// The outputs of all layers for these rows, which are put behind what the state has.
    fn attend(&self, state: &mut KeyValues, rows: Range<usize>) -> Vec<Vec<f32>> {
        let [layers, query, key, dim] = self.heads;
        let part = |heads: usize| rows.start * heads * dim..rows.end * heads * dim;
        let mut scratch = vec![f32::NAN; 5];
        let layer = |layer: usize| {
            state.write(layer, &self.keys[layer][part(key)], &self.values[layer][part(key)]);
            let mut out = vec![f32::NAN; rows.len() * query * dim];
            state.attend(layer, query, &self.queries[layer][part(query)], self.scores, &mut scratch, &mut out);
            out
        };
        let out = (0..layers).map(layer).collect();
        state.advance(rows.len());
        out
    }

    fn naive(&self, layer: usize, rows: usize) -> Vec<f64> {
        let [_, query, key, dim] = self.heads;
        let wide = |values: &[f32], at: usize| values[at..at + dim].iter().copied().map(f64::from).collect::<Vec<_>>();
        let one = |row: usize, head: usize| {
            let q = wide(&self.queries[layer], (row * query + head) * dim);
            let shared = head / (query / key);
            let at = |position: usize| (position * key + shared) * dim;
            let score = |position: usize| {
                let k = wide(&self.keys[layer], at(position));
                let score = q.iter().zip(&k).map(|(q, k)| q * k).sum::<f64>() * f64::from(self.scores.scale);
                self.scores.cap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh())
            };
            let first = self.scores.window.map_or(0, |window| (row + 1).saturating_sub(window));
            let scores: Vec<f64> = (first..=row).map(score).collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
            let total: f64 = weights.iter().sum();
            let mean = |d: usize| {
                let value = |p: usize| f64::from(self.values[layer][at(first + p) + d]);
                weights.iter().enumerate().map(|(p, weight)| weight * value(p)).sum::<f64>() / total
            };
            (0..dim).map(mean).collect::<Vec<_>>()
        };
        (0..rows).flat_map(|row| (0..query).map(move |head| (row, head))).flat_map(|(r, h)| one(r, h)).collect()
    }

    fn state(&self, capacity: usize) -> KeyValues {
        let [layers, _, key, dim] = self.heads;
        KeyValues::new(layers, key, dim, capacity)
    }
}

const HEADS: [Heads; 5] = [[1, 1, 1, 1], [2, 6, 2, 8], [1, 9, 3, 64], [2, 4, 4, 5], [1, 3, 1, 33]];

#[test]
fn equals_a_naive_softmax() {
    for (heads, rows) in HEADS.into_iter().flat_map(|heads| [1, 2, 31, 32, 33, 97].map(|rows| (heads, rows))) {
        let inputs = AttentionInputs::new(heads, rows, 1.0);
        let out = inputs.attend(&mut inputs.state(rows), 0..rows);
        for (layer, out) in out.iter().enumerate() {
            let distance = distance(out, &inputs.naive(layer, rows), 1, 4e-6);
            assert!(distance < 1.0, "{heads:?}, {rows} rows, layer {layer}: {distance}");
        }
    }
}

#[test]
fn a_wrong_head_or_position_is_found() {
    let inputs = AttentionInputs::new([1, 6, 2, 8], 40, 1.0);
    let found = inputs.attend(&mut inputs.state(40), 0..40).remove(0);
    let mut expected = inputs.naive(0, 40);
    assert!(distance(&found, &expected, 1, 4e-6) < 1.0);
    // Two heads that do not share keys.
    (0..8).for_each(|d| expected.swap(39 * 48 + 16 + d, 39 * 48 + 24 + d));
    assert!(distance(&found, &expected, 1, 4e-6) > 100.0);
    let mut other = AttentionInputs::new([1, 6, 2, 8], 40, 1.0);
    other.keys[0].rotate_left(16);
    assert!(distance(&found, &other.naive(0, 40), 1, 4e-6) > 100.0);
}

/// Windows, caps and scales, each a canary of the others.
#[test]
fn windows_and_caps_equal_a_naive_softmax() {
    for (heads, rows) in HEADS.into_iter().flat_map(|heads| [1, 33, 97].map(|rows| (heads, rows))) {
        let plain = AttentionScores::of_dimension(heads[3]);
        let kinds = [
            AttentionScores { window: Some(1), ..plain },
            AttentionScores { window: Some(30), ..plain },
            AttentionScores { window: Some(97), ..plain },
            AttentionScores { cap: Some(0.7), ..plain },
            AttentionScores { scale: 1.5, cap: Some(2.0), window: Some(8) },
        ];
        for scores in kinds {
            let mut inputs = AttentionInputs::new(heads, rows, 1.0);
            inputs.scores = scores;
            let out = inputs.attend(&mut inputs.state(rows), 0..rows).remove(0);
            let found = distance(&out, &inputs.naive(0, rows), 1, 8e-6);
            assert!(found < 1.0, "{heads:?}, {rows} rows, {scores:?}: {found}");
            if rows == 97 && scores.window != Some(97) {
                inputs.scores = plain;
                assert!(distance(&out, &inputs.naive(0, rows), 1, 8e-6) > 100.0, "{heads:?}, {scores:?}: a canary");
            }
        }
    }
}

#[test]
fn pieces_are_one_call_bit_for_bit() {
    let windowed = |dim| AttentionScores { cap: Some(1.0), window: Some(9), ..AttentionScores::of_dimension(dim) };
    for (heads, other) in HEADS.into_iter().flat_map(|heads| [false, true].map(|other| (heads, other))) {
        let rows = 97;
        let mut inputs = AttentionInputs::new(heads, rows, 1.0);
        if other {
            inputs.scores = windowed(heads[3]);
        }
        let whole = inputs.attend(&mut inputs.state(rows), 0..rows);
        for cuts in [vec![1, 2, 3], vec![31, 32, 64], vec![28, 29, 96], (1..97).collect()] {
            let mut state = inputs.state(rows);
            let mut found = vec![Vec::new(); heads[0]];
            let mut start = 0;
            for end in cuts.iter().copied().chain([rows]) {
                for (found, out) in found.iter_mut().zip(inputs.attend(&mut state, start..end)) {
                    found.extend(out);
                }
                start = end;
                assert_eq!(state.len(), end);
            }
            let equal = whole.iter().zip(&found).all(|(a, b)| bits(a) == bits(b));
            assert!(equal, "{heads:?}, {} pieces", cuts.len() + 1);
        }
    }
}

#[test]
fn a_fork_keeps_the_positions_and_its_own_ones() {
    let heads = [2, 6, 2, 7];
    for len in [0, 1, 31, 32, 33, 64] {
        let inputs = AttentionInputs::new(heads, 80, 1.0);
        let mut first = inputs.state(80);
        inputs.attend(&mut first, 0..len);
        let expected = inputs.attend(&mut inputs.state(80), 0..80);
        let mut other = AttentionInputs::new(heads, 80, 0.5);
        other.values.iter_mut().for_each(|values| values.reverse());
        // Another fork writes other positions, and the first is not changed by it.
        other.attend(&mut first.fork(200), len..80);
        for capacity in [80, 200] {
            let mut fork = first.fork(capacity);
            assert_eq!([fork.len(), first.len()], [len; 2]);
            assert!(fork.capacity() >= capacity);
            let found = inputs.attend(&mut fork, len..80);
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(bits(found), bits(&expected[len * 42..]), "{len} positions, capacity {capacity}");
            }
        }
    }
    let bytes = KeyValues::bytes(2, 3, 7, 33);
    assert_eq!(bytes, 2 * 3 * 7 * 64 * 2 * 4);
    assert_eq!(KeyValues::bytes(usize::MAX, 3, 7, 33), usize::MAX);
}

/// Scores of any size: the largest one takes all.
#[test]
fn large_scores() {
    let inputs = AttentionInputs::new([1, 2, 1, 16], 33, 100.0);
    let found = inputs.attend(&mut inputs.state(33), 0..33).remove(0);
    // Scores of 1e4 have an error of 1e-3 in float32.
    let distance = distance(&found, &inputs.naive(0, 33), 1, 3e-3);
    assert!(distance < 1.0, "{distance}");
    let mut inputs = AttentionInputs::new([1, 2, 1, 16], 3, 0.0);
    inputs.queries[0][2 * 32 + 3] = f32::NAN;
    let found = inputs.attend(&mut inputs.state(3), 0..3).remove(0);
    assert!(found[..64].iter().all(|x| x.is_finite()), "earlier rows");
    assert!(found[64..80].iter().all(|x| x.is_nan()), "the row of the NaN");
    assert!(found[80..].iter().all(|x| x.is_finite()), "the other head");
}
