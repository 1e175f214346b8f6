//! Kernel launches: memory, arguments, cube counts.

use super::cross_entropy::member_cross_entropy_kernel;
use super::embedding::{EmbeddingSizesLaunch, embedding_kernel};
use super::estimate::{EstimateSizesLaunch, dense_estimate_kernel, low_rank_estimate_kernel};
use super::geometry::{EmbeddingTile, EstimateTile, MemberTile, SIDE, UNITS, cube_count, splits};
use super::linear::{FactorLayout, LinearSizesLaunch, LinearTile, linear_kernel};
use super::noise::{SourceKind, StreamLaunch, groups_together};
use super::vector::{noise_kernel, perturbed_vector_kernel, units_of_pair};
use crate::ops::{LinearMembers, SourcePrimitive, table_runs};
use crate::rng::NoiseDistribution;
use crate::rng::key::{NoiseKey, PairRange};
use crate::work::counters;
use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::CubeDim;

/// A parameter's noise as a launch needs it.
#[derive(Clone)]
pub(crate) struct NoiseOperand {
    key: NoiseKey,
    pub scale: f32,
    /// Elements of one pair's noise.
    pub elements: usize,
    pub kind: SourceKind,
    /// Cached noise or a table.
    pub held: Option<CubeTensor>,
    first_held: u32,
}

impl NoiseOperand {
    pub(crate) fn new(key: NoiseKey, scale: f32, elements: usize, source: SourcePrimitive<CubeBackend>) -> Self {
        let kind = source_kind(key, &source);
        let (held, first_held) = match source {
            SourcePrimitive::Drawn => (None, 0),
            SourcePrimitive::Cached(noise, first) => (Some(into_contiguous(noise)), first),
            SourcePrimitive::Table(table) => (Some(into_contiguous(table)), 0),
        };
        Self { key, scale, elements, kind, held, first_held }
    }

    /// No noise at all.
    pub(crate) fn none() -> Self {
        Self::new(NoiseKey::new(0, 0, 0), 0.0, 0, SourcePrimitive::Drawn)
    }

    pub(crate) fn distribution(&self) -> NoiseDistribution {
        self.key.distribution()
    }

    pub(crate) fn stream(&self) -> StreamLaunch {
        let runs = match (&self.held, self.kind) {
            (Some(table), SourceKind::Table) => table_runs(self.elements, table.meta.shape()[0]),
            _ => 0,
        };
        StreamLaunch::of(self.key, self.elements, self.first_held, runs as u32)
    }

    /// What is held, or `instead` for an argument that is not read.
    pub(crate) fn held(self, instead: &CubeTensor) -> CubeTensor {
        self.held.unwrap_or_else(|| instead.clone())
    }
}

/// Where a kernel finds the noise of a key.
pub(crate) fn source_kind(key: NoiseKey, source: &SourcePrimitive<CubeBackend>) -> SourceKind {
    match source {
        SourcePrimitive::Drawn => SourceKind::Drawn(key.distribution()),
        SourcePrimitive::Cached(..) => SourceKind::Cached,
        SourcePrimitive::Table(_) => SourceKind::Table,
    }
}

/// An uninitialized tensor next to `like`, rows after rows.
pub(crate) fn empty<const D: usize>(like: &CubeTensor, shape: [usize; D], dtype: DType) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), Shape::new(shape), dtype)
}

