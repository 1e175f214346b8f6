//! Scalar f64 oracle: each formula written as it stands in the papers, slowly.

#[cfg(test)]
pub(crate) mod floats;
pub mod integer;

use crate::ops::Window;
use crate::rng::NoiseDistribution;
use crate::rng::group::BLOCKS;
use crate::rng::key::NoiseKey;
use crate::rng::normal::GROUP;
use crate::rng::philox::philox4x32;
use crate::rng::rademacher::SIGNS;
use crate::rng::sparse::SPARSE;
use std::f64::consts::FRAC_PI_2;

/// Element `element` of the stream of `key` and `pair`; see [`crate::rng::normal`] for the definition.
pub fn normal(key: NoiseKey, pair: u32, element: usize) -> f64 {
    let block = (element / GROUP * BLOCKS + element % BLOCKS) as u32;
    let words = philox4x32(key.counter(block, pair), key.words());
    let lane = element % GROUP / BLOCKS;
    let (radius, angle) = (words[lane / 2 * 2], words[lane / 2 * 2 + 1]);
    let unit = (2f64).powi(-24);
    let r = (-2.0 * (f64::from((radius >> 8) | 1) * unit).ln()).sqrt();
    let phi = FRAC_PI_2 * f64::from((((angle << 2) as i32) >> 8) | 1) * unit;
    let cos = if angle >> 31 == 1 { -phi.cos() } else { phi.cos() };
    let swap = (angle >> 30) & 1 == 1;
    if swap == lane.is_multiple_of(2) { r * phi.sin() } else { r * cos }
}

/// Element `element` of the stream of signs of `key` and `pair`; see [`crate::rng::rademacher`] for the definition.
pub fn rademacher(key: NoiseKey, pair: u32, element: usize) -> f64 {
    let [block, c1, c2, c3] = key.counter((element / 2048 * 16 + element % 16) as u32, pair);
    let word = philox4x32([block, c1, c2, c3 | SIGNS], key.words())[element % 2048 / 512];
    let bit = word >> (31 - element % 512 / 16) & 1;
    1.0 - 2.0 * f64::from(bit)
}

/// Element `element` of the stream of `key` and `pair`, in the distribution of the key; 0 for a baseline.
pub fn noise(key: NoiseKey, pair: u32, element: usize) -> f64 {
    match key.distribution() {
        _ if key.is_baseline(pair) => 0.0,
        NoiseDistribution::Normal => normal(key, pair, element),
        NoiseDistribution::Rademacher => rademacher(key, pair, element),
    }
}

/// The noise matrix `B·Aᵀ` of one pair, row-major `[d_input, d_output]`, without scale and sign.
pub fn low_rank_noise(key: NoiseKey, pair: u32, rank: usize, [d_input, d_output]: [usize; 2]) -> Vec<f64> {
    let b = |i: usize, k: usize| noise(key, pair, k * d_input + i);
    let a = |o: usize, k: usize| noise(key, pair, rank * d_input + k * d_output + o);
    let element = |i, o| (0..rank).map(|k| b(i, k) * a(o, k)).sum();
    (0..d_input).flat_map(|i| (0..d_output).map(move |o| (i, o))).map(|(i, o)| element(i, o)).collect()
}

/// The noise `ε` of one pair, without scale and sign.
pub fn dense_noise(key: NoiseKey, pair: u32, elements: usize) -> Vec<f64> {
    (0..elements).map(|e| noise(key, pair, e)).collect()
}

/// The product of the factors' signs, `sign(B)·sign(A)ᵀ`, of one pair: estimates by signs sum it up in place of `B·Aᵀ`.
pub fn low_rank_signs(key: NoiseKey, pair: u32, rank: usize, [d_input, d_output]: [usize; 2]) -> Vec<f64> {
    let sign = |element| {
        let value = noise(key, pair, element);
        if value == 0.0 { 0.0 } else { value.signum() }
    };
    let element =
        |i, o| (0..rank).map(|k| sign(k * d_input + i) * sign(rank * d_input + k * d_output + o)).sum::<f64>();
    (0..d_input).flat_map(|i| (0..d_output).map(move |o| (i, o))).map(|(i, o)| element(i, o)).collect()
}

/// The row and the column of entry `entry` of the sparse noise of `key` and `pair`; see [`crate::rng::sparse`].
pub fn sparse_place(key: NoiseKey, pair: u32, entry: usize, [d_input, d_output]: [usize; 2]) -> [usize; 2] {
    let [block, c1, c2, c3] = key.counter((entry / 2) as u32, pair);
    let words = philox4x32([block, c1, c2, c3 | SPARSE], key.words());
    let place = |word: usize, extent: usize| ((u64::from(words[word]) * extent as u64) >> 32) as usize;
    [place(entry % 2 * 2, d_input), place(entry % 2 * 2 + 1, d_output)]
}

/// The sparse noise matrix of one pair, row-major `[d_input, d_output]`, without scale and sign.
pub fn sparse_noise(key: NoiseKey, pair: u32, shape: [usize; 2]) -> Vec<f64> {
    let mut matrix = vec![0.0; shape[0] * shape[1]];
    for entry in 0..shape[0].max(shape[1]) {
        let [row, column] = sparse_place(key, pair, entry, shape);
        matrix[row * shape[1] + column] += noise(key, pair, entry);
    }
    matrix
}

/// Patches of images, row-major: every index computed as it stands in the definition of [`patches`](crate::ops::patches).
pub fn patches(images: &[f64], [count, channels, height, width]: [usize; 4], window: &Window) -> Vec<f64> {
    let [rows, columns] = window.positions([height, width]);
    let pixel = |n: usize, c: usize, y: i64, x: i64| {
        let inside = (0..height as i64).contains(&y) && (0..width as i64).contains(&x);
        if inside { images[((n * channels + c) * height + y as usize) * width + x as usize] } else { 0.0 }
    };
    let at = |axis: usize, position: usize, element: usize| {
        (position * window.stride[axis] + element * window.dilation[axis]) as i64 - window.padding[axis].0 as i64
    };
    let mut rows_of_patches = Vec::new();
    for (n, i, j) in (0..count * rows * columns).map(|p| (p / (rows * columns), p / columns % rows, p % columns)) {
        for e in 0..channels * window.size() {
            let (c, a, b) = (e / window.size(), e / window.kernel[1] % window.kernel[0], e % window.kernel[1]);
            rows_of_patches.push(pixel(n, c, at(0, i, a), at(1, j, b)));
        }
    }
    rows_of_patches
}

/// `x·W`, all row-major: `[rows, d_input] × [d_input, d_output]`.
pub fn matmul(x: &[f64], weight: &[f64], d_input: usize, d_output: usize) -> Vec<f64> {
    let rows = x.len() / d_input;
    let element = |r: usize, o: usize| (0..d_input).map(|i| x[r * d_input + i] * weight[i * d_output + o]).sum();
    (0..rows).flat_map(|r| (0..d_output).map(move |o| (r, o))).map(|(r, o)| element(r, o)).collect()
}
