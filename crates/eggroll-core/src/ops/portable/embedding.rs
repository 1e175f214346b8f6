//! Rows of perturbed matrices by tensor operations.

use super::noise::{factors, held_or_drawn};
use super::{dims, plus_minus};
use crate::ops::{InputRows, LinearMembers, MatrixNoise, SourcePrimitive};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::Shape;

pub(crate) fn perturbed_embedding<B: Backend>(
    weight: FloatTensor<B>,
    indices: IntTensor<B>,
    noise: MatrixNoise,
    source: SourcePrimitive<B>,
    members: LinearMembers,
) -> FloatTensor<B> {
    let (pairs, count) = (members.pairs, members.pairs.count as usize);
    let [vocabulary, d_model] = dims::<B>(&weight);
    let rows = indices.shape()[0];
    let looked_up = B::float_select(weight.clone(), 0, indices.clone()); // [rows, d_model]
    // Indices of every pair: [pairs, rows of the pair].
    let each = match members.input {
        InputRows::PerMember => rows / count,
        InputRows::Shared => rows,
    };
    let first = if members.input == InputRows::Shared { 1 } else { count };
    let of_pairs = B::int_reshape(indices, Shape::new([first, each]));
    let of_pairs = B::int_expand(of_pairs, Shape::new([count, each]));
    let delta = match noise {
        MatrixNoise::LowRank(noise) => {
            let (b, a) = factors::<B>(&noise, source, pairs, [vocabulary, d_model], &weight);
            let chosen = B::int_reshape(of_pairs, Shape::new([count, 1, each]));
            let chosen = B::int_expand(chosen, Shape::new([count, noise.rank, each]));
            let b = B::float_gather(2, b, chosen); // [pairs, rank, rows of the pair]
            B::float_matmul(B::float_swap_dims(b, 1, 2), a)
        }
        MatrixNoise::Dense(noise) => {
            let drawn = held_or_drawn::<B>(source, noise.key, pairs, vocabulary * d_model, &weight);
            let drawn = B::float_reshape(drawn, Shape::new([count, vocabulary, d_model]));
            let chosen = B::int_reshape(of_pairs, Shape::new([count, each, 1]));
            B::float_gather(1, drawn, B::int_expand(chosen, Shape::new([count, each, d_model])))
        }
    };
    let delta = B::float_mul_scalar(delta, Scalar::from(noise.scale())); // [pairs, rows of the pair, d_model]
    let y = match members.input {
        InputRows::Shared => {
            let both = plus_minus::<B>(B::float_reshape(delta, Shape::new([count, 1, rows, d_model])));
            B::float_add(B::float_reshape(looked_up, Shape::new([1, 1, rows, d_model])), both)
        }
        InputRows::PerMember => {
            let shape = Shape::new([count, 2, each / 2, d_model]);
            let one = B::float_ones(Shape::new([1, 1, 1, 1]), &delta.device(), delta.dtype().into());
            let both = B::float_mul(B::float_reshape(delta, shape.clone()), plus_minus::<B>(one));
            B::float_add(B::float_reshape(looked_up, shape), both)
        }
    };
    let rows = members.pairs.members() * members.rows_per_member(rows);
    B::float_reshape(y, Shape::new([rows, d_model]))
}
