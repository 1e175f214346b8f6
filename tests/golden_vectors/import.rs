//! Weights from elsewhere: SafeTensors and PyTorch files into perturbed drop-in replacements, through Burn's stores.

use burn::module::Module;
use burn::nn;
use burn::store::{BurnToPyTorchAdapter, ModuleSnapshot, PyTorchToBurnAdapter, PytorchStore, SafetensorsStore};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use eggroll::nn::{Linear, LinearConfig};
use std::path::PathBuf;

/// A model of plain Burn.
#[derive(Module, Debug)]
struct PlainBurn {
    first: nn::Linear,
    second: nn::Linear,
}

/// The same of eggroll's layers.
#[derive(Module, Debug)]
struct Twin {
    first: Linear,
    second: Linear,
}

impl PlainBurn {
    fn new() -> Self {
        let device = Device::flex();
        let layer = |d_input, d_output| nn::LinearConfig::new(d_input, d_output).init(&device);
        Self { first: layer(3, 4), second: layer(4, 2) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(relu(self.first.forward(x)))
    }
}

impl Twin {
    fn new(hidden: usize) -> Self {
        let device = Device::flex();
        let layer = |d_input, d_output| LinearConfig::new(d_input, d_output).init(&device);
        Self { first: layer(3, hidden), second: layer(hidden, 2) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(relu(self.first.forward(x)))
    }
}

fn input() -> Tensor<2> {
    Tensor::from_floats([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], &Device::flex())
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

fn pytorch() -> PytorchStore {
    let file: PathBuf = [env!("CARGO_MANIFEST_DIR"), "fixtures", "mlp.pt"].iter().collect();
    PytorchStore::from_file(file)
}

/// The fixture's layers are numbered, as `Sequential` does it.
fn named() -> PytorchStore {
    pytorch().with_key_remapping(r"^0\.", "first.").with_key_remapping(r"^2\.", "second.")
}

#[test]
fn safetensors_of_a_plain_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("model.safetensors");
    let plain = PlainBurn::new();
    plain.save_into(&mut SafetensorsStore::from_file(&file)).expect("saved");
    let mut twin = Twin::new(4);
    assert_ne!(values(twin.forward(input())), values(plain.forward(input())), "canary: other weights before");
    let result = twin.load_from(&mut SafetensorsStore::from_file(&file)).expect("loaded");
    assert_eq!((result.applied.len(), result.missing.len(), result.unused.len()), (4, 0, 0));
    assert_eq!(values(twin.first.weight.val()), values(plain.first.weight.val()));
    assert_eq!(values(twin.forward(input())), values(plain.forward(input())));
    // And back.
    let back = folder.path().join("back.safetensors");
    twin.save_into(&mut SafetensorsStore::from_file(&back)).expect("saved");
    let mut again = PlainBurn::new();
    again.load_from(&mut SafetensorsStore::from_file(&back)).expect("loaded");
    assert_eq!(values(again.forward(input())), values(plain.forward(input())));
}

/// Files in PyTorch's layout hold weights as `[d_output, d_input]`: Burn's adapter knows the twins by their names.
#[test]
fn safetensors_in_pytorchs_layout() {
    let plain = PlainBurn::new();
    let mut store = SafetensorsStore::from_bytes(None).with_to_adapter(BurnToPyTorchAdapter);
    plain.save_into(&mut store).expect("saved");
    let bytes = store.get_bytes().expect("bytes");
    let mut twin = Twin::new(4);
    let mut store = SafetensorsStore::from_bytes(Some(bytes.clone())).with_from_adapter(PyTorchToBurnAdapter);
    twin.load_from(&mut store).expect("loaded");
    assert_eq!(values(twin.forward(input())), values(plain.forward(input())));
    let error = Twin::new(4).load_from(&mut SafetensorsStore::from_bytes(Some(bytes))).expect_err("canary: transposed");
    assert!(error.to_string().contains("first.weight"), "{error}");
}

#[test]
fn a_pytorch_file() {
    let mut twin = Twin::new(4);
    let result = twin.load_from(&mut named()).expect("loaded");
    assert_eq!((result.applied.len(), result.missing.len(), result.unused.len()), (4, 0, 0));
    // See the script next to the fixture; weights are [d_input, d_output] here.
    let weight = |d_input: usize, d_output: usize, sign: f32| -> Vec<f32> {
        let value = |i: usize, o: usize| sign * (7.0 * o as f32 + 3.0 * i as f32 - 5.0) / 64.0;
        (0..d_input).flat_map(|i| (0..d_output).map(move |o| (i, o))).map(|(i, o)| value(i, o)).collect()
    };
    let bias = |layer: &Linear| values(layer.bias.as_ref().expect("a bias").val());
    assert_eq!(values(twin.first.weight.val()), weight(3, 4, 1.0));
    assert_eq!(values(twin.second.weight.val()), weight(4, 2, -1.0));
    assert_eq!(bias(&twin.first), [1.0 / 64.0, 2.0 / 64.0, 3.0 / 64.0, 4.0 / 64.0]);
    assert_eq!(bias(&twin.second), [-1.0 / 64.0, -2.0 / 64.0]);
    assert_ne!(values(twin.first.weight.val()), weight(3, 4, -1.0), "canary: another sign");
}

#[test]
fn missing_keys_are_named() {
    let error = Twin::new(4).load_from(&mut pytorch()).expect_err("names differ").to_string();
    assert!(error.contains("first.weight") && error.contains("0.weight"), "{error}");
    let result = Twin::new(4).load_from(&mut pytorch().allow_partial(true)).expect("in part");
    assert_eq!((result.applied.len(), result.missing.len(), result.unused.len()), (0, 4, 4));
    let mut store = SafetensorsStore::from_bytes(None).with_regex("first");
    PlainBurn::new().save_into(&mut store).expect("saved");
    let bytes = store.get_bytes().expect("bytes");
    let error = Twin::new(4).load_from(&mut SafetensorsStore::from_bytes(Some(bytes))).expect_err("half of it");
    assert!(error.to_string().contains("second.weight"), "{error}");
}

#[test]
fn wrong_shapes_are_named() {
    let error = Twin::new(5).load_from(&mut named()).expect_err("wider").to_string();
    assert!(error.contains("first.weight") && error.contains("[3, 5]") && error.contains("[3, 4]"), "{error}");
    let mut store = SafetensorsStore::from_bytes(None);
    PlainBurn::new().save_into(&mut store).expect("saved");
    let bytes = store.get_bytes().expect("bytes");
    let error = Twin::new(5).load_from(&mut SafetensorsStore::from_bytes(Some(bytes))).expect_err("wider").to_string();
    assert!(error.contains("first.weight") && error.contains("[3, 5]") && error.contains("[3, 4]"), "{error}");
}
