//! The common interface of all architectures: from a file to a module, to the host, and back.

use crate::host::{Changed, Decoder, HostLlama, HostRwkv7};
use crate::language_model::LanguageModel;
use crate::llama::{Llama, LlamaLayer};
use crate::load::{LlamaConfig, LoadError, ModelConfig, Weights};
use crate::rwkv7::Rwkv7;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use eggroll_core::transformer::Precision;
use eggroll_core::{ParameterTable, is_on_host};
use eggroll_nn::{Linear, RmsNorm};

/// A causal language model as a Burn module, which can be loaded, saved, and run on the host.
pub trait CausalModel: Module + Sync {
    /// The model on the host.
    type Host: Decoder + Send;

    /// Patterns of the parameters that are perturbed unless roles are given: the matrices of all layers, but neither embeddings nor
    /// the output layer.
    const PERTURBED: &'static [&'static str];

    /// Reads a model's weights to a device.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for a configuration of another architecture, for missing, misshapen or unread tensors, and for weights that are not
    /// finite.
    fn load(config: &ModelConfig, weights: &Weights, device: &Device) -> Result<Self, LoadError>;

    /// The configuration.
    fn model_config(&self) -> ModelConfig;

    /// All tensors as files hold them: names, shapes and values, one at a time.
    fn tensors(&self) -> Box<dyn Iterator<Item = (String, Vec<usize>, Vec<f32>)> + '_>;

    /// The model itself, if its members run on its device; `None` in host memory, and for architectures whose members run only on the
    /// host.
    fn on_device(&self) -> Option<&dyn LanguageModel> {
        None
    }

    /// Packs the weights for the host.
    fn to_host(&self, precision: Precision) -> Self::Host;

    /// Packs the trained weights again, after a step.
    fn update_host(&self, host: &mut Self::Host, table: &ParameterTable) -> Changed;
}

impl CausalModel for Llama {
    type Host = HostLlama;
    const PERTURBED: &'static [&'static str] = &["layers.*_proj.weight"];

    fn load(all: &ModelConfig, weights: &Weights, device: &Device) -> Result<Self, LoadError> {
        let ModelConfig::Llama(config) = all else {
            return Err(LoadError::config("model_type", "rwkv7", "a relative of Llama: load it as `Rwkv7`"));
        };
        config.validate()?;
        weights.check(all)?;
        weights.check_tied_head(all)?;
        let read = WeightReader { weights, device };
        let mut model = read.around_matrices(config)?;
        for (index, layer) in model.layers.iter_mut().enumerate() {
            for (name, linear) in layer.linear_mut() {
                read.linear_weight(&format!("model.layers.{index}.{name}"), linear)?;
            }
        }
        Ok(model)
    }

    fn model_config(&self) -> ModelConfig {
        ModelConfig::Llama(self.config().clone())
    }

    fn tensors(&self) -> Box<dyn Iterator<Item = (String, Vec<usize>, Vec<f32>)> + '_> {
        let embeddings = std::iter::once_with(|| stored("model.embed_tokens.weight", self.embed_tokens.weight.val()));
        let gains = |name: &str, norm: &RmsNorm| {
            let gamma = norm.gamma.val();
            stored(name, if self.config().gemma.is_some() { gamma - 1.0 } else { gamma })
        };
        let layers = self.layers.iter().enumerate().flat_map(move |(index, layer)| {
            let linear = layer.linear().into_iter().flat_map(move |(name, linear)| {
                let name = format!("model.layers.{index}.{name}");
                let bias = linear.bias.as_ref().map(|bias| stored(&format!("{name}.bias"), bias.val()));
                [Some(stored(&format!("{name}.weight"), linear.weight.val().transpose())), bias].into_iter().flatten()
            });
            let norms =
                layer.norms().map(move |(name, norm)| gains(&format!("model.layers.{index}.{name}.weight"), norm));
            linear.chain(norms)
        });
        let norm = std::iter::once_with(move || gains("model.norm.weight", &self.norm));
        let head = self.lm_head.iter().map(|head| stored("lm_head.weight", head.weight.val().transpose()));
        Box::new(embeddings.chain(layers).chain(norm).chain(head))
    }

    fn on_device(&self) -> Option<&dyn LanguageModel> {
        (!is_on_host(&self.device())).then_some(self)
    }

    fn to_host(&self, precision: Precision) -> HostLlama {
        HostLlama::new(self, precision)
    }

    fn update_host(&self, host: &mut HostLlama, table: &ParameterTable) -> Changed {
        host.update(self, table)
    }
}

