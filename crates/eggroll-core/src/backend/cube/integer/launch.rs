//! Kernel launches: memory, arguments, cube counts.

use super::add::add_kernel;
use super::arithmetic::MaterializedNoiseLaunch;
use super::embedding::{EmbeddingSizesLaunch, embedding_kernel};
use super::geometry::{GruTile, LANES, ProductTile, UpdateTile};
use super::gru::{GateHeldLaunch, GruSizesLaunch, gru_kernel};
use super::layer_norm::layer_norm_kernel;
use super::linear::{LinearSizesLaunch, linear_kernel};
use super::log_likelihood::log_likelihood_kernel;
use super::noise::{BLOCKS, noise_kernel};
use super::update::{UpdateSizesLaunch, matrix_update_kernel, vector_update_kernel};
use crate::backend::cube::geometry::{UNITS, cube_count};
use crate::backend::cube::launch::empty;
use crate::backend::cube::noise::StreamLaunch;
use crate::counters;
use crate::integer::{Votes, product_divisor};
use crate::key::{NoiseKey, PairRange};
use crate::ops::integer::{GatePrimitive, IntegerMembers, IntegerNoisePrimitive};
use crate::rng::integer::GROUP;
use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::{cast, into_contiguous};
use burn_cubecl::tensor::CubeTensor;
use cubecl::CubeDim;

/// `tensor` of type `dtype`, row after row without gaps.
fn plain(tensor: CubeTensor, dtype: DType) -> CubeTensor {
    let tensor = if tensor.dtype == dtype { tensor } else { cast(tensor, dtype) };
    into_contiguous(tensor)
}

fn elements(tensor: &CubeTensor) -> usize {
    tensor.meta.shape().num_elements()
}

/// Held noise as a launch needs it.
struct Held {
    /// `None`: a plain operation.
    noise: Option<(CubeTensor, IntegerMembers)>,
}

impl Held {
    fn new(noise: IntegerNoisePrimitive<CubeBackend>, dtype: DType) -> Self {
        let noise = match noise {
            IntegerNoisePrimitive::None => None,
            IntegerNoisePrimitive::Held(noise, members) => Some((plain(noise, dtype), members)),
        };
        Self { noise }
    }

    fn is_there(&self) -> bool {
        self.noise.is_some()
    }

    /// Members that `otherwise` are as many.
    fn members(&self, otherwise: usize) -> usize {
        self.noise.as_ref().map_or(otherwise, |(_, members)| members.pairs.members())
    }

    fn sizes(&self) -> MaterializedNoiseLaunch {
        match &self.noise {
            None => MaterializedNoiseLaunch::new(0, 0, 0, 0),
            Some((noise, members)) => {
                MaterializedNoiseLaunch::new(members.skip, members.rank, noise.meta.shape()[1], members.shift as i32)
            }
        }
    }

    /// What is held, or `instead` for an argument that is not read.
    fn buffer(self, instead: &CubeTensor) -> CubeTensor {
        self.noise.map_or_else(|| instead.clone(), |(noise, _)| noise)
    }
}

pub(crate) fn add(a: CubeTensor, b: CubeTensor) -> CubeTensor {
    let (a, b) = (into_contiguous(a.clone()), plain(b, a.dtype));
    let y = like(&a);
    let (client, elem, elements) = (a.client.clone(), dtype_to_elem_type(a.dtype), elements(&a));
    add_kernel::launch(
        &client,
        cube_count(&client, elements.div_ceil(UNITS)),
        CubeDim::new_1d(UNITS as u32),
        a.into_buffer_arg(),
        b.into_buffer_arg(),
        y.clone().into_buffer_arg(),
        elements,
        elem,
    );
    counters::add_kernel();
    y
}

/// An uninitialized tensor of the shape and type of `tensor`.
fn like(tensor: &CubeTensor) -> CubeTensor {
    let shape = tensor.meta.shape().clone();
    burn_cubecl::ops::numeric::empty_device_contiguous_dtype(
        tensor.client.clone(),
        tensor.device.clone(),
        shape,
        tensor.dtype,
    )
}

pub(crate) fn noise(tensor: &CubeTensor, key: NoiseKey, pairs: PairRange, elements: usize) -> CubeTensor {
    let noise = empty(tensor, [pairs.count as usize, elements], tensor.dtype);
    let blocks = pairs.count as usize * elements.div_ceil(GROUP) * BLOCKS;
    noise_kernel::launch(
        &tensor.client,
        cube_count(&tensor.client, blocks.div_ceil(UNITS)),
        CubeDim::new_1d(UNITS as u32),
        noise.clone().into_buffer_arg(),
        StreamLaunch::of(key, elements, 0, 0),
        pairs.count as usize,
        pairs.first,
        dtype_to_elem_type(tensor.dtype),
    );
    counters::add_kernel();
    noise
}

