//! int8 values by fours, in words of 32 bits: how buffers hold them, how shared memory does, and how two words are multiplied.

use crate::backend::cube::device::has_dot_products;
use burn::tensor::DType;
use cubecl::client::Client;
use cubecl::prelude::*;

/// What an element of a buffer of int8 values is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// One value.
    Value,
    /// Four values. What is read or written as a word starts at a multiple of four.
    Word,
}

/// What a word of shared memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Packing {
    /// One value.
    One,
    /// Four values; one instruction multiplies two words.
    Dot,
    /// Four values that are taken apart to be multiplied.
    Apart,
}

impl Packing {
    /// The packing for values of type `dtype`: int8 values in wider types would gain nothing from it.
    pub(crate) fn new(client: &Client, dtype: DType) -> Self {
        match dtype {
            DType::I8 if has_dot_products(client) => Self::Dot,
            DType::I8 => Self::Apart,
            _ => Self::One,
        }
    }

    /// Values of a word.
    pub(crate) const fn values(self) -> usize {
        match self {
            Self::One => 1,
            Self::Dot | Self::Apart => 4,
        }
    }
}

/// The value at `at`.
#[cube]
pub(crate) fn value<I: Int>(values: &[I], at: usize, #[comptime] form: Form) -> i32 {
    if comptime!(form == Form::Word) {
        let shift = 24i32 - 8i32 * (at % 4) as i32;
        (i32::cast_from(values[at / 4]) << shift) >> 24i32
    } else {
        i32::cast_from(values[at])
    }
}

/// The values `first..` of a row of `len` values that starts at `start`, as a word; 0 behind the row.
#[cube]
pub(crate) fn row_word<I: Int>(
    values: &[I],
    start: usize,
    first: usize,
    len: usize,
    #[comptime] form: Form,
    #[comptime] packing: Packing,
) -> i32 {
    let mut word = 0i32;
    if comptime!(form == Form::Word) {
        if first < len {
            word = first_bytes(i32::cast_from(values[(start + first) / 4]), len - first);
        }
    } else {
        #[unroll]
        for byte in 0..comptime!(packing.values()) {
            let i = first + byte;
            if i < len {
                word = put(word, i32::cast_from(values[start + i]), byte, packing);
            }
        }
    }
    word
}

/// Four words of four rows each, of the columns `column..` of a matrix: the transpose of its rows `row..`. Behind the last of `rows`
/// rows stand copies of it, behind the last of `columns` columns values that nobody counts.
#[cube]
pub(crate) fn column_words<I: Int>(
    values: &[I],
    row: usize,
    rows: usize,
    stride: usize,
    column: usize,
    columns: usize,
    #[comptime] form: Form,
) -> (i32, i32, i32, i32) {
    let last = rows - 1;
    let starts = (
        row.min(last) * stride,
        (row + 1).min(last) * stride,
        (row + 2).min(last) * stride,
        (row + 3).min(last) * stride,
    );
    if comptime!(form == Form::Word) {
        let at = column.min((columns - 1) / 4 * 4);
        transposed(
            i32::cast_from(values[(starts.0 + at) / 4]),
            i32::cast_from(values[(starts.1 + at) / 4]),
            i32::cast_from(values[(starts.2 + at) / 4]),
            i32::cast_from(values[(starts.3 + at) / 4]),
        )
    } else {
        (
            column_word::<I>(values, starts, column, columns),
            column_word::<I>(values, starts, column + 1, columns),
            column_word::<I>(values, starts, column + 2, columns),
            column_word::<I>(values, starts, column + 3, columns),
        )
    }
}

#[cube]
fn column_word<I: Int>(values: &[I], starts: (usize, usize, usize, usize), column: usize, columns: usize) -> i32 {
    let at = column.min(columns - 1);
    packed(
        i32::cast_from(values[starts.0 + at]),
        i32::cast_from(values[starts.1 + at]),
        i32::cast_from(values[starts.2 + at]),
        i32::cast_from(values[starts.3 + at]),
    )
}

/// Four values as a word, the first in the lowest byte.
#[cube]
pub(crate) fn packed(a: i32, b: i32, c: i32, d: i32) -> i32 {
    (a & 255i32) | ((b & 255i32) << 8i32) | ((c & 255i32) << 16i32) | (d << 24i32)
}

/// The columns of a matrix of 4 × 4 bytes, whose rows are words.
#[cube]
fn transposed(a: i32, b: i32, c: i32, d: i32) -> (i32, i32, i32, i32) {
    let even = comptime!(0x00ff_00ffi32);
    let odd = comptime!(0xff00_ff00u32 as i32);
    // Columns 0 and 2, then 1 and 3, of two rows.
    let top_even = (a & even) | ((b & even) << 8i32);
    let top_odd = ((a >> 8i32) & even) | (b & odd);
    let bottom_even = (c & even) | ((d & even) << 8i32);
    let bottom_odd = ((c >> 8i32) & even) | (d & odd);
    (
        (top_even & 0xffffi32) | (bottom_even << 16i32),
        (top_odd & 0xffffi32) | (bottom_odd << 16i32),
        ((top_even >> 16i32) & 0xffffi32) | ((bottom_even >> 16i32) << 16i32),
        ((top_odd >> 16i32) & 0xffffi32) | ((bottom_odd >> 16i32) << 16i32),
    )
}

/// A word whose bytes from `count` on are 0, for a `count` above 0: no shift is by all 32 bits.
#[cube]
pub(crate) fn first_bytes(word: i32, count: usize) -> i32 {
    let unused = 32i32 - 8i32 * count.min(4usize) as i32;
    i32::reinterpret((u32::reinterpret(word) << (unused as u32)) >> (unused as u32))
}

/// Byte `byte` of a word, as a value.
#[cube]
pub(crate) fn byte_of(word: i32, #[comptime] byte: usize) -> i32 {
    (word << comptime!(24 - 8 * byte as i32)) >> 24i32
}

/// Value `index` of a word, or the value that it is.
#[cube]
pub(crate) fn part_of(word: i32, #[comptime] index: usize, #[comptime] packing: Packing) -> i32 {
    if comptime!(packing == Packing::One) { word } else { byte_of(word, index) }
}

/// `word` with a value as byte `byte`; the value itself if a word is one value.
#[cube]
pub(crate) fn put(word: i32, value: i32, #[comptime] byte: usize, #[comptime] packing: Packing) -> i32 {
    if comptime!(packing == Packing::One) { value } else { word | ((value & 255i32) << comptime!(8 * byte as i32)) }
}

/// `sum` plus the product of two words.
#[cube]
pub(crate) fn multiply(a: i32, b: i32, sum: i32, #[comptime] packing: Packing) -> i32 {
    if comptime!(packing == Packing::One) {
        sum + a * b
    } else if comptime!(packing == Packing::Dot) {
        dp4a(a, b, sum)
    } else {
        let mut sum = sum;
        #[unroll]
        for byte in 0..4usize {
            sum += byte_of(a, byte) * byte_of(b, byte);
        }
        sum
    }
}
