//! Modules: by Burn's convention `init` panics, with field and value, before anything is allocated.

use super::walk::{Outcome, panic_text, walk};
use burn::module::Module;
use burn::nn::Initializer;
use burn::nn::activation::*;
use burn::nn::{PaddingConfig1d, PaddingConfig2d};
use burn::tensor::Device;
use eggroll_core::check_finite;
use eggroll_nn::attention::MultiHeadAttentionConfig;
use eggroll_nn::transformer::{PositionWiseFeedForwardConfig, TransformerEncoderConfig};
use eggroll_nn::*;

/// The integer modules, those of the transformer among them.
mod integer {
    pub use eggroll_nn::integer::transformer::*;
    pub use eggroll_nn::integer::*;
}

use std::panic::{self, AssertUnwindSafe};

/// Panics of `init` are its refusals; what is built has parameters that are numbers.
fn built<M: Module>(init: impl FnOnce(&Device) -> M) -> Outcome {
    let built = panic::catch_unwind(AssertUnwindSafe(|| init(&Device::flex())));
    match built {
        Ok(model) => Outcome::Used(check_finite(&model).err().map(|error| error.to_string())),
        Err(panic) => match panic_text(&*panic) {
            text if text.contains("overflow") || text.contains("capacity") => Outcome::Panicked(text),
            text => Outcome::Refused(text),
        },
    }
}

macro_rules! walked {
    ($($config:ty: $($value:expr),+;)*) => {
        /// The names of all that are walked.
        const NAMES: &[&str] = &[$(stringify!($config)),*];

        #[test]
        fn modules() {
            $($(walk(stringify!($config), &$value, |config: $config| built(|device| config.init(device)));)+)*
        }
    };
}

walked! {
    LinearConfig:
        LinearConfig::new(3, 2),
        LinearConfig::new(3, 2).with_initializer(Initializer::Constant { value: 0.5 }),
        LinearConfig::new(3, 2).with_initializer(Initializer::Uniform { min: -2.0, max: 3.0 }),
        LinearConfig::new(3, 2).with_initializer(Initializer::Normal { mean: 0.5, std: 0.5 }),
        LinearConfig::new(3, 2).with_initializer(Initializer::KaimingNormal { gain: 1.0, fan_out_only: true }),
        LinearConfig::new(3, 2).with_initializer(Initializer::XavierUniform { gain: 1.0 }),
        LinearConfig::new(3, 2).with_initializer(Initializer::XavierNormal { gain: 1.0 }),
        LinearConfig::new(3, 2).with_bias(false).with_initializer(Initializer::Orthogonal { gain: 1.0 });
    MlpConfig:
        MlpConfig::new(vec![3, 4, 2]),
        MlpConfig::new(vec![3, 2]).with_activation(ActivationConfig::LeakyRelu(LeakyReluConfig::new())),
        MlpConfig::new(vec![3, 2]).with_activation(ActivationConfig::PRelu(PReluConfig::new())),
        MlpConfig::new(vec![3, 2]).with_activation(ActivationConfig::Elu(EluConfig::new())),
        MlpConfig::new(vec![3, 2]).with_activation(ActivationConfig::Celu(CeluConfig::new())),
        MlpConfig::new(vec![3, 2]).with_activation(ActivationConfig::HardSigmoid(HardSigmoidConfig::new())),
        MlpConfig::new(vec![3, 2]).with_activation(ActivationConfig::Softplus(SoftplusConfig::new()));
    EmbeddingConfig: EmbeddingConfig::new(5, 3);
    LayerNormConfig: LayerNormConfig::new(3);
    RmsNormConfig: RmsNormConfig::new(3);
    BatchNormConfig: BatchNormConfig::new(3);
    Conv1dConfig:
        Conv1dConfig::new(2, 4, 3),
        Conv1dConfig::new(2, 4, 3).with_padding(PaddingConfig1d::Explicit(1, 2));
    Conv2dConfig:
        Conv2dConfig::new([2, 4], [3, 3]),
        Conv2dConfig::new([2, 4], [3, 3]).with_padding(PaddingConfig2d::Explicit(1, 2, 1, 2));
    GruConfig: GruConfig { clip: Some(1.0), ..GruConfig::new(3, 2, true) };
    BiGruConfig: BiGruConfig { clip: Some(1.0), ..BiGruConfig::new(3, 2, true) };
    LstmConfig: LstmConfig { clip: Some(1.0), ..LstmConfig::new(3, 2, true) };
    BiLstmConfig: BiLstmConfig { clip: Some(1.0), ..BiLstmConfig::new(3, 2, true) };
    MinimalGruConfig: MinimalGruConfig::new(3, 2);
    MultiHeadAttentionConfig: MultiHeadAttentionConfig::new(4, 2);
    PositionWiseFeedForwardConfig: PositionWiseFeedForwardConfig::new(4, 8);
    TransformerEncoderConfig: TransformerEncoderConfig::new(4, 8, 2, 1);
    integer::LinearConfig: integer::LinearConfig::new(3, 2);
    integer::EmbeddingConfig: integer::EmbeddingConfig::new(5, 3);
    integer::LayerNormConfig: integer::LayerNormConfig::new(3);
    integer::MinimalGruConfig: integer::MinimalGruConfig::new(3);
    integer::MlpConfig: integer::MlpConfig::new(3).with_d_hidden(Some(5));
    integer::EggModelConfig: integer::EggModelConfig::new().with_layers(1).with_width(4);
    integer::RoundedLinearConfig: integer::RoundedLinearConfig::new(3, 2).with_activate(true);
    integer::MeanNormConfig: integer::MeanNormConfig::new(3);
    integer::TiedEmbeddingConfig: integer::TiedEmbeddingConfig::new(5, 3);
    integer::FeedForwardConfig: integer::FeedForwardConfig::new(3, 5);
    integer::AttentionConfig: integer::AttentionConfig::new(4, 2);
    integer::TransformerConfig: integer::TransformerConfig::new().with_layers(1).with_width(4).with_heads(2).with_hidden(Some(5));
}

/// A configuration that is new to these crates is walked too.
#[test]
fn all_configurations_are_walked() {
    fn configurations(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                configurations(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("reads");
            let prefix = if path.to_string_lossy().contains("/integer/") { "integer::" } else { "" };
            let derived = text.split("#[derive(Config").skip(1);
            let names = derived.filter_map(|after| after.split("pub struct ").nth(1)?.split([' ', '{', '<']).next());
            found.extend(names.map(|name| format!("{prefix}{name}")));
        }
    }
    for (of, known) in [
        ("eggroll-nn", NAMES),
        ("eggroll-rl", &["RolloutConfig", "HostRolloutConfig", "EvaluationConfig", "ExpectedValuesConfig"]),
        ("eggroll-train", &["ClipUpConfig", "IntegerAdamWConfig", "MuonAdamWConfig"]),
    ] {
        let mut found = Vec::new();
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join("src");
        configurations(&folder, &mut found);
        assert!(found.len() >= known.len().min(2), "{of}: {found:?}");
        for name in found {
            assert!(known.contains(&&*name), "{name} of {of} is new: let it be walked here");
        }
    }
}
