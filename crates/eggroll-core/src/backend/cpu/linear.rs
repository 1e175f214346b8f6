//! What the low-rank and the dense perturbed linear share: operands, bias rows, the unperturbed product.

use super::source::Source;
use super::tile::{Epilogue, MAX_COLUMNS, Packed, Panels, Place, Strided, Tile, multiply};
use crate::ops::{DenseNoise, PairRange};
use crate::profile::{self, Component};
use crate::simd::{Kernel, Simd, dispatch};
use rayon::prelude::*;

/// Floats of noise that one task holds: half of a usual second-level cache.
const TASK_NOISE: usize = 64 * 1024;
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
    /// `xᵀ : [d_input, rows]`, with slack behind for loads of whole vectors, if the rows are short and many: as those of a
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
    Perturbed(&'a [f32], DenseNoise, Source<'a>),
}

impl BiasSlice<'_> {
    /// Floats of noise that are drawn for one pair.
    pub(crate) fn drawn(&self) -> usize {
        match self {
            Self::Perturbed(bias, _, Source::Drawn) => bias.len(),
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
        let most = enough_rows.min((TASK_NOISE / noise.max(1)).max(1));
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
    pub(crate) fn new(x: &[f32], weight: &[f32], shape: [usize; 2]) -> Self {
        let [d_input, _] = shape;
        let rows = x.len().checked_div(d_input).unwrap_or(0);
        let columns = (d_input <= SHORT && rows >= MANY).then(|| transposed(x, [rows, d_input]));
        Self { product: shared_product(x, weight, shape), columns }
    }
}

/// The transpose of a row-major matrix, with slack behind for loads of whole vectors.
fn transposed(x: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    let mut transposed = vec![0.0; rows * columns + MAX_COLUMNS];
    for (row, x) in x.chunks_exact(columns).enumerate() {
        for (column, x) in x.iter().enumerate() {
            transposed[column * rows + row] = *x;
        }
    }
    transposed
}

/// `x·W` of rows that all members share: `[rows, d_output]`.
fn shared_product(x: &[f32], weight: &[f32], [d_input, d_output]: [usize; 2]) -> Vec<f32> {
    let mut product = vec![0.0; x.len().checked_div(d_input).unwrap_or(0) * d_output];
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
            x: Strided { pointer: x.as_ptr(), row: d_input, depth: 1 },
            panels: packed.panels(),
            target: Target { pointer: product.as_mut_ptr(), stride: d_output, add: false },
        });
    });
    product
}

/// A plain product written, or added, to memory.
pub(crate) struct Product {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub x: Strided,
    pub panels: Panels,
    pub target: Target,
}

impl Kernel for Product {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        // SAFETY: whoever builds a `Product` points it at matrices of these sizes.
        unsafe { multiply::<S, _>(self.rows, self.columns, self.depth, self.x, self.panels, &mut self.target) }
    }
}

/// An output matrix that tiles are written to, or added to.
pub(crate) struct Target {
    pub pointer: *mut f32,
    pub stride: usize,
    pub add: bool,
}

impl Epilogue for Target {
    #[inline(always)]
    unsafe fn finish<S: Simd>(&mut self, place: Place, tile: &Tile) {
        for r in 0..place.rows {
            // SAFETY: the place lies inside the output matrix.
            unsafe {
                let target = self.pointer.add((place.row + r) * self.stride + place.column);
                let source = tile.row(r);
                let add = self.add;
                let columns = place.columns;
                for_vectors::<S>(columns, target, |c, lanes| {
                    let value = S::load(source.add(c));
                    if add { S::add(load_some::<S>(target.add(c), lanes), value) } else { value }
                });
            }
        }
    }
}

/// Calls `value(column, lanes)` for each vector of a row of `columns` and stores what it returns at `target`; the last
/// vector has fewer than all lanes if the row ends inside it.
///
/// # Safety
///
/// The processor must have the instruction set `S`; `target` must hold `columns` elements.
#[inline(always)]
pub(crate) unsafe fn for_vectors<S: Simd>(
    columns: usize,
    target: *mut f32,
    mut value: impl FnMut(usize, usize) -> S::F,
) {
    let mut c = 0;
    // SAFETY: whole vectors end inside the row; the last part is stored by count.
    unsafe {
        while c + S::LANES <= columns {
            S::store(target.add(c), value(c, S::LANES));
            c += S::LANES;
        }
        if c < columns {
            S::store_first(target.add(c), value(c, columns - c), columns - c);
        }
    }
}

/// Loads `lanes` elements; a plain load where that is all of them.
///
/// # Safety
///
/// The processor must have the instruction set `S`; `source` must hold `lanes` elements.
#[inline(always)]
pub(crate) unsafe fn load_some<S: Simd>(source: *const f32, lanes: usize) -> S::F {
    // SAFETY: by this function's contract.
    unsafe { if lanes == S::LANES { S::load(source) } else { S::load_first(source, lanes) } }
}
