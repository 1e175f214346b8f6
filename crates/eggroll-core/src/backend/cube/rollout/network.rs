//! A policy as the kernel reads it: its values in one buffer, and the noise of each parameter.

use super::plan::LayerPlan;
use crate::fused::device_rollout::ChainLayer;
use crate::model::identity::ParameterTensor;
use crate::noise::role::Role;
use crate::ops::{DenseNoise, LowRankNoise, MatrixNoise};
use crate::rollout::layer::floats;
use crate::scope::Perturbation;
use burn::module::{Param, ParamId};
use burn::tensor::{DType, Tensor};

/// A policy and how it is perturbed.
pub(crate) struct Network {
    /// All parameters, one after the other.
    pub values: Vec<f32>,
    pub layers: Vec<LayerPlan>,
    /// Those with noise.
    pub perturbed: Vec<Perturbed>,
    pub parameters: Vec<ParamId>,
}

/// A parameter with noise.
pub(crate) struct Perturbed {
    /// Where it begins among the values.
    pub start: usize,
    pub shape: [usize; 2],
    pub noise: MatrixNoise,
}

impl Network {
    /// The policy of these layers, if the kernel can run it. Reads the parameters to the host.
    pub(crate) fn new(layers: &[ChainLayer], perturbation: Option<&Perturbation>) -> Option<Self> {
        let mut network =
            Self { values: Vec::new(), layers: Vec::new(), perturbed: Vec::new(), parameters: Vec::new() };
        let mut tensors: Vec<Tensor<1>> = Vec::new();
        let mut at = 0;
        for layer in layers {
            let weight = layer.weight.val();
            let [d_input, d_output] = weight.dims();
            let (start, bias) = (at, layer.bias.map(|_| at + d_input * d_output));
            let weight_differs = network.push(layer.weight, start, [d_input, d_output], perturbation)?;
            tensors.push(weight.flatten(0, 1));
            let mut bias_differs = false;
            if let (Some(bias), Some(start)) = (layer.bias, bias) {
                bias_differs = network.push(bias, start, [1, d_output], perturbation)?;
                tensors.push(bias.val());
            }
            at = bias.unwrap_or(start + d_input * d_output) + bias.map_or(0, |_| d_output);
            let (weight, activation) = (start, layer.activation);
            let plan = LayerPlan { d_input, d_output, weight, bias, weight_differs, bias_differs, activation };
            network.layers.push(plan);
        }
        if tensors.iter().any(|tensor| tensor.dtype() != DType::F32) {
            return None;
        }
        network.values = floats(Tensor::cat(tensors, 0))?;
        Some(network)
    }

    /// Notes a parameter; returns whether members differ in it.
    fn push<T: ParameterTensor>(
        &mut self,
        param: &Param<T>,
        start: usize,
        shape: [usize; 2],
        of: Option<&Perturbation>,
    ) -> Option<bool> {
        let Some(perturbation) = of else { return Some(false) };
        let noise = perturbation.noise_of(param)?;
        let matrix = match noise.role {
            Role::Frozen => None,
            _ if !noise.source.is_stream() => return None,
            Role::LowRank { rank } => Some(MatrixNoise::LowRank(LowRankNoise::new(noise.key, rank, noise.sigma))),
            Role::Dense => Some(MatrixNoise::Dense(DenseNoise::new(noise.key, noise.sigma))),
            Role::Sparse => return None,
        };
        self.parameters.push(param.id);
        let differs = matrix.is_some();
        self.perturbed.extend(matrix.map(|noise| Perturbed { start, shape, noise }));
        Some(differs)
    }
}
