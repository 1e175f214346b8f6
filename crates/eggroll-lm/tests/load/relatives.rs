//! Configurations of Llama's relatives: what sets them apart, in both formats.

use crate::config::{llama, open, read};
use crate::write_gguf::{Value, tiny};
use eggroll_lm::load::{AttentionWindow, GemmaConfig, LayerAttention, LlamaConfig, ModelConfig, RopeScaling};
use serde_json::json;

pub const WINDOWED: LayerAttention = LayerAttention { windowed: true, rotary: true };
const NOPE: LayerAttention = LayerAttention { windowed: false, rotary: false };

/// One of each architecture that is not Llama's.
pub fn relatives() -> [LlamaConfig; 7] {
    let window = |rope_theta| Some(AttentionWindow { positions: 8, rope_theta });
    let two = LlamaConfig { layers: 2, ..llama() };
    let gemma = GemmaConfig { query_pre_attn_scalar: 7, attention_cap: Some(50.0), logit_cap: None };
    [
        LlamaConfig { window: window(None), attention: vec![WINDOWED], ..llama() },
        LlamaConfig {
            window: window(None),
            attention: vec![LayerAttention::FULL, WINDOWED],
            attention_bias: true,
            ..two.clone()
        },
        LlamaConfig { qk_norm: true, ..llama() },
        LlamaConfig { attention: vec![LayerAttention::FULL, NOPE], ..two.clone() },
        LlamaConfig {
            window: window(None),
            attention: vec![LayerAttention { windowed: true, rotary: false }, LayerAttention::FULL],
            ..two.clone()
        },
        LlamaConfig {
            window: window(None),
            attention: vec![WINDOWED, LayerAttention::FULL],
            gemma: Some(gemma),
            ..two.clone()
        },
        LlamaConfig {
            window: window(Some(50.0)),
            attention: vec![LayerAttention::FULL, WINDOWED],
            gemma: Some(GemmaConfig { attention_cap: None, logit_cap: Some(3.5), ..gemma }),
            qk_norm: true,
            rope_scaling: RopeScaling::Linear { factor: 4.0 },
            ..two
        },
    ]
}

