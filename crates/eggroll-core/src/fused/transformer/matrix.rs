//! Weights, packed for products.

use super::MemberRow;
use super::activations::Activations;
use super::factors::Factors;
use super::precision::Precision;
use crate::backend::cpu::{Blocks, Matrix, MatrixProduct, RowNoise};
use std::fmt;
use std::ops::RangeInclusive;

/// A weight `[d_input, d_output]`, packed for products with rows.
///
/// # Example
///
/// ```
/// use eggroll_core::transformer::{Activations, PackedMatrix, Precision};
///
/// let weight = PackedMatrix::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3], Precision::F32);
/// let mut x = Activations::new(Precision::F32);
/// x.fill(1, 2, |x| x.copy_from_slice(&[1.0, -1.0]));
/// let mut y = vec![0.0; 3];
/// weight.multiply(&x, None, false, &mut Vec::new(), &mut y);
/// assert_eq!(y, [-3.0, -3.0, -3.0]);
/// ```
pub struct PackedMatrix {
    shape: [usize; 2],
    precision: Precision,
    /// What integers may be.
    range: RangeInclusive<i8>,
    matrix: Matrix,
}

/// Integers of [`Precision::Int8`] and [`Precision::Q8_0`].
const BYTES: RangeInclusive<i8> = -127..=127;

impl PackedMatrix {
    /// Packs a row-major weight `[d_input, d_output]`.
    ///
    /// # Panics
    ///
    /// Panics if there are not as many values, or none.
    #[track_caller]
    pub fn new(weight: &[f32], shape: [usize; 2], precision: Precision) -> Self {
        let elements = shape[0].checked_mul(shape[1]);
        assert!(elements == Some(weight.len()) && !weight.is_empty(), "{} values of a weight {shape:?}", weight.len());
        let matrix = match precision {
            Precision::F32 => Matrix::f32(weight, shape),
            Precision::Bf16 => Matrix::bf16(weight, shape),
            Precision::Int8 => Matrix::int8(weight, shape, Blocks::Rotated),
            Precision::Q8_0 => Matrix::int8(weight, shape, Blocks::Plain),
        };
        Self { shape, precision, range: BYTES, matrix }
    }

    /// Inputs that share a scale in [`Q8_0`](Precision::Q8_0).
    pub const BLOCK: usize = Blocks::Plain.size();

    /// A weight in [`Q8_0`](Precision::Q8_0) of its integers and scales: `W[k][c] = scales[k / 32][c] · integers[k][c]`. When integers are
    /// [moved](Self::nudge), they go no farther than the ends of `range`. From −8 to 7, with scales that are exact in f16, as in ggml's Q4_0, a weight takes five
    /// bits with its scale, else ten. Products are the same.
    ///
    /// # Shapes
    ///
    /// - integers: `[d_input, d_output]`
    /// - scales: `[⌈d_input / 32⌉, d_output]`
    ///
    /// # Panics
    ///
    /// Panics if there are not as many integers or scales, or none.
    #[track_caller]
    pub fn of_blocks(
        integers: &[i8],
        scales: &[f32],
        [d_input, d_output]: [usize; 2],
        range: RangeInclusive<i8>,
    ) -> Self {
        let expected = [Some(d_input), Some(d_input.div_ceil(Self::BLOCK))].map(|rows| rows?.checked_mul(d_output));
        let found = [integers.len(), scales.len()];
        assert!(
            expected == found.map(Some) && !integers.is_empty(),
            "{} integers and {} scales of a weight [{d_input}, {d_output}]",
            found[0],
            found[1]
        );
        let matrix = Matrix::blocks(integers, scales, d_output, &range);
        Self { shape: [d_input, d_output], precision: Precision::Q8_0, range, matrix }
    }

    /// A weight in [`Bf16`](Precision::Bf16) of the bits of its numbers, `[d_input, d_output]`.
    ///
    /// # Panics
    ///
    /// Panics if there are not as many numbers, or none.
    #[track_caller]
    pub fn of_bf16(bits: &[u16], shape: [usize; 2]) -> Self {
        let elements = shape[0].checked_mul(shape[1]);
        assert!(elements == Some(bits.len()) && !bits.is_empty(), "{} numbers of a weight {shape:?}", bits.len());
        Self { shape, precision: Precision::Bf16, range: BYTES, matrix: Matrix::bf16_bits(bits, shape) }
    }

    /// The bits of an output's `d_input` weights in [`Bf16`](Precision::Bf16).
    ///
    /// # Panics
    ///
    /// Panics in another format, and if there is no such output.
    #[track_caller]
    pub fn column_bits(&self, output: usize) -> impl Iterator<Item = u16> {
        assert!(output < self.shape[1], "output {output} of a weight {:?}", self.shape);
        self.matrix
            .column_bits(output, self.shape[0])
            .unwrap_or_else(|| panic!("bfloat16 of a weight {:?} in {}", self.shape, self.precision))
    }

