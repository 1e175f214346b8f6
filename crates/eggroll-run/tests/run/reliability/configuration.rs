//! Configurations as text: damaged, or with numbers that cannot be, they are refused with the value.

use crate::reliability::support::*;
use burn::lr_scheduler::LrSchedulerConfig;
use burn::optim::{AdamConfig, AdamWConfig, MuonConfig};
use eggroll_core::{
    BaselineSubtractionConfig, EggrollConfig, NoiseSourceConfig, NoiserConfig, ParameterKind, QEggrollConfig, Role,
    check_finite,
};
use eggroll_train::*;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

/// More than a small model takes, less than a machine has.
const LIMIT: u64 = 64 << 20;

/// Texts that are read, of every noiser and optimizer.
fn texts() -> Vec<String> {
    let floats = noisers(ParameterKind::Float).into_iter().flat_map(|noiser| {
        optimizers(ParameterKind::Float).into_iter().map(move |optimizer| {
            config(noiser.clone(), optimizer)
                .with_noise_source(NoiseSourceConfig::Table { len: 1 << 12 })
                .with_shaping(FitnessShaping::GroupZScore { size: 4 })
                .with_roles([("*bias", Role::Dense), ("*", Role::LowRank { rank: 2 })])
                .with_frozen(["second.bias"])
                .with_chunk_size(4)
                .with_memory_limit(1 << 30)
                .with_noise_scale(NoiseScale::RelativeToSpread)
                .with_scales([("*bias", 0.5), ("first.*", 2.0)])
                .with_anchor_decay(0.5)
                .with_master_weights(true)
        })
    });
    let text = |config| serde_json::to_string(&config).expect("writes");
    floats.chain([integer_config()]).map(text).collect()
}

/// Uses a configuration as far as it goes: a generation if the population is small.
fn run<T: LearningModel>(mut config: EvolutionStrategyConfig) {
    config.memory_limit = Some(config.memory_limit.map_or(LIMIT, |limit| limit.min(LIMIT)));
    let mut model = T::start();
    let Ok(mut strategy) = config.try_init(&model) else {
        return;
    };
    if config.population_size <= 64 {
        let scores: Vec<f32> = (0..config.population_size).map(|member| (member as f32).cos()).collect();
        let population = strategy.ask();
        drop(strategy.tell(&mut model, population, scores.into()));
        if let Err(error) = check_finite(&model) {
            let config = serde_json::to_string(strategy.config()).expect("writes");
            panic!("what is used keeps parameters finite: {error}, of {config}");
        }
    }
}

fn read(text: &[u8]) -> bool {
    let config = serde_json::from_slice::<EvolutionStrategyConfig>(text);
    let read = config.is_ok();
    if let Ok(config) = config {
        match config.noiser {
            NoiserConfig::QEggroll(_) => run::<IntegerNet>(config),
            _ => run::<Net>(config),
        }
    }
    drop(serde_json::from_slice::<NoiserConfig>(text));
    drop(serde_json::from_slice::<OptimizerConfig>(text));
    read
}

#[test]
fn damaged_text_does_not_panic() {
    let texts = texts();
    assert!(texts.iter().all(|text| read(text.as_bytes())), "canary: the texts are read");
    check_loader(
        "tests/corpus/configuration.txt",
        2000,
        &(any::<Index>(), proptest::collection::vec(damage(), 1..4)),
        |(text, damages)| {
            let mut text = texts[text.index(texts.len())].clone().into_bytes();
            damages.iter().for_each(|damage| damage.apply(&mut text));
            read(&text);
            Ok(())
        },
    );
}

/// All places of a JSON value.
fn places(value: &Value, place: String, all: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, value)| (i.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        places(child, format!("{place}/{name}"), all);
    }
    all.push(place);
}

/// Found by the test below: a noiser without noise needs no table.
#[test]
fn an_empty_table_of_no_noise_is_one() {
    let text = r#"{ "noiser": { "name": "no_op" }, "optimizer": { "name": "sgd" }, "noise_source": { "table": { "len": 0 } } }"#;
    assert!(read(text.as_bytes()), "read and asked");
}

