//! The perturbed drop-in replacement of [`burn::nn::conv::Conv1d`].

use crate::check::check;
use crate::convolution::{Convolution, matrix, same_padding};
use crate::drop_in::drop_in;
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn::{Initializer, PaddingConfig1d, conv};
use burn::tensor::{Device, Tensor};
use eggroll_core::ops::{InputRows, Window};
use eggroll_core::scope;

/// Configuration of a [`Conv1d`]: the same as [`burn::nn::conv::Conv1dConfig`].
#[derive(Config, Debug)]
pub struct Conv1dConfig {
    /// The number of input channels.
    pub channels_in: usize,
    /// The number of output channels.
    pub channels_out: usize,
    /// The size of the kernel.
    pub kernel_size: usize,
    /// The stride of the convolution.
    #[config(default = "1")]
    pub stride: usize,
    /// Spacing between kernel elements.
    #[config(default = "1")]
    pub dilation: usize,
    /// Controls the connections between input and output channels.
    #[config(default = "1")]
    pub groups: usize,
    /// The padding configuration, symmetric or not.
    #[config(default = "PaddingConfig1d::Valid")]
    pub padding: PaddingConfig1d,
    /// If bias should be added to the output.
    #[config(default = true)]
    pub bias: bool,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::KaimingUniform{gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false}")]
    pub initializer: Initializer,
}

impl Conv1dConfig {
    /// Initializes a new [`Conv1d`].
    ///
    /// # Panics
    ///
    /// Panics if the groups do not divide both numbers of channels.
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Conv1d {
        check(
            "Conv1dConfig",
            self,
            &[&[
                ("channels_in", self.channels_in),
                ("channels_out", self.channels_out),
                ("kernel_size", self.kernel_size),
            ]],
        );
        conv::Conv1dConfig {
            channels_in: self.channels_in,
            channels_out: self.channels_out,
            kernel_size: self.kernel_size,
            stride: self.stride,
            dilation: self.dilation,
            groups: self.groups,
            padding: self.padding.clone(),
            bias: self.bias,
            initializer: self.initializer.clone(),
        }
        .init(device)
        .into()
    }
}

/// Convolution of sequences, the same as [`burn::nn::conv::Conv1d`]; inside `evaluate`, with the kernel and bias of every member of
/// the population.
///
/// The weight `[channels_out, channels_in / groups, k]` is perturbed as the matrix `[channels_in / groups · k, channels_out]`: see
/// [`MatrixView`](eggroll_core::MatrixView).
///
/// Created by [`Conv1dConfig`] or from a [`burn::nn::conv::Conv1d`]; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::Conv1d;
///
/// let device = Device::flex();
/// let burn_layer = burn::nn::conv::Conv1dConfig::new(2, 3, 3).init(&device);
/// let layer = Conv1d::from(burn_layer.clone());
/// let x = Tensor::<3>::ones([1, 2, 5], &device);
/// assert_eq!(layer.forward(x.clone()).into_data(), burn_layer.forward(x).into_data());
/// ```
///
/// # References
///
/// Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652, Eq. 4.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Conv1d {
    /// Tensor of shape `[channels_out, channels_in / groups, kernel_size]`.
    pub weight: Param<Tensor<3>>,
    /// Vector of shape `[channels_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// Stride of the convolution.
    pub stride: usize,
    /// Size of the kernel.
    pub kernel_size: usize,
    /// Spacing between kernel elements.
    pub dilation: usize,
    /// Controls the connections between input and output channels.
    pub groups: usize,
    /// The padding configuration.
    #[module(skip)]
    pub padding: PaddingConfig1d,
}

impl Conv1d {
    /// Applies the layer.
    ///
    /// # Shapes
    ///
    /// - input: `[sequences, channels_in, length_in]`; inside `evaluate` the first axis is `members · sequences`, member-major
    /// - output: `[sequences, channels_out, length_out]`
    ///
    /// # Panics
    ///
    /// Panics if the channels do not fit or the kernel is larger than the padded sequence. Inside `evaluate` it also panics if the
    /// sequences are not a multiple of the members.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3>) -> Tensor<3> {
        self.apply(input, InputRows::PerMember)
    }

    /// Applies the layer to sequences that all members share. It cuts out patches and multiplies them by the weight once, and
    /// each member adds its low-rank part. For first layers; outside `evaluate` the same as [`forward`](Self::forward).
    ///
    /// # Shapes
    ///
    /// - input: `[sequences, channels_in, length_in]`
    /// - output: `[members · sequences, channels_out, length_out]` inside `evaluate`, member-major; `[sequences, …]` outside
    ///
    /// # Panics
    ///
    /// Panics if the channels do not fit or the kernel is larger than the padded sequence.
    #[track_caller]
    pub fn forward_shared(&self, input: Tensor<3>) -> Tensor<3> {
        self.apply(input, InputRows::Shared)
    }

    #[track_caller]
    fn apply(&self, input: Tensor<3>, rows: InputRows) -> Tensor<3> {
        let Some(parameter) = scope::active(&self.weight) else {
            return conv::Conv1d::from(self.clone()).forward(input);
        };
        let [sequences, channels, length] = input.dims();
        let padding = match self.padding {
            PaddingConfig1d::Valid => (0, 0),
            PaddingConfig1d::Explicit(left, right) => (left, right),
            PaddingConfig1d::Same => same_padding(length, self.kernel_size, self.stride),
        };
        let window = Window {
            kernel: [1, self.kernel_size],
            stride: [1, self.stride],
            dilation: [1, self.dilation],
            padding: [(0, 0), padding],
        };
        let (matrix, bias) = (matrix(&self.weight), self.bias.as_ref());
        let y = Convolution { parameter, matrix, bias, window, groups: self.groups }
            .forward(input.reshape([sequences, channels, 1, length]), rows);
        y.squeeze_dim::<3>(2)
    }
}

drop_in!(Conv1d, conv::Conv1d { weight, bias, stride, kernel_size, dilation, groups, padding });

impl ModuleDisplay for Conv1d {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [channels_out, channels_in, _] = self.weight.dims();
        content
            .add("ch_in", &(channels_in * self.groups))
            .add("ch_out", &channels_out)
            .add("stride", &self.stride)
            .add("kernel_size", &self.kernel_size)
            .add("dilation", &self.dilation)
            .add("groups", &self.groups)
            .add_debug_attribute("padding", &self.padding)
            .optional()
    }
}