pub(crate) fn linear(
    x: CubeTensor,
    weight: CubeTensor,
    noise: IntegerNoisePrimitive<CubeBackend>,
    tile: ProductTile,
) -> CubeTensor {
    let dtype = weight.dtype;
    let (x, weight, held) = (plain(x, dtype), into_contiguous(weight), Held::new(noise, dtype));
    let ([rows, d_input], d_output) = (x.meta.shape().dims(), weight.meta.shape()[1]);
    let y = empty(&x, [rows, d_output], dtype);
    let rows_of_member = (rows / held.members(1)).max(1);
    let sizes = LinearSizesLaunch::new(rows, rows_of_member, d_input, d_output, product_divisor(d_input));
    let client = x.client.clone();
    let cubes = rows.div_ceil(tile.rows()) * d_output.div_ceil(tile.columns());
    let (noisy, noise) = (held.is_there(), held.sizes());
    let held = held.buffer(&x);
    linear_kernel::launch(
        &client,
        cube_count(&client, cubes),
        tile.cube_dim(),
        x.into_buffer_arg(),
        weight.into_buffer_arg(),
        held.into_buffer_arg(),
        y.clone().into_buffer_arg(),
        sizes,
        noise,
        noisy,
        tile,
        dtype_to_elem_type(dtype),
    );
    counters::add_kernel();
    y
}

pub(crate) fn embedding(
    tokens: CubeTensor,
    weight: CubeTensor,
    noise: IntegerNoisePrimitive<CubeBackend>,
) -> CubeTensor {
    let dtype = weight.dtype;
    let (tokens, weight, held) = (into_contiguous(tokens), into_contiguous(weight), Held::new(noise, dtype));
    let (rows, [vocab, width]) = (tokens.meta.shape()[0], weight.meta.shape().dims());
    let y = empty(&weight, [rows, width], dtype);
    let rows_of_member = (rows / held.members(1)).max(1);
    let sizes = EmbeddingSizesLaunch::new(rows * width, rows_of_member, vocab, width);
    let client = weight.client.clone();
    let (noisy, noise, token_elem) = (held.is_there(), held.sizes(), dtype_to_elem_type(tokens.dtype));
    let held = held.buffer(&weight);
    embedding_kernel::launch(
        &client,
        cube_count(&client, (rows * width).div_ceil(UNITS)),
        CubeDim::new_1d(UNITS as u32),
        tokens.into_buffer_arg(),
        weight.into_buffer_arg(),
        held.into_buffer_arg(),
        y.clone().into_buffer_arg(),
        sizes,
        noise,
        noisy,
        dtype_to_elem_type(dtype),
        token_elem,
    );
    counters::add_kernel();
    y
}

pub(crate) fn layer_norm(
    x: CubeTensor,
    weight: CubeTensor,
    noise: IntegerNoisePrimitive<CubeBackend>,
    units: u32,
) -> CubeTensor {
    let dtype = weight.dtype;
    let (x, weight, held) = (plain(x, dtype), into_contiguous(weight), Held::new(noise, dtype));
    let [rows, n] = x.meta.shape().dims();
    let y = like(&x);
    let client = x.client.clone();
    let (noisy, noise, rows_of_member) = (held.is_there(), held.sizes(), (rows / held.members(1)).max(1));
    let held = held.buffer(&x);
    layer_norm_kernel::launch(
        &client,
        cube_count(&client, rows),
        CubeDim::new_1d(units),
        x.into_buffer_arg(),
        weight.into_buffer_arg(),
        held.into_buffer_arg(),
        y.clone().into_buffer_arg(),
        rows,
        rows_of_member,
        n,
        noise,
        noisy,
        units as usize,
        dtype_to_elem_type(dtype),
    );
    counters::add_kernel();
    y
}

/// A gate's buffers and noise.
struct Gate {
    buffers: [CubeTensor; 5],
    noise: GateHeldLaunch,
}

impl Gate {
    fn new(gate: GatePrimitive<CubeBackend>, dtype: DType) -> Self {
        let [input, weight, bias] = [gate.input, gate.weight, gate.bias].map(|tensor| plain(tensor, dtype));
        let [of_weight, of_bias] = [gate.weight_noise, gate.bias_noise].map(|noise| Held::new(noise, dtype));
        let noise = GateHeldLaunch::new(of_weight.sizes(), of_bias.sizes());
        let (held, bias_held) = (of_weight.buffer(&weight), of_bias.buffer(&bias));
        Self { buffers: [input, weight, held, bias, bias_held], noise }
    }
}

