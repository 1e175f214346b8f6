//! Shared by the perturbed convolutions: patches times every member's weight.

use crate::per_member;
use burn::module::Param;
use burn::tensor::Tensor;
use eggroll_core::MatrixView;
use eggroll_core::ops::{InputRows, Window, patches};
use eggroll_core::scope::ActiveParameter;

/// A convolution in two dimensions inside `evaluate`; one dimension has height 1.
pub(crate) struct Convolution<'a> {
    /// The weight.
    pub parameter: ActiveParameter,
    /// The weight as `[channels_in / groups · kernel, channels_out]`, the shape of its noise.
    pub matrix: Tensor<2>,
    pub bias: Option<&'a Param<Tensor<1>>>,
    pub window: Window,
    pub groups: usize,
}

impl Convolution<'_> {
    /// # Shapes
    ///
    /// - images: `[members · images, channels_in, height, width]`, or `[images, …]` if shared
    /// - output: `[members · images, channels_out, height', width']`
    #[track_caller]
    pub fn forward(&self, images: Tensor<4>, input: InputRows) -> Tensor<4> {
        self.parameter.refuse_empty(&images.dims());
        let ([count, channels, height, width], members) = (images.dims(), self.parameter.pairs().members());
        let ([depth, channels_out], size) = (self.matrix.dims(), self.window.size());
        assert!(
            channels * size == depth * self.groups,
            "convolution: images {:?} do not fit a weight of {} channels in {} groups",
            images.dims(),
            depth / size * self.groups,
            self.groups
        );
        let count = match input {
            InputRows::Shared => members * count,
            InputRows::PerMember => {
                per_member::check_rows(&self.parameter, &images.dims());
                count
            }
        };
        let [rows, columns] = self.window.positions([height, width]);
        let seen = patches(images, self.window, input); // [members · images · height' · width', channels_in · kernel]
        let y = match self.groups {
            1 => self.parameter.linear(seen, self.matrix.clone(), self.bias, input),
            _ => self.grouped(seen, input),
        };
        y.reshape([count, rows, columns, channels_out]).permute([0, 3, 1, 2])
    }

    /// Every group's columns of the patches times the group's columns of every member's weight. The weights of a convolution in
    /// groups are small, so they are formed for the members of the chunk.
    ///
    /// # Shapes
    ///
    /// - seen: `[members · rows, channels_in · kernel]`, or `[rows, …]` if shared
    /// - output: `[members · rows, channels_out]`
    #[track_caller]
    fn grouped(&self, seen: Tensor<2>, input: InputRows) -> Tensor<2> {
        let (members, groups) = (self.parameter.pairs().members(), self.groups);
        let ([depth, channels_out], [rows, _]) = (self.matrix.dims(), seen.dims());
        let own = if input == InputRows::Shared { 1 } else { members };
        let weights = self.parameter.matrix(self.matrix.clone()); // [members · depth, channels_out]
        let weights = weights.reshape([members, depth, groups, channels_out / groups]).permute([0, 2, 1, 3]);
        let seen = seen.reshape([own, rows / own, groups, depth]).permute([0, 2, 1, 3]); // [members, groups, rows, depth]
        let y = seen.matmul(weights).permute([0, 2, 1, 3]); // [members, rows, groups, channels_out / groups]
        let y = y.reshape([members, rows / own, channels_out]);
        let y = match self.bias {
            Some(bias) => y + per_member::vector(bias, members).unsqueeze_dim::<3>(1),
            None => y,
        };
        y.reshape([members * (rows / own), channels_out])
    }
}

/// A convolution's weight as a matrix, the shape of its noise.
pub(crate) fn matrix<const D: usize>(weight: &Param<Tensor<D>>) -> Tensor<2> {
    let weight = weight.val();
    let view = MatrixView::of(&weight.dims()).expect("a convolution's weight has three or more axes");
    view.matrix(weight)
}

/// Zeros before and after an axis for `⌈length/stride⌉` positions; an odd one comes after.
pub(crate) fn same_padding(length: usize, kernel: usize, stride: usize) -> (usize, usize) {
    let needed = (length.div_ceil(stride).max(1) - 1) * stride + kernel;
    let total = needed.saturating_sub(length);
    (total / 2, total - total / 2)
}
