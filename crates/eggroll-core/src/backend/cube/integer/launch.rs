//! Kernel launches: memory, arguments, cube counts.

use super::add::add_kernel;
use super::embedding::{EmbeddingForms, EmbeddingSizesLaunch, ROWS, embedding_kernel};
use super::epilogue::Epilogue;
use super::geometry::{GruTile, LANES, ProductTile};
use super::gru::{GateSizesLaunch, GruSizesLaunch, gru_kernel};
use super::layer_norm::layer_norm_kernel;
use super::linear::{LinearForms, LinearSizesLaunch, linear_kernel};
use super::log_likelihood::log_likelihood_kernel;
use super::noise::{BLOCKS, noise_kernel};
use super::operands::{Held, Operand, elem, plain};
use super::update::{UpdateSizesLaunch, matrix_update_kernel, vector_update_kernel};
use super::words::{Form, Packing};
use crate::backend::cube::geometry::{UNITS, cube_count};
use crate::backend::cube::launch::empty;
use crate::backend::cube::noise::StreamLaunch;
use crate::counters;
use crate::integer::{Votes, product_divisor};
use crate::key::{NoiseKey, PairRange};
use crate::ops::integer::{GatePrimitive, IntegerNoisePrimitive};
use crate::rng::integer::GROUP;
use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::CubeDim;

