//! CubeCL: one source of kernels for CUDA, Vulkan, Metal and WebGPU.
//!
//! `eligibility` decides by the facts in `device` whether a kernel can run. `geometry` has its division into cubes and its resources,
//! `launch` runs it. The kernels are in files named like the operations. The product `x·W` is CubeK's, which uses tensor cores if there are
//! any.

mod basis;
mod cross_entropy;
pub(crate) mod device;
mod eligibility;
mod embedding;
mod estimate;
mod estimate_product;
mod fused;
mod geometry;
mod integer;
mod launch;
mod linear;
mod noise;
#[cfg(all(test, feature = "wgpu"))]
mod pitched;
mod product;
mod reduce;
mod registers;
mod rollout;
mod row_projection;
mod vector;

pub(crate) use rollout::{launch_rollout, rollout};

use crate::ops::rows::RowOps;
use crate::ops::{
    BiasPrimitive, DenseNoise, InputRows, LinearMembers, LowRankNoise, MatrixNoise, PairRange, PerturbedOps,
    SourcePrimitive, portable,
};
use crate::rng::key::NoiseKey;
use crate::work::profile::{self, Component};
use burn::backend::ops::FloatTensorOps;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, FloatDType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use eligibility::{Demand, extent, reads, runs, runs_in};
use estimate_product::{Estimate, in_f32};
use geometry::{BasisTile, EmbeddingTile, EstimateTile, MemberTile, by_element};
use launch::NoiseOperand;
use linear::{BiasKind, FactorLayout, LinearTile};
use product::{Precision, product};

/// How often tiles of an estimate draw the same noise before all noise is drawn first, for one product.
const REDRAWS: usize = 4;

impl RowOps for CubeBackend {}

