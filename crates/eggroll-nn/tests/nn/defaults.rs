//! Configurations of the twins have the settings and the defaults of Burn's.

use burn::config::Config;
use burn::nn;
use burn::nn::{attention, conv, transformer};
use serde_json::{Map, Value};

/// The settings of a configuration by name.
fn settings(config: &impl Config) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(settings)) => settings,
        other => panic!("{other:?}"),
    }
}

/// The settings in which two configurations differ, also those that only one of them has, with both values.
fn differences(twin: &impl Config, burn: &impl Config) -> Vec<(String, Option<Value>, Option<Value>)> {
    let (mut twin, mut burn) = (settings(twin), settings(burn));
    let mut names: Vec<String> = twin.keys().chain(burn.keys()).cloned().collect();
    names.sort();
    names.dedup();
    let values = |name: String| {
        let (twin, burn) = (twin.remove(&name), burn.remove(&name));
        (twin != burn).then_some((name, twin, burn))
    };
    names.into_iter().filter_map(values).collect()
}

/// Compares configurations that are made of the same arguments.
macro_rules! assert_defaults {
    ($($twin:path, $burn:path, ($($argument:expr),*);)*) => {
        $(assert_eq!(differences(&$twin($($argument),*), &$burn($($argument),*)), [], "{}", stringify!($twin));)*
    };
}

#[test]
fn defaults_are_those_of_burn() {
    use eggroll_nn as twin;
    assert_defaults! {
        twin::LinearConfig::new, nn::LinearConfig::new, (3, 4);
        twin::EmbeddingConfig::new, nn::EmbeddingConfig::new, (3, 4);
        twin::LayerNormConfig::new, nn::LayerNormConfig::new, (3);
        twin::RmsNormConfig::new, nn::RmsNormConfig::new, (3);
        twin::BatchNormConfig::new, nn::BatchNormConfig::new, (3);
        twin::Conv1dConfig::new, conv::Conv1dConfig::new, (3, 4, 5);
        twin::Conv2dConfig::new, conv::Conv2dConfig::new, ([3, 4], [5, 6]);
        twin::GruConfig::new, nn::GruConfig::new, (3, 4, true);
        twin::LstmConfig::new, nn::LstmConfig::new, (3, 4, true);
        twin::BiGruConfig::new, nn::BiGruConfig::new, (3, 4, true);
        twin::BiLstmConfig::new, nn::BiLstmConfig::new, (3, 4, true);
        twin::attention::MultiHeadAttentionConfig::new, attention::MultiHeadAttentionConfig::new, (4, 2);
        twin::transformer::PositionWiseFeedForwardConfig::new, transformer::PositionWiseFeedForwardConfig::new, (3, 4);
        twin::transformer::TransformerEncoderConfig::new, transformer::TransformerEncoderConfig::new, (4, 6, 2, 3);
    }
}

/// The comparison sees a default that differs, and a setting that the other one does not have.
#[test]
fn canary() {
    let burn = nn::LinearConfig::new(3, 4);
    let found = differences(&eggroll_nn::LinearConfig::new(3, 4).with_bias(false), &burn);
    assert_eq!(found, [("bias".to_owned(), Some(Value::Bool(false)), Some(Value::Bool(true)))]);
    let found = differences(&nn::RmsNormConfig::new(3), &nn::LayerNormConfig::new(3));
    assert_eq!(found, [("bias".to_owned(), None, Some(Value::Bool(true)))]);
}
