//! Noisers: how a parameter is perturbed, and how its noise becomes a gradient estimate.
//!
//! One algorithm per file. A noiser gives each parameter a [`Role`]; the provided methods of [`Noiser`] turn the role
//! into perturbed operations. A noiser of another kind (sparse, signs, integers) overrides them. [`NoiserConfig`] is the
//! registry: add a file, a variant and its arm there.

mod eggroll;
mod open_es;
mod q_eggroll;

pub use eggroll::EggrollConfig;
pub use open_es::OpenEsConfig;
pub(crate) use q_eggroll::MAX_SIGMA_SHIFT;
pub use q_eggroll::{IntegerRule, QEggrollConfig};

use crate::key::{NoiseKey, PairRange};
use crate::matrix::MatrixView;
use crate::ops::{
    self, DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, MatrixNoise, NoiseSource, dense_estimate,
    dense_linear, low_rank_estimate, low_rank_linear, perturbed_embedding,
};
use crate::rng::{NoiseDistribution, integer};
use burn::tensor::{DType, Device, Int, Tensor};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::Arc;

/// What happens to a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Noise `B·Aᵀ` of the given rank: matrices, and what [`MatrixView`] makes matrices of.
    LowRank {
        /// Columns of the factors.
        rank: usize,
    },
    /// Independent noise for every element.
    Dense,
    /// No noise and no update of any kind, weight decay included.
    Frozen,
}

impl Role {
    /// Elements of one pair's noise of a parameter of this shape; `usize::MAX` for more.
    pub fn noise_elements(&self, shape: &[usize]) -> usize {
        match self {
            Self::LowRank { rank } => {
                MatrixView::of(shape).map_or(0, |view| rank.saturating_mul(view.d_input + view.d_output))
            }
            Self::Dense => shape.iter().product(),
            Self::Frozen => 0,
        }
    }
}

/// One parameter's noise in one generation: its role, address, size and source.
#[derive(Clone, Debug)]
pub struct ParameterNoise {
    /// What happens to the parameter.
    pub role: Role,
    /// Address of the draw.
    pub key: NoiseKey,
    /// Noise scale σ.
    pub sigma: f64,
    /// Where the noise comes from.
    pub source: NoiseSource,
}

/// A perturbation of models and its gradient estimate.
pub trait Noiser: Debug + Send + Sync {
    /// The role of a parameter of this shape, unless the user says otherwise.
    fn role(&self, shape: &[usize]) -> Role;

    /// The distribution of every noise element; a noiser that wraps another must pass on the other's.
    fn distribution(&self) -> NoiseDistribution {
        NoiseDistribution::Normal
    }

    /// How integer parameters are perturbed and updated; `None` leaves them as they are.
    fn integer(&self) -> Option<IntegerRule> {
        None
    }

    /// A linear layer under every member's weight and bias.
    ///
    /// # Shapes
    ///
    /// As [`low_rank_linear`].
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit.
    #[track_caller]
    fn linear(
        &self,
        x: Tensor<2>,
        weight: (Tensor<2>, ParameterNoise),
        bias: Option<(Tensor<1>, ParameterNoise)>,
        members: LinearMembers,
    ) -> Tensor<2> {
        let (weight, noise) = weight;
        let bias = match bias {
            None => LinearBias::None,
            Some((bias, ParameterNoise { role: Role::Frozen, .. })) => LinearBias::Plain(bias),
            Some((bias, noise)) => LinearBias::Perturbed(bias, DenseNoise::new(noise.key, noise.sigma), noise.source),
        };
        match noise.role {
            Role::LowRank { rank } => {
                let low_rank = LowRankNoise::new(noise.key, rank, noise.sigma);
                low_rank_linear(x, weight, bias, low_rank, noise.source, members)
            }
            Role::Dense => {
                let dense = DenseNoise::new(noise.key, noise.sigma);
                dense_linear(x, weight, bias, dense, noise.source, members)
            }
            Role::Frozen => plain_linear(x, weight, bias, members),
        }
    }

