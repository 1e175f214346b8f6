//! Llamas that are tuned in the numbers of their file.

mod carried;
mod on_device;

use crate::causal::WeightReader;
use crate::error::Error;
use crate::host::{Changed, HostLlama, Moves};
use crate::language_model::LanguageModel;
use crate::llama::{Llama, LlamaLayer};
use crate::load::{Encoding, LlamaConfig, LoadError, ModelConfig, Weights};
use crate::tunable::Tunable;
use burn::module::{Module, Param, ParamId};
use burn::optim::SgdConfig;
use burn::tensor::{DType, Device, Tensor, TensorData};
use carried::Carried;
use eggroll_core::scope::Perturbation;
use eggroll_core::sync::locked;
use eggroll_core::transformer::Precision;
use eggroll_core::{Role, is_on_host};
use eggroll_nn::{Embedding, RmsNorm};
use eggroll_run::replay_with;
use eggroll_train::{Credit, EvolutionStrategy, EvolutionStrategyConfig, Fitness, GenerationReport, Population};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// A Llama in the numbers of its GGUF file, which a [`Finetune`](crate::Finetune) moves in place: bfloat16, or integers in ggml's blocks Q8_0 or Q4_0. There is
/// no float32 copy of the weights, and the tuned model is [written back](crate::Finetune::save_gguf) as its file stores it.
///
/// A model is in bfloat16 if the file stores all matrices of its layers in BF16. In other files, matrices that are neither Q8_0 nor Q4_0 are rounded to Q8_0.
///
/// In each step an integer `q` of scale `s` moves by `round(u/s + e)` steps. `u = −lr·ĝ` is the step of a float, and `e` is the carried rounding error of
/// earlier moves (error feedback). `e` begins uniform in `[−½, ½)`, so the expected weight is the float's from the first step on. It takes two bytes for each
/// weight in a temporary file; a continued run rebuilds it from the replay log. For bfloat16 it holds the low half of a float32: the sums of steps are exactly
/// float32's, and members see them rounded. Scales, embeddings, norms and the output layer do not change. The optimizer is
/// plain SGD on the mean scores of members.
///
/// Members run on the host, or on a device over a [copy in int8](crate::Finetune::with_members_on). Steps are made on the host.
///
/// As a Burn module it has the names, shapes and spreads of the weights, not their values. A strategy and a replay log need nothing else.
///
/// # Example
///
/// ```no_run
/// use eggroll_lm::load::Pretrained;
/// use eggroll_lm::{FinetuneConfig, Items, QuantizedLlama};
///
/// # fn main() -> Result<(), eggroll_lm::Error> {
/// let mut finetune = FinetuneConfig::new().init::<QuantizedLlama>(Pretrained::open("model-q8_0.gguf")?)?;
/// let items = [finetune.item("Two and two is", " four")?];
/// for _ in 0..100 {
///     finetune.learn(Items::Shared(&items))?;
/// }
/// finetune.save_gguf("tuned-q8_0.gguf")?;
/// # Ok(())
/// # }
/// ```
///
/// # References
///
/// QES, arXiv 2602.03120: evolution strategies on quantized weights, with error feedback that is rebuilt from seeds and scores.
#[derive(Module, Debug)]
pub struct QuantizedLlama {
    embed_tokens: Embedding,
    layers: Vec<LlamaLayer>,
    norm: RmsNorm,
    #[module(skip)]
    file: Arc<QuantizedFile>,
    /// The copy whose members run on its device.
    #[module(skip)]
    copy: Option<Llama>,
}

/// The file of a model.
#[derive(Debug)]
struct QuantizedFile {
    config: LlamaConfig,
    weights: Weights,
    /// Encoding of every linear layer.
    encodings: Vec<Encoding>,
    /// Carried rounding errors, from the first step on.
    carried: Mutex<Option<Arc<Carried>>>,
}