impl PerturbedOps for CubeBackend {
    fn low_rank_linear(
        x: CubeTensor,
        weight: CubeTensor,
        bias: BiasPrimitive<Self>,
        noise: LowRankNoise,
        source: SourcePrimitive<Self>,
        members: LinearMembers,
    ) -> CubeTensor {
        let shape = [weight.shape()[0], weight.shape()[1]];
        let factors = FactorLayout { rank: noise.rank, depth: noise.rank, starts: noise.starts(shape) };
        match tile(&x, &weight, &bias, (noise.key, &source), members, factors) {
            Some(tile) => {
                let elements = noise.rank * (shape[0] + shape[1]);
                let drawn = NoiseOperand::new(noise.key, noise.scale, elements, source);
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
        let [d_input, d_output] = [weight.shape()[0], weight.shape()[1]];
        let factors = FactorLayout { rank: 0, depth: d_input, starts: [0, 0] };
        match tile(&x, &weight, &bias, (noise.key, &source), members, factors) {
            // The kernel reads rows of noise as they are in the stream.
            Some(tile) if !noise.transposed => {
                let drawn = NoiseOperand::new(noise.key, noise.scale, d_input * d_output, source);
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
            MatrixNoise::LowRank(noise) => noise.rank,
            MatrixNoise::Dense(_) => 0,
        };
        let kind = launch::source_kind(noise.key(), &source);
        let weight = with_rows(weight);
        let (pairs, each) = (members.pairs.count as usize, members.rows_per_member(indices.shape()[0]));
        let shared = members.input == InputRows::Shared;
        let pair_rows = if shared { each } else { 2 * each };
        let columns = (shape[1], weight.meta.strides()[0]);
        let tile = EmbeddingTile::new(&weight.client, (pairs, pair_rows), columns, rank, kind);
        let tile = EmbeddingTile { shared, ..tile };
        let output = members.pairs.members() * each * shape[1];
        let largest = output.max(extent(&weight)).max(held(&source));
        let demand = tile.demand(shape[1], rank.max(1), largest);
        if output == 0 || !reads(&indices) || !runs(&weight, &demand) {
            return portable::perturbed_embedding::<Self>(weight, indices, noise, source, members);
        }
        let drawn = NoiseOperand::new(noise.key(), noise.scale(), noise.elements(shape), source);
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
        let noise = NoiseOperand::new(noise.key, noise.scale, vector.shape()[0], source);
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
        dtype: DType,
    ) -> CubeTensor {
        let shape = [d_input, d_output];
        let columns = weights.shape()[0] * noise.rank;
        let elements = noise.rank * (d_input + d_output);
        let largest = (d_input * d_output).max(held(&source));
        let tile = EstimateTile::new(&weights.client, shape, noise.rank, noise.signs);
        let is_wide = EstimateTile::redraws(d_input, d_output) >= REDRAWS;
        let demand = if is_wide { estimate_product::demand(largest) } else { tile.demand(columns, largest) };
        if columns * d_input * d_output == 0 || !runs_in(&weights.client, dtype, &demand) {
            return portable::low_rank_estimate::<Self>(weights, noise, source, first_pair, shape, dtype);
        }
        let weights = in_f32(weights);
        let drawn = NoiseOperand::new(noise.key, noise.scale, elements, source);
        let span = profile::span(Component::Estimate, 0);
        if is_wide {
            let what = Estimate { first_pair, rank: noise.rank, shape, signs: noise.signs, dtype };
            let sum = estimate_product::low_rank_estimate(weights, &drawn, what);
            return finished(span, CubeBackend::float_cast(sum, dtype.into()));
        }
        let sums = launch::low_rank_estimate(weights, drawn, noise.rank, first_pair, shape, (tile, dtype));
        finished(span, sum_splits(sums, Shape::new(shape), dtype))
    }

    fn dense_estimate(
        weights: CubeTensor,
        noise: DenseNoise,
        source: SourcePrimitive<Self>,
        first_pair: u32,
        elements: usize,
        dtype: DType,
    ) -> CubeTensor {
        let pairs = size(&weights);
        let demand = Demand { turns: pairs, ..by_element(3, elements.max(held(&source))) };
        if pairs * elements == 0 || !runs_in(&weights.client, dtype, &demand) {
            return portable::dense_estimate::<Self>(weights, noise, source, first_pair, elements, dtype);
        }
        let noise = NoiseOperand::new(noise.key, noise.scale, elements, source);
        let span = profile::span(Component::Estimate, 0);
        let sums = launch::dense_estimate(in_f32(weights), noise, first_pair, dtype);
        finished(span, sum_splits(sums, Shape::new([elements]), dtype))
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
        if size(&x) == 0 || !runs(&x, &tile.demand(rows, width, extent(&x))) {
            return portable::row_projection::<Self>(gradient, x);
        }
        // In f32, also for narrower gradients: an orthonormal basis has small elements.
        let (dtype, basis) = (gradient.dtype, basis::row_basis(x, tile)); // [rows, d_input]
        let gradient = CubeBackend::float_cast(gradient, FloatDType::F32);
        let exact = |lhs, rhs| product(lhs, rhs, DType::F32, Precision::F32);
        let inner = exact(basis.clone(), gradient); // [rows, d_output]
        let projected = exact(CubeBackend::float_swap_dims(basis, 0, 1), inner);
        CubeBackend::float_cast(projected, dtype.into())
    }

    fn member_cross_entropy(logits: CubeTensor, targets: CubeTensor, members: usize) -> CubeTensor {
        let logits = with_rows(logits);
        let tile = MemberTile::new(&logits.client, targets.shape()[0], logits.shape()[1]);
        let demand = tile.demand(size(&targets), logits.shape()[1], extent(&logits));
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
    (key, source): (NoiseKey, &SourcePrimitive<CubeBackend>),
    members: LinearMembers,
    factors: FactorLayout,
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
    let shape = [d_input, d_output];
    let tile = LinearTile::new(&x.client, pair_rows.max(1), shape, factors, (key.distribution(), bias));
    let tile = LinearTile { shared, ..tile };
    let output = members.pairs.members() * each * d_output;
    let largest = output.max(extent(x)).max(held(source)).max(bias_held);
    (size(x) > 0 && output > 0 && runs(x, &tile.demand([d_input, d_output], factors.depth, largest))).then_some(tile)
}

/// The tensor with columns that are neighbors in memory, wherever its rows are.
fn with_rows(tensor: CubeTensor) -> CubeTensor {
    if tensor.meta.strides()[1] == 1 { tensor } else { into_contiguous(tensor) }
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
    noise: NoiseOperand,
    factors: FactorLayout,
    members: LinearMembers,
    tile: LinearTile,
) -> CubeTensor {
    let bias = match bias {
        BiasPrimitive::None => (None, NoiseOperand::none()),
        BiasPrimitive::Plain(bias) => (Some(bias), NoiseOperand::none()),
        BiasPrimitive::Perturbed(bias, noise, source) => {
            let noise = NoiseOperand::new(noise.key, noise.scale, weight.shape()[1], source);
            (Some(bias), noise)
        }
    };
    let rows = x.shape()[0] / members.pairs.members().max(1);
    let perturbed_bias = tile.bias == BiasKind::Perturbed;
    if tile.is_low_rank() && !tile.shared && fused::is_cheaper(factors.depth + usize::from(perturbed_bias), rows) {
        let span = profile::span(Component::LowRankPart, 0);
        let bias = (bias.0.as_ref(), &bias.1);
        if let Some(y) = fused::linear(&x, &weight, bias, &noise, factors, members.pairs, tile) {
            return finished(span, y);
        }
    }
    let span = profile::span(Component::BaseProduct, 0);
    let product = finished(span, product(x.clone(), weight, x.dtype, Precision::Chosen));
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