#[test]
fn values_that_cannot_be_do_not_panic() {
    let texts = texts();
    let values = [
        json!(0),
        json!(-1),
        json!(1),
        json!(3),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(u64::from(u32::MAX) + 2),
        json!(1e308),
        json!(-1e-308),
        json!(1e-320),
        json!(0.5),
        json!(null),
        json!(true),
        json!("?"),
        json!([]),
        json!({}),
        json!({ "name": "sgd" }),
    ];
    let inputs = (any::<Index>(), proptest::collection::vec((any::<Index>(), any::<Index>()), 1..3));
    check_loader("tests/corpus/configuration.txt", 3000, &inputs, |(text, changes)| {
        let mut json: Value = serde_json::from_str(&texts[text.index(texts.len())]).expect("reads");
        for (place, value) in changes {
            let mut all = Vec::new();
            places(&json, String::new(), &mut all);
            *json.pointer_mut(&all[place.index(all.len())]).expect("a place") =
                values[value.index(values.len())].clone();
        }
        read(json.to_string().as_bytes());
        Ok(())
    });
}

#[test]
fn errors_name_the_value() {
    let noiser = EggrollConfig::new();
    let given = config(noiser, AdamConfig::new()).with_noise_scale(NoiseScale::RelativeToSpread).with_anchor_decay(0.5);
    let given = given.with_scales([("*bias", 0.5)]).with_master_weights(true);
    let whole = serde_json::to_value(given).expect("writes");
    let message = |place: &str, value: Value| {
        let mut json = whole.clone();
        *json.pointer_mut(place).expect("a place") = value;
        match serde_json::from_value::<EvolutionStrategyConfig>(json) {
            Err(error) => error.to_string(),
            Ok(config) => config.try_init(&Net::start()).err().expect("refused").to_string(),
        }
    };
    for (place, value, parts) in [
        ("/population_size", json!(7), vec!["even", "7"]),
        ("/sigma", json!({ "constant": -0.5 }), vec!["sigma", "-0.5"]),
        ("/sigma", json!({ "linear": 1 }), vec!["linear", "constant", "exponential", "cosine"]),
        ("/noiser/rank", json!(u64::MAX), vec!["first.weight", "[4, 6]", "18446744073709551615"]),
        ("/noiser/name", json!("adam"), vec!["adam", "eggroll", "open_es", "q_eggroll"]),
        ("/optimizer/name", json!("sdg"), vec!["sdg", "sgd", "adam", "adam_w"]),
        ("/shaping", json!({ "group_z_score": { "size": 8 } }), vec!["groups of 8", "12"]),
        ("/shaping", json!({ "top_pairs": { "pairs": 7 } }), vec!["top_pairs", "6 pairs", "12", "not 7"]),
        ("/noise_source", json!({ "table": { "len": 3 } }), vec!["3 elements", "first.weight"]),
        ("/noise_source", json!({ "table": { "len": 1u64 << 40 } }), vec!["1099511627776", "17179869184"]),
        ("/scales/0/1", json!(0), vec!["*bias", "0.0", "Freeze"]),
        ("/anchor_decay", json!(-0.5), vec!["anchor_decay", "-0.5"]),
    ] {
        let message = message(place, value);
        assert!(parts.iter().all(|part| message.contains(part)), "{place}: {message}");
    }
    let unknown = serde_json::to_string(&whole).expect("writes").replace("\"seed\"", "\"sead\"");
    let error = serde_json::from_str::<EvolutionStrategyConfig>(&unknown).expect_err("refused").to_string();
    assert!(error.contains("sead") && error.contains("seed"), "{error}");
    // What JSON cannot say.
    for rate in [f64::NAN, f64::INFINITY, -0.1] {
        let config = config(QEggrollConfig::new(), AdamConfig::new());
        let error = config.with_learning_rate(LrSchedulerConfig::Constant(rate)).try_init(&Net::start());
        assert_eq!(
            error.err().expect("refused").to_string(),
            format!("the learning rate must be finite and not negative, not {rate}")
        );
    }
}

fn text(config: &impl serde::Serialize) -> Value {
    serde_json::to_value(config).expect("writes")
}

