//! Weights of files: those that are no numbers are refused with file, tensor and count.

use burn::module::{Module, Param};
use burn::store::{ModuleSnapshot, SafetensorsStore};
use burn::tensor::{Device, Tensor};
use eggroll_nn::{Mlp, MlpConfig, weights};
use std::path::Path;

fn model() -> Mlp {
    MlpConfig::new(vec![3, 4, 2]).init(&Device::flex())
}

fn with_bias(values: [f32; 2]) -> Mlp {
    let mut model = model();
    model.layers[1].bias = Some(Param::from_tensor(Tensor::from_floats(values, &Device::flex())));
    model
}

fn saved(model: &Mlp, file: &Path) {
    model.save_into(&mut SafetensorsStore::from_file(file).overwrite(true)).expect("saves");
}

#[test]
fn weights_that_are_no_numbers_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("net.safetensors");
    let load = || weights::load(model(), &mut SafetensorsStore::from_file(&file), &file);
    for (values, count) in [([f32::NAN, 1.0], 1), ([f32::NAN, f32::INFINITY], 2), ([0.0, f32::NEG_INFINITY], 1)] {
        saved(&with_bias(values), &file);
        let expected = format!(
            "{}: \"layers.1.bias\" of shape [2] has {count} values that are NaN or infinite: load or initialize the model anew",
            file.display()
        );
        assert_eq!(load().map(drop).expect_err("refused").to_string(), expected);
        let mut plain = model();
        plain.load_from(&mut SafetensorsStore::from_file(&file)).expect("canary: Burn takes them");
    }
    let good = with_bias([0.5, f32::MAX]);
    saved(&good, &file);
    assert_eq!(load().expect("loads").num_params(), good.num_params());
    let bias = load().expect("loads").layers[1].bias.as_ref().map(|bias| bias.val().into_data());
    assert_eq!(bias, good.layers[1].bias.as_ref().map(|bias| bias.val().into_data()));
}

#[test]
fn files_that_burn_refuses_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("none.safetensors");
    let error = weights::load(model(), &mut SafetensorsStore::from_file(&file), &file).map(drop).expect_err("refused");
    assert!(error.to_string().starts_with(&format!("{}: ", file.display())), "{error}");
}
