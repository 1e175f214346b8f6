//! Tables of the integer transformer: its activation, powers and logarithms of two, and rotations.

use super::{INT8_LIMIT, shift_rounded};
use crate::arithmetic::elementary::{cos_sin, exp2, ln};
use crate::work::sync::locked;
use std::f64::consts::LN_2;
use std::sync::{Arc, LazyLock, Mutex};

/// Shift of a product over `d_input` values: by 16 and about `√d_input`.
pub const fn product_shift(d_input: usize) -> u32 {
    super::FIXED_POINT + super::half_log2(d_input)
}

/// Shift of the tied head's product over `width` values, to units of 1/256 bit.
pub const fn head_shift(width: usize) -> u32 {
    2 + super::half_log2(width)
}

/// Shift of attention's scores over `d_head` values, to sixteenths of a bit.
pub const fn attention_shift(d_head: usize) -> u32 {
    7 + super::half_log2(d_head)
}

/// Largest depth of a product with noise, times the noise's rank, for which all sums fit int32.
pub const MAX_NOISE_DEPTH: usize = 1 << 13;
/// Most rows of a member in a log-likelihood for which the sum of their losses fits int32.
pub const MAX_ROWS: usize = 1 << 14;
/// Largest magnitude of a logit.
pub const LARGEST_LOGIT: i32 = 32767;
/// Longest context for which a sum of weighted values fits int32.
pub const MAX_CONTEXT: usize = 1 << 11;

/// Magnitudes where [`gelu`] falls another unit below `max(x, 0)`, and where it returns.
pub(crate) const GELU_DOWN: [u8; 3] = [2, 4, 9];
pub(crate) const GELU_UP: [u8; 3] = [17, 25, 36];

/// `GELU(x/16)` in sixteenths, rounded: `max(x, 0)` minus a few units, the same for `x` and `−x`.
///
/// # References
///
/// Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv 1606.08415.
#[inline(always)]
pub const fn gelu(x: i8) -> i8 {
    let magnitude = x.unsigned_abs();
    let mut less = 0;
    let mut k = 0;
    while k < GELU_DOWN.len() {
        less += (magnitude >= GELU_DOWN[k]) as i8 - (magnitude >= GELU_UP[k]) as i8;
        k += 1;
    }
    (if x > 0 { x } else { 0 }) - less
}

/// `log2 10000`.
const LOG2_10000: f64 = 13.287_712_379_549_449;
/// Fraction bits of rotations.
pub const ROTARY_BITS: u32 = 14;
/// Fraction bits of attention's weights.
pub(crate) const WEIGHT_BITS: u32 = 12;
/// Sixteenths of a bit from which on a weight is 0.
pub(crate) const WEIGHT_END: i32 = 16 * 13;

/// `round(2¹²·2^(−i/16))` for `i` in `0..16`: the weights of attention, halved for every 16 more.
pub(crate) static WEIGHTS: LazyLock<[i32; 16]> = LazyLock::new(|| powers(WEIGHT_BITS, 16.0));

/// `round(2¹⁵·2^(−i/16))` and `round(2¹⁵·2^(−i/256))` for `i` in `0..16`: their product is `2³⁰·2^(−c/256)` of the digits of `c`.
pub(crate) static EXP2_DIGITS: LazyLock<[[i32; 16]; 2]> = LazyLock::new(|| [powers(15, 16.0), powers(15, 256.0)]);

/// `round(256·log2(1 + i/256))` for `i` in `0..256`.
pub(crate) static LOG2: LazyLock<[i32; 256]> =
    LazyLock::new(|| std::array::from_fn(|i| (256.0 / LN_2 * ln(1.0 + i as f64 / 256.0)).round() as i32));

fn powers(bits: u32, steps: f64) -> [i32; 16] {
    std::array::from_fn(|i| exp2(f64::from(bits) - i as f64 / steps).round() as i32)
}

/// The weight of a score that is `below` sixteenths of a bit below the largest: `2¹²·2^(−below/16)`, rounded.
#[inline(always)]
pub(crate) fn attention_weight(below: i32, weights: &[i32; 16]) -> i32 {
    if below < WEIGHT_END { shift_rounded(weights[(below & 15) as usize], (below >> 4) as u32) } else { 0 }
}

/// `2¹⁶·2^(−c/256)` rounded, for `c ≥ 0`; 0 from 17 bits on.
#[inline(always)]
pub(crate) fn exp2_256ths(c: i32, digits: &[[i32; 16]; 2]) -> i32 {
    if c >= 17 << 8 {
        return 0;
    }
    let product = digits[0][(c >> 4 & 15) as usize] * digits[1][(c & 15) as usize];
    shift_rounded(product, 14 + (c >> 8) as u32)
}

