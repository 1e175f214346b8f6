//! The update by votes.

use super::{LAYOUTS, Layout, int8, operand, read, saturated, upload};
use crate::arithmetic::integer::Votes;
use crate::backend::cube::integer::geometry::UpdateTile;
use crate::backend::cube::integer::launch;
use crate::backend::cube::integer::packed_int8::Form;
use crate::testing::reference::integer as oracle;
use burn::backend::ops::IntTensorOps;
use burn::tensor::Shape;
use burn_cubecl::CubeBackend;

/// Scores of five levels: twice a value may be no int8.
const PAIRS: usize = 37;
const LIMIT: i32 = 9000;

#[test]
fn words_equal_oracle() {
    // A rest of a word; a tile by words; several factors with a rest, and by words over several tiles.
    for (shape, rank) in [([3, 17], 1), ([64, 40], 1), ([40, 45], 3), ([12, 132], 3)] {
        let [d_input, d_output] = shape;
        let elements = rank * (d_input + d_output);
        let (parameter, noise) = (saturated(d_input * d_output, 5), saturated(PAIRS * elements, 6));
        let scores: Vec<i8> = (0..PAIRS).map(|pair| ((pair * 7 + 3) % 5) as i8 - 2).collect();
        for votes in [Votes::Values, Votes::Signs] {
            let limit = if votes == Votes::Signs { 3 } else { LIMIT };
            let sums = oracle::votes(&noise, &scores, shape, rank, votes);
            let step = |(value, vote): (&i8, i64)| oracle::step(*value, vote, limit);
            let expected: Vec<i8> = parameter.iter().zip(sums).map(step).collect();
            assert!(expected != parameter, "canary: {shape:?}");
            let starts = [rank * d_input, (rank - 1) * d_input, (rank - 1) * d_output];
            let words = starts.iter().all(|start| start.is_multiple_of(4));
            for layout in LAYOUTS {
                let layout = if words { layout } else { Layout { form: Form::Value, ..layout } };
                let old = upload(parameter.iter().copied().map(i32::from).collect());
                let old = CubeBackend::int_reshape(old, Shape::new(shape));
                let UpdateTile::Matrix(tile) = UpdateTile::new(&old.client, &shape, rank, PAIRS) else {
                    panic!("a matrix");
                };
                let noise = operand(&noise, [PAIRS, elements], layout);
                let scores = upload(scores.iter().copied().map(i32::from).collect());
                let found = read(launch::matrix_update(old, noise, scores, rank, votes, limit, tile));
                assert!(found == expected, "{shape:?}, rank {rank}, {votes:?}, {layout:?}");
            }
        }
    }
    let other = int8(4, 1);
    assert_eq!(read(operand(&other, [2, 2], LAYOUTS[0]).tensor), other);
}
