//! Saved models, opened again.

use crate::fits::small_rwkv7;
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
    let more = ("lm_head.weight".to_owned(), vec![1], vec![0.0]);
    let error = refused(&|tensors| tensors.push(more.clone()), SavedDtype::F32);
    assert!(error.contains("\"lm_head.weight\": the configuration has no such tensor"), "{error}");
    assert!(refused(&|tensors| tensors[1].2[3] = 7e4, SavedDtype::F16).contains("70000 is beyond F16"));
    assert!(refused(&|tensors| tensors[1].2[3] = f32::MAX, SavedDtype::BF16).contains("is beyond BF16"));
    // What could not be opened again.
    for dtype in [SavedDtype::F32, SavedDtype::BF16, SavedDtype::F16] {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let error = refused(&|tensors| tensors[1].2[3] = value, dtype);
            let expected = format!("\"{}\": it has {value} at element 3: weights must be finite", tensors[1].0);
            assert!(error.contains(&expected), "{error}");
        }
    }
    let other = folder.path().join("new");
    let broken = tensors.iter().take(3).cloned().collect();
    assert!(save(&other, &model, broken, SavedDtype::F32).is_err() && !other.exists());
}

/// A file that cannot be replaced is found before any other is.
#[test]
fn a_folder_in_the_place_of_a_file_is_refused() {
    let (model, tensors) = open();
    for name in FILES {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), &model, tensors.clone(), SavedDtype::F32).unwrap();
        std::fs::remove_file(folder.path().join(name)).unwrap();
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("mine"), "").unwrap();
        let read = || FILES.map(|name| std::fs::read(folder.path().join(name)).ok());
        let before = read();
        let error = save(folder.path(), &model, tensors.clone(), SavedDtype::BF16).expect_err("a refusal").to_string();
        assert!(error.contains(name) && error.contains("it is a folder"), "{error}");
        assert!(names(folder.path()) == FILES && read() == before && folder.path().join(name).join("mine").exists());
    }
}

/// Whatever other programs would read of the model before is gone, and everything else stays.
#[test]
fn files_of_another_model_are_removed() {
    let (model, tensors) = open();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| std::fs::write(folder.path().join(name), content).unwrap();
    let index = |file: &str| format!("{{\"weight_map\":{{\"a\":\"{file}\",\"b\":\"../outside{file}\"}}}}");
    write("model.safetensors.index.json", &index("part-one.safetensors"));
    write("pytorch_model.bin.index.json", &index("part-one.bin"));
    let stale = [
        [
            "part-one.safetensors",
            "part-one.bin",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
        ],
        ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "consolidated.00.pth", "consolidated.safetensors"],
        ["adapter_config.json", "adapter_model.safetensors", "tokenizer.model", "chat_template.jinja"],
        ["special_tokens_map.json", "added_tokens.json", "chat_template.json", "merges.txt"],
    ];
    stale.iter().flatten().for_each(|name| write(name, "of another model"));
    std::fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
    let kept =
        ["README.md", "model-card.safetensors", "model-1-of-2.safetensors", "other.bin", "other.gguf", "params.json"];
    kept.iter().for_each(|name| write(name, "mine"));
    save(folder.path(), &model, tensors, SavedDtype::F32).unwrap();
    let mut expected = [&FILES[..], &kept].concat();
    expected.sort_unstable();
    assert_eq!(names(folder.path()), expected);
    assert!(kept.iter().all(|name| std::fs::read(folder.path().join(name)).unwrap() == b"mine"));
}

/// The name of a variable that makes a test the process that is killed, and the folder that it saves to.
const VICTIM: &str = "EGGROLL_SAVES_TO";

/// Two models that differ in weights, tokenizer and configuration.
fn two() -> [(Pretrained, Tensors); 2] {
    let (model, tensors) = open();
    let mut file = tiny("llama");
    file.set("llama.context_length", crate::write_gguf::Value::U32(17));
    file.set("tokenizer.ggml.eos_token_id", crate::write_gguf::Value::U32(259));
    let (_folder, path) = file.write();
    let other = Pretrained::open(path).unwrap();
    let negated = |values: &Vec<f32>| values.iter().map(|value| -value).collect();
    let negated = tensors.iter().map(|(name, shape, values)| (name.clone(), shape.clone(), negated(values))).collect();
    [(model, tensors), (other, negated)]
}

/// Killed at any moment, a folder has one of the two models as a whole, or it is no model; the next save leaves no draft.
#[test]
fn a_killed_save_mixes_nothing() {
    let models = two();
    if let Some(folder) = std::env::var_os(VICTIM) {
        loop {
            for (model, tensors) in &models {
                save(Path::new(&folder), model, tensors.clone(), SavedDtype::F32).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    for kill in 0..20u64 {
        let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "round_trip::a_killed_save_mixes_nothing"])
            .env(VICTIM, folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Until it has saved once: the sweep of what was left before is over then.
        while !folder.path().join("config.json").exists() {
            assert!(victim.try_wait().unwrap().is_none(), "it saves until it is killed");
        }
        std::thread::sleep(std::time::Duration::from_micros(20_000 + 1_337 * kill));
        victim.kill().unwrap();
        victim.wait().unwrap();
        if !folder.path().join("config.json").exists() {
            assert!(Pretrained::open(folder.path()).is_err());
            continue;
        }
        let found = Pretrained::open(folder.path()).unwrap();
        let is_same = |(model, tensors): &(Pretrained, Tensors)| {
            let (name, shape, values) = &tensors[0];
            let weights = found.weights.read(name, shape).unwrap() == *values;
            let parts = [weights, found.config == model.config, found.tokenizer.eos() == model.tokenizer.eos()];
            assert!(parts.iter().all(|same| *same == weights), "a mixture: {parts:?}");
            weights
        };
        assert_eq!(models.iter().filter(|model| is_same(model)).count(), 1);
    }
    save(folder.path(), &models[0].0, models[0].1.clone(), SavedDtype::F32).unwrap();
    assert_eq!(names(folder.path()), FILES);
}

/// RWKV-7 too is saved as a whole or not at all.
#[test]
fn a_recurrent_model_is_complete() {
    use eggroll_lm::{CausalModel, Rwkv7};
    let (model, _) = open();
    let config = ModelConfig::Rwkv7(small_rwkv7(true));
    let tensors: Tensors =
        config.tensors().map(|(name, shape)| (name, shape.clone(), vec![0.5; shape.iter().product()])).collect();
    let save =
        |path: &Path, tensors: Tensors| save_model(path, &config, &model.tokenizer, None, tensors, SavedDtype::F32);
    let folder = tempfile::tempdir().unwrap();
    let error = save(folder.path(), tensors[..tensors.len() - 1].to_vec()).expect_err("a refusal").to_string();
    assert!(
        error.contains("\"model.layers.1.ffn.value.weight\": it is missing") && names(folder.path()).is_empty(),
        "{error}"
    );
    save(folder.path(), tensors).unwrap();
    let saved = Pretrained::open(folder.path()).unwrap();
    let loaded = Rwkv7::load(&saved.config, &saved.weights, &burn::tensor::Device::flex()).unwrap();
    assert_eq!(loaded.model_config(), config);
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
