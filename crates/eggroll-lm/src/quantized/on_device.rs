//! A quantized model on a device, where its members run: matrices of layers in their file's numbers, all else in the device's floats.

use crate::causal::WeightReader;
use crate::host::HostLlama;
use crate::llama::{Llama, LlamaLayer};
use crate::load::{LlamaConfig, LoadError, Weights};
use burn::module::{Param, ParamId};
use burn::tensor::quantization::{QuantScheme, QuantStore, QuantValue, ScaleDtype};
use burn::tensor::{Device, Tensor, TensorData};
use eggroll_core::transformer::{PackedMatrix, Precision};
use half::bf16;
use rayon::prelude::*;

/// A copy of the model, with the identifiers of `layers`.
pub(super) fn copied(
    config: &LlamaConfig,
    weights: &Weights,
    (host, layers): (&HostLlama, &[LlamaLayer]),
    device: &Device,
) -> Result<Llama, LoadError> {
    let mut model = WeightReader { weights, device }.around_matrices(config)?;
    for (layer, of) in model.layers.iter_mut().zip(layers) {
        for ((_, norm), (_, of)) in layer.norms_mut().zip(of.norms()) {
            norm.gamma.id = of.gamma.id;
        }
        for ((_, linear), (_, of)) in layer.linear_mut().into_iter().zip(of.linear()) {
            linear.weight.id = of.weight.id;
            if let (Some(bias), Some(of)) = (&mut linear.bias, &of.bias) {
                bias.id = of.id;
            }
        }
    }
    copy_matrices(&mut model, host, |_| true);
    Ok(model)
}

/// Copies the matrices of layers with these parameters.
pub(super) fn copy_matrices(model: &mut Llama, host: &HostLlama, moved: impl Fn(ParamId) -> bool) {
    let device = model.device();
    let linear = model.layers.iter_mut().flat_map(|layer| layer.linear_mut());
    for (number, (_, linear)) in linear.enumerate() {
        let id = linear.weight.id;
        if moved(id) {
            // With a gradient: a parameter without has no noise.
            linear.weight = Param::from_tensor(matrix(host.matrix(number), &device));
            linear.weight.id = id;
        }
    }
}

/// A matrix of blocks as integers with a scale for each 32 inputs; one of bfloat16 in the device's floats.
fn matrix(matrix: &PackedMatrix, device: &Device) -> Tensor<2> {
    let [d_input, d_output] = matrix.shape();
    // As in the file: an output's weights one after the other. Four of them are packed into a word on devices, and share a scale.
    let data = if matrix.precision() == Precision::Bf16 {
        let column = |output| matrix.column_bits(output).map(|bits| bf16::from_bits(bits).to_f32()).collect::<Vec<_>>();
        let values: Vec<f32> = (0..d_output).into_par_iter().flat_map_iter(column).collect();
        TensorData::new(values, [d_output, d_input])
    } else {
        let columns = (0..d_output).into_par_iter();
        let integers = columns.clone().flat_map_iter(|output| matrix.column(output).map(|(integer, _)| integer));
        let scales =
            columns.flat_map_iter(|output| matrix.column(output).step_by(PackedMatrix::BLOCK).map(|(_, scale)| scale));
        let (integers, scales): (Vec<i8>, Vec<f32>) = (integers.collect(), scales.collect());
        let scheme = QuantScheme::default().with_value(QuantValue::Q8S).with_store(QuantStore::PackedU32(0));
        let scheme = scheme.per_block([PackedMatrix::BLOCK as u8], ScaleDtype::F32);
        TensorData::quantized(integers, [d_output, d_input], scheme, &scales, None)
    };
    Tensor::<2>::from_data(data, device).transpose()
}