/// `256·log2(sum / 2¹⁶)`, rounded, for sums of [`exp2_256ths`] of at least 2¹⁶.
#[inline(always)]
pub(crate) fn log2_256ths(sum: i32, table: &[i32; 256]) -> i32 {
    let exponent = sum.ilog2();
    256 * (exponent as i32 - 16) + table[(sum >> (exponent - 8)) as usize - 256]
}

/// Rotations of heads by their position: `round(2¹⁴·cos φ)` and `round(2¹⁴·sin φ)` of `φ = t·10000^(−2j/d)`, `[positions, d/2]` each.
///
/// # References
///
/// Su et al., "RoFormer", arXiv 2104.09864, section 3.4.
#[derive(Clone, Debug)]
pub(crate) struct Rotations {
    pub(crate) cos: Vec<i32>,
    pub(crate) sin: Vec<i32>,
}

impl Rotations {
    /// For positions from `first` on, and heads of an even number of values.
    pub(crate) fn new(first: usize, positions: usize, d_head: usize) -> Self {
        let one = f64::from(1 << ROTARY_BITS);
        let frequency = |j: usize| exp2(-2.0 * j as f64 / d_head as f64 * LOG2_10000);
        let frequencies: Vec<f64> = (0..d_head / 2).map(frequency).collect();
        let angles =
            (first..first + positions).flat_map(|t| frequencies.iter().map(move |frequency| t as f64 * frequency));
        let turn = |angle: f64| cos_sin(angle).map(|value| (one * value).round() as i32);
        let (cos, sin) = angles.map(turn).map(|[cos, sin]| (cos, sin)).unzip();
        Self { cos, sin }
    }
}

/// Sizes of a table of rotations, and the table.
type Kept = ([usize; 3], Arc<Rotations>);

/// [`Rotations::new`], kept: a model asks for the same ones again and again.
pub(crate) fn rotations(first: usize, positions: usize, d_head: usize) -> Arc<Rotations> {
    /// Tables that are kept.
    const KEPT: usize = 8;
    static TABLES: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
    let key = [first, positions, d_head];
    let mut tables = locked(&TABLES);
    if let Some((_, table)) = tables.iter().find(|(of, _)| *of == key) {
        return table.clone();
    }
    let table = Arc::new(Rotations::new(first, positions, d_head));
    if tables.len() == KEPT {
        tables.remove(0);
    }
    tables.push((key, table.clone()));
    table
}

/// A pair of values, turned: `(a·cos − b·sin, b·cos + a·sin)`.
#[inline(always)]
pub(crate) fn rotate(a: i32, b: i32, cos: i32, sin: i32) -> [i32; 2] {
    [shift_rounded(a * cos - b * sin, ROTARY_BITS), shift_rounded(b * cos + a * sin, ROTARY_BITS)]
}

/// The spread of a head's attention in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowEntropy {
    /// Entropy of the weights, in bits.
    pub entropy: f64,
    /// The largest weight, as a share of 1.
    pub largest_weight: f64,
    /// Positions that the row sees.
    pub visible: usize,
}

/// The entropy of the weights of [`attention`](crate::ops::integer::attention) in every row and head, for turned queries and keys
/// `[sequences · steps, width]` of sequences that attend to themselves alone.
///
/// # Panics
///
/// Panics if lengths do not fit.
#[track_caller]
pub fn attention_entropy(query: &[i8], keys: &[i8], steps: usize, heads: usize, width: usize) -> Vec<RowEntropy> {
    let d = width / heads;
    assert!(
        query.len() == keys.len() && query.len().is_multiple_of(steps * width) && d * heads == width,
        "attention entropy: {} queries and {} keys of {steps} steps, {heads} heads, width {width}",
        query.len(),
        keys.len()
    );
    let row = |row: usize, head: usize| {
        let (sequence, visible) = (row / steps * steps, row % steps + 1);
        let query = &query[row * width + head * d..][..d];
        let score = |j: usize| -> i32 {
            let key = &keys[(sequence + j) * width + head * d..][..d];
            key.iter().zip(query).map(|(k, q)| i32::from(*k) * i32::from(*q)).sum()
        };
        let scores: Vec<i32> = (0..visible).map(score).collect();
        let largest = scores.iter().max().copied().unwrap_or(0);
        let weight = |score: &i32| attention_weight(shift_rounded(largest - score, attention_shift(d)), &WEIGHTS);
        let weights: Vec<f64> = scores.iter().map(|score| f64::from(weight(score))).collect();
        let total: f64 = weights.iter().sum();
        let term = |weight: &f64| if *weight > 0.0 { weight / total * (total / weight).log2() } else { 0.0 };
        let largest_weight = weights.iter().copied().fold(0.0, f64::max) / total;
        RowEntropy { entropy: weights.iter().map(term).sum(), largest_weight, visible }
    };
    let rows = query.len() / width;
    (0..rows * heads).map(|at| row(at / heads, at % heads)).collect()
}

