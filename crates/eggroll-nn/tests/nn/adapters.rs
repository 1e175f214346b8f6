//! Weights with LoRA adapters, dense and quantized, against Burn's layers with the adapter of one member.

use crate::support::{LAYER, MEMBERS, NETWORK, assert_members, noisers, perturbation, rows_of, uniform, values};
use burn::module::{Lora, Module, ModuleMapper, Param, QLora, Quantizer};
use burn::nn;
use burn::tensor::quantization::{Calibration, QuantValue};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use eggroll_core::{EggrollConfig, NoiserConfig, ParameterTable, Role, TableError};
use eggroll_nn::graph::{GraphError, PopulationGraph};
use eggroll_nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};

fn quantizer(device: &Device) -> Quantizer {
    Quantizer::new(Calibration::MinMax, device.settings().quantization.scheme.with_value(QuantValue::Q8S))
}

/// Other values in every factor: the second one begins with zeros.
struct FillFactors {
    stream: u32,
    is_factor: bool,
}

impl ModuleMapper for FillFactors {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.is_factor |= name == "lora";
    }

    fn exit_module(&mut self, name: &str, _: &str) {
        self.is_factor &= name != "lora";
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.stream += 1;
        let stream = self.stream;
        if self.is_factor { param.map(|value| uniform(value.dims(), stream, &value.device())) } else { param }
    }
}

fn adapted<M: Module>(model: M, device: &Device, is_quantized: bool) -> M {
    let lora = Lora::new(2, 3.0);
    let model = match is_quantized {
        false => model.apply_lora(lora),
        true => model.apply_qlora(QLora::new(lora, quantizer(device))),
    };
    model.map(&mut FillFactors { stream: 0, is_factor: false })
}

fn roles(model: &impl Module) -> Vec<(String, bool)> {
    let scope = perturbation(model, &EggrollConfig::new().into(), &[]);
    scope.table.entries().iter().map(|entry| (entry.path.clone(), entry.role != Role::Frozen)).collect()
}

#[test]
fn linear_layers_train_their_adapters() {
    let device = Device::flex();
    for is_quantized in [false, true] {
        let layer = adapted(LinearConfig::new(13, 7).init(&device), &device, is_quantized);
        let trained: Vec<String> =
            roles(&layer).into_iter().filter(|(_, trained)| *trained).map(|(path, _)| path).collect();
        assert_eq!(trained, ["weight.lora.a", "weight.lora.b"]);
        let x = uniform([MEMBERS * 2, 5, 13], 0, &device);
        let plain = layer.forward(x.clone());
        assert_eq!(values(plain.clone()), values(nn::Linear::from(layer.clone()).forward(x.clone())));
        for noiser in noisers() {
            let scope = perturbation(&layer, &noiser, &[]);
            let what = format!("{noiser:?}, quantized: {is_quantized}");
            let alone = |member, model: Linear| nn::Linear::from(model).forward(rows_of(&x, member));
            assert_members((&what, LAYER), &layer, &scope, || layer.forward(x.clone()), alone);
            let alone = |_, model: Linear| nn::Linear::from(model).forward(x.clone());
            assert_members((&what, LAYER), &layer, &scope, || layer.forward_shared(x.clone()), alone);
        }
    }
}

#[test]
fn embeddings_train_their_adapters() {
    let device = Device::flex();
    let indices: Vec<i32> = (0..MEMBERS as i32 * 2 * 5).map(|i| i * i * 7 % 13 % 11).collect();
    let tokens = Tensor::<2, Int>::from_data(TensorData::new(indices, [MEMBERS * 2, 5]), &device);
    let shared = rows_of(&tokens, 1);
    let x = uniform([MEMBERS * 2, 3, 7], 0, &device);
    for is_quantized in [false, true] {
        let layer = adapted(EmbeddingConfig::new(11, 7).init(&device), &device, is_quantized);
        for noiser in noisers() {
            let scope = perturbation(&layer, &noiser, &[]);
            let what = format!("{noiser:?}, quantized: {is_quantized}");
            let alone = |member, model: Embedding| nn::Embedding::from(model).forward(rows_of(&tokens, member));
            assert_members((&what, LAYER), &layer, &scope, || layer.forward(tokens.clone()), alone);
            let alone = |_, model: Embedding| nn::Embedding::from(model).forward(shared.clone());
            assert_members((&what, LAYER), &layer, &scope, || layer.forward_shared(shared.clone()), alone);
            let tied = |model: Embedding, x| burn::tensor::module::linear(x, model.weight.val().transpose(), None);
            let alone = |member, model: Embedding| tied(model, rows_of(&x, member));
            assert_members((&what, LAYER), &layer, &scope, || layer.forward_transposed(x.clone()), alone);
        }
    }
}

#[derive(Module, Debug)]
struct BurnMlp {
    first: nn::Linear,
    second: nn::Linear,
}

impl BurnMlp {
    fn new(device: &Device) -> Self {
        Self { first: nn::LinearConfig::new(7, 9).init(device), second: nn::LinearConfig::new(9, 3).init(device) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::gelu(self.first.forward(x)))
    }
}

#[test]
fn models_of_burn_train_their_adapters() {
    let device = Device::flex();
    let model = adapted(BurnMlp::new(&device), &device, false);
    let x = uniform([MEMBERS * 2, 7], 0, &device);
    let graph = PopulationGraph::trace(&model, rows_of(&x, 0), BurnMlp::forward).expect("traced");
    for noiser in noisers() {
        let scope = perturbation(&model, &noiser, &[]);
        let alone = |member, model: BurnMlp| model.forward(rows_of(&x, member));
        let what = format!("{noiser:?}");
        assert_members((&what, NETWORK), &model, &scope, || graph.forward(&model, x.clone()), alone);
    }
}

#[test]
fn quantized_weights_without_adapters_are_refused() {
    let device = Device::flex();
    let noiser = NoiserConfig::from(EggrollConfig::new()).init().expect("valid");
    let layer: Linear = LinearConfig::new(6, 4).init(&device).quantize_weights(&mut quantizer(&device));
    let refused = |model: &Linear, frozen: &[String]| ParameterTable::new(model, noiser.as_ref(), frozen).err();
    assert_eq!(refused(&layer, &[]), Some(TableError::Quantized("weight".into())));
    assert_eq!(
        refused(&layer, &["weight".into(), "bias".into()])
            .map(|error| error.to_string().contains("no parameter to train")),
        Some(true)
    );
    assert_eq!(refused(&layer.no_grad(), &[]).map(|error| error.to_string().contains("no_grad()")), Some(true));
    let model = adapted(BurnMlp::new(&device), &device, true);
    let error = PopulationGraph::trace(&model, uniform([2, 7], 0, &device), BurnMlp::forward).err();
    assert_eq!(error, Some(GraphError::Quantized("first.weight".into())));
}