impl QuantizedLlama {
    fn read(config: &LlamaConfig, weights: Weights) -> Result<(Self, HostLlama), LoadError> {
        let all = ModelConfig::Llama(config.clone());
        config.validate()?;
        weights.check(&all)?;
        weights.check_tied_head(&all)?;
        weights.check_writable()?;
        let device = Device::flex();
        // Parameters are initialized on first use: matrices never are.
        let Llama { mut embed_tokens, mut layers, mut norm, .. } = Llama::new(config, &device);
        let read = WeightReader { weights: &weights, device: &device };
        norm.gamma = read.gains("model.norm.weight", config.hidden_size, config.gain_offset())?;
        layers.iter_mut().enumerate().try_for_each(|(index, layer)| read.layer_vectors(config, index, layer))?;
        let (mut encodings, mut spreads) = (Vec::new(), Vec::new());
        let bfloat16 = linear_names(&layers).all(|name| weights.dtype(&name) == Some(Encoding::BF16.name()));
        let host = HostLlama::as_stored(config, &weights, (&layers, &norm), bfloat16, |stored, shape| {
            encodings.push(stored.encoding());
            spreads.push(stored.spread(shape));
        })?;
        let linear = layers.iter_mut().flat_map(|layer| layer.linear_mut());
        for ((_, linear), spread) in linear.zip(spreads) {
            linear.weight = outline(linear.weight.id, linear.weight.lazy_shape().dims(), spread, &device);
        }
        // Not tuned: one row in place of all tokens. It has the file's digest, by which a replay log notices another file.
        let mut row = vec![0.0f32; config.hidden_size];
        row.iter_mut().zip(weights.digest()?).for_each(|(value, byte)| *value = f32::from(byte));
        let row = Tensor::from_data(TensorData::new(row, [1, config.hidden_size]), &device);
        embed_tokens.weight = Param::initialized(embed_tokens.weight.id, row);
        let file = QuantizedFile { config: config.clone(), weights, encodings, carried: Mutex::default() };
        Ok((Self { embed_tokens, layers, norm, file: Arc::new(file), copy: None }, host))
    }

    /// The configuration.
    pub fn config(&self) -> &LlamaConfig {
        &self.file.config
    }

    /// Copies the model to a device, where members run from then on; nothing if the device is the host.
    pub(crate) fn copy_to(&mut self, host: &HostLlama, device: &Device) -> Result<(), LoadError> {
        let QuantizedFile { config, weights, .. } = &*self.file;
        self.copy = None; // before there are two
        if !is_on_host(device) {
            self.copy = Some(on_device::copied(config, weights, (host, &self.layers), device)?);
        }
        Ok(())
    }

    /// Writes the model's GGUF file with the current weights.
    pub(crate) fn write_gguf(&self, host: &HostLlama, path: &Path) -> Result<(), LoadError> {
        let numbers: HashMap<String, usize> =
            linear_names(&self.layers).enumerate().map(|(number, name)| (name, number)).collect();
        let encoding = |name: &str| numbers.get(name).map(|number| self.file.encodings[*number]);
        self.file.weights.write_gguf(path, encoding, |name, output, encoding, bytes| {
            host.encode(numbers[name], output, encoding, bytes);
        })
    }

    /// Carried rounding errors: before the first step random, or 0 for bfloat16, whose weights are what their file says.
    fn carried(&self, seed: u64) -> std::io::Result<Arc<Carried>> {
        let mut carried = locked(&self.file.carried);
        if let Some(carried) = &*carried {
            return Ok(carried.clone());
        }
        let seed = (!self.file.encodings.contains(&Encoding::BF16)).then_some(seed);
        let linear = self.layers.iter().flat_map(|layer| layer.linear());
        let weights: Vec<usize> = linear.map(|(_, linear)| linear.weight.lazy_shape().num_elements()).collect();
        Ok(carried.insert(Arc::new(Carried::new(seed, &weights)?)).clone())
    }
}

