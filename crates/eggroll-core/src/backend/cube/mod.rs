//! CubeCL: one source of kernels for CUDA, Vulkan, Metal and WebGPU.
//!
//! `eligibility` decides whether a kernel can run, by the facts in `device`; `geometry` says how it is cut up and what it asks
//! for, `launch` runs it; the kernels are in files named as the operations. The product `x·W` is Burn's own, so that it uses tensor cores where there are any.

mod cross_entropy;
pub(crate) mod device;
mod eligibility;
mod embedding;
mod estimate;
mod geometry;
mod integer;
mod launch;
mod linear;
mod noise;
mod reduce;
mod row_projection;
mod vector;

use crate::key::NoiseKey;
use crate::ops::{
    BiasPrimitive, DenseNoise, InputRows, LinearMembers, LowRankNoise, MatrixNoise, PairRange, PerturbedOps,
    SourcePrimitive, portable,
};
use crate::profile::{self, Component};
use burn::backend::ops::FloatTensorOps;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, FloatDType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use eligibility::{Demand, reads, runs};
use geometry::{BasisTile, BiasKind, EmbeddingTile, EstimateTile, LinearTile, MemberTile, by_element};
use launch::{Factors, Noise};

impl PerturbedOps for CubeBackend {
    fn low_rank_linear(
        x: CubeTensor,
        weight: CubeTensor,
        bias: BiasPrimitive<Self>,
        noise: LowRankNoise,
        source: SourcePrimitive<Self>,
        members: LinearMembers,
    ) -> CubeTensor {
        match tile(&x, &weight, &bias, &source, members, noise.rank) {
            Some(tile) => {
                let shape = [weight.shape()[0], weight.shape()[1]];
                let elements = noise.rank * (shape[0] + shape[1]);
                let drawn = Noise::new(noise.key, noise.scale, elements, source);
                let factors = Factors { depth: noise.rank, starts: noise.starts(shape) };
                linear(x, weight, bias, drawn, factors, members, tile)
            }
            None => portable::low_rank_linear::<Self>(x, weight, bias, noise, source, members),
        }
    }

    fn dense_linear(
        x: CubeTensor,
        weight: CubeTensor,
        bias: BiasPrimitive<Self>,
        noise: DenseNoise,
        source: SourcePrimitive<Self>,
        members: LinearMembers,
    ) -> CubeTensor {
        match tile(&x, &weight, &bias, &source, members, 0) {
            // The kernel reads rows of noise as they are in the stream.
            Some(tile) if !noise.transposed => {
                let [d_input, d_output] = [weight.shape()[0], weight.shape()[1]];
                let drawn = Noise::new(noise.key, noise.scale, d_input * d_output, source);
                let factors = Factors { depth: d_input, starts: [0, 0] };
                linear(x, weight, bias, drawn, factors, members, tile)
            }
            _ => portable::dense_linear::<Self>(x, weight, bias, noise, source, members),
        }
    }

    fn perturbed_embedding(
        weight: CubeTensor,
        indices: CubeTensor,
        noise: MatrixNoise,
        source: SourcePrimitive<Self>,
        members: LinearMembers,
    ) -> CubeTensor {
        let shape = [weight.shape()[0], weight.shape()[1]];
        let rank = match noise {
            MatrixNoise::LowRank(noise) => Some(noise.rank),
            MatrixNoise::Dense(_) => None,
        };
        let shared = members.input == InputRows::Shared;
        let tile = EmbeddingTile::new(&weight.client, shape[1], rank.is_some(), shared);
        let rows = members.pairs.members() * members.rows_per_member(indices.shape()[0]);
        let output = rows * shape[1];
        let largest = output.max(size(&weight)).max(held(&source));
        let demand = tile.demand(shape[1], rank.unwrap_or(1), largest);
        if output == 0 || !reads(&indices) || !runs(&weight, &demand) {
            return portable::perturbed_embedding::<Self>(weight, indices, noise, source, members);
        }
        let drawn = Noise::new(noise.key(), noise.scale(), noise.elements(shape), source);
        let span = profile::span(Component::LowRankPart, 0);
        finished(span, launch::perturbed_embedding(weight, indices, drawn, rank, members, tile))
    }