/// What a file leaves out is what the builder sets, also where that depends on the noiser; what it says counts.
#[test]
fn what_is_left_out_is_the_default() {
    for noiser in noisers(ParameterKind::Float).into_iter().chain(noisers(ParameterKind::Integer)) {
        for name in OptimizerConfig::NAMES {
            let optimizer: OptimizerConfig = name.parse().expect("registered");
            let whole = text(&EvolutionStrategyConfig::new(noiser.clone(), optimizer));
            let short = json!({ "noiser": noiser, "optimizer": { "name": name } });
            assert_eq!(text(&serde_json::from_value::<EvolutionStrategyConfig>(short).expect("reads")), whole);
        }
    }
    // Every field alone, and one that says that there is none.
    let other = config(BaselineSubtractionConfig::new(6), AdamConfig::new()).with_clip_norm(None).with_chunk_size(4);
    let whole = text(&other.with_noise_scale(NoiseScale::RelativeToSpread).with_scales([("*", 0.5)]).with_seed(9));
    for (name, value) in whole.as_object().expect("an object") {
        let mut short = json!({ "noiser": whole["noiser"], "optimizer": whole["optimizer"] });
        short[name] = value.clone();
        let read = text(&serde_json::from_value::<EvolutionStrategyConfig>(short).expect("reads"));
        assert_eq!(read[name], *value, "{name}");
    }
    for needed in ["noiser", "optimizer"] {
        let mut without = whole.clone();
        without.as_object_mut().expect("an object").remove(needed);
        let error = serde_json::from_value::<EvolutionStrategyConfig>(without).expect_err("refused").to_string();
        assert_eq!(error, format!("missing field `{needed}`"));
    }
}

#[test]
fn optimizers_as_text_have_defaults_and_no_unknown_fields() {
    let read = |text: &str| serde_json::from_str::<OptimizerConfig>(text);
    let decayed = OptimizerConfig::from(AdamWConfig::new().with_epsilon(1e-8).with_weight_decay(0.25));
    assert_eq!(text(&read(r#"{ "weight_decay": 0.25, "name": "adam_w" }"#).expect("reads")), text(&decayed));
    let refused = |text: &str| read(text).expect_err("refused").to_string();
    let unknown = refused(r#"{ "name": "adam", "beta_3": 0.9 }"#);
    assert!(unknown.contains("`beta_3`") && unknown.contains("`beta_1`"), "{unknown}");
    assert_eq!(refused("{}"), "missing field `name`");
    assert!(refused(r#"{ "name": 3 }"#).contains("missing field `name`"));
    for name in OptimizerConfig::NAMES {
        let parsed: OptimizerConfig = name.replace('_', "-").parse().expect("registered");
        assert_eq!(text(&parsed)["name"], *name);
    }
}

/// With which Burn's optimizer would not end.
#[test]
fn endless_newton_schulz_steps_are_refused() {
    let steps = MuonAdamWConfig::new().with_matrices(MuonConfig::new().with_ns_steps(1 << 40));
    let error = config(EggrollConfig::new(), steps).try_init(&Net::start()).err().expect("refused").to_string();
    assert_eq!(error, "ns_steps, the Newton-Schulz steps of Muon, must be at most 100, not 1099511627776");
}

#[test]
fn names_on_the_command_line_are_those_of_files() {
    for rule in ["raw", "standardized", "z_score", "sample_z_score", "centered_rank", "utilities", "pair_sign"] {
        assert_eq!(text(&rule.parse::<FitnessShaping>().expect("a rule")), rule);
    }
    let groups = "baseline_subtraction:8".parse::<FitnessShaping>().expect("a rule");
    assert_eq!(groups, FitnessShaping::BaselineSubtraction { size: 8 });
    assert_eq!("top-pairs:8".parse::<FitnessShaping>().expect("a rule"), FitnessShaping::TopPairs { pairs: 8 });
    let error = "z_core".parse::<FitnessShaping>().expect_err("refused").to_string();
    assert!(["fitness shaping: ", "`z_core`", "`z_score`"].iter().all(|part| error.contains(part)), "{error}");
    for wrong in ["group_standardized", "baseline_subtraction:", "raw:4", "top_pairs:-1"] {
        assert!(wrong.parse::<FitnessShaping>().is_err(), "{wrong}");
    }
}
