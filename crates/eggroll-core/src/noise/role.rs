//! Roles: how a parameter is perturbed, and the perturbed operations that follow from it.

use crate::noise::matrix::MatrixView;
use crate::ops::{
    self, DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, MatrixNoise, NoiseSource, SparseNoise,
    dense_estimate, dense_linear, low_rank_estimate, low_rank_linear, perturbed_embedding, sparse_embedding,
    sparse_estimate, sparse_linear,
};
use crate::rng::key::{NoiseKey, PairRange};
use crate::rng::sparse as places;
use burn::tensor::{DType, Device, Int, Tensor};
use serde::{Deserialize, Serialize};

/// How a parameter is perturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Noise `B·Aᵀ` of the given rank: matrices, and tensors that [`MatrixView`] sees as matrices.
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
    /// How the parameter is perturbed.
    pub role: Role,
    /// Address of the draw.
    pub key: NoiseKey,
    /// Noise scale σ of this parameter.
    pub sigma: f64,
    /// Where the noise comes from.
    pub source: NoiseSource,
    /// Whether estimates count the signs of the factors of low-rank noise in place of their values.
    pub counts_signs: bool,
}

impl ParameterNoise {
    /// A linear layer under every member's weight, with this noise, and bias, with its own noise.
    ///
    /// # Shapes
    ///
    /// As [`low_rank_linear`].
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit.
    #[track_caller]
    pub fn linear(
        self,
        x: Tensor<2>,
        weight: Tensor<2>,
        bias: Option<(Tensor<1>, Self)>,
        members: LinearMembers,
    ) -> Tensor<2> {
        let bias = match bias {
            None => LinearBias::None,
            Some((bias, Self { role: Role::Frozen, .. })) => LinearBias::Plain(bias),
            Some((bias, noise)) => LinearBias::Perturbed(bias, noise.dense(), noise.source),
        };
        match self.role {
            Role::LowRank { rank } => low_rank_linear(x, weight, bias, self.low_rank(rank), self.source, members),
            Role::Dense => dense_linear(x, weight, bias, self.dense(), self.source, members),
            Role::Sparse => sparse_linear(x, weight, bias, self.sparse(), self.source, members),
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
    pub fn linear_transposed(self, x: Tensor<2>, weight: Tensor<2>, members: LinearMembers) -> Tensor<2> {
        let (weight, bias) = (weight.transpose(), LinearBias::None);
        match self.role {
            Role::LowRank { rank } => {
                low_rank_linear(x, weight, bias, self.low_rank(rank).transposed(), self.source, members)
            }
            Role::Dense => dense_linear(x, weight, bias, self.dense().transposed(), self.source, members),
            Role::Sparse => sparse_linear(x, weight, bias, self.sparse().transposed(), self.source, members),
            Role::Frozen => plain_linear(x, weight, bias, members),
        }
    }

    /// Rows of a weight under every member's noise.
    ///
    /// # Shapes
    ///
    /// As [`perturbed_embedding`].
    ///
    /// # Panics
    ///
    /// As [`perturbed_embedding`].
    #[track_caller]
    pub fn embedding(self, indices: Tensor<1, Int>, weight: Tensor<2>, members: LinearMembers) -> Tensor<2> {
        let matrix = match self.role {
            Role::LowRank { rank } => MatrixNoise::LowRank(self.low_rank(rank)),
            Role::Dense => MatrixNoise::Dense(self.dense()),
            Role::Sparse => return sparse_embedding(weight, indices, self.sparse(), self.source, members),
            Role::Frozen => {
                let rows = weight.select(0, indices);
                return match members.input {
                    InputRows::PerMember => rows,
                    InputRows::Shared => rows.repeat_dim(0, members.pairs.members()), // [members · rows, d_model]
                };
            }
        };
        perturbed_embedding(weight, indices, matrix, self.source, members)
    }

    /// A vector parameter under every member's noise: `[n]` to `[members, n]`.
    #[track_caller]
    pub fn vector(self, vector: Tensor<1>, pairs: PairRange) -> Tensor<2> {
        match self.role {
            Role::Frozen => vector.unsqueeze::<2>().repeat_dim(0, pairs.members()),
            _ => ops::perturbed_vector(vector, self.dense(), self.source, pairs),
        }
    }

    /// `Σ_q w_q·E_q` over pairs from 0 on, flat, in the order of the parameter's [`MatrixView`] if it has one. `E_q` is the noise
    /// added to the parameter for sign +1, or the product of its factors' signs if these [count](Self::counts_signs). For sparse noise
    /// the sum is multiplied by the share of perturbed entries, `k/(d_input·d_output)`.
    ///
    /// `weights` is `[pairs]`, in float32 or wider; `shape` and `dtype` are the parameter's.
    ///
    /// # Panics
    ///
    /// Panics for a low-rank or sparse parameter of fewer than two axes, and for a frozen one.
    #[track_caller]
    pub fn estimate(self, weights: Tensor<1>, shape: &[usize], dtype: DType) -> Tensor<1> {
        let weights = match self.role {
            Role::Sparse => {
                let share = Role::Sparse.noise_elements(shape) as f64 / shape.iter().product::<usize>().max(1) as f64;
                weights.mul_scalar(share)
            }
            _ => weights,
        };
        self.weighted(weights, 0, shape, dtype)
    }

    /// The noise `E_q` of one pair as the parameter's elements: `(σ/√r)·B·Aᵀ` or `σ·ε`, added for sign +1 and subtracted for
    /// sign −1. Flat, in the order of the parameter's [`MatrixView`] if it has one; of the given type, on the given device.
    ///
    /// For uses without a perturbed operation; no other use of a parameter forms such a tensor.
    ///
    /// # Panics
    ///
    /// As [`estimate`](Self::estimate).
    #[track_caller]
    pub fn noise(self, pair: u32, shape: &[usize], (device, dtype): (&Device, DType)) -> Tensor<1> {
        Self { counts_signs: false, ..self }.weighted(Tensor::ones([1], (device, DType::F32)), pair, shape, dtype)
    }

    /// `Σ_q w_q·E_q` over pairs from `first_pair` on, flat.
    #[track_caller]
    fn weighted(self, weights: Tensor<1>, first_pair: u32, shape: &[usize], dtype: DType) -> Tensor<1> {
        let elements = shape.iter().product::<usize>();
        let matrix = || match MatrixView::of(shape) {
            Some(view) => [view.d_input, view.d_output],
            None => panic!("{:?} noise needs a matrix, not a parameter of shape {shape:?}", self.role),
        };
        match self.role {
            Role::LowRank { rank } => {
                let (shape, noise) = (matrix(), LowRankNoise { signs: self.counts_signs, ..self.low_rank(rank) });
                low_rank_estimate(weights, noise, self.source, first_pair, shape, dtype).reshape([elements])
            }
            Role::Sparse => {
                let (shape, noise) = (matrix(), self.sparse());
                sparse_estimate(weights, noise, self.source, first_pair, shape, dtype).reshape([elements])
            }
            Role::Dense => {
                let noise = self.dense();
                dense_estimate(weights, noise, self.source, first_pair, elements, dtype)
            }
            Role::Frozen => panic!("a frozen parameter of shape {shape:?} has neither noise nor an estimate"),
        }
    }

    pub(crate) fn low_rank(&self, rank: usize) -> LowRankNoise {
        LowRankNoise::new(self.key, rank, self.sigma)
    }

    fn dense(&self) -> DenseNoise {
        DenseNoise::new(self.key, self.sigma)
    }

    fn sparse(&self) -> SparseNoise {
        SparseNoise::new(self.key, self.sigma)
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
