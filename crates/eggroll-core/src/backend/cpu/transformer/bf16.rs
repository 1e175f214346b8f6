//! Products of bfloat16, summed in float32: pairs along the depth, the format of AVX512-BF16.

use super::epilogue::MatrixEpilogue;
use crate::backend::cpu::integer::{COLUMNS, ROWS};
use crate::backend::cpu::tile::{Epilogue, Tile, TileArea};
use crate::simd::{self, Kernel, MultiIsaKernel, Simd, dispatch, dispatch_multi_isa};

/// The high half of a pair.
const HIGH: u32 = 0xffff_0000;

/// A weight in panels of [`COLUMNS`] columns, `[panels, steps, COLUMNS]` pairs of rows, padded with zeros.
pub(crate) struct Halves {
    lines: Vec<HalfLine>,
    /// Two rows each.
    steps: usize,
    columns: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct HalfLine([u32; COLUMNS]);

impl Halves {
    /// Packs the bits of `[d_input, d_output]` bfloat16 numbers.
    pub(super) fn new<T: Copy>(weight: &[T], [d_input, d_output]: [usize; 2], bits: impl Fn(T) -> u16) -> Self {
        let (steps, panels) = (d_input.div_ceil(2), d_output.div_ceil(COLUMNS));
        let mut halves = Self { lines: vec![HalfLine([0; COLUMNS]); steps * panels], steps, columns: d_output };
        for (row, values) in weight.chunks_exact(d_output).enumerate() {
            for (panel, values) in values.chunks(COLUMNS).enumerate() {
                let (line, shift) = halves.line(row, panel);
                for (pair, value) in line.iter_mut().zip(values) {
                    *pair |= u32::from(bits(*value)) << shift;
                }
            }
        }
        halves
    }

    /// The pairs of a row in a panel, and the first bit of the row's half.
    fn line(&mut self, row: usize, panel: usize) -> (&mut [u32; COLUMNS], usize) {
        (&mut self.lines[panel * self.steps + row / 2].0, 16 * (row % 2))
    }

    /// The bits of a column's first `d_input` rows.
    pub(super) fn column(&self, column: usize, d_input: usize) -> impl Iterator<Item = u16> {
        let lines = &self.lines[column / COLUMNS * self.steps..][..self.steps];
        (0..d_input).map(move |row| (lines[row / 2].0[column % COLUMNS] >> (16 * (row % 2))) as u16)
    }

    /// Moves the numbers by `update : [d_input, d_output]`. `carried` has the low halves of the weights in float32, as differences from the bits of
    /// their bfloat16. How many have moved.
    pub(super) fn nudge(&mut self, update: &[f32], carried: &mut [i16]) -> usize {
        let (columns, mut moved) = (self.columns, 0);
        for (row, (update, carried)) in update.chunks_exact(columns).zip(carried.chunks_exact_mut(columns)).enumerate()
        {
            let parts = update.chunks(COLUMNS).zip(carried.chunks_mut(COLUMNS));
            for (panel, (update, carried)) in parts.enumerate() {
                let (line, shift) = self.line(row, panel);
                for ((pair, update), carried) in line.iter_mut().zip(update).zip(carried) {
                    let before = (*pair >> shift) as u16;
                    let (after, low) = sum(before, *carried, *update);
                    *pair = *pair & !(0xffff << shift) | u32::from(after) << shift;
                    *carried = low;
                    moved += usize::from(after != before);
                }
            }
        }
        moved
    }

    /// Number of elements that differ between two matrices of the same shape.
    pub(super) fn differing(&self, other: &Self) -> usize {
        let of_pair = |(a, b): (&u32, &u32)| usize::from((a ^ b) & HIGH != 0) + usize::from((a ^ b) & !HIGH != 0);
        let of_line = |(a, b): (&HalfLine, &HalfLine)| a.0.iter().zip(&b.0).map(of_pair).sum::<usize>();
        self.lines.iter().zip(&other.lines).map(of_line).sum()
    }
}

/// Rows of bfloat16 in pairs, rows of whole tiles.
#[derive(Debug, Default)]
pub(crate) struct HalfRows {
    /// `[rows, stride]`, the first of a pair in the low half; what is behind a row is 0.
    pairs: Vec<u32>,
    stride: usize,
}

impl HalfRows {
    /// Takes the rows of `x : [rows, d_input]`.
    pub(crate) fn fill(&mut self, x: &[f32], d_input: usize) {
        self.stride = d_input.div_ceil(2);
        self.pairs.resize((x.len() / d_input).next_multiple_of(ROWS) * self.stride, 0);
        dispatch(FillHalfRows { x, d_input, rows: self });
    }
}

struct FillHalfRows<'a> {
    x: &'a [f32],
    d_input: usize,
    rows: &'a mut HalfRows,
}

