//! Makes Rust code of the models: a module of Burn and its weights for each.

use burn_onnx::{LoadStrategy, ModelGen};

fn main() {
    let mut models = ModelGen::new();
    let names = [
        "perceptron",
        "convolutional",
        "transformer",
        "recurrent",
        "blank_token",
        "sequence_first",
        "batch_statistics",
    ];
    for name in names {
        println!("cargo::rerun-if-changed=models/{name}.onnx");
        models.input(&format!("models/{name}.onnx"));
    }
    models.out_dir("models/").load_strategy(LoadStrategy::Embedded).run_from_script();
}
