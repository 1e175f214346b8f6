//! Tiny models of every architecture against the logits of transformers, which `tests/golden/language_models.py` records.

use crate::fetched::or_skipped;
use crate::letters::tokenizer;
use crate::made::{host_logits, largest_difference, strategy, tensor_logits};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::EggrollConfig;
use eggroll_core::transformer::{MemberRow, Precision};
use eggroll_lm::host::Sequence;
use eggroll_lm::load::{
    AttentionWindow, GemmaConfig, LayerAttention, LlamaConfig, ModelConfig, RopeScaling, SavedDtype, Weights,
    save_model,
};
use eggroll_lm::{
    CausalModel, Decoder, HostLlama, Item, Items, Llama, SamplingConfig, generate, score, score_population,
};
use eggroll_train::EvolutionStrategyConfig;
use std::path::{Path, PathBuf};

/// Largest difference of a logit; logits have a standard deviation of about 1. Both sides compute in float32.
const TOLERANCE: f32 = 5e-5;

const NAMES: [&str; 7] = ["llama3", "mistral", "qwen2", "qwen3", "smollm3", "gemma2", "gemma3"];

/// Folders of models that are there: packages leave them out.
fn folders() -> impl Iterator<Item = (&'static str, PathBuf)> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/language_models");
    NAMES.into_iter().filter_map(move |name| {
        let advice = "tests/golden/language_models.py makes it";
        or_skipped(all.join(name).join("expected.safetensors"), advice).map(|_| (name, all.join(name)))
    })
}

fn config(folder: &Path) -> LlamaConfig {
    match ModelConfig::from_file(folder.join("config.json")).expect("a configuration") {
        ModelConfig::Llama(config) => config,
        other => panic!("another architecture: {other:?}"),
    }
}

fn load(folder: &Path, config: LlamaConfig) -> Llama {
    let weights = Weights::open(folder).expect("weights");
    Llama::load(&ModelConfig::Llama(config), &weights, &Device::flex()).expect("a model")
}

/// Tokens, and logits `[tokens, vocabulary]`.
fn expected(folder: &Path) -> Vec<(Vec<u32>, Vec<f32>)> {
    let bytes = std::fs::read(folder.join("expected.safetensors")).expect("a file");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("tensors");
    let sequence = |index: usize| {
        let data = |name: &str| tensors.tensor(&format!("{name}.{index}")).expect("a tensor").data().to_vec();
        let tokens = data("tokens").chunks_exact(8).map(|word| word[0].into()).collect();
        let logits = data("logits").chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect();
        (tokens, logits)
    };
    (0..2).map(sequence).collect()
}

/// Logits of pieces of a sequence, one after the other, through what is kept of the tokens before.
fn logits_in_pieces(host: &HostLlama, tokens: &[u32], piece: usize) -> Vec<f32> {
    let member = MemberRow { slot: 0, minus: false };
    let (mut state, mut buffers) = (host.state(tokens.len()), host.buffers());
    let mut all = Vec::new();
    for tokens in tokens.chunks(piece) {
        let (mut hidden, mut logits) = (Vec::new(), Vec::new());
        let sequence = Sequence { member, tokens, wanted: 0..tokens.len(), state: &mut state };
        host.forward(None, &mut [sequence], &mut buffers, &mut hidden);
        host.logits(None, &vec![member; tokens.len()], &hidden, &mut buffers, &mut logits);
        all.extend(logits);
    }
    all
}

#[test]
fn logits_are_those_of_transformers() {
    for (name, folder) in folders() {
        let model = load(&folder, config(&folder));
        let host = |precision| HostLlama::new(&model, precision);
        for (tokens, expected) in expected(&folder) {
            let near = |found: Vec<f32>, tolerance: f32, what: &str| {
                let difference = largest_difference(&found, &expected);
                assert!(difference < tolerance, "{name}, {what}: {difference}");
            };
            near(tensor_logits(&model, &tokens), TOLERANCE, "tensors");
            near(host_logits(&host(Precision::F32), &tokens), TOLERANCE, "the host");
            for piece in [1, 7] {
                near(logits_in_pieces(&host(Precision::F32), &tokens, piece), TOLERANCE, "token by token");
            }
            for (precision, most) in [(Precision::Bf16, 0.03), (Precision::Int8, 0.12)] {
                let found = host_logits(&host(precision), &tokens);
                let squares: f32 = found.iter().zip(&expected).map(|(a, b)| (a - b).powi(2)).sum();
                let difference = (squares / found.len() as f32).sqrt();
                assert!(difference < most, "{name}, {precision}: {difference}");
            }
            let mut other = tokens.clone();
            // The last but one: windows are short.
            let changed = other.len() - 2;
            other[changed] = (other[changed] + 1) % 96;
            let last = expected.len() - 96..;
            let found = tensor_logits(&model, &other);
            assert!(largest_difference(&found[last.clone()], &expected[last]) > 10.0 * TOLERANCE, "{name}: a canary");
        }
    }
}

