//! Rows with room behind them, as CUDA lays out tensors and no driver here does: kernels give the same bits as without.

use super::launch::{self, NoiseOperand};
use super::linear::FactorLayout;
use super::product::{Precision, has_tensor_cores};
use super::tile;
use crate::backend::cube::device::tested;
use crate::ops::{
    BiasPrimitive, DenseNoise, InputRows, LinearMembers, LowRankNoise, MatrixNoise, PerturbedOps, SourcePrimitive,
};
use crate::rng::key::{NoiseKey, PairRange};
use crate::rng::philox::philox4x32;
use burn::backend::ops::{FloatTensorOps, IntTensorOps};
use burn::tensor::{DType, TensorData, try_read_sync};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;

const PAIRS: PairRange = PairRange { first: 3, count: 3 };
/// Elements behind each row.
const ROOM: usize = 7;

fn number(i: usize, salt: u32) -> f32 {
    (philox4x32([i as u32, salt, 0, u32::MAX], [0; 2])[0] >> 8) as f32 / (1u32 << 23) as f32 - 1.0
}

/// The same matrix with and without room behind its rows; what stands there are numbers that no result may show.
fn both([rows, columns]: [usize; 2], salt: u32) -> [CubeTensor; 2] {
    let of = |width: usize| {
        let value = |i: usize| {
            let (row, column) = (i / width, i % width);
            if column < columns { number(row * columns + column, salt) } else { 1e9 }
        };
        let data = TensorData::new((0..rows * width).map(value).collect(), [rows, width]);
        CubeBackend::float_from_data(data, &tested())
    };
    // A slice would be a copy.
    let mut padded = of(columns + ROOM);
    padded.meta.shape_mut()[1] = columns;
    [of(columns), padded]
}

fn read(tensor: CubeTensor) -> Vec<f32> {
    let data = try_read_sync(CubeBackend::float_into_data(tensor)).expect("a device that is read at once");
    data.expect("the kernel runs").try_to_vec().expect("an f32 tensor")
}

fn indices(values: &[i32]) -> CubeTensor {
    CubeBackend::int_from_data(TensorData::from(values), &tested())
}

fn vector(len: usize, salt: u32) -> CubeTensor {
    let [rows, _] = both([1, len], salt);
    CubeBackend::float_reshape(rows, [len].into())
}

fn low_rank(rank: usize) -> LowRankNoise {
    LowRankNoise::new(NoiseKey::new(4, 1, 2), rank, 0.5)
}

fn dense() -> DenseNoise {
    DenseNoise::new(NoiseKey::new(4, 2, 2), 0.5)
}

/// The results of both layouts are the same, and differ from results of other numbers.
fn check(what: &str, of: impl Fn(&dyn Fn([usize; 2], u32) -> CubeTensor) -> CubeTensor) {
    let plain = read(of(&|shape, salt| both(shape, salt)[0].clone()));
    let padded = read(of(&|shape, salt| both(shape, salt)[1].clone()));
    // Where products choose vectors by rows, tensor cores round otherwise.
    let rounds = has_tensor_cores(&tested().client(), DType::F32, DType::F32, Precision::Chosen);
    let near = |(a, b): (&f32, &f32)| (a - b).abs() < 0.05 * (1.0 + a.abs());
    let same = if rounds { plain.iter().zip(&padded).all(near) } else { plain == padded };
    assert!(same, "{what}");
    assert!(plain != read(of(&|shape, salt| both(shape, salt + 100)[1].clone())), "canary: {what}");
}

#[test]
fn inputs() {
    for (input, [d_input, d_output]) in [
        (InputRows::PerMember, [10, 33]),
        (InputRows::Shared, [10, 33]),
        (InputRows::PerMember, [64, 128]),
        (InputRows::Shared, [64, 192]),
    ] {
        let members = LinearMembers { pairs: PAIRS, input };
        let rows = if input == InputRows::Shared { 5 } else { 5 * PAIRS.members() };
        check(&format!("low-rank linear, {input:?}, {d_input} to {d_output}"), |make| {
            let bias = BiasPrimitive::Perturbed(vector(d_output, 9), dense(), SourcePrimitive::Drawn);
            let (x, weight) = (make([rows, d_input], 1), make([d_input, d_output], 2));
            CubeBackend::low_rank_linear(x, weight, bias, low_rank(2), SourcePrimitive::Drawn, members)
        });
        check(&format!("dense linear, {input:?}, {d_input} to {d_output}"), |make| {
            let (x, weight) = (make([rows, d_input], 1), make([d_input, d_output], 2));
            CubeBackend::dense_linear(x, weight, BiasPrimitive::None, dense(), SourcePrimitive::Drawn, members)
        });
        check(&format!("embedding, {input:?}, {d_output} wide"), |make| {
            let rows: Vec<i32> = (0..rows as i32).map(|row| row * 3 % 11).collect();
            let noise = MatrixNoise::LowRank(low_rank(2));
            let weight = make([11, d_output], 3);
            CubeBackend::perturbed_embedding(weight, indices(&rows), noise, SourcePrimitive::Drawn, members)
        });
    }
    check("cross-entropy", |make| CubeBackend::member_cross_entropy(make([6 * 4, 10], 4), indices(&[1, 9, 0, 3]), 6));
    check("row projection", |make| CubeBackend::row_projection(make([21, 5], 5), make([4, 21], 6)));
}

/// Products that a launch of its own adds to.
#[test]
fn products() {
    for (input, d_output) in
        [(InputRows::PerMember, 10), (InputRows::Shared, 10), (InputRows::PerMember, 128), (InputRows::Shared, 128)]
    {
        let (members, noise, shape) = (LinearMembers { pairs: PAIRS, input }, low_rank(2), [64, d_output]);
        let [rows, product_rows] = if input == InputRows::Shared { [5, 5] } else { [5 * PAIRS.members(); 2] };
        check(&format!("linear, {input:?}, {d_output} wide"), |make| {
            let (x, weight) = (make([rows, 64], 1), make(shape, 2));
            let factors = FactorLayout { rank: 2, depth: 2, starts: noise.starts(shape) };
            let source = (noise.key, &SourcePrimitive::Drawn);
            let tile = tile(&x, &weight, &BiasPrimitive::None, source, members, factors);
            let drawn = NoiseOperand::new(noise.key, noise.scale, 2 * (64 + d_output), SourcePrimitive::Drawn);
            let product = make([product_rows, d_output], 8);
            launch::linear(x, product, (None, NoiseOperand::none()), drawn, factors, PAIRS, tile.expect("runs"))
        });
    }
}