impl Kernel for FillHalfRows<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let HalfRows { pairs, stride } = self.rows;
        for (x, pairs) in self.x.chunks_exact(self.d_input).zip(pairs.chunks_exact_mut(*stride)) {
            let (whole, rest) = x.as_chunks::<2>();
            for (pair, [low, high]) in pairs.iter_mut().zip(whole) {
                *pair = u32::from(rounded(*low)) | u32::from(rounded(*high)) << 16;
            }
            if let ([last], Some(pair)) = (rest, pairs.last_mut()) {
                *pair = u32::from(rounded(*last));
            }
        }
    }
}

/// `w + u` in float32, as the bits of the nearest bfloat16 (the larger one of two) and what float32 has beyond them. A sum that is not finite is not made.
fn sum(high: u16, low: i16, update: f32) -> (u16, i16) {
    let bits = (u32::from(high) << 16).wrapping_add_signed(low.into());
    let sum = (f32::from_bits(bits) + update).to_bits();
    let nearest = (sum.wrapping_add(0x8000) >> 16) as u16;
    let finite = f32::from_bits(u32::from(nearest) << 16).is_finite() && f32::from_bits(sum).is_finite();
    if finite { (nearest, sum.wrapping_sub(u32::from(nearest) << 16) as i16) } else { (high, low) }
}

/// The bits of the nearest bfloat16, the even one of two; NaN stays NaN.
#[inline(always)]
pub(super) fn rounded(value: f32) -> u16 {
    let bits = value.to_bits();
    let nearest = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    (if value.is_nan() { (bits >> 16) | 0x40 } else { nearest }) as u16
}

/// A product of rows with a packed weight, handed to its epilogue tile by tile.
pub(super) struct HalfProduct<'a, 'f> {
    pub rows: usize,
    pub x: &'a HalfRows,
    pub weight: &'a Halves,
    pub finish: &'a mut MatrixEpilogue<'f>,
}

impl HalfProduct<'_, '_> {
    /// Runs it.
    ///
    /// # Panics
    ///
    /// Panics if the rows do not fit the weight.
    pub(super) fn run(self) {
        let (tiles, stride) = (self.rows.div_ceil(ROWS), self.x.stride);
        assert!(self.x.pairs.len() == tiles * ROWS * stride && stride == self.weight.steps, "rows of bfloat16");
        dispatch_multi_isa(self);
    }

    /// # Safety
    ///
    /// The processor must have the instruction sets, and `finish` must have been made for the product.
    #[inline(always)]
    unsafe fn run_on<S: Simd, P: Pairs>(self) {
        let Self { rows, x, weight, finish } = self;
        let mut sums = Tile::new();
        for (panel, lines) in weight.lines.chunks_exact(weight.steps).enumerate() {
            let column = panel * COLUMNS;
            for row in (0..rows).step_by(ROWS) {
                let x = &x.pairs[row * x.stride..][..ROWS * x.stride];
                let place =
                    TileArea { row, rows: ROWS.min(rows - row), column, columns: COLUMNS.min(weight.columns - column) };
                // SAFETY: by this function's contract; `x` was cut to a tile's rows, of as many steps as there are lines.
                unsafe {
                    P::tile(x.as_ptr(), weight.steps, lines.as_ptr().cast(), sums.rows());
                    finish.finish::<S>(place, &sums);
                }
            }
        }
    }
}

impl MultiIsaKernel for HalfProduct<'_, '_> {
    type Output = ();
    const AVX512: bool = true;
    const VNNI: bool = false;
    const BF16: bool = true;