/// A row's largest magnitude after rescaling.
pub(crate) const STRETCHED: i32 = INT8_LIMIT;

#[cfg(test)]
mod tests {
    use super::*;

    /// `erf` by its series, which converges for all arguments that occur.
    fn erf(x: f64) -> f64 {
        let term = |(power, sum): (f64, f64), n: i32| {
            let power = power * -x * x / f64::from(n);
            (power, sum + power / f64::from(2 * n + 1))
        };
        let (_, sum) = (1..400).fold((1.0, 1.0), term);
        2.0 / std::f64::consts::PI.sqrt() * x * sum
    }

    #[test]
    fn gelu_is_its_formula() {
        for q in -128..=127i8 {
            let x = f64::from(q) / 16.0;
            // Beyond 5 the series cancels, and GELU is 0 or the identity.
            let cdf = if x.abs() > 5.0 { f64::from(x > 0.0) } else { 0.5 * (1.0 + erf(x / 2f64.sqrt())) };
            assert_eq!(i32::from(gelu(q)), (16.0 * x * cdf).round() as i32, "{q}");
        }
        assert_eq!((i8::MIN..=127).map(gelu).min(), Some(-3));
    }

    /// The tables agree with the library's functions, and no value is so near to a tie that another library could have rounded it differently.
    #[test]
    fn tables_are_away_from_ties() {
        let near = |value: f64| (value - value.trunc()).abs() - 0.5;
        let check = |found: i32, value: f64, margin: f64| {
            assert!(near(value).abs() > margin, "{value} is a tie");
            assert_eq!(found, value.round() as i32);
        };
        for i in 0..16 {
            let power = |bits: f64, steps: f64| (bits - i as f64 / steps).exp2();
            check(WEIGHTS[i], power(12.0, 16.0), 1e-9);
            check(EXP2_DIGITS[0][i], power(15.0, 16.0), 1e-9);
            check(EXP2_DIGITS[1][i], power(15.0, 256.0), 1e-9);
        }
        (0..256).for_each(|i| check(LOG2[i], 256.0 * (1.0 + i as f64 / 256.0).log2(), 1e-9));
        // Angles have separate roundings; only the bits below may depend on them.
        for d_head in [8, 32, 64] {
            let table = Rotations::new(0, MAX_CONTEXT, d_head);
            for (at, (cos, sin)) in table.cos.iter().zip(&table.sin).enumerate() {
                let (t, j) = (at / (d_head / 2), at % (d_head / 2));
                let angle = t as f64 * 10000f64.powf(-2.0 * j as f64 / d_head as f64);
                for (found, value) in [(cos, angle.cos()), (sin, angle.sin())] {
                    let value = 16384.0 * value;
                    assert!(near(value).abs() < 1e-7 || *found == value.round() as i32, "{d_head}, {t}, {j}");
                }
            }
        }
    }

    #[test]
    fn entropies_of_attention() {
        // One sequence of three steps, one head of two values: equal scores, then one that is far above.
        let rows = attention_entropy(&[0, 0, 0, 0, 127, 127], &[1, 1, 127, 127, -127, -127], 3, 1, 2);
        assert_eq!(rows.iter().map(|row| row.visible).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(rows.iter().map(|row| row.entropy).collect::<Vec<_>>(), [0.0, 1.0, 0.0]);
        assert_eq!((rows[1].largest_weight, rows[2].largest_weight), (0.5, 1.0));
    }

    #[test]
    fn powers_and_logarithms() {
        let digits = &*EXP2_DIGITS;
        for c in 0..20 << 8 {
            let exact = (16.0 - f64::from(c) / 256.0).exp2();
            let found = f64::from(exp2_256ths(c, digits));
            assert!((found - exact).abs() <= 0.5 + exact * 4e-5, "{c}: {found}, not {exact}");
        }
        for sum in (1 << 16..1 << 24).step_by(997) {
            let exact = 256.0 * (f64::from(sum).log2() - 16.0);
            assert!((f64::from(log2_256ths(sum, &LOG2)) - exact).abs() < 1.95, "{sum}");
        }
        for below in 0..300 {
            let exact = if below < 208 { (12.0 - f64::from(below) / 16.0).exp2() } else { 0.0 };
            assert!((f64::from(attention_weight(below, &WEIGHTS)) - exact).abs() <= 1.0, "{below}");
        }
    }
}