/// A configuration with few fields, as transformers completes it.
#[test]
fn layers_have_the_attention_that_transformers_gives_them() {
    let of = |kind: &str, changes: &[(&str, serde_json::Value)]| {
        let mut json = json!({
            "model_type": kind, "vocab_size": 100, "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 7,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 9999,
        });
        changes.iter().for_each(|(key, value)| json[*key] = value.clone());
        let ModelConfig::Llama(config) = read(&json).unwrap() else { panic!("another architecture") };
        config
    };
    let letters = |config: &LlamaConfig| -> String {
        let letter = |layer: &LayerAttention| match (layer.windowed, layer.rotary) {
            (true, true) => 'w',
            (false, true) => 'f',
            (true, false) => 'x',
            (false, false) => 'n',
        };
        config.attention.iter().map(letter).collect()
    };
    assert_eq!(letters(&of("smollm3", &[])), "fffnfff");
    assert_eq!(letters(&of("smollm3", &[("no_rope_layer_interval", json!(3))])), "ffnffnf");
    assert_eq!(letters(&of("smollm3", &[("no_rope_layer_interval", json!(8))])), "");
    assert_eq!(letters(&of("smollm3", &[("no_rope_layers", json!([1, 0, 1, 1, 1, 1, 0, 0]))])), "fnffffn");
    let window = [("use_sliding_window", json!(true)), ("sliding_window", json!(5))];
    assert_eq!(letters(&of("smollm3", &window)), "fffxfff");
    assert_eq!(letters(&of("smollm3", &window[1..])), "fffnfff");
    assert_eq!(letters(&of("qwen3", &[window[0].clone(), ("max_window_layers", json!(4))])), "ffffwww");
    assert_eq!(letters(&of("gemma2", &[])), "wfwfwfw");
    assert_eq!(letters(&of("gemma3_text", &[])), "wwwwwfw");
    assert_eq!(letters(&of("gemma3_text", &[("sliding_window_pattern", json!(3))])), "wwfwwfw");

    let smollm3 = of("smollm3", &[]);
    assert_eq!((smollm3.rope_theta, smollm3.tied_head, smollm3.head_dim, smollm3.window), (2e6, true, 16, None));
    assert_eq!(of("qwen3", &[]).head_dim, 128);
    let gemma2 = of("gemma2", &[]);
    let caps = GemmaConfig { query_pre_attn_scalar: 256, attention_cap: Some(50.0), logit_cap: Some(30.0) };
    assert_eq!((gemma2.gemma, gemma2.qk_norm, gemma2.head_dim, gemma2.tied_head), (Some(caps), false, 256, true));
    let no_caps = [("attn_logit_softcapping", json!(null)), ("final_logit_softcapping", json!(null))];
    let no_caps = of("gemma2", &no_caps).gemma.unwrap();
    assert_eq!((no_caps.attention_cap, no_caps.logit_cap), (None, None));
    let gemma3 = of("gemma3_text", &[]);
    let window = Some(AttentionWindow { positions: 4096, rope_theta: Some(10_000.0) });
    assert_eq!((gemma3.rope_theta, gemma3.rope_scaling, gemma3.window), (1e6, RopeScaling::None, window));
    assert_eq!(gemma3.gemma, Some(GemmaConfig { attention_cap: None, logit_cap: None, ..caps }));
    // Of older files, and of newer ones.
    let linear = json!({ "rope_type": "linear", "factor": 8.0 });
    let older = [("rope_theta", json!(5.0)), ("rope_local_base_freq", json!(3.0)), ("rope_scaling", linear)];
    let newer = json!({
        "full_attention": { "rope_type": "linear", "factor": 8.0, "rope_theta": 5.0 },
        "sliding_attention": { "rope_type": "default", "rope_theta": 3.0 },
    });
    let (older, newer) = (of("gemma3_text", &older), of("gemma3_text", &[("rope_parameters", newer)]));
    assert_eq!(older, newer);
    assert_eq!((newer.rope_theta, newer.rope_scaling), (5.0, RopeScaling::Linear { factor: 8.0 }));
    assert_eq!(newer.window.unwrap().rope_theta, Some(3.0));
}

#[test]
fn what_no_architecture_has_together_is_refused() {
    let refused = |config: LlamaConfig| ModelConfig::Llama(config).validate().expect_err("a refusal").to_string();
    let [_, qwen2, qwen3, smollm3, _, gemma2, gemma3] = relatives();
    assert!(refused(LlamaConfig { qk_norm: true, ..qwen2.clone() }).contains("attention_bias is true, expected false"));
    assert!(
        refused(LlamaConfig { qk_norm: true, ..smollm3.clone() }).contains("rotary is false, expected true in all")
    );
    assert!(
        refused(LlamaConfig { layers: 3, ..smollm3 }).contains("attention is of 2 layers, expected of 3, or of none")
    );
    assert!(refused(LlamaConfig { window: None, ..qwen2.clone() }).contains("window is none, expected the window of"));
    assert!(
        refused(LlamaConfig { window: gemma3.window, ..qwen2 }).contains("rope_theta of window is 50, expected none")
    );
    assert!(
        refused(LlamaConfig { window: gemma2.window, ..gemma3.clone() }).contains("window is none, expected a number")
    );
    let window = |positions, theta| Some(AttentionWindow { positions, rope_theta: Some(theta) });
    assert!(refused(LlamaConfig { window: window(0, 50.0), ..gemma3.clone() }).contains("positions of window is 0"));
    assert!(refused(LlamaConfig { window: window(8, -1.0), ..gemma3.clone() }).contains("rope_theta of window is -1"));
    let gemma = |change: fn(&mut GemmaConfig)| {
        let mut gemma = gemma2.gemma.unwrap();
        change(&mut gemma);
        refused(LlamaConfig { gemma: Some(gemma), ..gemma2.clone() })
    };
    assert!(gemma(|gemma| gemma.query_pre_attn_scalar = 0).contains("query_pre_attn_scalar is 0"));
    assert!(gemma(|gemma| gemma.attention_cap = Some(0.0)).contains("attn_logit_softcapping is 0"));
    assert!(gemma(|gemma| gemma.logit_cap = Some(f64::NAN)).contains("final_logit_softcapping is NaN"));
    assert!(ModelConfig::Llama(qwen3).validate().is_ok());
}

