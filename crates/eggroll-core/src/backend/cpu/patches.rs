//! Patches of images as rows: copies of short runs.

use crate::ops::Window;
use crate::work::profile::{self, Component};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Writes every element of `y : [images · height' · width', channels · kernel]` from `images : [images, channels, height, width]`.
pub(crate) fn patches(images: &[f32], shape: [usize; 4], window: &Window, y: &mut [MaybeUninit<f32>]) {
    let [count, channels, height, width] = shape;
    let [rows, columns] = window.positions([height, width]);
    let (image_len, patch_len) = (channels * height * width, channels * window.size());
    assert!(images.len() == count * image_len && y.len() == count * rows * columns * patch_len, "patches of {shape:?}");
    if y.is_empty() || image_len == 0 {
        return y.fill(MaybeUninit::new(0.0));
    }
    let traced = profile::enabled();
    y.par_chunks_exact_mut(rows * columns * patch_len).zip(images.par_chunks_exact(image_len)).for_each(
        |(y, image)| {
            let _span = profile::task(traced, Component::BaseProduct, 4 * y.len());
            for (position, patch) in y.chunks_exact_mut(patch_len).enumerate() {
                let corner = [position / columns * window.stride[0], position % columns * window.stride[1]];
                let of_channels = patch.chunks_exact_mut(window.size()).zip(image.chunks_exact(height * width));
                for (patch, channel) in of_channels {
                    cut(channel, [height, width], window, corner, patch);
                }
            }
        },
    );
}

/// Writes the part of one channel that a kernel sees at `corner` of the padded image.
#[inline]
fn cut(
    channel: &[f32],
    [height, width]: [usize; 2],
    window: &Window,
    corner: [usize; 2],
    patch: &mut [MaybeUninit<f32>],
) {
    let ([above, left], [_, dilation]) = ([window.padding[0].0, window.padding[1].0], window.dilation);
    for (a, run) in patch.chunks_exact_mut(window.kernel[1]).enumerate() {
        // Counted from the padded image's edge, so never negative.
        let row = corner[0] + a * window.dilation[0];
        if row < above || row >= above + height {
            run.fill(MaybeUninit::new(0.0));
            continue;
        }
        let line = &channel[(row - above) * width..][..width];
        let (first, last) = (corner[1], corner[1] + (run.len() - 1) * dilation);
        if first >= left && last < left + width {
            let seen = &line[first - left..=last - left];
            if dilation == 1 {
                copy_run(run, seen);
            } else {
                run.iter_mut().zip(seen.iter().step_by(dilation)).for_each(|(to, from)| _ = to.write(*from));
            }
        } else {
            for (b, to) in run.iter_mut().enumerate() {
                let column = first + b * dilation;
                to.write(column.checked_sub(left).and_then(|column| line.get(column)).copied().unwrap_or(0.0));
            }
        }
    }
}

/// Copies a run of elements. The compiler knows the lengths of usual kernels: a move or two, where a copy of any length is a call.
#[inline(always)]
fn copy_run(to: &mut [MaybeUninit<f32>], from: &[f32]) {
    #[inline(always)]
    fn copy<const N: usize>(to: &mut [MaybeUninit<f32>], from: &[f32]) {
        to[..N].write_copy_of_slice(&from[..N]);
    }
    match to.len() {
        1 => copy::<1>(to, from),
        2 => copy::<2>(to, from),
        3 => copy::<3>(to, from),
        4 => copy::<4>(to, from),
        5 => copy::<5>(to, from),
        7 => copy::<7>(to, from),
        _ => _ = to.write_copy_of_slice(from),
    }
}
