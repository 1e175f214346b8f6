//! The perturbed drop-in replacement of [`burn::nn::Linear`].

use crate::adapter::{Adapted, adapted, floats};
use crate::check::check;
use crate::drop_in::drop_in;
use crate::per_member;
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn::{self, Initializer, LinearLayout};
use burn::tensor::{DType, Device, Tensor};
use eggroll_core::ops::InputRows;
use eggroll_core::scope;

/// Configuration of a [`Linear`] layer: the same as [`burn::nn::LinearConfig`].
#[derive(Config, Debug)]
pub struct LinearConfig {
    /// The size of the input features.
    pub d_input: usize,
    /// The size of the output features.
    pub d_output: usize,
    /// If a bias should be applied during the linear transformation.
    #[config(default = true)]
    pub bias: bool,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::KaimingUniform{gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false}")]
    pub initializer: Initializer,
    /// The layout in which the linear parameters are stored.
    #[config(default = "LinearLayout::Row")]
    pub layout: LinearLayout,
}

impl LinearConfig {
    /// Initializes a new [`Linear`] layer.
    ///
    /// # Panics
    ///
    /// Panics if a size is 0 or larger than memory, or f32 cannot hold a number, with the field.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Linear {
        check("LinearConfig", self, &[&[("d_input", self.d_input), ("d_output", self.d_output)]]);
        nn::LinearConfig {
            d_input: self.d_input,
            d_output: self.d_output,
            bias: self.bias,
            initializer: self.initializer.clone(),
            layout: self.layout,
        }
        .init(device)
        .into()
    }
}

/// Linear layer `y = x·W + b`, the same as [`burn::nn::Linear`]; inside `evaluate`, `x·W_m + b_m` for every member `m`
/// of the population.
///
/// Created by [`LinearConfig`] or from a [`burn::nn::Linear`]; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::{Linear, LinearConfig};
///
/// let device = Device::flex();
/// let burn_layer = burn::nn::LinearConfig::new(4, 3).init(&device);
/// let layer = Linear::from(burn_layer.clone());
/// let x = Tensor::<2>::ones([2, 4], &device);
/// assert_eq!(layer.forward(x.clone()).into_data(), burn_layer.forward(x).into_data());
/// ```
///
/// With a LoRA adapter (`apply_lora`, `apply_qlora`) the weight is `W + s·A·B`. Inside `evaluate` `A` and `B` are two layers with separate noise,
/// `x·W + s·(x·A_m)·B_m`: no member's weight is formed.
///
/// # References
///
/// - Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652, Eq. 4.
/// - Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", arXiv 2106.09685, Eq. 3.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Linear {
    /// Matrix of shape `[d_input, d_output]`.
    pub weight: Param<Tensor<2>>,
    /// Vector of shape `[d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
}

impl Linear {
    /// Applies the layer.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_input]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[..., d_output]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_input`. Inside `evaluate` also if the first axis is not a multiple of the members (an
    /// axis of length 1 may precede it).
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        apply(&self.weight, self.bias.as_ref(), input, InputRows::PerMember)
    }

    /// Applies the layer to rows that all members share: `x·W` is computed once, each member adds its low-rank part.
    /// For first layers; outside `evaluate` the same as [`forward`](Self::forward).
    ///
    /// # Shapes
    ///
    /// - input: `[rows, ..., d_input]`
    /// - output: `[members · rows, ..., d_output]` inside `evaluate`, member-major; `[rows, ..., d_output]` outside
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_input`.
    #[track_caller]
    pub fn forward_shared<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        apply(&self.weight, self.bias.as_ref(), input, InputRows::Shared)
    }
}

/// A layer by its fields: a clone of them would be another layer in a scope.
#[track_caller]
pub(crate) fn apply<const D: usize>(
    weight: &Param<Tensor<2>>,
    bias: Option<&Param<Tensor<1>>>,
    input: Tensor<D>,
    rows: InputRows,
) -> Tensor<D> {
    if let Some(Adapted { adapter, base, weight, .. }) = adapted(weight) {
        let y = perturbed(weight, (base, bias), input.clone(), rows);
        let projected = apply(&adapter.a, None, input, rows); // [..., rank]
        return y + apply(&adapter.b, None, projected, InputRows::PerMember) * adapter.scale;
    }
    let active = match rows {
        InputRows::Shared => scope::active(weight),
        InputRows::PerMember => per_member::active(weight, bias),
    };
    let weight = weight.val();
    let weight = match weight.dtype() {
        // Burn's feature `autotune` may choose a product that reads other scales, if words are packed along the inputs.
        DType::QFloat(scheme) if active.is_some() || scheme.packing_dim().is_some_and(|dim| dim > 0) => {
            floats(weight, input.dtype())
        }
        _ => weight,
    };
    match active {
        None => plain(weight, bias, input),
        Some(parameter) => perturbed(parameter, (weight, bias), input, rows),
    }
}

/// The same as `burn::nn::Linear`.
#[track_caller]
fn plain<const D: usize>(weight: Tensor<2>, bias: Option<&Param<Tensor<1>>>, input: Tensor<D>) -> Tensor<D> {
    let [d_input, _] = weight.dims();
    assert!(
        input.dims()[D - 1] == d_input,
        "linear: the input {:?} does not fit the weight {:?}",
        input.dims(),
        weight.dims()
    );
    burn::tensor::module::linear(input, weight, bias.map(|bias| bias.val()))
}

#[track_caller]
fn perturbed<const D: usize>(
    parameter: scope::ActiveParameter,
    (weight, bias): (Tensor<2>, Option<&Param<Tensor<1>>>),
    input: Tensor<D>,
    rows: InputRows,
) -> Tensor<D> {
    let mut dims = input.dims();
    parameter.refuse_empty(&dims);
    // Rows with time first would be dealt out to other members: `[steps, members · batch, d_input]`. One step is in the order of members.
    let is_frozen = |bias: &Param<Tensor<1>>| scope::active(bias).is_none_or(|bias| bias.is_frozen());
    let has_noise = !parameter.is_frozen() || !bias.is_none_or(is_frozen);
    let first = dims[..D - 1].iter().position(|length| *length > 1);
    if let Some(first) = first.filter(|_| rows == InputRows::PerMember && has_noise) {
        per_member::check_leading(&dims[first..], parameter.pairs().members());
    }
    let (width, count) = (dims[D - 1], dims[..D - 1].iter().product::<usize>());
    let flat = input.reshape([count, width]); // [members · rows · ..., d_input]
    let y = parameter.linear(flat, weight, bias, rows);
    let [_, d_output] = y.dims();
    if rows == InputRows::Shared && D > 1 {
        dims[0] *= parameter.pairs().members();
    }
    dims[D - 1] = d_output;
    y.reshape(dims)
}

drop_in!(Linear, nn::Linear { weight, bias });

impl ModuleDisplay for Linear {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [d_input, d_output] = self.weight.shape().dims();
        content.add("d_input", &d_input).add("d_output", &d_output).add("bias", &self.bias.is_some()).optional()
    }
}
