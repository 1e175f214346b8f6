//! `Σ_q w_q·c·B_q·A_qᵀ` for wide layers: the factors of all pairs are drawn once, side by side, and multiplied by one product.
//! A tile of [`super::estimate`] would draw what each of its neighbors in a row or column of tiles draws too.

use super::eligibility::Demand;
use super::estimate::sign;
use super::geometry::{COLUMNS, UNITS, by_element, cube_count, term_splits};
use super::launch::{NoiseOperand, empty};
use super::noise::{SourceKind, Stream, pair_noise};
use super::product::{Precision, product};
use super::registers::{none_kept, unit_noise};
use super::vector::units_of_pair;
use crate::rng::normal::{BLOCKS, GROUP};
use crate::work::counters;
use burn::backend::cubecl::dtype_to_elem_type;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, FloatDType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::CubeDim;
use cubecl::prelude::*;
use std::ops::Range;

/// Elements of noise that are held at a time.
const HELD: usize = 1 << 25;

/// What the kernel asks for `elements` of the largest tensor that it is given.
pub(crate) fn demand(elements: usize) -> Demand {
    by_element(4, elements.max(HELD))
}

/// `[d_input, d_output]` in f32, or in bf16 if that is the parameter's type.
pub(crate) fn low_rank_estimate(weights: CubeTensor, noise: &NoiseOperand, what: Estimate) -> CubeTensor {
    in_runs(weights, noise, what, HELD / noise.elements)
}

/// The same, with the factors of at most `most` pairs at a time.
fn in_runs(weights: CubeTensor, noise: &NoiseOperand, what: Estimate, most: usize) -> CubeTensor {
    let weights = into_contiguous(weights);
    let pairs = weights.meta.shape()[0];
    let each = most.clamp(1, pairs);
    // What is to be added up stays in float32.
    let out = if each < pairs { DType::F32 } else { factor_type(what.dtype) };
    let mut sum = None;
    for first in (0..pairs).step_by(each) {
        let (b, a) = factors(&weights, noise, what, first..(first + each).min(pairs));
        let product = split_product(b, a, what.shape, out);
        sum = Some(match sum {
            None => product,
            Some(sum) => CubeBackend::float_add(sum, product),
        });
    }
    sum.expect("there are pairs")
}

/// The same values in float32.
pub(crate) fn in_f32(tensor: CubeTensor) -> CubeTensor {
    if tensor.dtype == DType::F32 { tensor } else { CubeBackend::float_cast(tensor, FloatDType::F32) }
}

/// What an estimate is made of, but for its noise.
#[derive(Clone, Copy)]
pub(crate) struct Estimate {
    pub first_pair: u32,
    pub rank: usize,
    /// `[d_input, d_output]`.
    pub shape: [usize; 2],
    /// Whether the signs of the factors are multiplied in their place.
    pub signs: bool,
    /// The parameter's type.
    pub dtype: DType,
}

/// The type of factors. Fitness over sigma is too small for f16, whose factors are multiplied in f32.
fn factor_type(dtype: DType) -> DType {
    if dtype == DType::BF16 { DType::BF16 } else { DType::F32 }
}

/// `B : [pairs · rank, d_input]`, and `w_q·c·A_q : [pairs · rank, d_output]`, of a run of pairs.
fn factors(weights: &CubeTensor, noise: &NoiseOperand, what: Estimate, run: Range<usize>) -> (CubeTensor, CubeTensor) {
    let [d_input, d_output] = what.shape;
    let dtype = factor_type(what.dtype);
    let rows = run.len() * what.rank;
    let (b, a) = (empty(weights, [rows, d_input], dtype), empty(weights, [rows, d_output], dtype));
    let units = run.len() * units_of_pair(noise.elements, noise.kind.groups_together());
    let held = noise.held.as_ref().unwrap_or(weights).clone();
    factors_kernel::launch(
        &weights.client,
        cube_count(&weights.client, units.div_ceil(UNITS)),
        CubeDim::new_1d(UNITS as u32),
        weights.clone().into_buffer_arg(),
        held.into_buffer_arg(),
        b.clone().into_buffer_arg(),
        a.clone().into_buffer_arg(),
        noise.stream(),
        FactorSizesLaunch::new(what.first_pair, run.start, run.len(), what.rank * d_input),
        noise.scale,
        noise.kind,
        what.signs,
        dtype_to_elem_type(what.dtype),
        dtype_to_elem_type(dtype),
    );
    counters::add_kernel();
    counters::add_noise_bytes(run.len() * noise.elements * dtype.size());
    (b, a)
}