/// The same models as GGUF files, for which llama.cpp has given the same logits when they were made.
#[test]
fn gguf_files_are_the_same_models() {
    for (name, folder) in folders() {
        let file = folder.with_extension("gguf");
        if !file.exists() {
            assert!(["llama3", "mistral", "qwen2"].contains(&name), "{name} has no file");
            continue;
        }
        let ModelConfig::Llama(read) = ModelConfig::open(&file).expect("a configuration") else {
            panic!("another architecture");
        };
        // The format does not tell the scale of queries: the file's queries are scaled themselves.
        let expected_config = config(&folder);
        let told = if name == "gemma2" {
            gemma(&expected_config, |gemma| gemma.query_pre_attn_scalar = 12)
        } else {
            expected_config
        };
        assert_eq!(read, told, "{name}");
        let model = load(&file, read);
        let host = HostLlama::new(&model, Precision::F32);
        for (tokens, expected) in expected(&folder) {
            for found in [tensor_logits(&model, &tokens), host_logits(&host, &tokens)] {
                let difference = largest_difference(&found, &expected);
                assert!(difference < TOLERANCE, "{name}: {difference}");
            }
        }
    }
}

fn gemma(config: &LlamaConfig, change: impl Fn(&mut GemmaConfig)) -> LlamaConfig {
    let mut gemma = config.gemma.expect("a Gemma");
    change(&mut gemma);
    LlamaConfig { gemma: Some(gemma), ..config.clone() }
}

fn windowed(config: &LlamaConfig, positions: usize) -> LlamaConfig {
    let window = config.window.map(|window| AttentionWindow { positions, ..window });
    LlamaConfig { window, ..config.clone() }
}

/// The model with a setting changed that sets its architecture apart.
fn changed(name: &str, config: &LlamaConfig) -> Vec<(&'static str, LlamaConfig)> {
    let layers = |layer: fn(usize) -> LayerAttention| (0..config.layers).map(layer).collect();
    let windows = |name| match config.window {
        Some(AttentionWindow { positions, .. }) => {
            vec![(name, windowed(config, positions - 1)), (name, windowed(config, positions + 1))]
        }
        None => Vec::new(),
    };
    let mut all = windows("window");
    match name {
        "llama3" => all.push(("scaling", LlamaConfig { rope_scaling: RopeScaling::None, ..config.clone() })),
        "qwen2" => {
            let attention = layers(|_| LayerAttention { windowed: true, rotary: true });
            all.push(("layers with the window", LlamaConfig { attention, ..config.clone() }));
        }
        "smollm3" => {
            all.push(("no layer without positions", LlamaConfig { attention: Vec::new(), ..config.clone() }));
            let attention = layers(|layer| LayerAttention { windowed: false, rotary: layer != 0 });
            all.push(("another layer without positions", LlamaConfig { attention, ..config.clone() }));
        }
        "gemma2" => {
            all.push(("cap of scores", gemma(config, |gemma| gemma.attention_cap = None)));
            all.push(("cap of logits", gemma(config, |gemma| gemma.logit_cap = None)));
            all.push(("scale of queries", gemma(config, |gemma| gemma.query_pre_attn_scalar = 12)));
            let attention = layers(|layer| LayerAttention { windowed: layer == 1, rotary: true });
            all.push(("layers with the window", LlamaConfig { attention, ..config.clone() }));
        }
        "gemma3" => {
            let window = config.window.map(|window| AttentionWindow { rope_theta: Some(1000.0), ..window });
            all.push(("base of local layers", LlamaConfig { window, ..config.clone() }));
            all.push(("base of global layers", LlamaConfig { rope_theta: 50.0, ..config.clone() }));
            all.push(("scaling", LlamaConfig { rope_scaling: RopeScaling::None, ..config.clone() }));
            let attention = layers(|layer| LayerAttention { windowed: layer != 1, rotary: true });
            all.push(("layers with the window", LlamaConfig { attention, ..config.clone() }));
        }
        _ => {}
    }
    all
}

/// Each setting counts, in tensors and on the host.
#[test]
fn a_changed_setting_is_found() {
    for (name, folder) in folders() {
        let (tokens, expected) = expected(&folder).remove(0);
        let differs = |model: &Llama, what: &str| {
            let host = HostLlama::new(model, Precision::F32);
            for found in [tensor_logits(model, &tokens), host_logits(&host, &tokens)] {
                let difference = largest_difference(&found, &expected);
                assert!(difference > 100.0 * TOLERANCE, "{name}, {what}: {difference}");
            }
        };
        let changes = changed(name, &config(&folder));
        assert!(!changes.is_empty() || name == "qwen3");
        changes.into_iter().for_each(|(what, config)| differs(&load(&folder, config), what));
        let plain = load(&folder, config(&folder));
        if plain.config().qk_norm {
            for part in ["queries", "keys"] {
                let mut model = plain.clone();
                let attention = &mut model.layers[0].self_attn;
                *if part == "queries" { &mut attention.q_norm } else { &mut attention.k_norm } = None;
                let found = largest_difference(&tensor_logits(&model, &tokens), &expected);
                assert!(found > 100.0 * TOLERANCE, "{name}, norm of {part}: {found}");
            }
        }
    }
}

