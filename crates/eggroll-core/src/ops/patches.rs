//! Patches of images: a convolution as a matrix product.

use super::checks::len;
use super::{InputRows, PerturbedOps, Window};
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::Tensor;

/// The part of every image that a convolution's kernel sees, at every position, as a row:
///
/// `y[(n·height' + i)·width' + j, (c·kernel₀ + a)·kernel₁ + b] = x[n, c, i·stride₀ + a·dilation₀ − before₀, j·stride₁ + …]`,
///
/// 0 outside of the image. A convolution is these rows times its weight as a matrix ([`MatrixView`](crate::MatrixView)).
///
/// `input` says whether all members share the images: a backend may then keep the patches, because every chunk of members
/// asks for them again.
///
/// # Shapes
///
/// - images: `[images, channels, height, width]`
/// - output: `[images · height' · width', channels · kernel₀ · kernel₁]` for the [`positions`](Window::positions) `[height', width']`
///
/// # Panics
///
/// As [`Window::positions`].
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::ops::{InputRows, Window, patches};
///
/// let image = Tensor::<4>::from_data([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]], &Device::flex());
/// let window = Window { kernel: [2, 2], stride: [1, 1], dilation: [1, 1], padding: [(0, 0); 2] };
/// let rows = patches(image, window, InputRows::Shared);
/// assert_eq!(rows.to_data().try_to_vec::<f32>().unwrap(), [1.0, 2.0, 4.0, 5.0, 2.0, 3.0, 5.0, 6.0]);
/// ```
#[track_caller]
pub fn patches(images: Tensor<4>, window: Window, input: InputRows) -> Tensor<2> {
    let [count, channels, height, width] = images.dims();
    let [rows, columns] = window.positions([height, width]);
    len("patches", &[count, rows, columns, channels, window.kernel[0], window.kernel[1]]);
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::patches(images.into_dispatch(), window, input))
}