/// Adds the perturbation to `product = x·W`, in place, or for shared rows into a new tensor.
pub(crate) fn linear(
    x: CubeTensor,
    product: CubeTensor,
    (bias, bias_noise): (Option<CubeTensor>, NoiseOperand),
    noise: NoiseOperand,
    factors: FactorLayout,
    pairs: PairRange,
    tile: LinearTile,
) -> CubeTensor {
    let [x_rows, d_input] = [x.meta.shape()[0], x.meta.shape()[1]];
    let d_output = product.meta.shape()[1];
    let members = pairs.members();
    let rows = if tile.shared { x_rows } else { x_rows / members };
    let y = if tile.shared { empty(&x, [members * rows, d_output], x.dtype) } else { product.clone() };
    let pair_rows = if tile.shared { rows } else { 2 * rows };
    let cubes = pairs.count as usize * pair_rows.div_ceil(tile.rows);
    let strides = [&x, &product, &y].map(|tensor| [tensor.meta.strides()[0], tensor.meta.strides()[1]]);
    let tile = LinearTile { source: noise.kind, bias_source: bias_noise.kind, ..tile }.on_strides(&strides);
    let sizes = LinearSizesLaunch::new(
        pairs.count as usize,
        pairs.first,
        rows,
        d_input,
        d_output,
        factors.depth,
        factors.starts[0],
        factors.starts[1],
        x.meta.strides()[0],
        x.meta.strides()[1],
        product.meta.strides()[0],
        y.meta.strides()[0],
    );
    let bias = bias.map_or_else(|| x.clone(), into_contiguous);
    let base = if tile.shared { product } else { x.clone() };
    let (client, elem) = (x.client.clone(), dtype_to_elem_type(x.dtype));
    let (stream, scale, bias_stream, bias_scale) = (noise.stream(), noise.scale, bias_noise.stream(), bias_noise.scale);
    let (held, bias_held) = (noise.held(&x), bias_noise.held(&x));
    linear_kernel::launch(
        &client,
        cube_count(&client, cubes),
        tile.cube_dim(),
        tile.vector,
        x.into_buffer_arg(),
        base.into_buffer_arg(),
        bias.into_buffer_arg(),
        held.into_buffer_arg(),
        bias_held.into_buffer_arg(),
        y.clone().into_buffer_arg(),
        stream,
        bias_stream,
        sizes,
        scale,
        bias_scale,
        tile,
        elem,
    );
    counters::add_kernel();
    y
}

/// `[members · rows, d_model]`. Columns of `weight` are neighbors; rank 0 is dense noise.
pub(crate) fn perturbed_embedding(
    weight: CubeTensor,
    indices: CubeTensor,
    noise: NoiseOperand,
    rank: usize,
    members: LinearMembers,
    tile: EmbeddingTile,
) -> CubeTensor {
    let indices = into_contiguous(indices);
    let [count, d_model] = [weight.meta.shape()[0], weight.meta.shape()[1]];
    let (pairs, rows) = (members.pairs, members.rows_per_member(indices.meta.shape()[0]));
    let y = empty(&weight, [pairs.members() * rows, d_model], weight.dtype);
    let pair_rows = if tile.shared { rows } else { 2 * rows };
    let sizes = EmbeddingSizesLaunch::new(
        pairs.count as usize,
        pairs.first,
        rows,
        count,
        d_model,
        weight.meta.strides()[0],
        rank.max(1),
        rank * count,
    );
    let client = weight.client.clone();
    let types = (dtype_to_elem_type(weight.dtype), dtype_to_elem_type(indices.dtype));
    let (stream, scale) = (noise.stream(), noise.scale);
    let held = noise.held(&weight);
    embedding_kernel::launch(
        &client,
        cube_count(&client, pairs.count as usize * pair_rows.div_ceil(tile.rows)),
        tile.cube_dim(),
        tile.vector,
        weight.into_buffer_arg(),
        indices.into_buffer_arg(),
        held.into_buffer_arg(),
        y.clone().into_buffer_arg(),
        stream,
        sizes,
        scale,
        tile,
        types.0,
        types.1,
    );
    counters::add_kernel();
    y
}

pub(crate) fn perturbed_vector(vector: CubeTensor, noise: NoiseOperand, pairs: PairRange) -> CubeTensor {
    let vector = into_contiguous(vector);
    let elements = vector.meta.shape()[0];
    let y = empty(&vector, [pairs.members(), elements], vector.dtype);
    let units = pairs.count as usize * units_of_pair(elements, noise.kind.groups_together());
    let (client, elem) = (vector.client.clone(), dtype_to_elem_type(vector.dtype));
    let (stream, scale, kind) = (noise.stream(), noise.scale, noise.kind);
    let held = noise.held(&vector);
    perturbed_vector_kernel::launch(
        &client,
        cube_count(&client, units.div_ceil(UNITS)),
        CubeDim::new_1d(UNITS as u32),
        vector.into_buffer_arg(),
        held.into_buffer_arg(),
        y.clone().into_buffer_arg(),
        stream,
        pairs.count as usize,
        pairs.first,
        scale,
        kind,
        elem,
    );
    counters::add_kernel();
    y
}

