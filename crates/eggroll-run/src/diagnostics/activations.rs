//! Statistics of the integer transformer's activations.

use super::IntegerStatistics;
use burn::tensor::{Int, Tensor, TensorData};
use eggroll_core::integer::transformer::{RowEntropy, attention_entropy};
use eggroll_nn::integer::transformer::Transformer;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Least and largest entropy, as shares of the possible bits, outside of which there is a warning.
const LEAST_SHARE: f64 = 0.05;
const MOST_SHARE: f64 = 0.98;

/// The spread of attention of a block's heads, over all positions of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttentionStatistics {
    /// Path of the attending part.
    pub path: String,
    /// Mean entropy of the weights of a head's row, in bits.
    pub entropy: f64,
    /// Mean of the largest possible entropy, `log2` of the positions that a row sees.
    pub most: f64,
    /// Mean of the largest weight of a row, from 0 to 1.
    pub largest_weight: f64,
}

/// Statistics of a transformer's activations on a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivationStatistics {
    /// Statistics of every activation, in order.
    pub tensors: Vec<IntegerStatistics>,
    /// Statistics of every block's attention.
    pub attention: Vec<AttentionStatistics>,
}

impl ActivationStatistics {
    /// Statistics of a model that reads the first bytes of `text` as sequences of its context, at most 16 of them.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use eggroll_nn::integer::transformer::TransformerConfig;
    /// use eggroll_run::diagnostics::ActivationStatistics;
    ///
    /// let device = Device::flex();
    /// device.seed(0);
    /// let model = TransformerConfig::new().with_width(32).with_context(16).init(&device);
    /// let statistics = ActivationStatistics::new(&model, b"a text of which the model reads two contexts");
    /// assert_eq!(statistics.tensors[0].path, "embedding");
    /// assert_eq!(statistics.attention.len(), 2); // blocks
    /// assert!(statistics.warnings().is_empty()); // a random model is healthy
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if `text` is empty, or has a byte that the model's vocabulary does not have.
    #[track_caller]
    pub fn new(model: &Transformer, text: &[u8]) -> Self {
        assert!(!text.is_empty(), "statistics of activations: an empty text");
        let steps = model.context.min(text.len());
        let tokens: Vec<i32> =
            text.chunks_exact(steps).take(SEQUENCES).flatten().map(|byte| i32::from(*byte)).collect();
        let shape = [tokens.len() / steps, steps];
        let device = model.embedding.weight.device();
        let all = model.activations(Tensor::<2, Int>::from_data(TensorData::new(tokens, shape), &device));
        let values = |x: Tensor<3, Int>| x.into_data().iter::<i64>().collect::<Vec<i64>>();
        let all: Vec<(String, Vec<i64>)> = all.into_iter().map(|(path, x)| (path, values(x))).collect();
        let attention = model.blocks.iter().enumerate().map(|(index, block)| {
            let path = format!("blocks.{index}.attention");
            let part = |name: &str| {
                let (_, values) = all.iter().find(|(found, _)| *found == format!("{path}.{name}")).expect("observed");
                values.iter().map(|value| *value as i8).collect::<Vec<i8>>()
            };
            let rows =
                attention_entropy(&part("query"), &part("key"), steps, block.attention.n_heads, model_width(model));
            let mean = |of: &dyn Fn(&RowEntropy) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
            AttentionStatistics {
                path: path.clone(),
                entropy: mean(&|row| row.entropy),
                most: mean(&|row| (row.visible as f64).log2()),
                largest_weight: mean(&|row| row.largest_weight),
            }
        });
        let attention = attention.collect();
        Self {
            tensors: all.into_iter().map(|(path, values)| IntegerStatistics::new(path, &values)).collect(),
            attention,
        }
    }

    /// What is wrong, and what to do. There are warnings for an activation with more than 60 % zeros or less than 1 bit of entropy. An
    /// activation that is not rescaled also has one if more than 10 % is saturated. Others are for heads that attend to one position only, or
    /// to all equally.
    pub fn warnings(&self) -> Vec<String> {
        let tensors = self.tensors.iter().flat_map(IntegerStatistics::activation_warnings);
        tensors.chain(self.attention.iter().flat_map(AttentionStatistics::warnings)).collect()
    }

    /// Mean entropy of attention in bits over all blocks; 0 without blocks.
    pub fn attention_entropy(&self) -> f64 {
        self.attention.iter().map(|block| block.entropy).sum::<f64>() / self.attention.len().max(1) as f64
    }
}

/// Sequences for statistics.
const SEQUENCES: usize = 16;

fn model_width(model: &Transformer) -> usize {
    model.embedding.weight.dims()[1]
}

impl AttentionStatistics {
    /// Warnings if the heads attend to one position only, or to all equally.
    pub fn warnings(&self) -> Vec<String> {
        let Self { path, entropy, most, .. } = self;
        let share = entropy / most.max(f64::MIN_POSITIVE);
        let checks = [
            (
                *most > 0.0 && share < LEAST_SHARE,
                format!(
                    "{path}: heads see one position only ({entropy:.2} of {most:.2} bits): their queries and keys \
                     have grown too alike. Train with weight decay, or with fewer large steps (a smaller alpha or \
                     rate)"
                ),
            ),
            (
                *most > 0.0 && share > MOST_SHARE,
                format!(
                    "{path}: heads see all positions alike ({entropy:.2} of {most:.2} bits): they do not use the \
                     context yet. Train longer, or with more members"
                ),
            ),
        ];
        checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, warning)| warning).collect()
    }
}

/// One line of a table.
impl fmt::Display for AttentionStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, entropy, most, largest_weight } = self;
        write!(f, "{path:<32} entropy {entropy:.2} of {most:.2} bits, largest weight {:.0} %", 100.0 * largest_weight)
    }
}