pub(crate) fn gru(
    state: CubeTensor,
    starts: CubeTensor,
    forget: GatePrimitive<CubeBackend>,
    candidate: GatePrimitive<CubeBackend>,
    tile: GruTile,
) -> CubeTensor {
    let (dtype, client) = (state.dtype, state.client.clone());
    let (state, starts) = (into_contiguous(state), into_contiguous(starts));
    let ([members, width], rows) = (state.meta.shape().dims(), starts.meta.shape()[0]);
    let outputs = empty(&state, [rows, width], dtype);
    let sizes = GruSizesLaunch::new(members, rows / members, width, product_divisor(width));
    let (forget, candidate) = (Gate::new(forget, dtype), Gate::new(candidate, dtype));
    let [f_input, f_weight, f_held, f_bias, f_bias_held] = forget.buffers;
    let [c_input, c_weight, c_held, c_bias, c_bias_held] = candidate.buffers;
    let start_elem = dtype_to_elem_type(starts.dtype);
    gru_kernel::launch(
        &client,
        cube_count(&client, members),
        CubeDim::new_1d(tile.units as u32),
        state.into_buffer_arg(),
        starts.into_buffer_arg(),
        f_input.into_buffer_arg(),
        f_weight.into_buffer_arg(),
        f_held.into_buffer_arg(),
        f_bias.into_buffer_arg(),
        f_bias_held.into_buffer_arg(),
        c_input.into_buffer_arg(),
        c_weight.into_buffer_arg(),
        c_held.into_buffer_arg(),
        c_bias.into_buffer_arg(),
        c_bias_held.into_buffer_arg(),
        outputs.clone().into_buffer_arg(),
        sizes,
        forget.noise,
        candidate.noise,
        tile,
        dtype_to_elem_type(dtype),
        start_elem,
    );
    counters::add_kernel();
    outputs
}

pub(crate) fn log_likelihood(logits: CubeTensor, targets: CubeTensor, members: usize, units: u32) -> CubeTensor {
    let (logits, targets) = (into_contiguous(logits), into_contiguous(targets));
    let [rows, classes] = logits.meta.shape().dims();
    let likelihoods = empty(&logits, [members], DType::I32);
    let (client, elem) = (logits.client.clone(), dtype_to_elem_type(logits.dtype));
    let target_elem = dtype_to_elem_type(targets.dtype);
    let rows = rows / members;
    log_likelihood_kernel::launch(
        &client,
        cube_count(&client, members),
        CubeDim::new_1d(units),
        logits.into_buffer_arg(),
        targets.into_buffer_arg(),
        likelihoods.clone().into_buffer_arg(),
        members,
        rows,
        classes,
        units as usize,
        elem,
        target_elem,
    );
    counters::add_kernel();
    likelihoods
}

/// The update of a matrix, or of a vector, whose rank is 0.
pub(crate) fn update(
    parameter: CubeTensor,
    noise: CubeTensor,
    scores: CubeTensor,
    rank: usize,
    votes: Votes,
    limit: i32,
    tile: UpdateTile,
) -> CubeTensor {
    let dtype = parameter.dtype;
    let (parameter, noise, scores) = (into_contiguous(parameter), plain(noise, dtype), plain(scores, dtype));
    let (updated, client, elem) = (like(&parameter), parameter.client.clone(), dtype_to_elem_type(dtype));
    let (pairs, signs, limit) = (scores.meta.shape()[0], votes == Votes::Signs, limit.max(0));
    match tile {
        UpdateTile::Vector(units) => {
            let elements = elements(&parameter);
            vector_update_kernel::launch(
                &client,
                cube_count(&client, elements.div_ceil(LANES)),
                CubeDim::new_1d(units),
                parameter.into_buffer_arg(),
                noise.into_buffer_arg(),
                scores.into_buffer_arg(),
                updated.clone().into_buffer_arg(),
                pairs,
                elements,
                limit,
                signs,
                units as usize,
                elem,
            );
        }
        UpdateTile::Matrix(tile) => {
            let [d_input, d_output] = parameter.meta.shape().dims();
            let cubes = d_input.div_ceil(tile.rows()) * d_output.div_ceil(tile.columns());
            matrix_update_kernel::launch(
                &client,
                cube_count(&client, cubes),
                tile.cube_dim(),
                parameter.into_buffer_arg(),
                noise.into_buffer_arg(),
                scores.into_buffer_arg(),
                updated.clone().into_buffer_arg(),
                UpdateSizesLaunch::new(pairs, d_input, d_output, rank),
                limit,
                signs,
                tile,
                elem,
            );
        }
    }
    counters::add_kernel();
    updated
}