pub(crate) fn noise(like: &CubeTensor, key: NoiseKey, pairs: PairRange, elements: usize) -> CubeTensor {
    let noise = empty(like, [pairs.count as usize, elements], like.dtype);
    let kind = SourceKind::Drawn(key.distribution());
    let units = pairs.count as usize * units_of_pair(elements, kind.groups_together());
    noise_kernel::launch(
        &like.client,
        cube_count(&like.client, units.div_ceil(UNITS)),
        CubeDim::new_1d(UNITS as u32),
        noise.clone().into_buffer_arg(),
        StreamLaunch::of(key, elements, 0, 0),
        pairs.count as usize,
        pairs.first,
        kind,
        dtype_to_elem_type(like.dtype),
    );
    counters::add_kernel();
    noise
}

/// `[splits, d_input, d_output]`, to be summed over the first dimension.
pub(crate) fn low_rank_estimate(
    weights: CubeTensor,
    noise: NoiseOperand,
    rank: usize,
    first_pair: u32,
    [d_input, d_output]: [usize; 2],
    (tile, dtype): (EstimateTile, DType),
) -> CubeTensor {
    let weights = into_contiguous(weights);
    let pairs = weights.meta.shape()[0];
    let tiles = d_input.div_ceil(SIDE) * d_output.div_ceil(SIDE);
    let (pairs_per_split, splits) = splits(pairs, tiles);
    let sums = empty(&weights, [splits, d_input, d_output], DType::F32);
    let sizes = EstimateSizesLaunch::new(first_pair, pairs, pairs_per_split, d_input, d_output, rank);
    let (client, elem) = (weights.client.clone(), dtype_to_elem_type(dtype));
    let tile = EstimateTile { source: noise.kind, ..tile };
    let (stream, scale) = (noise.stream(), noise.scale);
    let held = noise.held(&weights);
    low_rank_estimate_kernel::launch(
        &client,
        cube_count(&client, splits * tiles),
        tile.cube_dim(),
        weights.into_buffer_arg(),
        held.into_buffer_arg(),
        sums.clone().into_buffer_arg(),
        stream,
        sizes,
        scale,
        tile,
        elem,
    );
    counters::add_kernel();
    sums
}

/// `[splits, elements]`, to be summed over the first dimension.
pub(crate) fn dense_estimate(weights: CubeTensor, noise: NoiseOperand, first_pair: u32, dtype: DType) -> CubeTensor {
    let weights = into_contiguous(weights);
    let pairs = weights.meta.shape()[0];
    let elements = noise.elements;
    let groups = groups_together(noise.distribution());
    let units = units_of_pair(elements, groups);
    let (pairs_per_split, splits) = splits(pairs, units.div_ceil(UNITS));
    let sums = empty(&weights, [splits, elements], DType::F32);
    let (client, elem) = (weights.client.clone(), dtype_to_elem_type(dtype));
    let (stream, scale, kind) = (noise.stream(), noise.scale, noise.kind);
    let held = noise.held(&weights);
    dense_estimate_kernel::launch(
        &client,
        cube_count(&client, (splits * units).div_ceil(UNITS)),
        CubeDim::new_1d(UNITS as u32),
        weights.into_buffer_arg(),
        held.into_buffer_arg(),
        sums.clone().into_buffer_arg(),
        stream,
        first_pair,
        pairs,
        pairs_per_split,
        scale,
        kind,
        groups,
        elem,
    );
    counters::add_kernel();
    sums
}

/// `[members]`. Classes of a row of `logits` are neighbors.
pub(crate) fn member_cross_entropy(
    logits: CubeTensor,
    targets: CubeTensor,
    members: usize,
    tile: MemberTile,
) -> CubeTensor {
    let targets = into_contiguous(targets);
    let logits_row = logits.meta.strides()[0];
    let losses = empty(&logits, [members], logits.dtype);
    let (rows, classes) = (targets.meta.shape()[0], logits.meta.shape()[1]);
    let client = logits.client.clone();
    let types = (dtype_to_elem_type(logits.dtype), dtype_to_elem_type(targets.dtype));
    member_cross_entropy_kernel::launch(
        &client,
        cube_count(&client, members),
        tile.cube_dim(),
        logits.into_buffer_arg(),
        targets.into_buffer_arg(),
        losses.clone().into_buffer_arg(),
        members,
        rows,
        classes,
        logits_row,
        tile,
        types.0,
        types.1,
    );
    counters::add_kernel();
    losses
}
