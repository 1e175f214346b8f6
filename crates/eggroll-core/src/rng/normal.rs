//! Standard Gaussian values from Philox words, by the method of Box and Muller (Ann. Math. Stat. 29, 1958).
//!
//! # The stream
//!
//! The Gaussian values of one `(seed, parameter, generation, pair)` form a sequence. Sixteen consecutive Philox blocks
//! make a group of 64 elements, stored word-major: element `e` belongs to group `e / 64`, word pair
//! `e % 64 / 32`, and block `16·(e / 64) + e % 16`. One block `(w0, w1, w2, w3)` gives four Gaussian values, two from
//! `(w0, w1)` and two from `(w2, w3)`:
//!
//! - radius `r = √(−2 ln u)`, `u = (⌊w/2⁸⌋ | 1)·2⁻²⁴`: exact in f32, never 0 or 1, so `|n| ≤ 5.77`;
//! - angle in a quadrant `φ = π/2·v`, `v = (⌊4w mod 2³² / 2⁸⌋ | 1)·2⁻²⁴` as a signed number, exact in f32;
//! - `(r·±cos φ, r·sin φ)`, the sign by bit 31 of the second word, the two swapped by its bit 30.
//!
//! Logarithm, sine and cosine are polynomials evaluated with fused multiply-adds, so every instruction set
//! gives the same bits. Against the f64 oracle ([`crate::testing::reference::normal`]) the error is below
//! [`MAX_ERROR`].

pub(crate) use crate::rng::group::BLOCKS;
use crate::rng::key::{NoiseDistribution, NoiseKey};
use crate::rng::philox::philox_blocks;
use crate::simd::{InstructionSet, Kernel, Simd, dispatch, dispatch_on};

/// Elements that sixteen Philox blocks make: the unit in which the stream is generated.
pub const GROUP: usize = 64;

/// Version of the stream: a change of any value is a new version, and old checkpoints are refused.
pub const STREAM_VERSION: u32 = 1;

/// Largest distance of a normal from the f64 oracle.
///
/// Over all 2²³ radii and all 2²³ angles, the worst errors of radius, sine and cosine, with the product's
/// rounding, add up to at most 9.3e-7. An error of 8.6e-7 occurs, near a radius of 4.8.
pub const MAX_ERROR: f64 = 9.5e-7;

/// `(−2 ln(1+f) + 2f) / f²` on `[√½−1, √2−1]`, relative error of the logarithm below 3e-8.
pub(crate) const LOG: [f32; 8] =
    [0.999_999_8, -0.666_679, 0.500_035_1, -0.399_241_45, 0.331_410_17, -0.298_359_48, 0.286_150_37, -0.174_696_73];
/// `sin(π/2·v) / v` in powers of `v²` on `[0, ½]`, error below 4e-9.
pub(crate) const SIN: [f32; 4] = [1.570_796_4, -0.645_963_5, 0.079_680_03, -0.004_601_661];
/// `(cos(π/2·v) − 1) / v²` in powers of `v²` on `[0, ½]`, error below 4e-8.
pub(crate) const COS: [f32; 3] = [-1.233_698, 0.253_606_35, -0.020_426_251];
/// Bits of √½: splits a float into exponent and a mantissa around 1.
pub(crate) const SQRT_HALF: u32 = 0x3f35_04f3;

/// Writes elements `start .. start + out.len()` of the stream of `key` and `pair`.
///
/// # Example
///
/// ```
/// use eggroll_core::{NoiseKey, rng::normal::fill_normals};
///
/// let key = NoiseKey::new(1, 0, 0);
/// let (mut all, mut tail) = ([0.0; 100], [0.0; 10]);
/// fill_normals(key, 7, 0, &mut all);
/// fill_normals(key, 7, 90, &mut tail);
/// assert_eq!(all[90..], tail);
/// ```
///
/// # Panics
///
/// Panics if the key is one of another distribution, or if the range ends beyond 2³⁴ elements, the length of a stream.
#[track_caller]
pub fn fill_normals(key: NoiseKey, pair: u32, start: usize, out: &mut [f32]) {
    check(key, start, out.len());
    dispatch(FillNormals { key, pair, start, out })
}

/// [`fill_normals`] on a given instruction set: for conformance tests and benches.
///
/// # Panics
///
/// Panics if this processor does not have `set`, and where [`fill_normals`] does.
#[track_caller]
pub fn fill_normals_on(set: InstructionSet, key: NoiseKey, pair: u32, start: usize, out: &mut [f32]) {
    check(key, start, out.len());
    assert!(InstructionSet::available().contains(&set), "this processor has no {set:?}");
    // SAFETY: checked above.
    unsafe { dispatch_on(set, FillNormals { key, pair, start, out }) }
}

#[track_caller]
fn check(key: NoiseKey, start: usize, len: usize) {
    key.check_distribution(NoiseDistribution::Normal);
    let end = start.checked_add(len);
    assert!(
        end.is_some_and(|end| end as u64 <= 1 << 34),
        "elements {start} + {len} are beyond the 2^34 elements of a noise stream"
    );
}

struct FillNormals<'a> {
    key: NoiseKey,
    pair: u32,
    start: usize,
    out: &'a mut [f32],
}

