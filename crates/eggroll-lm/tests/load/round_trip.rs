//! Saved models, opened again.

use crate::write_gguf::tiny;
use eggroll_lm::load::{LoadError, Message, ModelConfig, Pretrained, SavedDtype, save_model};
use std::path::Path;

type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

fn open() -> (Pretrained, Tensors) {
    let (_folder, path) = tiny("llama").write();
    let model = Pretrained::open(path).unwrap();
    let ModelConfig::Llama(config) = &model.config else { panic!("another architecture") };
    // Values that need all of their digits.
    let values = |shape: &[usize]| (0..shape.iter().product()).map(|i: usize| (i as f32 + 0.1).sin() * 3.0).collect();
    let tensors = config.tensors().map(|(name, shape)| (name, shape.clone(), values(&shape))).collect();
    (model, tensors)
}

fn save(folder: &Path, model: &Pretrained, tensors: Tensors, dtype: SavedDtype) -> Result<(), LoadError> {
    save_model(folder, &model.config, &model.tokenizer, model.chat_template.as_ref(), tensors, dtype)
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

const FILES: [&str; 5] =
    ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];

#[test]
fn a_saved_model_is_the_same() {
    let (model, tensors) = open();
    for (dtype, name, error) in
        [(SavedDtype::F32, "F32", 0.0), (SavedDtype::BF16, "BF16", 1.0 / 256.0), (SavedDtype::F16, "F16", 1.0 / 2048.0)]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder");
        save(&path, &model, tensors.clone(), dtype).unwrap();
        assert_eq!(names(&path), FILES);
        let saved = Pretrained::open(&path).unwrap();
        assert_eq!(saved.config, model.config);
        for (tensor, shape, values) in &tensors {
            let found = saved.weights.read(tensor, shape).unwrap();
            assert!(
                found.iter().zip(values).all(|(found, value)| (found - value).abs() <= error * value.abs()),
                "{tensor}"
            );
            assert_eq!(saved.weights.dtype(tensor), Some(name));
        }
        let text = "<|begin|>abc ab 123 é<|im_end|>";
        assert_eq!(saved.tokenizer.encode(text).unwrap(), model.tokenizer.encode(text).unwrap());
        assert_eq!(saved.tokenizer.eos(), model.tokenizer.eos());
        assert_eq!(saved.tokenizer.special_tokens(), model.tokenizer.special_tokens());
        let chat = [Message::user("Hi")];
        assert_eq!(saved.chat_template.unwrap().render(&chat, true).unwrap(), "user: Hi\n");
    }
}

#[test]
fn a_folder_is_saved_again_with_its_settings() {
    let (model, tensors) = open();
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    save(first.path(), &model, tensors.clone(), SavedDtype::F32).unwrap();
    let settings = first.path().join("tokenizer_config.json");
    let json =
        std::fs::read_to_string(&settings).unwrap().replacen('{', "{ \"model_max_length\": 99, \"auto_map\": {},", 1);
    std::fs::write(&settings, json).unwrap();
    let model = Pretrained::open(first.path()).unwrap();
    std::fs::write(second.path().join("chat_template.jinja"), "an older one").unwrap();
    save(second.path(), &model, tensors, SavedDtype::BF16).unwrap();
    assert_eq!(names(second.path()), FILES);
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(second.path().join("tokenizer_config.json")).unwrap()).unwrap();
    assert_eq!((&json["model_max_length"], json.get("auto_map")), (&99.into(), None));
    assert_eq!(json["eos_token"], "<|im_end|>");
    let again = Pretrained::open(second.path()).unwrap();
    assert_eq!(again.tokenizer.to_json().unwrap(), model.tokenizer.to_json().unwrap());
}

#[test]
fn what_transformers_looks_for_is_there() {
    let (model, tensors) = open();
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &model, tensors, SavedDtype::BF16).unwrap();
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(folder.path().join(name)).unwrap()).unwrap()
    };
    let config = json("config.json");
    assert_eq!((&config["model_type"], &config["torch_dtype"]), (&"llama".into(), &"bfloat16".into()));
    assert_eq!((&config["bos_token_id"], &config["eos_token_id"]), (&259.into(), &260.into()));
    assert_eq!(json("tokenizer_config.json")["tokenizer_class"], "PreTrainedTokenizerFast");
    let bytes = std::fs::read(folder.path().join("model.safetensors")).unwrap();
    let (length, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!((8 + length) % 8, 0);
    assert_eq!(metadata.metadata().as_ref().unwrap()["format"], "pt");
    assert_eq!(metadata.tensors().len(), 11);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        std::fs::write(folder.path().join("other"), "").unwrap();
        assert!(FILES.iter().all(|name| mode(name) == mode("other")));
    }
}

#[test]
fn a_failed_save_leaves_the_folder_as_it_was() {
    let (model, tensors) = open();
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &model, tensors.clone(), SavedDtype::F32).unwrap();
    let before: Vec<_> = FILES.iter().map(|name| std::fs::read(folder.path().join(name)).unwrap()).collect();
    let refused = |change: &dyn Fn(&mut Tensors), dtype| {
        let mut tensors = tensors.clone();
        change(&mut tensors);
        let error = save(folder.path(), &model, tensors, dtype).expect_err("a refusal").to_string();
        let after: Vec<_> = FILES.iter().map(|name| std::fs::read(folder.path().join(name)).unwrap()).collect();
        assert!(names(folder.path()) == FILES && before == after);
        error
    };
    assert!(refused(&|tensors| drop(tensors.pop()), SavedDtype::F32).contains("\"model.norm.weight\": it is missing"));
    assert!(
        refused(&|tensors| tensors[1].1 = vec![2, 4], SavedDtype::F32)
            .contains("it has shape [2, 4], the configuration")
    );
    assert!(refused(&|tensors| tensors[1].1 = vec![9], SavedDtype::F32).contains("8 values do not fill its shape [9]"));
    assert!(refused(&|tensors| tensors.push(tensors[0].clone()), SavedDtype::F32).contains("the name is taken"));
    assert!(refused(&|tensors| tensors[1].2[3] = 7e4, SavedDtype::F16).contains("70000 is beyond F16"));
}

#[test]
fn a_tokenizer_of_another_model_is_refused() {
    let mut file = tiny("llama");
    file.tensors[0].1 = vec![8, 260];
    file.tensors[0].3.truncate(8 * 260 * 4);
    let (_folder, path) = file.write();
    let error = Pretrained::open(path).expect_err("a refusal").to_string();
    assert!(error.contains("vocab_size is 260, expected 261 at least"), "{error}");
}