fn elements(tensor: &CubeTensor) -> usize {
    tensor.meta.shape().num_elements()
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

/// What a product is of, and what becomes of its sums.
pub(crate) struct Product {
    pub x: Operand,
    pub weight: Operand,
    /// Whether the weight is given as its transpose.
    pub transposed: bool,
    pub held: Held,
    pub bias: Option<(CubeTensor, Held)>,
    pub epilogue: Epilogue,
    /// What sums are divided by, or shifted down by.
    pub divisor: i32,
}

/// A perturbed product into a tensor of type `dtype`.
pub(crate) fn product(product: Product, dtype: DType, tile: ProductTile) -> CubeTensor {
    let Product { x, weight, transposed, held, bias, epilogue, divisor } = product;
    let ([rows, d_input], [p, q]) = (x.shape, weight.shape);
    let (d_output, starts) = if transposed { (p, [held.rank() * p, 0]) } else { (q, [0, held.rank() * d_input]) };
    let y = empty(&x.tensor, [rows, d_output], dtype);
    let step = if held.rank() > 1 { d_input } else { 0 };
    let held = held.aligned(&[starts[0], step]);
    let (bias, bias_held) = bias.unwrap_or_else(|| (x.tensor.clone(), Held { noise: None }));
    let members = held.members(bias_held.members(1));
    let [x_stride, weight_stride] = [x.stride, weight.stride];
    let rows_of_member = (rows / members).max(1);
    let sizes = LinearSizesLaunch::new(
        rows,
        rows_of_member,
        d_input,
        d_output,
        x_stride,
        weight_stride,
        starts[0],
        starts[1],
        divisor,
    );
    let (noisy, noise, bias_noise) = (held.is_there(), held.sizes(), bias_held.sizes());
    let held = held.operand(&x);
    let forms = LinearForms { x: x.form, weight: weight.form, held: held.form, transposed, noisy };
    let elems = [x.elem(), weight.elem(), held.elem(), dtype_to_elem_type(bias.dtype), dtype_to_elem_type(dtype)];
    let bias_held = bias_held.noise.map_or_else(|| bias.clone(), |(noise, _)| noise.tensor);
    let client = x.tensor.client.clone();
    let cubes = rows.div_ceil(tile.rows()) * d_output.div_ceil(tile.columns());
    linear_kernel::launch(
        &client,
        cube_count(&client, cubes),
        tile.cube_dim(),
        x.tensor.into_buffer_arg(),
        weight.tensor.into_buffer_arg(),
        held.tensor.into_buffer_arg(),
        bias.into_buffer_arg(),
        bias_held.into_buffer_arg(),
        y.clone().into_buffer_arg(),
        sizes,
        noise,
        bias_noise,
        forms,
        epilogue,
        tile,
        elems[0],
        elems[1],
        elems[2],
        elems[3],
        elems[4],
    );
    counters::add_kernel();
    y
}

/// Rows of `weight`, of type `dtype`, perturbed.
pub(crate) fn embedding(tokens: CubeTensor, weight: Operand, held: Held, dtype: DType, packing: Packing) -> CubeTensor {
    let tokens = into_contiguous(tokens);
    let (rows, [vocab, width]) = (tokens.meta.shape()[0], weight.shape);
    let y = empty(&weight.tensor, [rows, width], dtype);
    let rank = held.rank();
    let held = held.aligned(&[rank * vocab, if rank > 1 { width } else { 0 }]);
    let pairs = (held.members(2) / 2).max(1);
    let sizes = EmbeddingSizesLaunch::new(rows / pairs, pairs, vocab, width, weight.stride);
    let client = weight.tensor.client.clone();
    let (noisy, noise, token_elem) = (held.is_there(), held.sizes(), dtype_to_elem_type(tokens.dtype));
    let held = held.operand(&weight);
    let whole = packing != Packing::One && width.is_multiple_of(4);
    let output = if whole { Form::Word } else { Form::Value };
    let forms = EmbeddingForms { weight: weight.form, held: held.form, output, packing, noisy };
    let [weight_elem, held_elem] = [weight.elem(), held.elem()];
    let units = pairs * (rows / pairs).div_ceil(ROWS) * width.div_ceil(packing.values());
    embedding_kernel::launch(
        &client,
        cube_count(&client, units.div_ceil(UNITS)),
        CubeDim::new_1d(UNITS as u32),
        tokens.into_buffer_arg(),
        weight.tensor.into_buffer_arg(),
        held.tensor.into_buffer_arg(),
        y.clone().into_buffer_arg(),
        sizes,
        noise,
        forms,
        weight_elem,
        held_elem,
        elem(dtype, output),
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
    let (x, weight) = (Operand::new(x, dtype).by_value(), into_contiguous(weight));
    let held = Held::new(noise, dtype).by_value();
    let ([rows, n], x_stride) = (x.shape, x.stride);
    let y = empty(&x.tensor, [rows, n], dtype);
    let client = x.tensor.client.clone();
    let (noisy, noise, rows_of_member) = (held.is_there(), held.sizes(), (rows / held.members(1)).max(1));
    let held = held.operand(&x);
    layer_norm_kernel::launch(
        &client,
        cube_count(&client, rows),
        CubeDim::new_1d(units),
        x.tensor.into_buffer_arg(),
        weight.into_buffer_arg(),
        held.tensor.into_buffer_arg(),
        y.clone().into_buffer_arg(),
        rows,
        rows_of_member,
        n,
        x_stride,
        noise,
        noisy,
        units as usize,
        dtype_to_elem_type(dtype),
    );
    counters::add_kernel();
    y
}

/// A gate's operands.
pub(crate) struct Gate {
    pub input: Operand,
    pub weight: Operand,
    pub held: Held,
    pub bias: Operand,
    pub bias_held: Held,
}

impl Gate {
    pub(crate) fn new(gate: GatePrimitive<CubeBackend>, dtype: DType) -> Self {
        let mut bias = into_contiguous(gate.bias);
        let n = bias.meta.shape()[0];
        (bias.meta.shape, bias.meta.strides) = ([1, n].into(), [n, 1].into());
        Self {
            input: Operand::new(gate.input, dtype),
            weight: Operand::new(gate.weight, dtype),
            held: Held::new(gate.weight_noise, dtype),
            bias: Operand::new(bias, dtype),
            bias_held: Held::new(gate.bias_noise, dtype),
        }
    }

    fn form(&self) -> Form {
        let held = [&self.held, &self.bias_held].into_iter().filter_map(|held| held.noise.as_ref());
        let mut operands = held.map(|(held, _)| held).chain([&self.input, &self.weight, &self.bias]);
        if operands.all(|operand| operand.form == Form::Word) { Form::Word } else { Form::Value }
    }

    fn sizes(&self) -> GateSizesLaunch {
        GateSizesLaunch::new(self.input.stride, self.weight.stride, self.held.sizes(), self.bias_held.sizes())
    }

    /// Input, weight and bias with what is held.
    fn tensors(self) -> [CubeTensor; 5] {
        let (held, bias_held) = (self.held.operand(&self.weight), self.bias_held.operand(&self.bias));
        [self.input, self.weight, held, self.bias, bias_held].map(|operand| operand.tensor)
    }
}

/// The states of all steps, of type `dtype`.
pub(crate) fn gru(
    state: Operand,
    starts: CubeTensor,
    [forget, candidate]: [Gate; 2],
    dtype: DType,
    tile: GruTile,
) -> CubeTensor {
    let starts = into_contiguous(starts);
    let ([members, width], rows) = (state.shape, starts.meta.shape()[0]);
    let (outputs, client) = (empty(&state.tensor, [rows, width], dtype), state.tensor.client.clone());
    let by_words = [state.form, forget.form(), candidate.form()] == [Form::Word; 3] && width.is_multiple_of(4);
    let form = if by_words { Form::Word } else { Form::Value };
    let tile = GruTile { form, ..tile };
    let sizes = GruSizesLaunch::new(members, rows / members, width, product_divisor(width), state.stride);
    let (forget_sizes, candidate_sizes) = (forget.sizes(), candidate.sizes());
    let [f_input, f_weight, f_held, f_bias, f_bias_held] = forget.tensors();
    let [c_input, c_weight, c_held, c_bias, c_bias_held] = candidate.tensors();
    let (start_elem, state_elem) = (dtype_to_elem_type(starts.dtype), elem(state.tensor.dtype, form));
    gru_kernel::launch(
        &client,
        cube_count(&client, members.div_ceil(tile.members())),
        CubeDim::new_1d(tile.units() as u32),
        state.tensor.into_buffer_arg(),
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
        forget_sizes,
        candidate_sizes,
        tile,
        state_elem,
        start_elem,
    );
    counters::add_kernel();
    outputs
}

pub(crate) fn log_likelihood(logits: CubeTensor, targets: CubeTensor, members: usize, units: u32) -> CubeTensor {
    let (dtype, targets) = (logits.dtype, into_contiguous(targets));
    let Operand { tensor: logits, shape: [rows, classes], stride, .. } = Operand::new(logits, dtype);
    let likelihoods = empty(&logits, [members], DType::I32);
    let (client, elem) = (logits.client.clone(), dtype_to_elem_type(dtype));
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
        stride,
        units as usize,
        elem,
        target_elem,
    );
    counters::add_kernel();
    likelihoods
}

/// The update of a matrix.
pub(crate) fn matrix_update(
    parameter: CubeTensor,
    noise: Operand,
    scores: CubeTensor,
    rank: usize,
    votes: Votes,
    limit: i32,
    tile: ProductTile,
) -> CubeTensor {
    let dtype = parameter.dtype;
    let (parameter, scores) = (Operand::new(parameter, dtype), plain(scores, dtype));
    let [d_input, d_output] = parameter.shape;
    let (updated, client) = (empty(&parameter.tensor, [d_input, d_output], dtype), parameter.tensor.client.clone());
    let steps = if rank > 1 { [d_input, d_output] } else { [0, 0] };
    let noise = noise.aligned(&[rank * d_input, steps[0], steps[1]]);
    let sizes = UpdateSizesLaunch::new(
        scores.meta.shape()[0],
        d_input,
        d_output,
        rank,
        parameter.stride,
        noise.stride,
    );
    let (form, noise_elem) = (noise.form, noise.elem());
    let cubes = d_input.div_ceil(tile.rows()) * d_output.div_ceil(tile.columns());
    matrix_update_kernel::launch(
        &client,
        cube_count(&client, cubes),
        tile.cube_dim(),
        parameter.tensor.into_buffer_arg(),
        noise.tensor.into_buffer_arg(),
        scores.into_buffer_arg(),
        updated.clone().into_buffer_arg(),
        sizes,
        limit.max(0),
        votes == Votes::Signs,
        form,
        tile,
        noise_elem,
        dtype_to_elem_type(dtype),
    );
    counters::add_kernel();
    updated
}

/// The update of a vector, by cubes of `units` units.
pub(crate) fn vector_update(
    parameter: CubeTensor,
    noise: Operand,
    scores: CubeTensor,
    votes: Votes,
    limit: i32,
    units: u32,
) -> CubeTensor {
    let dtype = parameter.dtype;
    let (parameter, scores) = (into_contiguous(parameter), plain(scores, dtype));
    let (updated, client, elements) = (like(&parameter), parameter.client.clone(), elements(&parameter));
    vector_update_kernel::launch(
        &client,
        cube_count(&client, elements.div_ceil(LANES)),
        CubeDim::new_1d(units),
        parameter.into_buffer_arg(),
        noise.tensor.into_buffer_arg(),
        scores.clone().into_buffer_arg(),
        updated.clone().into_buffer_arg(),
        scores.meta.shape()[0],
        elements,
        noise.stride,
        limit.max(0),
        votes == Votes::Signs,
        units as usize,
        dtype_to_elem_type(dtype),
    );
    counters::add_kernel();
    updated
}