impl Tunable for QuantizedLlama {
    type Host = HostLlama;
    const PERTURBED: &'static [&'static str] = <Llama as crate::CausalModel>::PERTURBED;

    fn open(config: &ModelConfig, weights: Weights) -> Result<(Self, OnceLock<HostLlama>), LoadError> {
        match config {
            ModelConfig::Llama(config) => Self::read(config, weights).map(|(outline, host)| (outline, host.into())),
            _ => Err(LoadError::config("model_type", "rwkv7", "a relative of Llama: `Rwkv7` is tuned in floats")),
        }
    }

    fn on_device(&self) -> Option<&dyn LanguageModel> {
        self.copy.as_ref().map(|copy| copy as &dyn LanguageModel)
    }

    /// Noise that a step learns from: on matrices.
    fn takes_on_device(&self, perturbation: &Perturbation) -> bool {
        let matrices: HashSet<ParamId> =
            self.layers.iter().flat_map(LlamaLayer::linear).map(|(_, linear)| linear.weight.id).collect();
        let entries = perturbation.table.entries().iter();
        entries.filter(|entry| entry.role != Role::Frozen).all(|entry| matrices.contains(&entry.id))
    }

    fn pack(&self, _precision: Precision) -> HostLlama {
        unreachable!("the host of a quantized model is read with it, and nothing takes it away")
    }

    fn check(&self, config: &EvolutionStrategyConfig) -> Result<(), Error> {
        let plain = EvolutionStrategyConfig::new(config.noiser.clone(), SgdConfig::new());
        require("optimizer", &config.optimizer, &plain.optimizer)?;
        require("rate_scale", &config.rate_scale, &plain.rate_scale)?;
        require("clip_norm", &config.clip_norm, &plain.clip_norm)?;
        require("anchor_decay", &config.anchor_decay.filter(|decay| *decay != 0.0), &None)?;
        require("unroll_horizon", &config.unroll_horizon, &None)?;
        require("noise_source", &config.noise_source, &plain.noise_source)?;
        require("transforms", &config.transforms.len(), &0)?;
        require("credit", &config.credit, &Credit::Mean)
    }

    fn tell(
        &mut self,
        host: &mut OnceLock<HostLlama>,
        strategy: &mut EvolutionStrategy,
        population: Population,
        fitness: Fitness,
    ) -> Result<(GenerationReport, Changed), Error> {
        let carried = self.carried(strategy.config().seed).map_err(Error::Carried)?;
        let perturbation = population.perturbation().clone();
        let weights = strategy.config().pair_weights(&fitness, perturbation.sigma);
        let report = strategy.advance(population, &fitness)?;
        let Some(weights) = weights.filter(|_| report.stepped) else { return Ok((report, Changed::default())) };
        let rate = report.learning_rate as f32;
        let table = &perturbation.table;
        let host = host.get_mut().expect("it was read with the model");
        let changed = host.move_weights(
            |number, id, shape| {
                let trained = table.position(id).filter(|_| table.is_trained(id));
                let Some(position) = trained else { return Ok(None) };
                let weights = Tensor::from_data(weights.as_slice(), (&Device::flex(), DType::F32));
                let estimate = perturbation.parameter(position).estimate(weights, &shape, DType::F32);
                let update = crate::values::floats(estimate * -rate);
                Ok(Some(Moves { update, carried: carried.read(number)? }))
            },
            |number, values| carried.write(number, values),
        );
        // Some matrices may have moved before an error.
        if let Some(copy) = &mut self.copy {
            on_device::copy_matrices(copy, host, |id| table.is_trained(id));
        }
        Ok((report, changed.map_err(Error::Carried)?))
    }

    fn replay(
        &mut self,
        host: &mut OnceLock<HostLlama>,
        path: &Path,
        strategy: EvolutionStrategy,
    ) -> Result<EvolutionStrategy, eggroll_run::Error> {
        let copy = self.copy.take(); // nothing is evaluated
        let outline = self.clone();
        let replayed = replay_with(path, strategy, &outline, None, |strategy, population, fitness| {
            self.tell(host, strategy, population, fitness).map(drop).map_err(Into::into)
        });
        self.copy = copy;
        if let (Some(copy), Some(host)) = (&mut self.copy, host.get()) {
            on_device::copy_matrices(copy, host, |_| true);
        }
        replayed
    }

    fn member(&self, _population: &Population, _member: usize, _precision: Precision) -> Result<HostLlama, Error> {
        Err(Error::Quantized {
            setting: "noise",
            found: "not of low rank".into(),
            expected: "of low rank on the matrices of layers".into(),
        })
    }
}

/// Refuses a setting that integers do not support.
fn require<T: Serialize>(setting: &'static str, found: &T, expected: &T) -> Result<(), Error> {
    let [found, expected] = [found, expected].map(|value| serde_json::to_string(value).unwrap_or_default());
    if found == expected { Ok(()) } else { Err(Error::Quantized { setting, found, expected }) }
}

/// Names of the matrices of layers, by their numbers.
fn linear_names(layers: &[LlamaLayer]) -> impl Iterator<Item = String> {
    let of_layer = |(index, layer): (usize, &LlamaLayer)| {
        layer.linear().map(|(name, _)| format!("model.layers.{index}.{name}.weight"))
    };
    layers.iter().enumerate().flat_map(of_layer)
}

/// A parameter of this shape and spread: rows of `±s`, which take no memory.
fn outline(id: ParamId, shape: [usize; 2], spread: f64, device: &Device) -> Param<Tensor<2>> {
    let rows: Vec<f32> = (0..shape[0]).map(|row| if row % 2 == 0 { spread as f32 } else { -spread as f32 }).collect();
    let rows = Tensor::<2>::from_data(TensorData::new(rows, [shape[0], 1]), device);
    let mut param = Param::from_tensor(rows.expand(shape));
    param.id = id;
    param
}