impl Kernel for FillNormals<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { key, pair, start, out } = self;
        let mut group = start / GROUP;
        let skip = start % GROUP;
        let mut rest = out;
        if skip > 0 {
            let head;
            (head, rest) = rest.split_at_mut(rest.len().min(GROUP - skip));
            // SAFETY: the instruction set is there by the trait's contract.
            unsafe { partial_group::<S>(key, pair, group, skip, head) };
            group += 1;
        }
        let mut chunks = rest.chunks_exact_mut(GROUP);
        for chunk in &mut chunks {
            // SAFETY: the instruction set is there; the chunk holds one group.
            unsafe { write_group::<S>(key, pair, group, chunk.as_mut_ptr()) };
            group += 1;
        }
        let tail = chunks.into_remainder();
        if !tail.is_empty() {
            // SAFETY: the instruction set is there by the trait's contract.
            unsafe { partial_group::<S>(key, pair, group, 0, tail) };
        }
    }
}

/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn partial_group<S: Simd>(key: NoiseKey, pair: u32, group: usize, skip: usize, out: &mut [f32]) {
    let mut whole = [0.0; GROUP];
    // SAFETY: the array holds one group.
    unsafe { write_group::<S>(key, pair, group, whole.as_mut_ptr()) };
    out.copy_from_slice(&whole[skip..skip + out.len()]);
}

/// Writes one group of 64 Gaussian values.
///
/// # Safety
///
/// The processor must have the instruction set `S`; `out` must hold [`GROUP`] elements.
#[inline(always)]
unsafe fn write_group<S: Simd>(key: NoiseKey, pair: u32, group: usize, out: *mut f32) {
    let mut lane = 0;
    while lane < BLOCKS {
        let block = (group * BLOCKS + lane) as u32;
        // SAFETY: `lane + LANES ≤ 16`, so the last store ends at element 64.
        unsafe {
            let [w0, w1, w2, w3] = philox_blocks::<S>(key.counter(block, pair), key.words());
            let (n0, n1) = box_muller::<S>(w0, w1);
            let (n2, n3) = box_muller::<S>(w2, w3);
            S::store(out.add(lane), n0);
            S::store(out.add(lane + BLOCKS), n1);
            S::store(out.add(lane + 2 * BLOCKS), n2);
            S::store(out.add(lane + 3 * BLOCKS), n3);
        }
        lane += S::LANES;
    }
}

/// Two Gaussian values of each lane from two words.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn box_muller<S: Simd>(radius_word: S::U, angle_word: S::U) -> (S::F, S::F) {
    // SAFETY: by this function's contract.
    unsafe {
        let radius = S::sqrt(minus_two_log::<S>(radius_word));
        let odd = S::usplat(1);
        let fraction = S::from_i32(S::uor(S::sar::<8>(S::shl::<2>(angle_word)), odd));
        let v = S::mul(fraction, S::splat(1.0 / 16_777_216.0));
        let z = S::mul(v, v);
        let sin = S::mul(polynomial::<S, 4>(z, &SIN), v);
        let cos = S::fma(polynomial::<S, 3>(z, &COS), z, S::splat(1.0));
        let sign = S::uand(angle_word, S::usplat(1 << 31));
        let cos = S::from_bits(S::uxor(S::to_bits(cos), sign));
        let first = S::select_bit30(angle_word, sin, cos);
        let second = S::select_bit30(angle_word, cos, sin);
        (S::mul(radius, first), S::mul(radius, second))
    }
}

/// `−2 ln((⌊w/2⁸⌋ | 1)·2⁻²⁴)`.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn minus_two_log<S: Simd>(word: S::U) -> S::F {
    // SAFETY: by this function's contract.
    unsafe {
        let odd = S::uor(S::shr::<8>(word), S::usplat(1));
        let (octaves, log_mantissa) = minus_two_log_parts::<S>(S::from_i32(odd));
        let octaves = S::from_i32(S::usub(octaves, S::usplat(24)));
        S::fma(octaves, S::splat(-2.0 * std::f32::consts::LN_2), log_mantissa)
    }
}

/// `ln x` for normal, positive `x`; NaN for NaN.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
pub(crate) unsafe fn log<S: Simd>(x: S::F) -> S::F {
    // SAFETY: by this function's contract.
    unsafe {
        let (octaves, log_mantissa) = minus_two_log_parts::<S>(x);
        let log_mantissa = S::mul(log_mantissa, S::splat(-0.5));
        // Adding x − x is adding 0, or NaN for NaN.
        let log = S::fma(S::from_i32(octaves), S::splat(std::f32::consts::LN_2), log_mantissa);
        S::add(log, S::sub(x, x))
    }
}

/// `x = 2^e·m` with `√½ ≤ m < √2`: `e`, and `−2 ln m`.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn minus_two_log_parts<S: Simd>(x: S::F) -> (S::U, S::F) {
    // SAFETY: by this function's contract.
    unsafe {
        let bits = S::to_bits(x);
        let exponent = S::sar::<23>(S::usub(bits, S::usplat(SQRT_HALF)));
        let mantissa = S::from_bits(S::usub(bits, S::shl::<23>(exponent)));
        let f = S::sub(mantissa, S::splat(1.0));
        let log_mantissa = S::mul(f, S::fma(polynomial::<S, 8>(f, &LOG), f, S::splat(-2.0)));
        (exponent, log_mantissa)
    }
}

/// `Σ coefficients[i]·x^i` by Horner's rule.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn polynomial<S: Simd, const N: usize>(x: S::F, coefficients: &[f32; N]) -> S::F {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sum = S::splat(coefficients[N - 1]);
        let mut i = N - 1;
        while i > 0 {
            i -= 1;
            sum = S::fma(sum, x, S::splat(coefficients[i]));
        }
        sum
    }
}
