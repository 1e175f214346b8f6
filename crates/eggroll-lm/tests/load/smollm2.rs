//! SmolLM2-135M-Instruct, which `scripts/smollm2` fetches. The tests are skipped where the file is not.

use crate::fetched;
use eggroll_lm::load::{LlamaConfig, Message, ModelConfig, Pretrained, RopeScaling};
use serde_json::Value;

pub fn open() -> Option<Pretrained> {
    fetched::model().map(|path| Pretrained::open(path).expect("a model"))
}

pub fn expected_config() -> LlamaConfig {
    LlamaConfig {
        vocab_size: 49_152,
        hidden_size: 576,
        intermediate_size: 1536,
        layers: 30,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        rope_theta: 100_000.0,
        rope_scaling: RopeScaling::None,
        rms_norm_eps: 1e-5,
        context_length: 8192,
        tied_head: true,
        attention_bias: false,
        qk_norm: false,
        window: None,
        attention: Vec::new(),
        gemma: None,
    }
}

/// A text of the golden file.
pub struct Golden {
    pub text: String,
    pub ids: Vec<u32>,
    /// The five most probable next tokens, and their logits.
    pub top: Vec<usize>,
    pub logits: Vec<f64>,
}

/// The eight texts of the golden file; none in a package that has it not.
pub fn golden() -> Vec<Golden> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/smollm2.json");
    let Some(path) = fetched::or_skipped(path.into(), "it is in the repository") else { return Vec::new() };
    let json: Vec<Value> = serde_json::from_slice(&std::fs::read(path).expect("reads")).expect("JSON");
    let number = |value: &Value| value.as_f64().expect("a number");
    let numbers = |value: &Value| value.as_array().expect("numbers").iter().map(number).collect::<Vec<f64>>();
    let text = |entry: &Value| Golden {
        text: entry["text"].as_str().expect("a text").to_owned(),
        ids: numbers(&entry["ids"]).into_iter().map(|id| id as u32).collect(),
        top: numbers(&entry["f32_top5"]).into_iter().map(|id| id as usize).collect(),
        logits: numbers(&entry["f32_logits"]),
    };
    let texts: Vec<Golden> = json.iter().map(text).collect();
    assert_eq!(texts.len(), 8);
    texts
}

#[test]
fn the_configuration_is_read_from_metadata() {
    let Some(model) = open() else { return };
    assert_eq!(model.config, ModelConfig::Llama(expected_config()));
}

#[test]
fn all_tensors_have_the_names_and_shapes_of_hugging_face() {
    let Some(model) = open() else { return };
    let config = expected_config();
    let mut expected: Vec<_> = config.tensors().collect();
    expected.sort();
    let found: Vec<_> =
        model.weights.names().map(|name| (name.to_owned(), model.weights.shape(name).unwrap().to_vec())).collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), 272);
    assert_eq!(model.weights.dtype("model.embed_tokens.weight"), Some("Q8_0"));
    assert_eq!(model.weights.dtype("model.layers.7.mlp.up_proj.weight"), Some("Q4_1"));
    assert_eq!(model.weights.dtype("model.norm.weight"), Some("F32"));
}

#[test]
fn weights_have_the_scale_of_a_trained_model() {
    let Some(model) = open() else { return };
    for (name, shape) in expected_config().tensors() {
        let values = model.weights.read(&name, &shape).expect("values");
        assert_eq!(values.len(), shape.iter().product::<usize>(), "{name}");
        let square = values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / values.len() as f64;
        assert!(
            values.iter().all(|value| value.is_finite()) && (1e-3..100.0).contains(&square.sqrt()),
            "{name}: {square}"
        );
    }
}

#[test]
fn texts_have_the_tokens_of_llama_cpp_and_come_back() {
    let Some(model) = open() else { return };
    for Golden { text, ids, .. } in golden() {
        assert_eq!(model.tokenizer.encode(&text).unwrap(), ids, "{text}");
        assert_eq!(model.tokenizer.decode(&ids, false).unwrap(), text);
    }
}

#[test]
fn special_tokens_are_known() {
    let Some(model) = open() else { return };
    let tokenizer = &model.tokenizer;
    assert_eq!(tokenizer.vocab_size(), 49_152);
    assert_eq!(tokenizer.largest_id(), Some(49_151));
    // The end of a turn, as the file says, and the end of a document in pretraining.
    assert_eq!(tokenizer.eos(), [2, 0]);
    assert_eq!(tokenizer.bos(), Some(1));
    assert!(!tokenizer.adds_bos());
    assert_eq!(tokenizer.token(2).as_deref(), Some("<|im_end|>"));
    assert_eq!(tokenizer.id("<|im_start|>"), Some(1));
    assert_eq!(tokenizer.id("no such token"), None);
    assert_eq!(tokenizer.token(49_152), None);
    assert_eq!(tokenizer.decode(&[1, 4093, 2, 50_000], true).unwrap(), "user");
}

#[test]
fn a_chat_without_instructions_gets_those_of_the_template() {
    let Some(model) = open() else { return };
    let template = model.chat_template.expect("a template");
    let chat = [Message::user("Hi")];
    let system = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n";
    let user = "<|im_start|>user\nHi<|im_end|>\n";
    assert_eq!(template.render(&chat, true).unwrap(), format!("{system}{user}<|im_start|>assistant\n"));
    assert_eq!(template.render(&chat, false).unwrap(), format!("{system}{user}"));

    let chat = [Message::system("Be brief."), Message::user("Hi"), Message::assistant("Yo")];
    let expected = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYo<|im_end|>\n";
    assert_eq!(template.render(&chat, false).unwrap(), expected);
}

#[test]
fn an_opened_model_is_saved_for_transformers() {
    use eggroll_lm::load::{SavedDtype, save_model};
    let Some(model) = open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let config = expected_config();
    let tensors = config.tensors().map(|(name, shape)| {
        let values = model.weights.read(&name, &shape).expect("values");
        (name, shape, values)
    });
    let template = model.chat_template.as_ref();
    save_model(folder.path(), &model.config, &model.tokenizer, template, tensors, SavedDtype::F32).expect("saved");

    let saved = Pretrained::open(folder.path()).expect("a model");
    assert_eq!(saved.config, model.config);
    for Golden { text, ids, .. } in golden() {
        assert_eq!(saved.tokenizer.encode(&text).unwrap(), ids);
    }
    assert_eq!(saved.tokenizer.eos(), model.tokenizer.eos());
    assert_eq!(saved.tokenizer.bos(), model.tokenizer.bos());
    assert_eq!(saved.tokenizer.special_tokens(), model.tokenizer.special_tokens());
    let name = "model.layers.3.self_attn.k_proj.weight";
    assert_eq!(saved.weights.read(name, &[192, 576]).unwrap(), model.weights.read(name, &[192, 576]).unwrap());
    let chat = [Message::user("Hi")];
    let render = |template: Option<_>| {
        let template: eggroll_lm::load::ChatTemplate = template.expect("a template");
        template.render(&chat, true).unwrap()
    };
    assert_eq!(render(saved.chat_template), render(model.chat_template));
}
