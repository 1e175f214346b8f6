//! The perturbed drop-in replacement of [`burn::nn::conv::Conv2d`].

use crate::check::check;
use crate::convolution::{Convolution, matrix, same_padding};
use crate::drop_in::drop_in;
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn::{Initializer, PaddingConfig2d, conv};
use burn::tensor::{Device, Tensor};
use eggroll_core::ops::{InputRows, Window};
use eggroll_core::scope;

/// Configuration of a [`Conv2d`]: the same as [`burn::nn::conv::Conv2dConfig`].
#[derive(Config, Debug)]
pub struct Conv2dConfig {
    /// The number of channels, in and out.
    pub channels: [usize; 2],
    /// The size of the kernel.
    pub kernel_size: [usize; 2],
    /// The stride of the convolution.
    #[config(default = "[1, 1]")]
    pub stride: [usize; 2],
    /// Spacing between kernel elements.
    #[config(default = "[1, 1]")]
    pub dilation: [usize; 2],
    /// Controls the connections between input and output channels.
    #[config(default = "1")]
    pub groups: usize,
    /// The padding configuration, symmetric or not.
    #[config(default = "PaddingConfig2d::Valid")]
    pub padding: PaddingConfig2d,
    /// If bias should be added to the output.
    #[config(default = true)]
    pub bias: bool,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::KaimingUniform{gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false}")]
    pub initializer: Initializer,
}

impl Conv2dConfig {
    /// Initializes a new [`Conv2d`].
    ///
    /// # Panics
    ///
    /// Panics if the groups do not divide both numbers of channels.
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Conv2d {
        check(
            "Conv2dConfig",
            self,
            &[&[
                ("channels", self.channels[0]),
                ("channels", self.channels[1]),
                ("kernel_size", self.kernel_size[0]),
                ("kernel_size", self.kernel_size[1]),
            ]],
        );
        conv::Conv2dConfig {
            channels: self.channels,
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

/// Convolution of images, the same as [`burn::nn::conv::Conv2d`]; inside `evaluate`, with the kernel and bias of every member of the
/// population.
///
/// The weight `[channels_out, channels_in / groups, k₀, k₁]` is perturbed as the matrix
/// `[channels_in / groups · k₀ · k₁, channels_out]` that multiplies the patches of an image: see [`MatrixView`](eggroll_core::MatrixView).
///
/// Created by [`Conv2dConfig`] or from a [`burn::nn::conv::Conv2d`]; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::Conv2d;
///
/// let device = Device::flex();
/// let burn_layer = burn::nn::conv::Conv2dConfig::new([2, 3], [3, 3]).init(&device);
/// let layer = Conv2d::from(burn_layer.clone());
/// let x = Tensor::<4>::ones([1, 2, 5, 5], &device);
/// assert_eq!(layer.forward(x.clone()).into_data(), burn_layer.forward(x).into_data());
/// ```
///
/// # References
///
/// Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652, Eq. 4.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Conv2d {
    /// Tensor of shape `[channels_out, channels_in / groups, kernel_size_1, kernel_size_2]`.
    pub weight: Param<Tensor<4>>,
    /// Vector of shape `[channels_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// Stride of the convolution.
    pub stride: [usize; 2],
    /// Size of the kernel.
    pub kernel_size: [usize; 2],
    /// Spacing between kernel elements.
    pub dilation: [usize; 2],
    /// Controls the connections between input and output channels.
    pub groups: usize,
    /// The padding configuration.
    #[module(skip)]
    pub padding: PaddingConfig2d,
}

impl Conv2d {
    /// Applies the layer.
    ///
    /// # Shapes
    ///
    /// - input: `[images, channels_in, height_in, width_in]`; inside `evaluate` the first axis is `members · images`, member-major
    /// - output: `[images, channels_out, height_out, width_out]`
    ///
    /// # Panics
    ///
    /// Panics if the channels do not fit or the kernel is larger than the padded image. Inside `evaluate` it also panics if the
    /// images are not a multiple of the members.
    #[track_caller]
    pub fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        self.apply(input, InputRows::PerMember)
    }

    /// Applies the layer to images that all members share. It cuts out patches and multiplies them by the weight once, and each
    /// member adds its low-rank part. For first layers; outside `evaluate` the same as [`forward`](Self::forward).
    ///
    /// # Shapes
    ///
    /// - input: `[images, channels_in, height_in, width_in]`
    /// - output: `[members · images, channels_out, height_out, width_out]` inside `evaluate`, member-major; `[images, …]` outside
    ///
    /// # Panics
    ///
    /// Panics if the channels do not fit or the kernel is larger than the padded image.
    #[track_caller]
    pub fn forward_shared(&self, input: Tensor<4>) -> Tensor<4> {
        self.apply(input, InputRows::Shared)
    }

    #[track_caller]
    fn apply(&self, input: Tensor<4>, rows: InputRows) -> Tensor<4> {
        let Some(parameter) = scope::active(&self.weight) else {
            return conv::Conv2d::from(self.clone()).forward(input);
        };
        let [_, _, height, width] = input.dims();
        Convolution {
            parameter,
            matrix: matrix(&self.weight),
            bias: self.bias.as_ref(),
            window: self.window([height, width]),
            groups: self.groups,
        }
        .forward(input, rows)
    }

    fn window(&self, image: [usize; 2]) -> Window {
        let padding = match self.padding {
            PaddingConfig2d::Valid => [(0, 0); 2],
            PaddingConfig2d::Explicit(top, left, bottom, right) => [(top, bottom), (left, right)],
            PaddingConfig2d::Same => {
                std::array::from_fn(|axis| same_padding(image[axis], self.kernel_size[axis], self.stride[axis]))
            }
        };
        Window { kernel: self.kernel_size, stride: self.stride, dilation: self.dilation, padding }
    }
}

drop_in!(Conv2d, conv::Conv2d { weight, bias, stride, kernel_size, dilation, groups, padding });

impl ModuleDisplay for Conv2d {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [channels_out, channels_in, _, _] = self.weight.dims();
        content
            .add("ch_in", &(channels_in * self.groups))
            .add("ch_out", &channels_out)
            .add_debug_attribute("stride", &self.stride)
            .add_debug_attribute("kernel_size", &self.kernel_size)
            .add_debug_attribute("dilation", &self.dilation)
            .add("groups", &self.groups)
            .add_debug_attribute("padding", &self.padding)
            .optional()
    }
}
