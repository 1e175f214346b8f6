//! The scores that a weight learns from.

use crate::error::ConfigError;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Whether weights learn from a member's mean score, or from the score of every part: of every image, token or prompt.
///
/// A batch of `T` parts says more of a member than one number. If part `t` gave a layer the row `x_t`, its score depends on the layer's noise `E`
/// only through `x_t·E`. Its estimate is therefore projected onto that row:
///
/// `G = 1/T · Σ_t x_tᵀ·x_t/|x_t|² · Σ_q w_tq·E_q`,
///
/// `w_tq` the shaped score of part `t` and pair `q`. Of `d_input · d_output` noisy dimensions only `d_output` remain for each part, and the errors
/// of parts average out. It costs three products and one forward of two members without noise, whose rows are the `x_t`.
///
/// # Parts
///
/// The shape of the scores says what the parts are:
///
/// | scores | parts | as made by |
/// |---|---|---|
/// | `[members]` | one: the mean | [`cross_entropy`](crate::MemberChunk::cross_entropy) |
/// | `[members, parts]` | images, prompts | [`row_cross_entropy`](crate::MemberChunk::row_cross_entropy) |
/// | `[members, sequences, steps]` | tokens, in order of time | [`token_cross_entropy`](crate::MemberChunk::token_cross_entropy) |
///
/// A member gives a layer `parts · k` rows, the `k` rows of part 0 first. The rows decide what a weight learns from:
///
/// | the layer was given | its estimate is projected onto |
/// |---|---|
/// | one row for each part | that row |
/// | `k` rows for each part (patches of an image), fewer than the layer has inputs | their span |
/// | at every step of a recurrence one row for each sequence | the rows of each step |
/// | lookups, as of an embedding | the row that is looked up |
/// | lookups, and rows of an output layer that is tied to the embedding | both |
/// | rows of another number, others for each member or in each call, or rows that the scores of other parts depend on | nothing: it learns from the mean |
///
/// The first generation detects the last case ([`RowCheck`](crate::RowCheck)). It calls the closure twice more for two members. It also calls it a few
/// times for a chunk of members without noise, and moves the layer's outputs of single parts. The scores of other parts may then change by at most a
/// quarter of the change of the part's own score. Later steps of its sequence may change by any amount. So rows may not count as rows of parts even if
/// their number fits. Examples are several scores of the same rows (a loss and a penalty), rows with time first, and positions that all images share.
/// Scores that do not change, as an accuracy may not, tell nothing: then the number of rows decides.
///
/// Vectors (biases, the scales of norms) learn from the mean over parts: their estimates have no dimension to project out. Keys, values and
/// recurrent inputs ([`acts_later`](eggroll_core::scope::acts_later)) also learn from the scores of later steps, weighted by ½ for each step
/// between. [`Population::credits`](crate::Population::credits) lists what each parameter learns from.
///
/// # Integers
///
/// Matrices of integers learn by part if an [optimizer](crate::IntegerAdamWConfig) adds up their votes and each part has one row:
///
/// `Z = Σ_t s_t·x_tᵀ·Σ_q v_tq·(x_t·b_q)·a_q`,
///
/// in integer products ([`sum_part_votes`](eggroll_core::ops::integer::sum_part_votes)). `x_t` is the int8 row that members without noise gave the layer.
/// `v_tq` is the [vote](crate::Fitness::part_votes) of pair `q` for part `t`, in units of the pair's mean magnitude. The size of the noise's effect is not
/// divided out. Weights that a threshold of votes moves learn from the votes of all parts together.
///
/// # How far a pair has moved a part
///
/// Noise `E = b·aᵀ` moves the output of a row by `(x·b)·a`, whose square varies between pairs like the square of a normal number. A score responds to the moves
/// of all layers, so it is divided by their size: `w_tq/k_tq` replaces `w_tq`, with
///
/// `k_tq = (1 + Σ_l p_ltq) / (1 + L)`,
///
/// `p_ltq = |x_lt·E_lq|²/E|x_lt·E_l|²`, 1 where `x_lt` is 0, over the `L` parameters with low-rank noise that learn by part (without products of different
/// columns, for higher ranks). The estimate of each is divided by `Σp_l/k ÷ Σp_l`: for a score that is linear in the noise, the mean does not change. This is
/// the step of normalized least mean squares (Widrow and Lehr 1990); a plain estimate is a correlation. Full-rank noise moves rows evenly, so nothing is
/// divided.
///
/// # What is exact, and what is not
///
/// If all members share the rows (`forward_shared`) and each score depends on one row, the projection is `E[E | x_t·E]`. With normal noise the estimate then
/// has the same mean and less variance, for any score. Rademacher and sparse noise also lose terms of order σ² that the gradient does not have. Behind the
/// first layer, the rows of members differ from the rows without noise: the part of an estimate outside their span is lost. The loss falls as σ² for smooth
/// models, as σ at kinks. Share of the second layer's mean that is lost, with two layers:
///
/// | activation | σ 0.4 | 0.2 | 0.1 | 0.05 |
/// |---|---|---|---|---|
/// | tanh | 19.8 % | 6.6 % | 2.1 % | 0.9 % |
/// | ReLU | 13.6 % | 5.0 % | 1.9 % | 0.7 % |
/// | ReLU, half of the units off, with a kink at a row | 23.5 % | 11.0 % | 5.2 % | 2.9 % |
/// | step | 10.5 % | 8.4 % | 6.2 % | 3.6 % |
///
/// Use [`Mean`](Self::Mean) for networks of signs, spikes or quantized activations: their gradient is in the lost part. Scores that depend on
/// other parts, as with batch normalization, lose that dependence.
///
/// # Shaping
///
/// [`Standardized`](crate::FitnessShaping::Standardized), the default, divides the scores of all parts by one deviation: a part whose scores hardly
/// differ has little weight. Other rules shape every part alone.
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::{Device, Tensor, TensorData};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_train::EvolutionStrategyConfig;
///
/// # fn main() -> Result<(), eggroll_train::Error> {
/// let device = Device::flex();
/// let mut model = LinearConfig::new(16, 3).init(&device);
/// let images = Tensor::<2>::from_data(TensorData::new((0..64).map(|i| (i % 7) as f32).collect(), [4, 16]), &device);
/// let labels = Tensor::from_ints([0, 2, 1, 0], &device);
/// let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).try_init(&model)?;
/// let population = strategy.ask();
/// let fitness = population.evaluate(|members| {
///     let logits = model.forward_shared(images.clone()); // [members · 4, 3]
///     -members.row_cross_entropy(logits, labels.clone()) // [members, 4]
/// });
/// println!("{}", population.credits(&fitness)); // weight: by part
/// strategy.tell(&mut model, population, fitness)?;
/// # Ok(())
/// # }
/// ```
///
/// # References
///
/// - Widrow and Lehr, "30 Years of Adaptive Neural Networks", Proceedings of the IEEE 78, 1990: node perturbation.
/// - Werfel, Xie and Seung, "Learning Curves for Stochastic Gradient Descent in Linear Feedforward Networks", Neural Computation 17, 2005: node
///   perturbation.
/// - Fiete and Seung, "Gradient Learning in Spiking Neural Networks by Dynamic Perturbation of Conductances", Physical Review Letters 97, 2006: node
///   perturbation.
/// - Ren et al., "Scaling Forward Gradient With Local Losses", arXiv 2210.03310, ICLR 2023: activity-perturbed forward gradients.
/// - Saha, Garg and Roy, "Gradient Projection Memory for Continual Learning", arXiv 2103.09762, ICLR 2021: gradients lie in the span of the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credit {
    /// Scores of parts for layers whose rows belong to parts; mean scores for other layers, and for scores `[members]`.
    #[default]
    Auto,
    /// Scores of parts; an error if no weight can learn from them. Scores `[members]` count as one part, the batch: estimates are projected onto
    /// the span of its rows if a layer has more inputs than rows.
    Parts,
    /// The mean over parts of their shaped scores; with scores `[members]`, as in EGGROLL's paper.
    Mean,
}

impl Credit {
    /// Whether estimates from scores of this many parts depend on the rows that layers were given.
    pub fn projects(self, parts: usize) -> bool {
        match self {
            Self::Auto => parts > 1,
            Self::Parts => true,
            Self::Mean => false,
        }
    }
}

/// The name, as in configuration files.
impl fmt::Display for Credit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The credit of that name, as in configuration files.
impl FromStr for Credit {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let name: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
        Self::deserialize(name).map_err(|error| ConfigError::CreditName(error.to_string()))
    }
}