/// Texts beyond the window, and members of a population against models of their own.
#[test]
fn texts_and_populations() {
    for (name, folder) in folders() {
        let model = load(&folder, config(&folder));
        let host = HostLlama::new(&model, Precision::F32);
        let (tokens, _) = expected(&folder).remove(0);
        let prompt = Item::prompt_only(&tokens[..5]);
        let found = generate(&host, &[prompt], &SamplingConfig::greedy(20)).expect("a text").remove(0);
        let mut all = tokens[..5].to_vec();
        for _ in 0..20 {
            let logits = tensor_logits(&model, &all);
            let last = &logits[logits.len() - 96..];
            all.push((0..96).max_by(|a, b| last[*a].total_cmp(&last[*b])).expect("a token") as u32);
        }
        assert_eq!(found.tokens, all[5..], "{name}");

        let population = strategy(&model, 4).ask();
        let items = [Item::new(&tokens[..20], &tokens[20..25])];
        let members = score_population(&host, &population, Items::Shared(&items)).expect("scores");
        for (member, found) in members.iter().enumerate() {
            let own = HostLlama::new(&population.member(&model, member), Precision::F32);
            let own = score(&own, &items).expect("scores");
            let away = (found[0].log_probability() - own[0].log_probability()).abs();
            assert!(away < 2e-4, "{name}, member {member}: {away}");
            let other = (found[0].log_probability() - members[member ^ 1][0].log_probability()).abs();
            assert!(other > 1e-3, "{name}, a canary: {other}");
        }
    }
}

/// Modules inside `evaluate`, all parameters with noise: gains of heads and embeddings too.
#[test]
fn modules_run_all_members() {
    let noiser = EggrollConfig::new().with_rank(2);
    let strategy = EvolutionStrategyConfig::new(noiser, SgdConfig::new()).with_population_size(4).with_sigma(0.02);
    for (name, folder) in folders() {
        let model = load(&folder, config(&folder));
        let population = strategy.clone().try_init(&model).expect("a strategy").ask();
        let (tokens, _) = expected(&folder).remove(0);
        let ids: Vec<i32> = tokens[..20].iter().map(|token| *token as i32).collect();
        let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [2, 10]), &Device::flex());
        // A number that no logit's change leaves as it is.
        let number = |logits: Tensor<3>| {
            let [rows, length, vocabulary] = logits.dims();
            let n = length * vocabulary;
            let weights = Tensor::<1, Int>::arange(0..n as i64, &Device::flex()).float().sin();
            (logits.reshape([rows, n]) * weights.unsqueeze()).sum_dim(1)
        };
        let found = population.evaluate(|members| members.mean(number(model.forward(members.repeat(ids.clone())))));
        let of = |model: &Llama| -> f32 { number(model.forward(ids.clone())).mean().into_scalar() };
        for (member, found) in found.values().iter().enumerate() {
            let (own, plain) = (of(&population.member(&model, member)), of(&model));
            assert!((found - own).abs() < 2e-3, "{name}, member {member}: {found} {own}");
            assert!((found - plain).abs() > 0.05, "{name}, a canary: member {member} is the model without noise");
        }
    }
}

/// With `EGGROLL_SAVES_ARCHITECTURES` the folders stay there, for `tests/golden/language_models.py --check`.
#[test]
fn saved_models_are_the_same() {
    let kept = std::env::var_os("EGGROLL_SAVES_ARCHITECTURES").map(PathBuf::from);
    let letters = tempfile::tempdir().expect("a folder");
    let tokenizer = tokenizer(letters.path(), false);
    for (name, folder) in folders() {
        let model = load(&folder, config(&folder));
        let temporary = tempfile::tempdir().expect("a folder");
        let saved = kept.as_deref().unwrap_or(temporary.path()).join(name);
        save_model(&saved, &model.model_config(), &tokenizer, None, model.tensors(), SavedDtype::F32).expect("saved");
        assert_eq!(config(&saved), *model.config(), "{name}");
        let again = load(&saved, config(&saved));
        let (tokens, _) = expected(&folder).remove(0);
        assert_eq!(tensor_logits(&again, &tokens), tensor_logits(&model, &tokens), "{name}");
    }
}