    fn perturbed_vector(
        vector: CubeTensor,
        noise: DenseNoise,
        source: SourcePrimitive<Self>,
        pairs: PairRange,
    ) -> CubeTensor {
        let output = pairs.members() * size(&vector);
        if output == 0 || !runs(&vector, &by_element(3, output.max(held(&source)))) {
            return portable::perturbed_vector::<Self>(vector, noise, source, pairs);
        }
        let noise = Noise::new(noise.key, noise.scale, vector.shape()[0], source);
        let span = profile::span(Component::Noise, 0);
        finished(span, launch::perturbed_vector(vector, noise, pairs))
    }

    fn low_rank_estimate(
        weights: CubeTensor,
        noise: LowRankNoise,
        source: SourcePrimitive<Self>,
        first_pair: u32,
        d_input: usize,
        d_output: usize,
    ) -> CubeTensor {
        let shape = [d_input, d_output];
        let tile = EstimateTile { signs: noise.signs, ..EstimateTile::new(&weights.client) };
        let columns = weights.shape()[0] * noise.rank;
        let demand = tile.demand(columns, (d_input * d_output).max(held(&source)));
        if columns * d_input * d_output == 0 || !runs(&weights, &demand) {
            return portable::low_rank_estimate::<Self>(weights, noise, source, first_pair, shape);
        }
        let (dtype, elements) = (weights.dtype, noise.rank * (d_input + d_output));
        let drawn = Noise::new(noise.key, noise.scale, elements, source);
        let span = profile::span(Component::Estimate, 0);
        let sums = launch::low_rank_estimate(weights, drawn, noise.rank, first_pair, shape, tile);
        finished(span, sum_splits(sums, Shape::new(shape), dtype))
    }

    fn dense_estimate(
        weights: CubeTensor,
        noise: DenseNoise,
        source: SourcePrimitive<Self>,
        first_pair: u32,
        elements: usize,
    ) -> CubeTensor {
        let pairs = size(&weights);
        let demand = Demand { turns: pairs, ..by_element(3, elements.max(held(&source))) };
        if pairs * elements == 0 || !runs(&weights, &demand) {
            return portable::dense_estimate::<Self>(weights, noise, source, first_pair, elements);
        }
        let dtype = weights.dtype;
        let noise = Noise::new(noise.key, noise.scale, elements, source);
        let span = profile::span(Component::Estimate, 0);
        finished(span, sum_splits(launch::dense_estimate(weights, noise, first_pair), Shape::new([elements]), dtype))
    }

    fn noise(like: CubeTensor, key: NoiseKey, pairs: PairRange, elements: usize) -> CubeTensor {
        let span = profile::span(Component::Noise, 0);
        let noise = if runs(&like, &by_element(1, pairs.count as usize * elements)) {
            launch::noise(&like, key, pairs, elements)
        } else {
            portable::noise::<Self>(key, pairs, elements, &like)
        };
        finished(span, noise)
    }

    fn row_projection(gradient: CubeTensor, x: CubeTensor) -> CubeTensor {
        let [rows, width] = [x.shape()[0], x.shape()[1]];
        let tile = BasisTile::new(&x.client, rows.max(1), width.max(1));
        if !runs(&x, &tile.demand(rows, width)) {
            return portable::row_projection::<Self>(gradient, x);
        }
        // In f32, also for narrower gradients: an orthonormal basis has small elements.
        let (dtype, basis) = (gradient.dtype, launch::row_basis(x, tile)); // [rows, d_input]
        let gradient = CubeBackend::float_cast(gradient, FloatDType::F32);
        let inner = CubeBackend::float_matmul(basis.clone(), gradient); // [rows, d_output]
        let projected = CubeBackend::float_matmul(CubeBackend::float_swap_dims(basis, 0, 1), inner);
        CubeBackend::float_cast(projected, dtype.into())
    }

