//! What the low-rank and the dense perturbed linear share: operands, bias rows, the unperturbed product.

use super::product::Product;
use super::source::SourceSlice;
use super::tile::{MAX_COLUMNS, Packed, Strided};
use crate::ops::{DenseNoise, PairRange};
use crate::simd::{Kernel, Simd, dispatch};
use crate::work::profile::{self, Component};
use rayon::prelude::*;

/// Floats of noise that one task holds, if the weight is small: half of a usual second-level cache.
const TASK_NOISE: usize = 64 * 1024;
/// The most, if it is large: 16 MiB.
const MOST_TASK_NOISE: usize = 1 << 22;
/// Rows that one task takes at least, so that the microkernel's tiles are full.
const TASK_ROWS: usize = 56;

/// Rows of at most so many elements are projected column by column,
const SHORT: usize = 128;
/// if they are at least so many.
const MANY: usize = 64;

/// What is computed once for rows that all members share.
pub(crate) struct SharedRows {
    /// `x·W : [rows, d_output]`
    pub product: Vec<f32>,
    /// `xᵀ : [d_input, rows]`, with slack at the end for loads of whole vectors, if the rows are short and many, as in a
    /// convolution. Dot products of short rows would be mostly horizontal sums.
    pub columns: Option<Vec<f32>>,
}

/// Operands of a perturbed linear operation.
pub(crate) struct LinearSlices<'a> {
    /// `[members · rows, d_input]`, or `[rows, d_input]` if shared.
    pub x: &'a [f32],
    /// If the rows of `x` are shared by all members.
    pub shared: Option<&'a SharedRows>,
    /// `[d_input, d_output]`
    pub weight: &'a [f32],
    pub bias: BiasSlice<'a>,
    pub d_input: usize,
    pub d_output: usize,
    /// Rows of one member.
    pub rows: usize,
    pub pairs: PairRange,
}

/// The bias of a perturbed linear operation, of length `d_output`.
#[derive(Clone, Copy)]
pub(crate) enum BiasSlice<'a> {
    None,
    Plain(&'a [f32]),
    Perturbed(&'a [f32], DenseNoise, SourceSlice<'a>),
}

impl BiasSlice<'_> {
    /// Floats of noise that are drawn for one pair.
    pub(crate) fn drawn(&self) -> usize {
        match self {
            Self::Perturbed(bias, _, SourceSlice::Drawn) => bias.len(),
            _ => 0,
        }
    }

    /// Writes the bias of both members of `pair`: `[2, d_output]`.
    pub(crate) fn fill_pair(&self, pair: u32, out: &mut [f32]) {
        let (plus, minus) = out.split_at_mut(out.len() / 2);
        match self {
            Self::None => plus.fill(0.0),
            Self::Plain(bias) => plus.copy_from_slice(bias),
            Self::Perturbed(bias, noise, source) => {
                source.fill(noise.key, pair, minus.len(), 0, minus);
                for ((plus, minus), bias) in plus.iter_mut().zip(minus).zip(*bias) {
                    let shift = noise.scale * *minus;
                    (*plus, *minus) = (bias + shift, bias - shift);
                }
                return;
            }
        }
        minus.copy_from_slice(plus);
    }
}

impl LinearSlices<'_> {
    /// Pairs that one task takes, when the noise of a pair has `noise` floats: all threads get as many tasks.
    pub(crate) fn pairs_per_task(&self, noise: usize) -> usize {
        let enough_rows = TASK_ROWS.div_ceil(2 * self.rows.max(1));
        // Every task reads the whole weight: a large one is worth more noise.
        let room = (self.weight.len() / 2).clamp(TASK_NOISE, MOST_TASK_NOISE);
        let most = enough_rows.min((room / noise.max(1)).max(1));
        let pairs = self.pairs.count as usize;
        let tasks = pairs.div_ceil(most).next_multiple_of(rayon::current_num_threads());
        pairs.div_ceil(tasks).max(1)
    }

    /// `W` in panels for the detected instruction set.
    pub(crate) fn packed(&self) -> Packed {
        packed(self.weight, self.d_input, self.d_output)
    }
}

/// A weight `[d_input, d_output]` in panels for the detected instruction set.
pub(crate) fn packed(weight: &[f32], d_input: usize, d_output: usize) -> Packed {
    struct Pack<'a>(&'a [f32], usize, usize);
    impl Kernel for Pack<'_> {
        type Output = Packed;
        #[inline(always)]
        unsafe fn run<S: Simd>(self) -> Packed {
            Packed::new::<S>(self.0, self.1, self.2)
        }
    }
    let _span = profile::span(Component::BaseProduct, 4 * weight.len());
    dispatch(Pack(weight, d_input, d_output))
}

impl SharedRows {
    /// For `x : [rows, d_input]` and `W : [d_input, d_output]`.
    pub(crate) fn new(x: &[f32], weight: &[f32], rows: usize, shape: [usize; 2]) -> Self {
        let [d_input, _] = shape;
        let columns = (d_input <= SHORT && rows >= MANY).then(|| transposed(x, [rows, d_input]));
        Self { product: shared_product(x, weight, rows, shape), columns }
    }
}

/// The transpose of a row-major matrix, with slack behind for loads of whole vectors.
fn transposed(x: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    let mut transposed = vec![0.0; rows * columns + MAX_COLUMNS];
    for (row, x) in x.chunks_exact(columns.max(1)).enumerate() {
        for (column, x) in x.iter().enumerate() {
            transposed[column * rows + row] = *x;
        }
    }
    transposed
}

/// `x·W` of rows that all members share: `[rows, d_output]`.
fn shared_product(x: &[f32], weight: &[f32], rows: usize, [d_input, d_output]: [usize; 2]) -> Vec<f32> {
    let mut product = vec![0.0; rows * d_output];
    let packed = packed(weight, d_input, d_output);
    let chunk = TASK_ROWS * d_output;
    let traced = profile::enabled();
    product.par_chunks_mut(chunk.max(1)).enumerate().for_each(|(i, product)| {
        let x = &x[i * TASK_ROWS * d_input..];
        let _span = profile::task(traced, Component::BaseProduct, 4 * product.len());
        dispatch(Product {
            rows: product.len() / d_output,
            columns: d_output,
            depth: d_input,
            x: Strided { values: x, row: d_input, depth: 1 },
            panels: packed.panels(),
            target: product,
            add: false,
        });
    });
    product
}
