//! Weights, packed for products.

use super::MemberRow;
use super::activations::Activations;
use super::factors::Factors;
use super::precision::Precision;
use crate::backend::cpu::{Matrix, MatrixProduct, RowNoise};
use std::fmt;

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
    matrix: Matrix,
}

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
            Precision::Int8 => Matrix::int8(weight, shape),
        };
        Self { shape, precision, matrix }
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
    /// shapes or formats differ.
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
    /// Panics if shapes do not fit, if the weight is not in float32 and `x` was not made for its format, or if a row's slot is not there.
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