    fn member_cross_entropy(logits: CubeTensor, targets: CubeTensor, members: usize) -> CubeTensor {
        let tile = MemberTile::new(&logits.client, targets.shape()[0], logits.shape()[1]);
        let demand = tile.demand(size(&targets), logits.shape()[1], size(&logits));
        if reads(&targets) && runs(&logits, &demand) {
            launch::member_cross_entropy(logits, targets, members, tile)
        } else {
            portable::member_cross_entropy::<Self>(logits, targets, members)
        }
    }
}

/// The tile of a linear kernel, or `None` if the kernel cannot run.
fn tile(
    x: &CubeTensor,
    weight: &CubeTensor,
    bias: &BiasPrimitive<CubeBackend>,
    source: &SourcePrimitive<CubeBackend>,
    members: LinearMembers,
    rank: usize,
) -> Option<LinearTile> {
    let ([rows, d_input], d_output) = ([x.shape()[0], x.shape()[1]], weight.shape()[1]);
    let shared = members.input == InputRows::Shared;
    let each = members.rows_per_member(rows);
    let pair_rows = if shared { each } else { 2 * each };
    let (bias, bias_held) = match bias {
        BiasPrimitive::None => (BiasKind::None, 0),
        BiasPrimitive::Plain(_) => (BiasKind::Plain, 0),
        BiasPrimitive::Perturbed(_, _, source) => (BiasKind::Perturbed, held(source)),
    };
    let tile = LinearTile { shared, bias, ..LinearTile::new(&x.client, pair_rows.max(1), d_input.max(d_output), rank) };
    let depth = if rank == 0 { d_input } else { rank };
    let output = members.pairs.members() * each * d_output;
    let largest = output.max(size(x)).max(held(source)).max(bias_held);
    (size(x) > 0 && runs(x, &tile.demand([d_input, d_output], depth, largest))).then_some(tile)
}

fn size(tensor: &CubeTensor) -> usize {
    tensor.shape().num_elements()
}

/// Elements of noise that is held.
fn held(source: &SourcePrimitive<CubeBackend>) -> usize {
    match source {
        SourcePrimitive::Drawn => 0,
        SourcePrimitive::Cached(noise, _) | SourcePrimitive::Table(noise) => size(noise),
    }
}

fn linear(
    x: CubeTensor,
    weight: CubeTensor,
    bias: BiasPrimitive<CubeBackend>,
    noise: Noise,
    factors: Factors,
    members: LinearMembers,
    tile: LinearTile,
) -> CubeTensor {
    let bias = match bias {
        BiasPrimitive::None => (None, Noise::none()),
        BiasPrimitive::Plain(bias) => (Some(bias), Noise::none()),
        BiasPrimitive::Perturbed(bias, noise, source) => {
            let noise = Noise::new(noise.key, noise.scale, weight.shape()[1], source);
            (Some(bias), noise)
        }
    };
    let span = profile::span(Component::BaseProduct, 0);
    let product = finished(span, CubeBackend::float_matmul(x.clone(), weight));
    let span = profile::span(Component::LowRankPart, 0);
    finished(span, launch::linear(x, product, bias, noise, factors, members.pairs, tile))
}

/// Closes the span of the work that `output` comes from.
fn finished(span: profile::Span, output: CubeTensor) -> CubeTensor {
    span.set_bytes(output.shape().num_elements() * output.dtype.size());
    span.end(|| drop(CubeBackend::sync(&output.device)));
    output
}

/// Adds up the splits of an estimate.
fn sum_splits(sums: CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
    let splits = sums.shape()[0];
    let sum = if splits == 1 { sums } else { CubeBackend::float_sum_dim(sums, 0) };
    CubeBackend::float_cast(CubeBackend::float_reshape(sum, shape), dtype.into())
}