    /// `x·Wᵀ` under every member's weight `[d_output, d_input]`, with the same noise as elsewhere: an output layer tied to an
    /// embedding.
    ///
    /// # Shapes
    ///
    /// As [`low_rank_linear`] with the transpose of the weight.
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit.
    #[track_caller]
    fn linear_transposed(
        &self,
        x: Tensor<2>,
        (weight, noise): (Tensor<2>, ParameterNoise),
        members: LinearMembers,
    ) -> Tensor<2> {
        let weight = weight.transpose();
        match noise.role {
            Role::LowRank { rank } => {
                let low_rank = LowRankNoise::new(noise.key, rank, noise.sigma).transposed();
                low_rank_linear(x, weight, LinearBias::None, low_rank, noise.source, members)
            }
            Role::Dense => {
                let dense = DenseNoise::new(noise.key, noise.sigma).transposed();
                dense_linear(x, weight, LinearBias::None, dense, noise.source, members)
            }
            Role::Frozen => plain_linear(x, weight, LinearBias::None, members),
        }
    }

    /// Rows of a weight as every member sees them.
    ///
    /// # Shapes
    ///
    /// As [`perturbed_embedding`].
    ///
    /// # Panics
    ///
    /// As [`perturbed_embedding`].
    #[track_caller]
    fn embedding(
        &self,
        indices: Tensor<1, Int>,
        (weight, noise): (Tensor<2>, ParameterNoise),
        members: LinearMembers,
    ) -> Tensor<2> {
        let matrix = match noise.role {
            Role::LowRank { rank } => MatrixNoise::LowRank(LowRankNoise::new(noise.key, rank, noise.sigma)),
            Role::Dense => MatrixNoise::Dense(DenseNoise::new(noise.key, noise.sigma)),
            Role::Frozen => {
                let rows = weight.select(0, indices);
                return match members.input {
                    InputRows::PerMember => rows,
                    InputRows::Shared => rows.repeat_dim(0, members.pairs.members()), // [members · rows, d_model]
                };
            }
        };
        perturbed_embedding(weight, indices, matrix, noise.source, members)
    }

    /// A vector parameter as every member sees it: `[n]` to `[members, n]`.
    #[track_caller]
    fn vector(&self, vector: Tensor<1>, noise: ParameterNoise, pairs: PairRange) -> Tensor<2> {
        match noise.role {
            Role::Frozen => vector.unsqueeze::<2>().repeat_dim(0, pairs.members()),
            _ => ops::perturbed_vector(vector, DenseNoise::new(noise.key, noise.sigma), noise.source, pairs),
        }
    }

    /// `Σ_q w_q·E_q` over pairs from 0 on, where `E_q` is the noise added to the parameter for sign +1; flat, in the order
    /// of the parameter's [`MatrixView`] if it has one.
    ///
    /// `weights` is `[pairs]`, `shape` the parameter's.
    ///
    /// # Panics
    ///
    /// Panics for a low-rank parameter of fewer than two axes, and for a frozen one.
    #[track_caller]
    fn estimate(&self, weights: Tensor<1>, noise: ParameterNoise, shape: &[usize]) -> Tensor<1> {
        weighted_noise(weights, noise, 0, shape)
    }

    /// The noise `E_q` of one pair as the parameter's elements: `(σ/√r)·B·Aᵀ` or `σ·ε`, added for sign +1 and subtracted for
    /// sign −1. Flat, in the order of the parameter's [`MatrixView`] if it has one; of the given type, on the given device.
    ///
    /// For what has no perturbed operation: every other use of a parameter forms no such tensor.
    ///
    /// # Panics
    ///
    /// As [`estimate`](Self::estimate).
    #[track_caller]
    fn noise(&self, noise: ParameterNoise, pair: u32, shape: &[usize], (device, dtype): (&Device, DType)) -> Tensor<1> {
        weighted_noise(Tensor::ones([1], (device, dtype)), noise, pair, shape)
    }
}

