//! Which scores a weight learns from.

use crate::error::ConfigError;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Whether weights learn from a member's mean score, or from the score of every part: of every image, token or prompt.
///
/// A batch of `T` parts says more of a member than one number. Where part `t` gave a layer the row `x_t`, its score depends on the layer's noise `E`
/// only through `x_t·E`, so that its estimate is projected onto that row:
///
/// `G = 1/T · Σ_t x_tᵀ·x_t/|x_t|² · Σ_q w_tq·E_q`,
///
/// `w_tq` the shaped score of part `t` and pair `q`. Of `d_input · d_output` noisy dimensions `d_output` remain for each part, and the parts' errors
/// average out. Three products, and no other forward but one of two members without noise, whose rows are the `x_t`.
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
/// A member gives a layer `parts · k` rows, those of part 0 first. What a weight learns from:
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
/// The first generation finds out the last: it calls the closure twice more for two members, and a few times for a chunk of members without noise
/// where the layer's outputs of single parts are moved ([`RowCheck`](crate::RowCheck)). Scores of other parts may change by a quarter of what the part's
/// own changes by, those of later steps of its sequence by anything. So several scores of the same rows (a loss and a penalty), rows with time first, or
/// positions that all images have, are no rows of parts, though there may be as many. Scores that do not change, as an accuracy may not, tell nothing: then
/// the number of rows decides.
///
/// Vectors (biases, the scales of norms) learn from the sum over parts, which is the mean: nothing can be taken out of their estimates.
/// Of keys, values and recurrent inputs ([`acts_later`](eggroll_core::scope::acts_later)) the score of a later step counts too, by ½ for each step
/// between. [`Population::credits`](crate::Population::credits) lists what each parameter learns from.
///
/// # Integers
///
/// Matrices of integers learn by part where an [optimizer](crate::IntegerAdamWConfig) adds up their votes, from one row of each part:
///
/// `Z = Σ_t s_t·x_tᵀ·Σ_q v_tq·(x_t·b_q)·a_q`,
///
/// in integer products ([`sum_part_votes`](eggroll_core::ops::integer::sum_part_votes)), `x_t` the int8 row that members without noise gave the layer and
/// `v_tq` the [votes](crate::Fitness::part_votes) of pair `q` for part `t`, in units of the pair's mean magnitude. What the noise moves is not divided out. Where a threshold of votes moves weights, they
/// learn from the votes of all parts together.
///
/// # How far a pair has moved a part
///
/// Noise `E = b·aᵀ` moves the output of a row by `(x·b)·a`, from pair to pair as unevenly as the square of a normal number. A score answers to the moves of all
/// layers, so that it is divided by their size: `w_tq/k_tq` stands for `w_tq` with
///
/// `k_tq = (1 + Σ_l p_ltq) / (1 + L)`,
///
/// `p_ltq = |x_lt·E_lq|²/E|x_lt·E_l|²`, 1 where `x_lt` is 0, of the `L` parameters with low-rank noise that learn by part (without products of different columns, for higher ranks). The
/// estimate of each is divided by `Σp_l/k ÷ Σp_l`, so that a score that is linear in the noise has the same mean as without. That is the step of normalized
/// least mean squares (Widrow and Lehr 1990) where a plain estimate is a correlation. Noise of full rank moves rows evenly: nothing is divided.
///
/// # What is exact, and what is not
///
/// For rows that all members share (`forward_shared`) and scores that depend on one row each, the projection is `E[E | x_t·E]`: for normal noise the same mean
/// and less variance, whatever the score. Rademacher and sparse noise also lose terms of order σ² that the gradient does not have. Behind the
/// first layer members' rows are not those without noise: what an estimate has outside of their span is lost. It falls as σ² for smooth
/// models, as σ at kinks. Share of the second layer's mean that is lost, with two layers:
///
/// | activation | σ 0.4 | 0.2 | 0.1 | 0.05 |
/// |---|---|---|---|---|
/// | tanh | 19.8 % | 6.6 % | 2.1 % | 0.9 % |
/// | ReLU | 13.6 % | 5.0 % | 1.9 % | 0.7 % |
/// | ReLU, half of the units off, with a kink at a row | 23.5 % | 11.0 % | 5.2 % | 2.9 % |
/// | step | 10.5 % | 8.4 % | 6.2 % | 3.6 % |
///
/// So take [`Mean`](Self::Mean) for networks of signs, spikes or quantized activations, whose gradient is in what is lost. Scores that depend on
/// other parts, as with batch normalization, lose what they say of them.
///
/// # Shaping
///
/// [`Standardized`](crate::FitnessShaping::Standardized), the default, divides the scores of all parts by one deviation: a part that is known already
/// has little say. Other rules shape every part alone.
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
/// - Widrow and Lehr, "30 Years of Adaptive Neural Networks", Proceedings of the IEEE 78, 1990; Werfel, Xie and Seung, "Learning Curves for Stochastic
///   Gradient Descent in Linear Feedforward Networks", Neural Computation 17, 2005; Fiete and Seung, "Gradient Learning in Spiking Neural Networks by
///   Dynamic Perturbation of Conductances", Physical Review Letters 97, 2006: node perturbation.
/// - Ren et al., "Scaling Forward Gradient With Local Losses", arXiv 2210.03310, ICLR 2023: activity-perturbed forward gradients.
/// - Saha, Garg and Roy, "Gradient Projection Memory for Continual Learning", arXiv 2103.09762, ICLR 2021: gradients lie in the span of the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credit {
    /// Scores of parts wherever rows belong to them, mean scores elsewhere, and for scores `[members]`.
    #[default]
    Auto,
    /// Scores of parts; an error where no weight can learn from them. Scores `[members]` are those of one part, the batch: estimates are projected
    /// onto the span of its rows, where they are fewer than a layer has inputs.
    Parts,
    /// The mean over parts of their shaped scores: with scores `[members]` as in EGGROLL's paper.
    Mean,
}

impl Credit {
    /// Whether estimates from scores of so many parts depend on what layers were given.
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
