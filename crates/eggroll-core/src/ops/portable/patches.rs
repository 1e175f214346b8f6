//! Patches by tensor operations: one strided slice of the padded images for each element of the kernel.

use crate::ops::Window;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, Slice};

pub(crate) fn patches<B: Backend>(images: FloatTensor<B>, window: Window) -> FloatTensor<B> {
    let shape = images.shape();
    let [count, channels, height, width] = [shape[0], shape[1], shape[2], shape[3]];
    let [rows, columns] = window.positions([height, width]);
    let padded = padded::<B>(images, window.padding);
    let along = |axis: usize, offset: usize, positions: usize| {
        let (start, stride) = (offset * window.dilation[axis], window.stride[axis]);
        let end = start + (positions - 1) * stride + 1;
        Slice::new(start as isize, Some(end as isize), stride as isize)
    };
    let mut seen = Vec::with_capacity(window.size());
    for a in 0..window.kernel[0] {
        for b in 0..window.kernel[1] {
            let slices = [Slice::from(0..count), Slice::from(0..channels), along(0, a, rows), along(1, b, columns)];
            let element = B::float_slice(padded.clone(), &slices); // [images, channels, height', width']
            seen.push(B::float_reshape(element, Shape::new([count, channels, 1, rows * columns])));
        }
    }
    let all = B::float_cat(seen, 2); // [images, channels, kernel, positions]
    let all = B::float_reshape(all, Shape::new([count, channels * window.size(), rows * columns]));
    let all = B::float_swap_dims(all, 1, 2); // [images, positions, channels · kernel]
    B::float_reshape(all, Shape::new([count * rows * columns, channels * window.size()]))
}

/// The images with zeros around them.
fn padded<B: Backend>(images: FloatTensor<B>, [above_below, left_right]: [(usize, usize); 2]) -> FloatTensor<B> {
    if above_below == (0, 0) && left_right == (0, 0) {
        return images;
    }
    let shape = images.shape();
    let [count, channels, height, width] = [shape[0], shape[1], shape[2], shape[3]];
    let ((above, below), (left, right)) = (above_below, left_right);
    let shape = Shape::new([count, channels, above + height + below, left + width + right]);
    let zeros = B::float_zeros(shape, &images.device(), images.dtype().into());
    let inside = [
        Slice::from(0..count),
        Slice::from(0..channels),
        Slice::from(above..above + height),
        Slice::from(left..left + width),
    ];
    B::float_slice_assign(zeros, &inside, images)
}
