//! The recurrence.

use crate::arithmetic::integer::product_divisor;
use crate::backend::cube::geometry::cube_count;
use crate::backend::cube::integer::geometry::GruTile;
use crate::backend::cube::integer::gru::{GateSizesLaunch, GruSizesLaunch, gru_kernel};
use crate::backend::cube::integer::operands::{LaunchNoise, Operand, elem};
use crate::backend::cube::integer::packed_int8::Form;
use crate::backend::cube::launch::empty;
use crate::ops::integer::GatePrimitive;
use crate::work::counters;
use burn::backend::cubecl::dtype_to_elem_type;
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::CubeDim;

/// A gate's operands.
pub(crate) struct GateOperands {
    pub input: Operand,
    pub weight: Operand,
    pub held: LaunchNoise,
    pub bias: Operand,
    pub bias_held: LaunchNoise,
}

impl GateOperands {
    pub(crate) fn new(gate: GatePrimitive<CubeBackend>, dtype: DType) -> Self {
        let mut bias = into_contiguous(gate.bias);
        let n = bias.meta.shape()[0];
        (bias.meta.shape, bias.meta.strides) = ([1, n].into(), [n, 1].into());
        Self {
            input: Operand::new(gate.input, dtype),
            weight: Operand::new(gate.weight, dtype),
            held: LaunchNoise::new(gate.weight_noise, dtype),
            bias: Operand::new(bias, dtype),
            bias_held: LaunchNoise::new(gate.bias_noise, dtype),
        }
    }

    /// Members of its noise.
    fn members(&self) -> Option<usize> {
        let (_, members) = self.held.noise.as_ref().or(self.bias_held.noise.as_ref())?;
        Some(members.pairs.members())
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
    [forget, candidate]: [GateOperands; 2],
    dtype: DType,
    tile: GruTile,
) -> CubeTensor {
    let starts = into_contiguous(starts);
    let ([sequences, width], rows) = (state.shape, starts.meta.shape()[0]);
    let members = forget.members().or(candidate.members()).unwrap_or(sequences);
    let (outputs, client) = (empty(&state.tensor, [rows, width], dtype), state.tensor.client.clone());
    let by_words = [state.form, forget.form(), candidate.form()] == [Form::Word; 3] && width.is_multiple_of(4);
    let form = if by_words { Form::Word } else { Form::Value };
    let tile = GruTile { form, ..tile };
    let sizes = GruSizesLaunch::new(
        sequences,
        sequences / members,
        rows / sequences,
        width,
        product_divisor(width),
        state.stride,
    );
    let (forget_sizes, candidate_sizes) = (forget.sizes(), candidate.sizes());
    let [f_input, f_weight, f_held, f_bias, f_bias_held] = forget.tensors();
    let [c_input, c_weight, c_held, c_bias, c_bias_held] = candidate.tensors();
    let (start_elem, state_elem) = (dtype_to_elem_type(starts.dtype), elem(state.tensor.dtype, form));
    gru_kernel::launch(
        &client,
        cube_count(&client, sequences.div_ceil(tile.sequences())),
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
