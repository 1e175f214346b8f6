//! Tiles of integer products, and what becomes of their sums: below the loops of [`super::simd`] and the products that run them.

use crate::arithmetic::integer::transformer::gelu;
use crate::arithmetic::integer::{Divisor, FIXED_POINT, clip, product_divisor, shift_rounded};
use std::mem::MaybeUninit;

/// Rows of a tile.
pub(in crate::backend::cpu) const ROWS: usize = 8;
/// Tiles that a product takes at a time.
pub(in crate::backend::cpu) const TILES: usize = 4;
/// Columns of a tile: two vectors of AVX-512.
pub(in crate::backend::cpu) const COLUMNS: usize = 32;
/// What turns signed values into the unsigned ones that products take; corrected by the sums of columns.
pub(in crate::backend::cpu) const OFFSET: u8 = 0x80;
/// Bytes of one step of a panel.
pub(super) const LINE: usize = 4 * COLUMNS;
/// Sums of one row of a tile.
pub(in crate::backend::cpu) type Sums = [i32; COLUMNS];
/// Sums of a tile.
pub(in crate::backend::cpu) type Tile = [Sums; ROWS];
/// One row of a tile, finished.
pub(in crate::backend::cpu) type TileRow = [i8; COLUMNS];

/// `t·Aᵀ` for some columns of a row, and the shift of it.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) struct Term<'a> {
    t: &'a [i32],
    a: &'a [i8],
    stride: usize,
    width: usize,
    shift: u32,
}

impl<'a> Term<'a> {
    /// For `t : [rank]`, and `width` columns of `A`, whose rows are `stride` apart, from the first element of `a` on.
    ///
    /// # Panics
    ///
    /// Panics if `a` is shorter than that, or the columns do not fit a tile.
    #[inline(always)]
    pub(super) fn new(t: &'a [i32], a: &'a [i8], stride: usize, width: usize, shift: u32) -> Self {
        let a = &a[..(t.len() - 1) * stride + width];
        assert!((1..=COLUMNS).contains(&width), "columns of a tile");
        Self { t, a, stride, width, shift }
    }
}

/// What kernels with masks read.
#[cfg(target_arch = "x86_64")]
impl<'a> Term<'a> {
    /// `t`, and `A` by the beginning of its rows, `stride` apart: each holds `width` columns.
    #[inline(always)]
    pub(super) fn parts(&self) -> (&'a [i32], *const i8, usize) {
        (self.t, self.a.as_ptr(), self.stride)
    }

    /// Columns that exist, from 1 to [`COLUMNS`].
    #[inline(always)]
    pub(super) fn width(&self) -> usize {
        self.width
    }

    #[inline(always)]
    pub(super) fn shift(&self) -> u32 {
        self.shift
    }
}

/// `clip(⌊(sums + ⌊t·A / 2^shift⌋) / divisor⌋)` of one row of a tile.
#[inline(always)]
pub(super) fn finish(sums: &Sums, term: Option<Term>, scale: &Scale) -> TileRow {
    let mut sums = *sums;
    if let Some(Term { t, a, stride, width, shift }) = term {
        let mut products = [0i32; COLUMNS];
        for (k, t) in t.iter().enumerate() {
            let a = load(&a[k * stride..][..width]);
            for (product, a) in products.iter_mut().zip(a) {
                *product = product.wrapping_add(t.wrapping_mul(i32::from(a)));
            }
        }
        for (sum, product) in sums.iter_mut().zip(products) {
            *sum = sum.wrapping_add(product >> shift);
        }
    }
    scale.divide(&sums)
}

/// At most a panel's columns, zeros behind the last.
#[inline(always)]
pub(super) fn load(values: &[i8]) -> TileRow {
    values.first_chunk().copied().unwrap_or_else(|| {
        let mut row = [0; COLUMNS];
        row[..values.len()].copy_from_slice(values);
        row
    })
}

/// Writes a row's first columns, as many as `to` has: without a call for whole rows.
#[inline(always)]
pub(super) fn store(row: &TileRow, to: &mut [i8]) {
    match to.first_chunk_mut() {
        Some(to) => *to = *row,
        None => to.copy_from_slice(&row[..to.len()]),
    }
}

/// [`store`] to memory that was not written before.
#[inline(always)]
pub(super) fn write<T: Copy>(row: &[T; COLUMNS], to: &mut [MaybeUninit<T>]) {
    match to.first_chunk_mut::<COLUMNS>() {
        Some(to) => {
            to.write_copy_of_slice(row);
        }
        None => {
            let len = to.len();
            to.write_copy_of_slice(&row[..len]);
        }
    }
}

/// What a product over `d_input` values is divided by, and clipped.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) enum Scale {
    /// By multiplication.
    Fast(Divisor),
    /// By division: above 16,383 values.
    Plain(i32),
}

impl Scale {
    pub(super) fn new(d_input: usize) -> Self {
        match d_input.isqrt() {
            root if root < Divisor::LIMIT => Self::Fast(Divisor::new(root, FIXED_POINT)),
            _ => Self::Plain(product_divisor(d_input)),
        }
    }

    #[inline(always)]
    fn divide(&self, sums: &Sums) -> TileRow {
        match self {
            Self::Fast(divisor) => {
                let mut row = [0; COLUMNS];
                for (value, sum) in row.iter_mut().zip(sums) {
                    *value = divisor.divide(*sum);
                }
                row
            }
            Self::Plain(divisor) => sums.map(|sum| crate::arithmetic::integer::divide_plainly(sum, *divisor)),
        }
    }
}

/// The terms of a member's rows for some columns, before they are rounded.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) struct Terms<'a> {
    /// `[rows, rank]`
    t: &'a [i32],
    /// That of the first row.
    first: Term<'a>,
    /// +1 or −1, of the member.
    sign: i32,
}

impl<'a> Terms<'a> {
    #[inline(always)]
    pub(super) fn new(t: &'a [i32], first: Term<'a>, sign: i32) -> Self {
        Self { t, first, sign }
    }

    /// The term of a row, and the sign.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> (Term<'a>, i32) {
        let rank = self.first.t.len();
        (Term { t: &self.t[row * rank..(row + 1) * rank], ..self.first }, self.sign)
    }
}

/// `round((sums + term) / 2^shift)` of one row of a tile.
#[inline(always)]
pub(super) fn round(sums: &mut Sums, term: Option<(Term, i32)>, shift: u32) {
    if let Some((Term { t, a, stride, width, shift }, sign)) = term {
        let mut products = [0i32; COLUMNS];
        for (k, t) in t.iter().enumerate() {
            let a = load(&a[k * stride..][..width]);
            for c in 0..COLUMNS {
                products[c] += t * i32::from(a[c]);
            }
        }
        for c in 0..COLUMNS {
            sums[c] += sign * shift_rounded(products[c], shift);
        }
    }
    for sum in sums {
        *sum = shift_rounded(*sum, shift);
    }
}

/// `clip(sums + bias)` of one row, and GELU of it if asked for.
#[inline(always)]
pub(super) fn activation(sums: &Sums, bias: Option<&TileRow>, activate: bool) -> TileRow {
    let mut row = [0; COLUMNS];
    for c in 0..COLUMNS {
        row[c] = clip(sums[c] + bias.map_or(0, |bias| i32::from(bias[c])));
    }
    if activate {
        for value in &mut row {
            *value = gelu(*value);
        }
    }
    row
}
