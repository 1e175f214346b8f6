//! Positions of a convolution's kernel.

use super::checks::TOO_MANY;

/// How a convolution's kernel moves over an image; rows first, then columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Elements of the kernel.
    pub kernel: [usize; 2],
    /// Steps between two positions.
    pub stride: [usize; 2],
    /// Distance between two elements of the kernel.
    pub dilation: [usize; 2],
    /// Zeros before and after the image.
    pub padding: [(usize, usize); 2],
}

impl Window {
    /// Elements of the kernel.
    pub fn size(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Positions of the kernel on an image of `[height, width]`: `⌊(length + padding − dilation·(kernel − 1) − 1)/stride⌋ + 1` each.
    ///
    /// # Panics
    ///
    /// Panics if the kernel is larger than the padded image, with both, or a stride, dilation or kernel is 0.
    #[track_caller]
    pub fn positions(&self, image: [usize; 2]) -> [usize; 2] {
        std::array::from_fn(|axis| {
            let (kernel, stride, dilation) = (self.kernel[axis], self.stride[axis], self.dilation[axis]);
            assert!(kernel > 0 && stride > 0 && dilation > 0, "patches: a size of {self:?} is 0");
            let (before, behind) = self.padding[axis];
            let padded = before.saturating_add(image[axis]).saturating_add(behind);
            let reach = dilation.saturating_mul(kernel - 1).saturating_add(1);
            assert!(reach <= padded && padded < TOO_MANY, "patches: {self:?} does not fit an image of {image:?}");
            (padded - reach) / stride + 1
        })
    }
}