/// What llama.cpp knows without the file, and what it reads.
#[test]
fn gguf_files_of_relatives_say_less() {
    let file = |architecture: &'static str, settings: &[(&str, Value)]| {
        let mut file = tiny(architecture);
        settings.iter().for_each(|(key, value)| file.set(&format!("{architecture}.{key}"), value.clone()));
        open(&file)
    };
    let refused =
        |architecture, settings: &[(&str, Value)]| file(architecture, settings).expect_err("a refusal").to_string();
    assert_eq!(file("qwen3", &[]).unwrap(), LlamaConfig { qk_norm: true, ..llama() });
    assert_eq!(file("smollm3", &[]).unwrap(), llama());
    let four = [("block_count", Value::U32(5))];
    let attention = vec![LayerAttention::FULL, LayerAttention::FULL, LayerAttention::FULL, NOPE, LayerAttention::FULL];
    assert_eq!(file("smollm3", &four).unwrap().attention, attention);

    let window = ("attention.sliding_window", Value::U32(8));
    let caps = [("attn_logit_softcapping", Value::F32(50.0)), ("final_logit_softcapping", Value::F32(30.0))];
    assert!(
        refused("qwen3", std::slice::from_ref(&window)).contains("qwen3.attention.sliding_window 8; supported: none")
    );
    assert!(refused("gemma2", &[]).contains("it has no gemma2.attention.sliding_window"));
    assert!(refused("gemma2", std::slice::from_ref(&window)).contains("it has no gemma2.attn_logit_softcapping"));
    let gemma2 = [std::slice::from_ref(&window), &caps[..]].concat();
    let gemma = GemmaConfig { query_pre_attn_scalar: 4, attention_cap: Some(50.0), logit_cap: Some(30.0) };
    let expected = LlamaConfig {
        window: Some(AttentionWindow { positions: 8, rope_theta: None }),
        attention: vec![WINDOWED],
        gemma: Some(gemma),
        ..llama()
    };
    assert_eq!(file("gemma2", &gemma2).unwrap(), expected);
    let local = ("rope.freq_base_swa", Value::F32(3.0));
    assert!(
        refused("gemma2", &[&gemma2[..], std::slice::from_ref(&local)].concat())
            .contains("gemma2.rope.freq_base_swa 3")
    );
    let none = ("attention.sliding_window_pattern", Value::U32(0));
    assert!(refused("gemma2", &[&gemma2[..], &[none]].concat()).contains("sliding_window_pattern is 0"));
    // The largest ones have another scale, by the width of the model.
    let layers = |count| ("block_count", Value::U32(count));
    let wide = [("attention.key_length", Value::U32(6)), layers(46)];
    let scalar = |architecture, settings: &[(&str, Value)]| {
        file(architecture, settings).unwrap().gemma.unwrap().query_pre_attn_scalar
    };
    assert_eq!(scalar("gemma2", &[&gemma2[..], &wide].concat()), 4);
    assert_eq!(scalar("gemma2", &[&gemma2[..], &wide[..1]].concat()), 6);
    let gemma3 = file("gemma3", &[window.clone(), layers(7)]).unwrap();
    assert_eq!(gemma3.window, Some(AttentionWindow { positions: 8, rope_theta: Some(10_000.0) }));
    let full: Vec<usize> = (0..7).filter(|layer| !gemma3.attention_of(*layer).windowed).collect();
    assert_eq!((full, gemma3.qk_norm), (vec![5], true));
    assert_eq!(gemma3.gemma, Some(GemmaConfig { attention_cap: None, logit_cap: None, ..gemma }));
    assert_eq!(file("gemma3", &[window, local]).unwrap().window.unwrap().rope_theta, Some(3.0));
}