    /// The integers of an output in [`Q8_0`](Precision::Q8_0), and the scale of each: `d_input` pairs.
    ///
    /// # Panics
    ///
    /// Panics in another format, and if there is no such output.
    #[track_caller]
    pub fn column(&self, output: usize) -> impl Iterator<Item = (i8, f32)> {
        assert!(output < self.shape[1], "output {output} of a weight {:?}", self.shape);
        self.matrix
            .column(output, self.shape[0])
            .unwrap_or_else(|| panic!("blocks of a weight {:?} in {}", self.shape, self.precision))
    }

    /// Moves a weight in [`Q8_0`](Precision::Q8_0) or [`Bf16`](Precision::Bf16) by `update`, with error feedback; returns how many packed numbers
    /// have moved.
    ///
    /// - Q8_0: an integer `q` of scale `s` moves by `round(u/s + e)` steps, where `e` is the carried rounding error of earlier moves; `carried`
    ///   holds `2¹⁶·e`. An integer at an end of its range stays.
    /// - Bf16: `carried` holds the low half of the weight in float32, so that it adds up exactly as in float32; 0 at first. A sum that is not
    ///   finite is not made.
    ///
    /// # Shapes
    ///
    /// - update, carried: `[d_input, d_output]`
    ///
    /// # Panics
    ///
    /// Panics in another format, and if lengths do not fit.
    ///
    /// # References
    ///
    /// Seide et al., "1-Bit Stochastic Gradient Descent", Interspeech 2014 (error feedback); for evolution strategies on quantized weights QES, arXiv 2602.03120.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_core::transformer::PackedMatrix;
    ///
    /// // One weight, 5 steps of 0.5: three moves of 0.2 are one step and 0.2 of the next.
    /// let (mut weight, mut carried) = (PackedMatrix::of_blocks(&[5], &[0.5], [1, 1], -127..=127), [0]);
    /// let moved: Vec<usize> = (0..3).map(|_| weight.nudge(&[0.2], &mut carried)).collect();
    /// assert_eq!(moved, [0, 1, 0]);
    /// assert_eq!(weight.column(0).next(), Some((6, 0.5)));
    /// assert!((f32::from(carried[0]) / 65536.0 - 0.2).abs() < 1e-4);
    /// ```
    #[track_caller]
    pub fn nudge(&mut self, update: &[f32], carried: &mut [i16]) -> usize {
        let elements = self.shape[0] * self.shape[1];
        assert!(
            [update.len(), carried.len()] == [elements; 2],
            "{} moves, {} carried over, of a weight {:?}",
            update.len(),
            carried.len(),
            self.shape
        );
        let moved = self.matrix.nudge(update, carried, &self.range);
        moved.unwrap_or_else(|| panic!("a move of a weight {:?} in {}", self.shape, self.precision))
    }

    /// `[d_input, d_output]`
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The number format.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Weights whose packed value differs from that of another matrix of the same shape and format; `None` in float32, or if
    /// shapes or formats differ. Integers of four bits and of bytes are two formats here.
    pub fn changed(&self, other: &Self) -> Option<usize> {
        if self.shape == other.shape { self.matrix.differing(&other.matrix) } else { None }
    }

    /// `y = x·W + s·c·(x·Bᵀ)·A`, with the [`Factors`] of each row's member, its sign `s = ±1` and `c = σ/√rank`; with `add` it is added to
    /// what `y` holds.
    ///
    /// # Shapes
    ///
    /// - x: `[rows, d_input]`, y: `[rows, d_output]`
    /// - noise: the factors, and for each row the slot of its pair there and its sign
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit, or a row's slot is not there. For a weight that is not in float32 it also panics if `x` was not made
    /// for the weight's format.
    #[track_caller]
    pub fn multiply(
        &self,
        x: &Activations,
        noise: Option<(&Factors, &[MemberRow])>,
        add: bool,
        scratch: &mut Vec<f32>,
        y: &mut [f32],
    ) {
        let [d_input, d_output] = self.shape;
        let width = x.width();
        assert!(width == d_input, "rows of {width} elements for a weight {:?}", self.shape);
        let rows = x.values().len() / width;
        assert!(
            y.len() == rows * d_output,
            "{} values for {rows} rows of a product with a weight {:?}",
            y.len(),
            self.shape
        );
        assert!(
            self.precision == Precision::F32 || x.precision() == self.precision,
            "rows for weights in {}, but the weight {:?} is in {}",
            x.precision(),
            self.shape,
            self.precision
        );
        if let Some((factors, members)) = noise {
            assert!(factors.shape == self.shape, "noise of a weight {:?} for one {:?}", factors.shape, self.shape);
            assert!(members.len() == rows, "members of {} rows for {rows} rows", members.len());
            let (slots, used) = (factors.slots(), members.iter().map(|row| row.slot as usize + 1).max().unwrap_or(0));
            assert!(used <= slots, "slot {} of {slots} slots of noise", used.max(1) - 1);
        }
        let noise = noise.map(|(factors, rows)| RowNoise {
            rows,
            factors: &factors.values,
            rank: factors.rank,
            scale: factors.scale,
        });
        let (matrix, packed) = (&self.matrix, &x.packed);
        MatrixProduct { matrix, d_input, d_output, x: x.values(), packed, noise, t: scratch, y, add }.run();
    }
}

impl fmt::Debug for PackedMatrix {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "PackedMatrix({:?}, {})", self.shape, self.precision)
    }
}
