//! Shapes that do not fit, named in the panic.

use super::super::{AttentionScores, KeyValues, rotary};
use super::*;

fn weight(precision: Precision) -> PackedMatrix {
    PackedMatrix::new(&inputs(6, 1), [2, 3], precision)
}

fn two_rows(precision: Precision) -> Activations {
    activations(precision, &inputs(4, 2), 2)
}

#[test]
#[should_panic(expected = "5 values of a weight [2, 3]")]
fn a_weight_of_other_values() {
    PackedMatrix::new(&[0.0; 5], [2, 3], Precision::F32);
}

#[test]
#[should_panic(expected = "0 values of a weight [0, 3]")]
fn a_weight_of_no_values() {
    PackedMatrix::new(&[], [0, 3], Precision::Int8);
}

#[test]
#[should_panic(expected = "rows of 4 elements for a weight [2, 3]")]
fn rows_of_another_width() {
    let x = activations(Precision::F32, &inputs(4, 2), 4);
    weight(Precision::F32).multiply(&x, None, false, &mut Vec::new(), &mut [0.0; 3]);
}

#[test]
#[should_panic(expected = "5 values for 2 rows of a product with a weight [2, 3]")]
fn a_target_of_another_size() {
    weight(Precision::F32).multiply(&two_rows(Precision::F32), None, false, &mut Vec::new(), &mut [0.0; 5]);
}

#[test]
#[should_panic(expected = "noise of a weight [3, 2] for one [2, 3]")]
fn noise_of_another_weight() {
    let (factors, rows) = (factors(1, [3, 2], 1), members(2, 1));
    let noise = Some((&factors, rows.as_slice()));
    weight(Precision::F32).multiply(&two_rows(Precision::F32), noise, false, &mut Vec::new(), &mut [0.0; 6]);
}

#[test]
#[should_panic(expected = "members of 3 rows for 2 rows")]
fn members_of_other_rows() {
    let (factors, rows) = (factors(1, [2, 3], 2), members(3, 1));
    let noise = Some((&factors, rows.as_slice()));
    weight(Precision::F32).multiply(&two_rows(Precision::F32), noise, false, &mut Vec::new(), &mut [0.0; 6]);
}

#[test]
#[should_panic(expected = "slot 4 of 2 slots of noise")]
fn a_slot_that_is_not_there() {
    let factors = factors(1, [2, 3], 2);
    let rows = [1, 4].map(|slot| MemberRow { slot, minus: false });
    let noise = Some((&factors, rows.as_slice()));
    weight(Precision::Int8).multiply(&two_rows(Precision::Int8), noise, false, &mut Vec::new(), &mut [0.0; 6]);
}

#[test]
#[should_panic(expected = "rows for weights in f32, but the weight [2, 3] is in int8")]
fn rows_for_another_precision() {
    weight(Precision::Int8).multiply(&two_rows(Precision::F32), None, false, &mut Vec::new(), &mut [0.0; 6]);
}

#[test]
#[should_panic(expected = "rms_norm: 7 values in rows of 3")]
fn a_norm_of_part_of_a_row() {
    Activations::new(Precision::F32).rms_norm(&[0.0; 7], &[0.0; 3], 1e-5);
}

#[test]
#[should_panic(expected = "gate of 4 elements for 6")]
fn a_gate_of_another_length() {
    Activations::new(Precision::F32).swiglu(&mut vec![0.0; 4], &[0.0; 6], 2);
}

#[test]
#[should_panic(expected = "rotary: 9 values for 2 rows")]
fn rotary_of_another_length() {
    rotary(&mut [0.0; 9], 1, &[0, 1], &[1.0; 8], &[0.0; 8], 2);
}

#[test]
#[should_panic(expected = "rotary: position 4 of tables for 4 positions")]
fn a_position_that_is_not_there() {
    rotary(&mut [0.0; 8], 1, &[0, 4], &[1.0; 8], &[0.0; 9], 2);
}

#[test]
#[should_panic(expected = "33 positions where there is room for 32")]
fn more_positions_than_room() {
    KeyValues::new(1, 1, 2, 3).write(0, &[0.0; 66], &[0.0; 66]);
}

#[test]
#[should_panic(expected = "layer 2 of 2")]
fn a_layer_that_is_not_there() {
    KeyValues::new(2, 1, 2, 3).write(2, &[0.0; 2], &[0.0; 2]);
}

#[test]
#[should_panic(expected = "4 heads of queries for 3")]
fn queries_that_share_no_keys() {
    KeyValues::new(1, 3, 2, 3).attend(
        0,
        4,
        &[0.0; 8],
        AttentionScores::of_dimension(2),
        &mut Vec::new(),
        &mut [0.0; 8],
    );
}

#[test]
#[should_panic(expected = "a sequence of 33 positions in room for 20")]
fn a_fork_without_room() {
    let mut state = KeyValues::new(1, 1, 2, 40);
    state.advance(33);
    state.fork(20);
}

/// Sizes whose product wraps, each alone and all together.
#[test]
fn keys_beyond_memory() {
    for [layers, heads, dim, capacity] in
        [[1, (1 << 58) + 1, 64, 1], [1, 1 << 32, 1 << 32, 1], [1, 1, 1, usize::MAX], [1 << 40, 1 << 10, 64, 1 << 10]]
    {
        let made = std::panic::catch_unwind(|| KeyValues::new(layers, heads, dim, capacity));
        let message = *made.expect_err("a panic").downcast::<String>().expect("a message");
        assert!(message.contains(&format!("{layers} layers of {heads} heads")), "{message}");
    }
    assert_eq!(KeyValues::bytes(1, 1, 1, usize::MAX), usize::MAX);
}
