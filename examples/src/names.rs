//! Choices that several command lines have.

use burn::nn::activation::ActivationConfig;
use clap::ValueEnum;
use eggroll::core::{EggrollConfig, NoiserConfig, OpenEsConfig};
use serde::{Deserialize, Serialize};

/// The noisers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiserName {
    /// Low-rank noise.
    Eggroll,
    /// Dense noise.
    OpenEs,
}

impl NoiserName {
    /// The library's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eggroll => "eggroll",
            Self::OpenEs => "open_es",
        }
    }

    /// The noiser; only EGGROLL's has a rank.
    pub fn noiser(self, rank: usize) -> NoiserConfig {
        match self {
            Self::Eggroll => EggrollConfig::new().with_rank(rank).into(),
            Self::OpenEs => OpenEsConfig::new().into(),
        }
    }

    /// The one to compare with.
    pub fn other(self) -> Self {
        match self {
            Self::Eggroll => Self::OpenEs,
            Self::OpenEs => Self::Eggroll,
        }
    }
}

/// What stands between the layers of a perceptron.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "help would explain what its names say")]
pub enum ActivationName {
    Relu,
    Tanh,
}

impl ActivationName {
    /// The activation.
    pub fn activation(self) -> ActivationConfig {
        match self {
            Self::Relu => ActivationConfig::Relu,
            Self::Tanh => ActivationConfig::Tanh,
        }
    }
}
