//! Products.

use crate::backend::cube::geometry::cube_count;
use crate::backend::cube::integer::epilogue::Epilogue;
use crate::backend::cube::integer::geometry::ProductTile;
use crate::backend::cube::integer::linear::{LinearForms, LinearSizesLaunch, linear_kernel};
use crate::backend::cube::integer::operands::{LaunchNoise, Operand};
use crate::backend::cube::launch::empty;
use crate::work::counters;
use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

/// What a product is of, and what becomes of its sums.
pub(crate) struct ProductOperands {
    pub x: Operand,
    pub weight: Operand,
    /// Whether the weight is given as its transpose.
    pub transposed: bool,
    pub held: LaunchNoise,
    pub bias: Option<(CubeTensor, LaunchNoise)>,
    pub epilogue: Epilogue,
    /// What sums are divided by, or shifted down by.
    pub divisor: i32,
}

/// A perturbed product into a tensor of type `dtype`.
pub(crate) fn product(product: ProductOperands, dtype: DType, tile: ProductTile) -> CubeTensor {
    let ProductOperands { x, weight, transposed, held, bias, epilogue, divisor } = product;
    let ([rows, d_input], [p, q]) = (x.shape, weight.shape);
    let (d_output, starts) = if transposed { (p, [held.rank() * p, 0]) } else { (q, [0, held.rank() * d_input]) };
    let y = empty(&x.tensor, [rows, d_output], dtype);
    let step = if held.rank() > 1 { d_input } else { 0 };
    let held = held.aligned(&[starts[0], step]);
    let (bias, bias_held) = bias.unwrap_or_else(|| (x.tensor.clone(), LaunchNoise { noise: None }));
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