/// `Σ_q w_q·E_q` over pairs from `first_pair` on, flat: see [`Noiser::estimate`].
#[track_caller]
fn weighted_noise(weights: Tensor<1>, noise: ParameterNoise, first_pair: u32, shape: &[usize]) -> Tensor<1> {
    let elements = shape.iter().product::<usize>();
    match noise.role {
        Role::LowRank { rank } => {
            let Some(MatrixView { d_input, d_output, .. }) = MatrixView::of(shape) else {
                panic!("low-rank noise needs a matrix, not a parameter of shape {shape:?}");
            };
            let low_rank = LowRankNoise::new(noise.key, rank, noise.sigma);
            let sum = low_rank_estimate(weights, low_rank, noise.source, first_pair, [d_input, d_output]);
            sum.reshape([elements])
        }
        Role::Dense => {
            let dense = DenseNoise::new(noise.key, noise.sigma);
            dense_estimate(weights, dense, noise.source, first_pair, elements)
        }
        Role::Frozen => panic!("a frozen parameter of shape {shape:?} has neither noise nor an estimate"),
    }
}

/// A linear layer whose weight is not perturbed, with any bias.
#[track_caller]
fn plain_linear(x: Tensor<2>, weight: Tensor<2>, bias: LinearBias, members: LinearMembers) -> Tensor<2> {
    let y = x.matmul(weight);
    let count = members.pairs.members();
    let y = match members.input {
        InputRows::PerMember => y,
        InputRows::Shared => y.repeat_dim(0, count), // [members · rows, d_output]
    };
    match bias {
        LinearBias::None => y,
        LinearBias::Plain(bias) => y + bias.unsqueeze::<2>(),
        LinearBias::Perturbed(bias, noise, source) => {
            let [rows, d_output] = y.dims();
            let bias = ops::perturbed_vector(bias, noise, source, members.pairs).unsqueeze_dim::<3>(1); // [members, 1, d_output]
            let y = y.reshape([count, rows / count, d_output]) + bias;
            y.reshape([rows, d_output])
        }
    }
}

/// A noiser by name and settings: what configuration files hold.
///
/// # Example
///
/// ```
/// use eggroll_core::{EggrollConfig, NoiserConfig};
///
/// let config = NoiserConfig::from(EggrollConfig::new().with_rank(4));
/// let json = serde_json::to_string(&config).unwrap();
/// assert_eq!(json, r#"{"name":"eggroll","rank":4,"freeze_non_matrix":false}"#);
/// assert_eq!(serde_json::from_str::<NoiserConfig>(&json).unwrap(), config);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoiserConfig {
    /// Low-rank noise for matrices.
    Eggroll(EggrollConfig),
    /// Independent noise for every element.
    OpenEs(OpenEsConfig),
    /// Integers only.
    QEggroll(QEggrollConfig),
}

impl NoiserConfig {
    /// The distribution of every noise element.
    pub fn distribution(&self) -> NoiseDistribution {
        match self {
            Self::Eggroll(config) => config.distribution,
            Self::OpenEs(config) => config.distribution,
            Self::QEggroll(_) => NoiseDistribution::Normal,
        }
    }

    /// Builds the noiser.
    ///
    /// # Errors
    ///
    /// [`NoiserError`] with the value that cannot be used.
    pub fn init(&self) -> Result<Arc<dyn Noiser>, NoiserError> {
        Ok(match self {
            Self::Eggroll(config) => Arc::new(config.init()?),
            Self::OpenEs(config) => Arc::new(config.init()),
            Self::QEggroll(config) => Arc::new(config.init()?),
        })
    }

    /// Version of the stream that its noise comes from: a change of any value is a new version, and old checkpoints are refused.
    pub fn stream_version(&self) -> u32 {
        match self {
            Self::QEggroll(_) => integer::STREAM_VERSION,
            _ => self.distribution().stream_version(),
        }
    }
}

/// Settings that no noiser can be built from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoiserError {
    /// The rank is 0.
    #[error("the rank of EGGROLL must be at least 1, not {0}")]
    Rank(usize),
    /// The sigma shift is above 24.
    #[error("the sigma shift must be at most {MAX_SIGMA_SHIFT}, not {0}")]
    SigmaShift(u32),
    /// The threshold's alpha is not in (0, 64].
    #[error("the threshold's alpha must be above 0 and at most 64, not {0}")]
    Alpha(f64),
    /// The threshold's schedule has no generations.
    #[error("the threshold's decay must be at least 1 generation, not {0}")]
    Decay(u64),
}