/// `Bᵀ·A`, the terms in as many splits as keep a device busy.
fn split_product(b: CubeTensor, a: CubeTensor, shape: [usize; 2], out: DType) -> CubeTensor {
    let terms = b.meta.shape()[0];
    let splits = term_splits(terms, shape);
    if splits == 1 {
        return product(CubeBackend::float_swap_dims(b, 0, 1), a, out, Precision::Chosen);
    }
    let [d_input, d_output] = shape;
    let b = CubeBackend::float_reshape(b, Shape::new([splits, terms / splits, d_input]));
    let a = CubeBackend::float_reshape(a, Shape::new([splits, terms / splits, d_output]));
    let products = product(CubeBackend::float_swap_dims(b, 1, 2), a, DType::F32, Precision::Chosen);
    CubeBackend::float_reshape(CubeBackend::float_sum_dim(products, 0), Shape::new(shape))
}

/// Sizes of the factors of a run of pairs.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct FactorSizes {
    first_pair: u32,
    /// The first pair of the run, counted from `first_pair`.
    first: usize,
    pairs: usize,
    /// Elements of a pair's first factor.
    first_factor: usize,
}

/// Writes the factors of a run of pairs, the second weighted; a unit takes a lane of some groups of one pair. Of a pair without noise
/// the first factor is any numbers, the second 0.
#[cube(launch)]
fn factors_kernel<F: Float, T: Float>(
    weights: &[f32],
    held: &[F],
    b: &mut [T],
    a: &mut [T],
    stream: Stream,
    sizes: FactorSizes,
    scale: f32,
    #[comptime] kind: SourceKind,
    #[comptime] signs: bool,
    #[define(F)] _dtype: ElemType,
    #[define(T)] _factor_type: ElemType,
) {
    let groups = comptime!(kind.groups_together());
    let units = stream.elements.div_ceil(GROUP).div_ceil(groups) * BLOCKS;
    let pair = ABSOLUTE_POS / units;
    if pair >= sizes.pairs {
        terminate!();
    }
    let (lane, first) = (ABSOLUTE_POS % BLOCKS, ABSOLUTE_POS % units / BLOCKS * groups);
    let of = pair_noise(stream, sizes.first_pair + (sizes.first + pair) as u32, kind);
    let weight = scale * weights[sizes.first + pair] * of.loud;
    let mut kept = none_kept(1usize);
    let mut noise = Array::<Vector<f32, Const<1>>>::new(COLUMNS);
    #[unroll]
    for j in 0..groups {
        unit_noise::<F, Const<1>>(&mut noise, &mut kept, held, &of, first + j, lane, 1usize, kind);
        #[unroll]
        for c in 0..COLUMNS {
            let element = (first + j) * GROUP + lane + comptime!(c * BLOCKS);
            let value = noise[c].extract(0usize);
            let counted = if comptime!(signs) { sign(value) } else { value };
            write_factor::<T>(b, a, &of.stream, &sizes, pair, element, counted, weight);
        }
    }
}

/// Writes an element of a pair's noise to the factor that it belongs to.
#[cube]
fn write_factor<T: Float>(
    b: &mut [T],
    a: &mut [T],
    stream: &Stream,
    sizes: &FactorSizes,
    pair: usize,
    element: usize,
    value: f32,
    weight: f32,
) {
    if element < sizes.first_factor {
        b[pair * sizes.first_factor + element] = T::cast_from(value);
    } else if element < stream.elements {
        let second_factor = stream.elements - sizes.first_factor;
        a[pair * second_factor + element - sizes.first_factor] = T::cast_from(weight * value);
    }
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use super::*;
    use crate::backend::cube::device::tested;
    use crate::ops::SourcePrimitive;
    use crate::rng::key::NoiseKey;
    use burn::tensor::{TensorData, try_read_sync};

    fn estimate(first_pair: u32, most: usize) -> Vec<f32> {
        let weights = [0.5, -1.0, 0.25, 2.0, 1.5f32];
        let weights = CubeBackend::float_from_data(TensorData::from(weights), &tested());
        let what = Estimate { first_pair, rank: 3, shape: [65, 70], signs: false, dtype: DType::F32 };
        let noise = NoiseOperand::new(NoiseKey::new(5, 1, 2), 0.5, 3 * (65 + 70), SourcePrimitive::Drawn);
        let sum = CubeBackend::float_into_data(in_runs(weights, &noise, what, most));
        try_read_sync(sum).expect("a device that is read at once").expect("runs").try_to_vec().expect("f32")
    }

    #[test]
    fn runs_add_up() {
        let whole = estimate(4, 5);
        let off = |other: Vec<f32>| whole.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0f32, f32::max);
        for most in [0, 1, 2, 4] {
            assert!(off(estimate(4, most)) < 1e-5, "runs of {most}");
        }
        assert!(off(estimate(5, 2)) > 1.0, "canary");
    }
}
