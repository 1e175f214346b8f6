//! The perturbed drop-in replacement of [`burn::nn::Embedding`], and the output layer tied to it.

use crate::adapter::{Adapted, adapted};
use crate::check::check;
use crate::drop_in::drop_in;
use crate::linear;
use crate::per_member;
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn::{self, Initializer};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::ops::InputRows;
use eggroll_core::scope::{self, ActiveParameter};

/// Configuration of an [`Embedding`]: the same as [`burn::nn::EmbeddingConfig`].
#[derive(Config, Debug)]
pub struct EmbeddingConfig {
    /// The number of embedding vectors.
    pub n_embedding: usize,
    /// The size of each vector.
    pub d_model: usize,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::Normal{mean:0.0, std:1.0}")]
    pub initializer: Initializer,
}

impl EmbeddingConfig {
    /// Initializes a new [`Embedding`].
    ///
    /// # Panics
    ///
    /// Panics if a size is 0 or larger than memory, or f32 cannot hold a number, with the field.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Embedding {
        check("EmbeddingConfig", self, &[&[("n_embedding", self.n_embedding), ("d_model", self.d_model)]]);
        let config = nn::EmbeddingConfig::new(self.n_embedding, self.d_model);
        config.with_initializer(self.initializer.clone()).init(device).into()
    }
}

/// Lookup of rows `y = W[k]`, the same as [`burn::nn::Embedding`]; inside `evaluate`, `W_m[k]` for every member `m` of the
/// population.
///
/// With [`forward_transposed`](Self::forward_transposed) the same parameter is an output layer too, under the same noise.
///
/// Created by [`EmbeddingConfig`] or from a [`burn::nn::Embedding`]; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use eggroll_nn::Embedding;
///
/// let device = Device::flex();
/// let burn_layer = burn::nn::EmbeddingConfig::new(5, 3).init(&device);
/// let layer = Embedding::from(burn_layer.clone());
/// let tokens = Tensor::<2, Int>::from_ints([[4, 0, 4]], &device);
/// assert_eq!(layer.forward(tokens.clone()).into_data(), burn_layer.forward(tokens).into_data());
/// ```
///
/// # References
///
/// - Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652, Eq. 4.
/// - Press and Wolf, "Using the Output Embedding to Improve Language Models", arXiv 1608.05859.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Embedding {
    /// Matrix of shape `[n_embedding, d_model]`.
    pub weight: Param<Tensor<2>>,
}

impl Embedding {
    /// Looks up the rows of indices.
    ///
    /// # Shapes
    ///
    /// - input: `[rows, length]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[rows, length, d_model]`
    ///
    /// # Panics
    ///
    /// Panics inside `evaluate` if the rows are not a multiple of the members.
    #[track_caller]
    pub fn forward(&self, input: Tensor<2, Int>) -> Tensor<3> {
        self.look_up(input, InputRows::PerMember)
    }

    /// Looks up the rows of indices that all members share. For first layers; outside `evaluate` the same as
    /// [`forward`](Self::forward).
    ///
    /// # Shapes
    ///
    /// - input: `[rows, length]`
    /// - output: `[members · rows, length, d_model]` inside `evaluate`, member-major; `[rows, length, d_model]` outside
    #[track_caller]
    pub fn forward_shared(&self, input: Tensor<2, Int>) -> Tensor<3> {
        self.look_up(input, InputRows::Shared)
    }

    #[track_caller]
    fn look_up(&self, input: Tensor<2, Int>, rows: InputRows) -> Tensor<3> {
        if let Some(Adapted { adapter, base, weight, a, .. }) = adapted(&self.weight) {
            let y = perturbed(&weight, base, input.clone(), rows);
            let projected = perturbed(&a, adapter.a.val(), input, rows); // [..., rank]
            return y + linear::apply(&adapter.b, None, projected, InputRows::PerMember) * adapter.scale;
        }
        match scope::active(&self.weight) {
            None => nn::Embedding::from(self.clone()).forward(input),
            Some(parameter) => perturbed(&parameter, self.weight.val(), input, rows),
        }
    }

    /// The output layer tied to the embedding, `y = x·Wᵀ`: one score for each of its vectors. Inside `evaluate` `x·W_mᵀ`, with the
    /// noise that lookups of the same member see, `s·c·(x·A)·Bᵀ` for low-rank noise: one parameter, one noise, one estimate.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_model]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[..., n_embedding]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_model`; inside `evaluate` also if the rows are not a multiple of the members.
    #[track_caller]
    pub fn forward_transposed<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        if let Some(Adapted { adapter, base, weight, a, b }) = adapted(&self.weight) {
            let y = perturbed_transposed(&weight, base, input.clone());
            let projected = perturbed_transposed(&b, adapter.b.val(), input); // [..., rank]
            return y + perturbed_transposed(&a, adapter.a.val(), projected) * adapter.scale;
        }
        let weight = self.weight.val();
        match scope::active(&self.weight) {
            None => {
                check_width(&input, &weight);
                burn::tensor::module::linear(input, weight.transpose(), None)
            }
            Some(parameter) => perturbed_transposed(&parameter, weight, input),
        }
    }
}

/// Rows of every member's weight.
#[track_caller]
fn perturbed(parameter: &ActiveParameter, weight: Tensor<2>, input: Tensor<2, Int>, rows: InputRows) -> Tensor<3> {
    parameter.refuse_empty(&input.dims());
    let ([count, length], members) = (input.dims(), parameter.pairs().members());
    let count = match rows {
        InputRows::Shared => members * count,
        InputRows::PerMember => {
            per_member::check_rows(parameter, &input.dims());
            count
        }
    };
    let y = parameter.embedding(input.flatten(0, 1), weight, rows); // [members · rows · length, d_model]
    let [_, d_model] = y.dims();
    y.reshape([count, length, d_model])
}

/// `x·Wᵀ` for every member's weight.
#[track_caller]
fn perturbed_transposed<const D: usize>(parameter: &ActiveParameter, weight: Tensor<2>, input: Tensor<D>) -> Tensor<D> {
    check_width(&input, &weight);
    let ([n_embedding, d_model], mut dims) = (weight.dims(), input.dims());
    per_member::check_rows(parameter, &dims);
    let flat = input.reshape([dims[..D - 1].iter().product::<usize>(), d_model]); // [members · rows · ..., d_model]
    let y = parameter.linear_transposed(flat, weight, InputRows::PerMember);
    dims[D - 1] = n_embedding;
    y.reshape(dims)
}

#[track_caller]
fn check_width<const D: usize>(input: &Tensor<D>, weight: &Tensor<2>) {
    assert!(
        input.dims()[D - 1] == weight.dims()[1],
        "tied output layer: the input {:?} does not fit the transpose of {:?}",
        input.dims(),
        weight.dims()
    );
}

drop_in!(Embedding, nn::Embedding { weight });

impl ModuleDisplay for Embedding {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [n_embedding, d_model] = self.weight.shape().dims();
        content.add("n_embedding", &n_embedding).add("d_model", &d_model).optional()
    }
}