impl CausalModel for Rwkv7 {
    type Host = HostRwkv7;
    const PERTURBED: &'static [&'static str] = &["blocks.*.att.*.weight", "blocks.*.ffn.*.weight"];

    fn load(all: &ModelConfig, weights: &Weights, device: &Device) -> Result<Self, LoadError> {
        let ModelConfig::Rwkv7(config) = all else {
            return Err(LoadError::config("model_type", "llama", "rwkv7: load it as `Llama`"));
        };
        config.validate()?;
        weights.check(all)?;
        weights.check_tied_head(all)?;
        let read = WeightReader { weights, device };
        Self::new(config, device).with_files(weights.has_fused_mixes(), |name, shape| read.weights.finite(name, shape))
    }

    fn model_config(&self) -> ModelConfig {
        ModelConfig::Rwkv7(self.config().clone())
    }

    fn tensors(&self) -> Box<dyn Iterator<Item = (String, Vec<usize>, Vec<f32>)> + '_> {
        Box::new(self.file_tensors())
    }

    fn to_host(&self, precision: Precision) -> HostRwkv7 {
        HostRwkv7::new(self, precision)
    }

    fn update_host(&self, host: &mut HostRwkv7, table: &ParameterTable) -> Changed {
        host.update(self, table)
    }
}

fn stored<const D: usize>(name: &str, tensor: Tensor<D>) -> (String, Vec<usize>, Vec<f32>) {
    let shape = tensor.dims().to_vec();
    (name.to_owned(), shape, crate::values::floats(tensor))
}

/// Reads tensors to a device.
pub(crate) struct WeightReader<'a> {
    pub weights: &'a Weights,
    pub device: &'a Device,
}

impl WeightReader<'_> {
    /// A Llama but for the matrices of its layers.
    pub(crate) fn around_matrices(&self, config: &LlamaConfig) -> Result<Llama, LoadError> {
        // Parameters are initialized on first use: these never are.
        let mut model = Llama::new(config, self.device);
        model.embed_tokens.weight =
            self.matrix("model.embed_tokens.weight", [config.vocab_size, config.hidden_size])?;
        model.norm.gamma = self.gains("model.norm.weight", config.hidden_size, config.gain_offset())?;
        if let Some(head) = &mut model.lm_head {
            self.linear_weight("lm_head", head)?;
        }
        let mut layers = model.layers.iter_mut().enumerate();
        layers.try_for_each(|(index, layer)| self.layer_vectors(config, index, layer))?;
        Ok(model)
    }

    /// A tensor as it is stored.
    fn matrix(&self, name: &str, shape: [usize; 2]) -> Result<Param<Tensor<2>>, LoadError> {
        Ok(self.parameter(self.weights.finite(name, &shape)?, shape))
    }

    pub(crate) fn vector(&self, name: &str, len: usize) -> Result<Param<Tensor<1>>, LoadError> {
        Ok(self.parameter(self.weights.finite(name, &[len])?, [len]))
    }

    /// Gains of a normalization, stored minus an offset.
    pub(crate) fn gains(&self, name: &str, len: usize, offset: f32) -> Result<Param<Tensor<1>>, LoadError> {
        let gains = self.weights.finite(name, &[len])?.into_iter().map(|gain| gain + offset).collect();
        Ok(self.parameter(gains, [len]))
    }

    /// Gains and biases of a layer.
    pub(crate) fn layer_vectors(
        &self,
        config: &LlamaConfig,
        index: usize,
        layer: &mut LlamaLayer,
    ) -> Result<(), LoadError> {
        for (name, norm) in layer.norms_mut() {
            let [size] = norm.gamma.lazy_shape().dims();
            norm.gamma = self.gains(&format!("model.layers.{index}.{name}.weight"), size, config.gain_offset())?;
        }
        for (name, linear) in layer.linear_mut() {
            if let Some(bias) = &mut linear.bias {
                let [size] = bias.lazy_shape().dims();
                *bias = self.vector(&format!("model.layers.{index}.{name}.bias"), size)?;
            }
        }
        Ok(())
    }

    /// The weight of a linear layer, which is stored as `[d_output, d_input]`.
    pub(crate) fn linear_weight(&self, name: &str, layer: &mut Linear) -> Result<(), LoadError> {
        let [d_input, d_output] = layer.weight.lazy_shape().dims();
        let stored = self.weights.finite(&format!("{name}.weight"), &[d_output, d_input])?;
        layer.weight = self.parameter(crate::values::transposed(&stored, [d_output, d_input]), [d_input, d_output]);
        Ok(())
    }

    fn parameter<const D: usize>(&self, values: Vec<f32>, shape: [usize; D]) -> Param<Tensor<D>> {
        Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), self.device))
    }
}
