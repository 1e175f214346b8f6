//! The fused form against the portable one, also where it would not pay.

use super::*;
use crate::backend::cube::device::tested;
use crate::backend::cube::product::{Precision, has_tensor_cores};
use crate::ops::{BiasPrimitive, DenseNoise, InputRows, LinearMembers, LowRankNoise, SourcePrimitive, portable};
use crate::rng::NoiseDistribution;
use crate::rng::key::NoiseKey;
use crate::rng::philox::philox4x32;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{TensorData, try_read_sync};
use burn_cubecl::CubeBackend;

/// Pairs, rows of a member, d_input, d_output.
const SHAPES: [(u32, usize, usize, usize); 6] =
    [(1, 1, 1, 1), (5, 1, 37, 40), (3, 2, 130, 33), (70, 1, 64, 48), (2, 5, 17, 256), (2, 33, 65, 12)];

fn tensor<const D: usize>(shape: [usize; D], salt: u32) -> CubeTensor {
    let value = |i| philox4x32([i, salt, 4, u32::MAX], [0; 2])[0] as f32 / 2.0f32.powi(31) - 1.0;
    let values: Vec<f32> = (0..shape.iter().product::<usize>() as u32).map(value).collect();
    CubeBackend::float_from_data(TensorData::new(values, shape), &tested())
}

fn read(tensor: CubeTensor) -> Vec<f32> {
    let data = try_read_sync(CubeBackend::float_into_data(tensor)).expect("a device that is read at once");
    data.expect("the kernel runs").try_to_vec().expect("an f32 tensor")
}

struct FusedCase {
    shape: (u32, usize, usize, usize),
    rank: usize,
    bias: BiasKind,
    transposed: bool,
    distribution: NoiseDistribution,
}

impl FusedCase {
    fn noise(&self, generation: u32) -> (LowRankNoise, DenseNoise) {
        let key = |parameter| NoiseKey::new(77, parameter, generation).with_distribution(self.distribution);
        let noise = LowRankNoise::new(key(3), self.rank, 0.4);
        (LowRankNoise { transposed: self.transposed, ..noise }, DenseNoise::new(key(4), 0.3))
    }

    fn operands(&self) -> (CubeTensor, CubeTensor, CubeTensor, PairRange) {
        let (pairs, rows, d_input, d_output) = self.shape;
        let pairs = PairRange::new(9, pairs);
        (tensor([pairs.members() * rows, d_input], 1), tensor([d_input, d_output], 2), tensor([d_output], 3), pairs)
    }

    fn expected(&self, generation: u32) -> Vec<f32> {
        let ((x, weight, bias, pairs), (noise, bias_noise)) = (self.operands(), self.noise(generation));
        let bias = match self.bias {
            BiasKind::None => BiasPrimitive::None,
            BiasKind::Plain => BiasPrimitive::Plain(bias),
            BiasKind::Perturbed => BiasPrimitive::Perturbed(bias, bias_noise, SourcePrimitive::Drawn),
        };
        let members = LinearMembers { pairs, input: InputRows::PerMember };
        read(portable::low_rank_linear::<CubeBackend>(x, weight, bias, noise, SourcePrimitive::Drawn, members))
    }

    /// The result, and the kernels that were launched.
    fn found(&self) -> (Vec<f32>, u64) {
        let ((x, weight, bias, pairs), (noise, bias_noise)) = (self.operands(), self.noise(0));
        let shape = [weight.meta.shape()[0], weight.meta.shape()[1]];
        let factors = FactorLayout { rank: self.rank, depth: self.rank, starts: noise.starts(shape) };
        let noise =
            NoiseOperand::new(noise.key, noise.scale, self.rank * (shape[0] + shape[1]), SourcePrimitive::Drawn);
        let bias_noise = NoiseOperand::new(bias_noise.key, bias_noise.scale, shape[1], SourcePrimitive::Drawn);
        let bias = ((self.bias != BiasKind::None).then_some(&bias), &bias_noise);
        let tile = LinearTile::new(&x.client, 2 * self.shape.1, shape, factors, (self.distribution, self.bias));
        let before = counters::thread_kernels();
        let y = linear(&x, &weight, bias, &noise, factors, pairs, tile).expect("a device that runs the kernels");
        (read(y), counters::thread_kernels() - before)
    }
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn equals_the_portable_form() {
    for (index, shape) in SHAPES.into_iter().enumerate() {
        // A kernel is built for each: all ranks for one shape, one for the others.
        for rank in if index == 1 { 1..=5 } else { index % 5 + 1..=index % 5 + 1 } {
            let bias = [BiasKind::None, BiasKind::Plain, BiasKind::Perturbed][(index + rank) % 3];
            let distribution = [NoiseDistribution::Normal, NoiseDistribution::Rademacher][rank % 2];
            let case = FusedCase { shape, rank, bias, transposed: index % 2 == 1, distribution };
            let (found, kernels) = case.found();
            // As rounding allows: sums of `d_input` products, and of `rank` of these, at most about 60.
            let allowed = 1e-5 * (shape.2 as f32).sqrt() * (1.0 + rank as f32);
            let off = distance(&found, &case.expected(0));
            // The portable form multiplies all factors on tensor cores, where there are any.
            let rounded = if has_tensor_cores(&tested().client(), DType::F32, DType::F32, Precision::Chosen) {
                64.0
            } else {
                1.0
            };
            assert!(off < rounded * allowed, "{shape:?}, rank {rank}, {bias:?}: {off} of {allowed}");
            assert!(distance(&found, &case.expected(1)) > 100.0 * allowed, "canary: {shape:?}, rank {rank}");
            assert_eq!(kernels, 1, "the product is not counted among eggroll's kernels");
        }
    }
}

#[test]
fn pays_where_factors_are_no_larger_than_the_output() {
    for (depth, rows) in [(2, 1), (4, 2), (8, 4)] {
        assert!(is_cheaper(depth, rows) && !is_cheaper(depth + 1, rows), "{depth}, {rows}");
    }
}
