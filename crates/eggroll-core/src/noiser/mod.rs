//! Noisers: how a parameter is perturbed, and how its noise becomes a gradient estimate.
//!
//! One algorithm per file. A noiser gives each parameter a [`Role`]; the provided methods of [`Noiser`] turn the role
//! into perturbed operations. Most noisers only choose roles and answer the questions above these methods; one of another kind
//! overrides them. [`NoiserConfig`] is the registry: add a file, a variant with its arms, and its name there.

mod baseline;
mod eggroll;
mod no_op;
mod open_es;
mod q_eggroll;
mod registry;
mod sign_eggroll;
mod sparse;

pub use baseline::BaselineConfig;
pub use eggroll::EggrollConfig;
pub use open_es::OpenEsConfig;
pub use q_eggroll::{IntegerRule, QEggrollConfig};
pub use registry::{NoiserConfig, NoiserError};
pub use sparse::SparseConfig;

use crate::key::{NoiseKey, PairRange};
use crate::matrix::MatrixView;
use crate::ops::{
    self, DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, MatrixNoise, NoiseSource, SparseNoise,
    dense_estimate, dense_linear, low_rank_estimate, low_rank_linear, perturbed_embedding, sparse_embedding,
    sparse_estimate, sparse_linear,
};
use crate::rng::{NoiseDistribution, sparse as places};
use burn::tensor::{DType, Device, Int, Tensor};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

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
    /// Independent noise for a few entries: matrices, as for low rank.
    Sparse,
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
            Self::Sparse => MatrixView::of(shape).map_or(0, |view| places::count([view.d_input, view.d_output])),
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

    /// Pairs of a group whose first pair has no noise ([`NoiseKey::with_baselines`]); 0 if there are none.
    fn baselines(&self) -> u32 {
        0
    }

    /// Whether estimates count the signs of the factors of low-rank noise in place of their values.
    fn counts_signs(&self) -> bool {
        false
    }

    /// Whether it perturbs nothing on purpose: then all parameters are frozen, whatever roles they are given.
    fn is_no_op(&self) -> bool {
        false
    }

    /// Whether roles say all about the perturbation: no method below is overridden. Then loops that never make a tensor
    /// ([`Chain`](crate::chain::Chain)) may do what these methods do; a noiser that does not say so is always asked.
    fn follows_roles(&self) -> bool {
        false
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
            Role::Sparse => {
                let sparse = SparseNoise::new(noise.key, noise.sigma);
                sparse_linear(x, weight, bias, sparse, noise.source, members)
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
            Role::Sparse => {
                let sparse = SparseNoise::new(noise.key, noise.sigma).transposed();
                sparse_linear(x, weight, LinearBias::None, sparse, noise.source, members)
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
            Role::Sparse => {
                let sparse = SparseNoise::new(noise.key, noise.sigma);
                return sparse_embedding(weight, indices, sparse, noise.source, members);
            }
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

    /// `Σ_q w_q·E_q` over pairs from 0 on, where `E_q` is the noise added to the parameter for sign +1, or what the noiser counts in
    /// its place; flat, in the order of the parameter's [`MatrixView`] if it has one. That of sparse noise is multiplied by the
    /// share of perturbed entries, `k/(d_input·d_output)`.
    ///
    /// `weights` is `[pairs]`, `shape` the parameter's.
    ///
    /// # Panics
    ///
    /// Panics for a low-rank or sparse parameter of fewer than two axes, and for a frozen one.
    #[track_caller]
    fn estimate(&self, weights: Tensor<1>, noise: ParameterNoise, shape: &[usize]) -> Tensor<1> {
        let weights = match noise.role {
            Role::Sparse => {
                let share = Role::Sparse.noise_elements(shape) as f64 / shape.iter().product::<usize>().max(1) as f64;
                weights.mul_scalar(share)
            }
            _ => weights,
        };
        weighted_noise(weights, noise, 0, shape, self.counts_signs())
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
        weighted_noise(Tensor::ones([1], (device, dtype)), noise, pair, shape, false)
    }
}

/// `Σ_q w_q·E_q` over pairs from `first_pair` on, flat, of low-rank noise perhaps by the factors' signs: see [`Noiser::estimate`].
#[track_caller]
fn weighted_noise(
    weights: Tensor<1>,
    noise: ParameterNoise,
    first_pair: u32,
    shape: &[usize],
    signs: bool,
) -> Tensor<1> {
    let elements = shape.iter().product::<usize>();
    let matrix = || match MatrixView::of(shape) {
        Some(view) => [view.d_input, view.d_output],
        None => panic!("{:?} noise needs a matrix, not a parameter of shape {shape:?}", noise.role),
    };
    match noise.role {
        Role::LowRank { rank } => {
            let low_rank = LowRankNoise { signs, ..LowRankNoise::new(noise.key, rank, noise.sigma) };
            low_rank_estimate(weights, low_rank, noise.source, first_pair, matrix()).reshape([elements])
        }
        Role::Sparse => {
            let sparse = SparseNoise::new(noise.key, noise.sigma);
            sparse_estimate(weights, sparse, noise.source, first_pair, matrix()).reshape([elements])
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
