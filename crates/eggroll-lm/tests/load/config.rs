//! Configurations: read from both formats, checked, written.

use crate::relatives::{WINDOWED, relatives};
use crate::write_gguf::{Value, f32s, tiny, write};
use eggroll_lm::load::{LlamaConfig, LoadError, ModelConfig, RopeScaling, Rwkv7Config};
use serde_json::json;

pub fn llama() -> LlamaConfig {
    LlamaConfig {
        vocab_size: 261,
        hidden_size: 8,
        intermediate_size: 4,
        layers: 1,
        heads: 2,
        kv_heads: 1,
        head_dim: 4,
        rope_theta: 10_000.0,
        rope_scaling: RopeScaling::None,
        rms_norm_eps: 1e-5,
        context_length: 16,
        tied_head: true,
        attention_bias: false,
        qk_norm: false,
        window: None,
        attention: Vec::new(),
        gemma: None,
    }
}

fn rwkv7() -> Rwkv7Config {
    Rwkv7Config {
        vocab_size: 65_536,
        hidden_size: 768,
        intermediate_size: 3072,
        layers: 12,
        head_dim: 64,
        decay_rank: 64,
        a_rank: 64,
        v_rank: 32,
        gate_rank: 128,
        norm_eps: 1e-5,
        tied_head: false,
    }
}

pub fn read(json: &serde_json::Value) -> Result<ModelConfig, LoadError> {
    let (_folder, path) = write(json.to_string().as_bytes(), "config.json");
    ModelConfig::from_file(path)
}

fn refused(json: &serde_json::Value) -> String {
    read(json).expect_err("a refusal").to_string()
}

/// `config.json` of the small model, with other values.
fn with(changes: &[(&str, serde_json::Value)]) -> serde_json::Value {
    let mut json = ModelConfig::Llama(llama()).to_json();
    changes.iter().for_each(|(key, value)| json[*key] = value.clone());
    json
}

#[test]
fn what_is_written_is_read() {
    let scaled = LlamaConfig { rope_scaling: RopeScaling::Linear { factor: 4.0 }, ..llama() };
    let llama3 =
        RopeScaling::Llama3 { factor: 32.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_context: 8192 };
    let llama3 = LlamaConfig { rope_scaling: llama3, tied_head: false, ..llama() };
    let qwen2 = LlamaConfig { attention_bias: true, rms_norm_eps: 1e-6, ..llama() };
    for config in [llama(), scaled, llama3, qwen2].into_iter().chain(relatives()) {
        let config = ModelConfig::Llama(config);
        assert_eq!(read(&config.to_json()).unwrap(), config);
        assert_eq!(serde_json::from_value::<ModelConfig>(serde_json::to_value(&config).unwrap()).unwrap(), config);
    }
    let config = ModelConfig::Rwkv7(rwkv7());
    assert_eq!(read(&config.to_json()).unwrap(), config);
}

#[test]
fn missing_fields_have_the_defaults_of_transformers() {
    let json = json!({
        "model_type": "llama", "vocab_size": 100, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": null,
    });
    let ModelConfig::Llama(config) = read(&json).unwrap() else { panic!("another architecture") };
    assert_eq!((config.kv_heads, config.head_dim, config.context_length), (4, 4, 2048));
    assert_eq!((config.rope_theta, config.rms_norm_eps, config.tied_head), (10_000.0, 1e-6, false));

    // Absent is not null: other models have other heads of keys.
    let of = |kind: &str, changes: serde_json::Value| {
        let mut json = json.clone();
        json["model_type"] = kind.into();
        json["num_attention_heads"] = 32.into();
        json["hidden_size"] = 64.into();
        json.as_object_mut().unwrap().remove("num_key_value_heads");
        changes.as_object().unwrap().iter().for_each(|(key, value)| json[key] = value.clone());
        let ModelConfig::Llama(config) = read(&json).unwrap() else { panic!("another architecture") };
        (config.kv_heads, config.context_length, config.attention_bias)
    };
    assert_eq!(of("llama", json!({})), (32, 2048, false));
    assert_eq!(of("qwen2", json!({})), (32, 32_768, true));
    assert_eq!(of("mistral", json!({ "sliding_window": null })), (8, 131_072, false));
    assert_eq!(of("mistral", json!({ "sliding_window": null, "num_key_value_heads": null })), (32, 131_072, false));
    assert_eq!(of("qwen3", json!({})), (32, 32_768, false));
    assert_eq!(of("smollm3", json!({})), (4, 32_768, false));
    let error = refused(&json!({
        "model_type": "qwen2", "vocab_size": 100, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }));
    assert!(error.contains("kv_heads is 32, expected a divisor of heads, 4"), "{error}");
}

