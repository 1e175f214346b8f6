//! Parameters as members see them, for uses that need the values themselves.

use super::trace::Parameter;
use burn::tensor::{DType, Device, Int, Tensor};
use eggroll_core::ops::explicit::perturbed_vector;
use eggroll_core::ops::{DenseNoise, InputRows, LowRankNoise, SparseNoise, sparse_entries};
use eggroll_core::scope::{ActiveParameter, Use};
use eggroll_core::{MatrixView, PairRange, ParameterNoise, Role};

/// A parameter as every member sees it: `θ + s·E`, `s = ±1`, with the noise `E` of its role.
///
/// # Shapes
///
/// - output: `[members, elements]`, row-major in the parameter's shape
pub(super) fn values(active: &ActiveParameter, parameter: &Parameter) -> Tensor<2> {
    let noise = active.noise(Use::Other);
    let (pairs, shape) = (active.pairs(), parameter.shape());
    let flat = Tensor::<1>::from_dispatch(parameter.value.clone());
    let elements = shape.iter().product::<usize>();
    let flat = flat.reshape([elements]);
    let place = (&flat.device(), flat.dtype());
    let (delta, scale) = match noise.role {
        Role::Frozen => return flat.unsqueeze::<2>().repeat_dim(0, pairs.members()),
        Role::Dense => {
            let drawn = noise.source.noise(noise.key, pairs, elements, place);
            (drawn, DenseNoise::new(noise.key, noise.sigma).scale)
        }
        Role::Sparse => {
            let view = MatrixView::of(&shape).expect("sparse noise is for matrices");
            let (sparse, size) = (SparseNoise::new(noise.key, noise.sigma), [view.d_input, view.d_output]);
            (sparse_entries(sparse, &noise.source, pairs, size, place).matrices(size), sparse.scale)
        }
        Role::LowRank { rank } => {
            let view = MatrixView::of(&shape).expect("low-rank noise is for matrices");
            let [b, a] = factors(&noise, rank, pairs, [view.d_input, view.d_output], place);
            let product = b.swap_dims(1, 2).matmul(a); // [pairs, d_input, d_output]
            (product.reshape([pairs.count as usize, elements]), LowRankNoise::new(noise.key, rank, noise.sigma).scale)
        }
    };
    perturbed_vector(flat, row_major(delta, &shape), scale)
}

/// Noise in the order of the parameter's matrix to the order of its elements: `[pairs, elements]`.
fn row_major(noise: Tensor<2>, shape: &[usize]) -> Tensor<2> {
    match (MatrixView::of(shape), shape.len()) {
        (Some(view), 3..) => {
            let [pairs, elements] = noise.dims();
            noise.reshape([pairs, view.d_input, view.d_output]).swap_dims(1, 2).reshape([pairs, elements])
        }
        _ => noise,
    }
}

/// Rows of a matrix parameter as members see them: `W[k] + s·E[k]`.
///
/// # Shapes
///
/// - indices: `[members · rows]`, or `[rows]` if shared
/// - output: `[members · rows, d_model]`
pub(super) fn embedding(
    active: &ActiveParameter,
    parameter: &Parameter,
    indices: Tensor<1, Int>,
    input: InputRows,
) -> Tensor<2> {
    let pairs = active.pairs();
    let indices = match input {
        InputRows::PerMember => indices,
        InputRows::Shared => indices.repeat_dim(0, pairs.members()),
    };
    let weight = Tensor::<2>::from_dispatch(parameter.value.clone());
    let ([count, d_model], [rows]) = (weight.dims(), indices.dims());
    let (p, each) = (pairs.count as usize, rows / pairs.members());
    let noise = active.noise(Use::Other);
    let place = (&weight.device(), weight.dtype());
    let plain = weight.select(0, indices.clone()); // [members · rows, d_model]
    let (delta, scale) = match noise.role {
        Role::Frozen => return plain,
        Role::LowRank { rank } => {
            let [b, a] = factors(&noise, rank, pairs, [count, d_model], place);
            let columns = indices.reshape([p, 1, 2 * each]).repeat_dim(1, rank);
            let b = b.gather(2, columns).swap_dims(1, 2); // [pairs, rows of the pair, rank]
            (b.matmul(a), LowRankNoise::new(noise.key, rank, noise.sigma).scale)
        }
        Role::Dense => {
            let drawn = noise.source.noise(noise.key, pairs, count * d_model, place).reshape([p * count, d_model]);
            let first = Tensor::<1, Int>::arange(0..p as i64, place.0).mul_scalar(count as i64);
            let first = first.cast(indices.dtype()).reshape([p, 1]);
            let index = indices.reshape([p, 2 * each]) + first;
            let delta = drawn.select(0, index.reshape([rows])).reshape([p, 2 * each, d_model]);
            (delta, DenseNoise::new(noise.key, noise.sigma).scale)
        }
        Role::Sparse => {
            let sparse = SparseNoise::new(noise.key, noise.sigma);
            let entries = sparse_entries(sparse, &noise.source, pairs, [count, d_model], place);
            (entries.select(indices.reshape([p, 2 * each]), 1.0, d_model), sparse.scale)
        }
    };
    let delta = delta.reshape([p, 2, each, d_model]) * scale;
    let (plus, minus) = (delta.clone().slice_dim(1, 0..1), -delta.slice_dim(1, 1..2));
    plain + Tensor::cat(vec![plus, minus], 1).reshape([rows, d_model])
}

/// `B : [pairs, rank, d_input]` and `A : [pairs, rank, d_output]`.
fn factors(
    noise: &ParameterNoise,
    rank: usize,
    pairs: PairRange,
    [d_input, d_output]: [usize; 2],
    place: (&Device, DType),
) -> [Tensor<3>; 2] {
    let (p, elements) = (pairs.count as usize, rank * (d_input + d_output));
    let drawn = noise.source.noise(noise.key, pairs, elements, place);
    let b = drawn.clone().slice_dim(1, 0..rank * d_input);
    let a = drawn.slice_dim(1, rank * d_input..rank * (d_input + d_output));
    [b.reshape([p, rank, d_input]), a.reshape([p, rank, d_output])]
}
