//! Which estimates are projected onto the rows that their layers saw.

use super::EvolutionStrategyConfig;
use crate::error::ConfigError;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which weights' estimates are projected onto the span of the rows that their layers were given
/// ([`row_projection`](eggroll_core::ops::row_projection)).
///
/// The gradient of a weight with input rows `x : [rows, d_input]` is `xᵀ·δ`: its columns lie in the span of the rows. Of the
/// `d_input · d_output` noisy dimensions of an estimate only `rows · d_output` can be gradient, if there are fewer rows than inputs; a
/// projection takes the others away. This Rao–Blackwellization of weight perturbation has the variance of node perturbation. It is for
/// fitness on a batch of few rows that are the same for all members, as in supervised
/// learning. A weight that is used several times in one forward, or on as many rows as it has inputs, is left alone.
///
/// With either projection, rows of an embedding that no member has looked up get no update: its input rows are one-hot. That is exact for
/// every noise, also if members have different indices. Not so for models on devices, where indices are not read to the host, nor for an
/// embedding that is the output layer too.
///
/// With [`noise_reuse`](crate::EvolutionStrategyConfig::with_noise_reuse) above 1 estimates are biased, with a projection and without: the
/// weights have learned from the noise that the estimate takes to be independent of them.
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use eggroll_core::EggrollConfig;
/// use eggroll_train::{EvolutionStrategyConfig, InputProjection};
///
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
///     .with_input_projection(InputProjection::Unperturbed);
/// assert_eq!("unperturbed".parse::<InputProjection>().unwrap(), config.input_projection);
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
pub enum InputProjection {
    /// None.
    #[default]
    Off,
    /// Those of layers on shared rows (`forward_shared`). Fitness depends on the noise `E` of such a layer only through `x·E`, so
    /// that the projection is `E[E | x·E]`: for normal noise, dense or of any rank, exactly the same mean and less variance, whatever the fitness.
    /// Rademacher and sparse noise also lose terms that the true gradient does not have.
    ///
    /// The rows must be the same in every chunk of a generation: an evaluation panics if the first or the last of them is another one, in a
    /// debug build if any is. On devices it reads them for each further chunk.
    Shared,
    /// Those of all linear layers and convolutions, onto the rows that the model without noise gives them. For layers behind the
    /// first these are not the members' rows: what an estimate has outside their span is lost. The estimate is biased, but for σ → 0.
    ///
    /// Do not use it for networks of signs, spikes or quantized activations, whose gradient is in what is lost, nor with a large σ. Share of the
    /// second layer's mean that is lost, measured on networks of two layers:
    ///
    /// | activation | σ 0.4 | 0.2 | 0.1 | 0.05 |
    /// |---|---|---|---|---|
    /// | tanh | 19.8 % | 6.6 % | 2.1 % | 0.9 % |
    /// | ReLU | 13.6 % | 5.0 % | 1.9 % | 0.7 % |
    /// | ReLU, half of the units off, with a kink at a row | 23.5 % | 11.0 % | 5.2 % | 2.9 % |
    /// | step | 10.5 % | 8.4 % | 6.2 % | 3.6 % |
    ///
    /// It falls as σ² for smooth models, as σ at kinks, and more slowly for steps.
    ///
    /// An evaluation calls its closure once more, for two members without noise, whose fitness is dropped. All members must be given the
    /// same rows; `evaluate_each`, whose members are separate models, projects nothing.
    Unperturbed,
}

impl EvolutionStrategyConfig {
    /// Sets which estimates are projected onto the span of a layer's input rows.
    pub fn with_input_projection(mut self, projection: InputProjection) -> Self {
        self.input_projection = projection;
        self
    }

    /// Sets whether the estimate is that of every task alone, projected onto the row of input that the task gave a layer: for scores
    /// `[members, tasks]` where each task is one row of a batch and its score depends on that row only, as the
    /// [loss of every image](crate::MemberChunk::row_cross_entropy). Then
    ///
    /// `G = 1/T · Σ_t P_t·Σ_q w_tq·E_q`, `P_t = x_tᵀ·x_t / |x_t|²`:
    ///
    /// of the `T · d_output` noisy dimensions that [`InputProjection`] leaves of a layer, `d_output` remain for every row, and the rows'
    /// errors average out. Score by score this is the conditional mean `E[E | x_t·E]`, so what is said there of bias holds here too.
    ///
    /// It needs an input projection, and takes row `t` of a layer to be that of task `t`. Layers that were given another number of rows
    /// than there are tasks, and parameters that are no matrices, are estimated from the mean weights as without it.
    /// [Shaping rules](crate::FitnessShaping::shape_tasks) other than [`Raw`](crate::FitnessShaping::Raw) scale every task's scores alone: rows that are answered well count as much as others.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::AdamConfig;
    /// use burn::tensor::{Device, Tensor};
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::{EvolutionStrategyConfig, FitnessShaping, InputProjection};
    ///
    /// # fn main() -> Result<(), eggroll_train::Error> {
    /// let device = Device::flex();
    /// let mut model = LinearConfig::new(16, 3).init(&device);
    /// let images = Tensor::<2>::from_data(burn::tensor::TensorData::new((0..64).map(|i| (i % 7) as f32).collect(), [4, 16]), &device);
    /// let labels = Tensor::from_ints([0, 2, 1, 0], &device);
    /// let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
    ///     .with_shaping(FitnessShaping::Raw)
    ///     .with_input_projection(InputProjection::Shared)
    ///     .with_task_projection(true)
    ///     .try_init(&model)?;
    /// let population = strategy.ask();
    /// let fitness = population.evaluate(|members| {
    ///     let logits = model.forward_shared(images.clone()); // [members · 4, 3]
    ///     -members.row_cross_entropy(logits, labels.clone()) // [members, 4]
    /// });
    /// strategy.tell(&mut model, population, fitness)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_task_projection(mut self, by_task: bool) -> Self {
        self.task_projection = by_task;
        self
    }
}

/// The name, as in configuration files.
impl fmt::Display for InputProjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The projection of that name, as in configuration files.
impl FromStr for InputProjection {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let name: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
        Self::deserialize(name).map_err(|error| ConfigError::ProjectionName(error.to_string()))
    }
}