#[test]
fn the_rotary_parameters_of_newer_files_are_read() {
    let mut json = with(&[("rope_parameters", json!({ "rope_theta": 5e5, "rope_type": "linear", "factor": 2.0 }))]);
    json.as_object_mut().unwrap().remove("rope_theta");
    let ModelConfig::Llama(config) = read(&json).unwrap() else { panic!("another architecture") };
    assert_eq!((config.rope_theta, config.rope_scaling), (5e5, RopeScaling::Linear { factor: 2.0 }));
}

/// As transformers 5.24 reads them: `rope_scaling`, unless it says nothing, then `rope_parameters`; and the base in it before the one next to it.
#[test]
fn of_two_rotary_settings_one_counts() {
    let read = |changes: &[(&str, serde_json::Value)]| {
        let ModelConfig::Llama(config) = read(&with(changes)).unwrap() else { panic!("another architecture") };
        (config.rope_theta, config.rope_scaling)
    };
    let parameters = || ("rope_parameters", json!({ "rope_type": "default", "rope_theta": 5e5 }));
    let linear = json!({ "type": "linear", "factor": 2.0 });
    assert_eq!(read(&[("rope_theta", json!(1e4)), parameters()]), (5e5, RopeScaling::None));
    assert_eq!(read(&[("rope_scaling", json!({})), parameters()]), (5e5, RopeScaling::None));
    let scaled = RopeScaling::Linear { factor: 2.0 };
    assert_eq!(read(&[("rope_theta", json!(1e4)), ("rope_scaling", linear), parameters()]), (1e4, scaled));
    let llama3 = |more: serde_json::Value| {
        let mut llama3 =
            json!({ "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0 });
        llama3.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("rope_scaling", llama3)
    };
    let original = |scaling: RopeScaling| match scaling {
        RopeScaling::Llama3 { original_context, .. } => original_context,
        other => panic!("{other:?}"),
    };
    let key = "original_max_position_embeddings";
    assert_eq!(original(read(&[llama3(json!({ key: 8 }))]).1), 8);
    assert_eq!(original(read(&[llama3(json!({})), (key, json!(4))]).1), 4);
    assert_eq!(original(read(&[llama3(json!({}))]).1), 16);
    assert!(refused(&with(&[llama3(json!({ key: 8 })), (key, json!(4))])).contains("4, and 8 in rope_scaling"));
    let nested = json!({ "full_attention": { "rope_theta": 1e4 }, "sliding_attention": { "rope_theta": 1e6 } });
    assert!(refused(&with(&[("rope_parameters", nested)])).contains("rope_parameters of full_attention"));
    let partial = json!({ "rope_type": "default", "partial_rotary_factor": 0.5 });
    assert!(refused(&with(&[("rope_parameters", partial)])).contains("partial_rotary_factor 0.5"));
}

#[test]
fn a_window_as_long_as_the_context_is_none() {
    let mistral = |window: serde_json::Value| with(&[("model_type", json!("mistral")), ("sliding_window", window)]);
    assert_eq!(read(&mistral(json!(null))).unwrap(), ModelConfig::Llama(llama()));
    assert_eq!(read(&mistral(json!(16))).unwrap(), ModelConfig::Llama(llama()));
    assert_eq!(read(&mistral(json!(8))).unwrap(), ModelConfig::Llama(relatives()[0].clone()));
    let qwen2 =
        with(&[("model_type", json!("qwen2")), ("sliding_window", json!(8)), ("use_sliding_window", json!(false))]);
    assert!(read(&qwen2).is_ok());

    // A missing field is transformers' default.
    let without = |kind: &str, changes: &[(&str, serde_json::Value)]| {
        let mut json =
            with(&[&[("model_type", json!(kind)), ("max_position_embeddings", json!(32_768))], changes].concat());
        json.as_object_mut().unwrap().remove("sliding_window");
        json
    };
    let windows = |json: &serde_json::Value| {
        let ModelConfig::Llama(config) = read(json).unwrap() else { panic!("another architecture") };
        (config.window.map(|window| window.positions), config.attention)
    };
    assert_eq!(windows(&without("mistral", &[])), (Some(4096), vec![WINDOWED]));
    assert_eq!(windows(&without("mistral", &[("max_position_embeddings", json!(4096))])), (None, vec![]));
    assert!(read(&without("llama", &[])).is_ok());
    let used = ("use_sliding_window", json!(true));
    assert!(read(&without("qwen2", &[])).is_ok());
    // Layers from number 28 on have it; this model has one.
    assert!(read(&without("qwen2", std::slice::from_ref(&used))).is_ok());
    let first = ("max_window_layers", json!(0));
    assert_eq!(windows(&without("qwen2", &[used.clone(), first.clone()])), (Some(4096), vec![WINDOWED]));
    let types = |of: &str| ("layer_types", json!([of]));
    assert_eq!(windows(&without("qwen2", &[used, first, types("full_attention")])), (None, vec![]));
    let error = refused(&without("qwen3", &[types("sliding_attention")]));
    assert!(
        error.contains("layer_types sliding_attention; supported: full_attention, or a sliding_window that"),
        "{error}"
    );
    let error = refused(&without("qwen3", &[types("chunked_attention")]));
    assert!(error.contains("layer_types chunked_attention; supported: full_attention, sliding_attention"), "{error}");
    let error = refused(&without("qwen3", &[("layer_types", json!([]))]));
    assert!(error.contains("layer_types of 0 layers; supported: of 1"), "{error}");
}

#[test]
fn other_models_are_refused_by_name() {
    let refused_with = |key: &str, value: serde_json::Value| refused(&with(&[(key, value)]));
    assert!(
        refused_with("model_type", json!("gemma3"))
            .contains("unsupported model_type gemma3; supported: llama, mistral")
    );
    assert!(refused_with("hidden_act", json!("gelu")).contains("hidden_act \"gelu\"; supported: \"silu\""));
    assert!(refused_with("mlp_bias", json!(true)).contains("mlp_bias true"));
    assert!(refused_with("attention_bias", json!(true)).contains("attention_bias true"));
    assert!(refused_with("quantization_config", json!({ "quant_method": "gptq" })).contains("quantization_config"));
    for (key, value) in [
        ("attention_multiplier", json!(0.1)),
        ("residual_multiplier", json!(0.2)),
        ("embedding_multiplier", json!(12)),
        ("logits_scaling", json!(8)),
        ("logit_scale", json!(0.5)),
        ("final_logit_softcapping", json!(30.0)),
        ("attn_logit_softcapping", json!(50.0)),
        ("query_pre_attn_scalar", json!(256)),
        ("clip_qkv", json!(8.0)),
        ("partial_rotary_factor", json!(0.5)),
        ("use_qk_norm", json!(true)),
        ("num_local_experts", json!(8)),
        ("no_rope_layers", json!([1, 0])),
        ("is_causal", json!(false)),
        ("transformers_weights", json!("other.safetensors")),
        ("layer_types", json!(["sliding_attention"])),
    ] {
        let error = refused_with(key, value);
        assert!(error.contains(&format!("unsupported {key} ")), "{error}");
    }
    // Values that change nothing, written as others do.
    let neutral = [
        ("residual_multiplier", json!(1)),
        ("logit_scale", json!(1.0)),
        ("clip_qkv", json!(null)),
        ("num_experts", json!(0)),
    ];
    assert_eq!(read(&with(&neutral)).unwrap(), ModelConfig::Llama(llama()));
    let scaling = json!({ "type": "yarn", "factor": 4.0 });
    assert!(refused_with("rope_scaling", scaling).contains("rope_scaling yarn; supported: default, linear, llama3"));
    assert!(refused_with("rope_scaling", json!({ "type": "linear" })).contains("factor of rope_scaling is missing"));
    assert!(refused_with("hidden_size", json!("wide")).contains("is \"wide\", expected a whole number"));
    assert!(refused_with("hidden_size", json!(null)).contains("is missing"));
    assert!(refused(&json!([1, 2])).contains("not an object"));
    let mut rwkv7 = ModelConfig::Rwkv7(rwkv7()).to_json();
    rwkv7["attn"] = json!({ "layers": [1], "num_heads": 4 });
    assert!(refused(&rwkv7).contains("attn"));
}

#[test]
fn impossible_sizes_are_refused() {
    let refused = |config: LlamaConfig| ModelConfig::Llama(config).validate().expect_err("a refusal").to_string();
    assert!(refused(LlamaConfig { layers: 0, ..llama() }).contains("layers is 0, expected 1 or more"));
    assert!(
        refused(LlamaConfig { heads: 3, kv_heads: 2, ..llama() })
            .contains("kv_heads is 2, expected a divisor of heads, 3")
    );
    assert!(refused(LlamaConfig { head_dim: 3, ..llama() }).contains("head_dim is 3, expected an even size"));
    assert!(refused(LlamaConfig { rms_norm_eps: 0.0, ..llama() }).contains("rms_norm_eps"));
    assert!(refused(LlamaConfig { rope_theta: f64::NAN, ..llama() }).contains("rope_theta is NaN"));
    let huge = LlamaConfig { vocab_size: usize::MAX / 4, ..llama() };
    assert!(refused(huge).contains("vocab_size × hidden_size is 4611686018427387903 × 8"));
    let many = LlamaConfig { layers: 1 << 24, intermediate_size: 1 << 33, ..llama() };
    assert!(refused(many).contains("the number of weights is"));
    let scaling =
        RopeScaling::Llama3 { factor: 8.0, low_freq_factor: 4.0, high_freq_factor: 4.0, original_context: 8192 };
    assert!(refused(LlamaConfig { rope_scaling: scaling, ..llama() }).contains("less than high_freq_factor"));
    for (expected, config) in [
        ("rms_norm_eps is 1", LlamaConfig { rms_norm_eps: 1e300, ..llama() }),
        ("rms_norm_eps is 0", LlamaConfig { rms_norm_eps: 1e-60, ..llama() }),
        ("from 1.2e-38 to 3.4e38", LlamaConfig { rms_norm_eps: 1e-40, ..llama() }),
        ("rope_theta is 1", LlamaConfig { rope_theta: 1e60, ..llama() }),
        ("factor of rope_scaling is 1", LlamaConfig { rope_scaling: RopeScaling::Linear { factor: 1e300 }, ..llama() }),
        ("layers is 16777217, expected 16777216 at most", LlamaConfig { layers: (1 << 24) + 1, ..llama() }),
        (
            "vocab_size × hidden_size is 17179869184 × 8, expected 68719476736",
            LlamaConfig { vocab_size: 1 << 34, ..llama() },
        ),
        ("heads × head_dim × hidden_size is", LlamaConfig { heads: 1 << 40, ..llama() }),
        ("intermediate_size × hidden_size is", LlamaConfig { intermediate_size: 1 << 34, ..llama() }),
    ] {
        let error = refused(config);
        assert!(error.contains(expected), "{error}");
    }
    let refused = |config: Rwkv7Config| ModelConfig::Rwkv7(config).validate().expect_err("a refusal").to_string();
    for (field, config) in [
        ("vocab_size × hidden_size", Rwkv7Config { vocab_size: 1 << 31, ..rwkv7() }),
        ("decay_rank × hidden_size", Rwkv7Config { decay_rank: 1 << 40, ..rwkv7() }),
        ("gate_rank × hidden_size", Rwkv7Config { gate_rank: 1 << 40, ..rwkv7() }),
        ("norm_eps", Rwkv7Config { norm_eps: 1e300, ..rwkv7() }),
        ("head_dim × norm_eps", Rwkv7Config { norm_eps: 3e37, ..rwkv7() }),
    ] {
        let error = refused(config);
        assert!(error.contains(&format!("{field} is")), "{error}");
    }
    let rwkv7 = ModelConfig::Rwkv7(Rwkv7Config { head_dim: 60, ..rwkv7() });
    assert!(rwkv7.validate().expect_err("a refusal").to_string().contains("a divisor of hidden_size, 768"));
}

#[test]
fn rwkv7_is_read_from_flash_linear_attention() {
    let json = json!({
        "architectures": ["RWKV7ForCausalLM"], "model_type": "rwkv7", "vocab_size": 65536, "hidden_size": 768,
        "hidden_ratio": 4.0, "intermediate_size": null, "num_hidden_layers": 12, "head_dim": 64, "num_heads": null,
        "decay_low_rank_dim": 64, "a_low_rank_dim": 64, "v_low_rank_dim": 32, "gate_low_rank_dim": 128, "hidden_act": "sqrelu",
        "norm_first": true, "norm_bias": true, "norm_eps": 1e-5, "attn": null, "tie_word_embeddings": false,
        "value_dim": [768, 768], "fuse_norm": false,
    });
    assert_eq!(read(&json).unwrap(), ModelConfig::Rwkv7(rwkv7()));
    let mut other = json;
    other["num_heads"] = 6.into();
    assert!(refused(&other).contains("num_heads 6; supported: 12"));
}

/// As editors of Windows write them.
#[test]
fn a_byte_order_mark_is_passed_over() {
    let text = format!("\u{feff}{}", ModelConfig::Llama(llama()).to_json());
    let (_folder, path) = write(text.as_bytes(), "config.json");
    assert_eq!(ModelConfig::from_file(path).unwrap(), ModelConfig::Llama(llama()));
    let (_folder, path) = write(b"<html>404", "config.json");
    assert!(ModelConfig::from_file(path).expect_err("a refusal").to_string().contains("it begins with \"<html>404\""));
}

pub fn open(file: &crate::write_gguf::GgufFile) -> Result<LlamaConfig, LoadError> {
    let (_folder, path) = file.write();
    match ModelConfig::open(path)? {
        ModelConfig::Llama(config) => Ok(config),
        other => panic!("another architecture: {other:?}"),
    }
}

#[test]
fn gguf_metadata_says_the_same() {
    assert_eq!(open(&tiny("llama")).unwrap(), llama());
    assert_eq!(open(&tiny("qwen2")).unwrap(), llama());
    let mut file = tiny("qwen2");
    file.tensors.push(("blk.0.attn_q.bias".into(), vec![8], 0, f32s([0.0; 8])));
    file.tensors.push(("output.weight".into(), vec![8, 261], 0, f32s([0.0; 8 * 261])));
    file.set("qwen2.rope.scaling.type", Value::Text("linear"));
    file.set("qwen2.rope.scaling.factor", Value::F32(2.0));
    let rope_scaling = RopeScaling::Linear { factor: 2.0 };
    assert_eq!(open(&file).unwrap(), LlamaConfig { attention_bias: true, tied_head: false, rope_scaling, ..llama() });
}

#[test]
fn the_scaling_of_llama_3_is_recognized_by_its_divisors() {
    let scaling =
        RopeScaling::Llama3 { factor: 32.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_context: 8192 };
    let divisors = |head_dim: usize| f32s(scaling.divisors(head_dim, 5e5).into_iter().map(|divisor| divisor as f32));
    let mut file = tiny("llama");
    file.set("llama.embedding_length", Value::U32(128));
    file.set("llama.rope.freq_base", Value::F32(5e5));
    file.tensors.push(("rope_freqs.weight".into(), vec![32], 0, divisors(64)));
    let (_folder, path) = file.write();
    let ModelConfig::Llama(config) = ModelConfig::open(path).unwrap() else { panic!("another architecture") };
    assert_eq!((config.head_dim, config.rope_scaling), (64, scaling));

    let mut both = tiny("llama");
    (both.metadata, both.tensors) = (file.metadata.clone(), file.tensors.clone());
    both.set("llama.rope.scaling.factor", Value::F32(2.0));
    assert!(open(&both).expect_err("a refusal").to_string().contains("rope_freqs.weight with rope.scaling.factor 2"));

    file.tensors.last_mut().unwrap().3[4..8].copy_from_slice(&3.0f32.to_le_bytes());
    assert!(open(&file).expect_err("a refusal").to_string().contains("other factors than Llama 3"));
    *file.tensors.last_mut().unwrap() = ("rope_freqs.weight".into(), vec![16], 0, divisors(32));
    assert!(open(&file).is_err());
}

#[test]
fn relatives_in_gguf_are_refused() {
    let refused = |change: &dyn Fn(&mut crate::write_gguf::GgufFile)| {
        let mut file = tiny("llama");
        change(&mut file);
        open(&file).expect_err("a refusal").to_string()
    };
    assert!(
        refused(&|file| file.set("general.architecture", Value::Text("phi3")))
            .contains("architecture phi3; supported: llama")
    );
    assert!(refused(&|file| file.set("llama.expert_count", Value::U32(8))).contains("expert_count 8"));
    assert!(
        refused(&|file| file.set("llama.rope.dimension_count", Value::U32(2)))
            .contains("supported: 4, the size of a head")
    );
    assert!(refused(&|file| file.set("llama.rope.scaling.type", Value::Text("yarn"))).contains("yarn"));
    assert!(refused(&|file| file.set("llama.block_count", Value::Text("many"))).contains("block_count is a string"));
    assert!(
        refused(&|file| file.metadata.retain(|(key, _)| !key.ends_with("feed_forward_length")))
            .contains("has no llama.feed")
    );
    for (key, value) in [
        ("llama.attention.scale", Value::F32(0.5)),
        ("llama.logit_scale", Value::F32(8.0)),
        ("llama.residual_scale", Value::F32(0.2)),
        ("llama.final_logit_softcapping", Value::F32(30.0)),
        ("llama.rope.scaling.attn_factor", Value::F32(2.0)),
        ("llama.attention.causal", Value::Bool(false)),
    ] {
        assert!(refused(&|file| file.set(key, value.clone())).contains(key), "{key}");
    }
    for name in [
        "output.bias",
        "output_norm.bias",
        "blk.0.attn_k_norm.weight",
        "blk.0.attn_sub_norm.weight",
        "blk.1.attn_q_norm.weight",
        "blk.0.attn_output.bias",
        "blk.0.attn_q.scale",
        "blk.0.ffn_gate_inp.weight",
        "rope_factors_long.weight",
    ] {
        let error = refused(&|file| file.tensors.push((name.into(), vec![1], 0, f32s([1.0]))));
        assert!(error.contains(&format!("has tensor \"{name}\", which a model")), "{error}");
    }
    let error = refused(&|file| drop(file.tensors.remove(0)));
    assert!(error.contains("no tensor \"token_embd.weight\" among its 10"), "{error}");
    assert!(refused(&|file| file.set("split.count", Value::U32(3))).contains("llama-gguf-split"));
    assert!(
        refused(&|file| file.set("llama.attention.head_count", Value::I32s(vec![2, 3])))
            .contains("one size for all layers")
    );
}