    #[inline(always)]
    unsafe fn portable(self) {
        // SAFETY: every processor runs plain Rust.
        unsafe { self.run_on::<simd::Portable, Widened<simd::Portable>>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx2(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.run_on::<simd::Avx2, Widened<simd::Avx2>>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx512(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.run_on::<simd::Avx512, Widened<simd::Avx512>>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx512_vnni(self) {
        // SAFETY: a processor that has VNNI has AVX-512.
        unsafe { self.avx512() }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn avx512_bf16(self) {
        // SAFETY: the processor has the instruction set by the trait's contract, and with it AVX-512.
        unsafe { self.run_on::<simd::Avx512, Bf16>() }
    }
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    unsafe fn neon(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.run_on::<simd::Neon, Widened<simd::Neon>>() }
    }
    #[cfg(target_feature = "simd128")]
    #[inline(always)]
    unsafe fn simd128(self) {
        // SAFETY: the processor has the instruction set by the trait's contract.
        unsafe { self.run_on::<simd::Simd128, Widened<simd::Simd128>>() }
    }
}

/// The inner loop of a product of pairs.
trait Pairs {
    /// `Σ_step x[r][step]·panel[step][c]`, both halves, for [`ROWS`] rows and [`COLUMNS`] columns.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set; `x` must be `[ROWS, steps]`, `panel` `[steps, COLUMNS]`, `out` `[ROWS, COLUMNS]`.
    unsafe fn tile(x: *const u32, steps: usize, panel: *const u32, out: *mut f32);
}

/// Halves made float32 again: exact products, each added with one rounding.
struct Widened<S>(S);

impl<S: Simd> Pairs for Widened<S> {
    #[inline(always)]
    unsafe fn tile(x: *const u32, steps: usize, panel: *const u32, out: *mut f32) {
        // SAFETY: by the trait's contract; the lanes divide the columns.
        unsafe {
            for c in (0..COLUMNS).step_by(S::LANES) {
                let mut sums = [S::splat(0.0); ROWS];
                for step in 0..steps {
                    let w = S::to_bits(S::load(panel.add(step * COLUMNS + c).cast()));
                    let low = S::from_bits(S::shl::<16>(w));
                    let high = S::from_bits(S::uand(w, S::usplat(HIGH)));
                    for (r, sum) in sums.iter_mut().enumerate() {
                        let x = *x.add(r * steps + step);
                        *sum = S::mul_add(S::splat(f32::from_bits(x << 16)), low, *sum);
                        *sum = S::mul_add(S::splat(f32::from_bits(x & HIGH)), high, *sum);
                    }
                }
                for (r, sum) in sums.into_iter().enumerate() {
                    S::store(out.add(r * COLUMNS + c), sum);
                }
            }
        }
    }
}

/// AVX512-BF16: two products and their sum in one instruction, which takes subnormal numbers as zeros.
#[cfg(target_arch = "x86_64")]
struct Bf16;

#[cfg(target_arch = "x86_64")]
impl Pairs for Bf16 {
    #[inline(always)]
    unsafe fn tile(x: *const u32, steps: usize, panel: *const u32, out: *mut f32) {
        use std::arch::x86_64::*;
        /// The same bits.
        #[inline(always)]
        fn halves(pairs: __m512i) -> __m512bh {
            // SAFETY: both types are 512 bits without further meaning.
            unsafe { std::mem::transmute(pairs) }
        }
        // SAFETY: by the trait's contract; a row of the panel and of `out` are two vectors.
        unsafe {
            let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
            for step in 0..steps {
                let w = panel.add(step * COLUMNS).cast::<__m512i>();
                let w = [halves(_mm512_loadu_si512(w)), halves(_mm512_loadu_si512(w.add(1)))];
                for (r, sums) in sums.iter_mut().enumerate() {
                    let x = halves(_mm512_set1_epi32(*x.add(r * steps + step) as i32));
                    sums[0] = _mm512_dpbf16_ps(sums[0], x, w[0]);
                    sums[1] = _mm512_dpbf16_ps(sums[1], x, w[1]);
                }
            }
            for (r, sums) in sums.into_iter().enumerate() {
                _mm512_storeu_ps(out.add(r * COLUMNS), sums[0]);
                _mm512_storeu_ps(out.add(r * COLUMNS + 16), sums[1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{rounded, sum};

    #[test]
    fn rounds_to_the_nearest_even() {
        let of = |value: f32| f32::from_bits(u32::from(rounded(value)) << 16);
        assert_eq!([1.0, -2.5, 0.0, f32::INFINITY].map(of), [1.0, -2.5, 0.0, f32::INFINITY]);
        // A bfloat16 has 8 bits: 1 + 1/256 is halfway.
        assert_eq!([1.0 + 1.0 / 256.0, 1.0 + 1.01 / 256.0, 1.0 + 3.0 / 256.0].map(of), [1.0, 1.0078125, 1.015625]);
        assert_eq!(of(f32::MAX), f32::INFINITY);
        assert!([f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001)].map(of).iter().all(|value| value.is_nan()));
    }

    /// A bfloat16 and what is carried over are a float32, which adds up as float32 does.
    #[test]
    fn carries_the_low_half_of_float32() {
        let updates = [1e-6, -3.0, 0.7, 1e-3, -1e-3, 2.0, 5.5, -5.9e-39, 1e30, -1e30, 1.0 / 3.0];
        let ((mut high, mut low), mut expected) = ((rounded(0.5), 0), 0.5f32);
        for update in updates.into_iter().cycle().take(1_000) {
            (high, low) = sum(high, low, update);
            expected += update;
            assert_eq!((u32::from(high) << 16).wrapping_add_signed(low.into()), expected.to_bits());
            let distance = (f32::from_bits(u32::from(high) << 16) - expected).abs();
            assert!(distance <= expected.abs() / 256.0, "{expected}");
        }
        for (low, update) in [(0, f32::NAN), (0, f32::INFINITY), (7, f32::MAX)] {
            assert_eq!(sum(rounded(f32::MAX) - 1, low, update), (rounded(f32::MAX) - 1, low));
        }
        // What nothing else could have carried.
        assert_eq!(sum(0, -5, 1.0), (0, -5));
    }
}
