//! Kernel launches: memory, arguments, cube counts.

mod gru;
mod product;
mod update;

pub(crate) use gru::{GateOperands, gru};
pub(crate) use product::{ProductOperands, product};
pub(crate) use update::{matrix_update, vector_update};

use super::add::add_kernel;
use super::embedding::{EmbeddingForms, EmbeddingSizesLaunch, ROWS, embedding_kernel};
use super::log_likelihood::log_likelihood_kernel;
use super::noise::{BLOCKS, noise_kernel};
use super::norm::norm_kernel;
use super::operands::{LaunchNoise, Operand, elem, plain};
use super::packed_int8::{Form, Packing};
use crate::backend::cube::geometry::{UNITS, cube_count};
use crate::backend::cube::launch::empty;
use crate::backend::cube::noise::StreamLaunch;
use crate::ops::integer::VectorPrimitive;
use crate::rng::integer::GROUP;
use crate::rng::key::{NoiseKey, PairRange};
use crate::work::counters;
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

/// Rows of `weight`, of type `dtype`, perturbed.
pub(crate) fn embedding(
    tokens: CubeTensor,
    weight: Operand,
    held: LaunchNoise,
    dtype: DType,
    packing: Packing,
) -> CubeTensor {
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

pub(crate) fn norm(x: CubeTensor, gain: VectorPrimitive<CubeBackend>, units: u32) -> CubeTensor {
    let dtype = x.dtype;
    let (x, gain, held) =
        (Operand::new(x, dtype).by_value(), plain(gain.values, dtype), LaunchNoise::new(gain.noise, dtype));
    let held = held.by_value();
    let ([rows, n], x_stride) = (x.shape, x.stride);
    let y = empty(&x.tensor, [rows, n], dtype);
    let client = x.tensor.client.clone();
    let (noisy, noise, rows_of_member) = (held.is_there(), held.sizes(), (rows / held.members(1)).max(1));
    let held = held.operand(&x);
    norm_kernel::launch(
        &client,
        cube_count(&client, rows),
        CubeDim::new_1d(units),
        x.tensor.into_buffer_arg(),
        gain.into_buffer_arg(),
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
