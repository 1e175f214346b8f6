//! How a file stores the numbers of a tensor, and how they become f32.
//!
//! The block formats are ggml's. A block of 32 or 256 weights shares one or two f16 scales. In the `K` formats, each smaller group
//! inside a block of 256 also has an integer scale.

use half::{bf16, f16};
use std::ops::RangeInclusive;

/// How the numbers of a tensor are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    F32,
    F16,
    BF16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
    /// Any other, by name: listed, but not read.
    Other(&'static str),
}

/// Encodings that can be read, for messages.
pub(crate) const SUPPORTED: &str = "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K";

impl Encoding {
    /// The encoding with a number of ggml.
    pub(crate) fn from_ggml(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            9 => Self::Other("Q8_1"),
            10 => Self::Other("Q2_K"),
            11 => Self::Other("Q3_K"),
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            15 => Self::Other("Q8_K"),
            16 => Self::Other("IQ2_XXS"),
            17 => Self::Other("IQ2_XS"),
            18 => Self::Other("IQ3_XXS"),
            19 => Self::Other("IQ1_S"),
            20 => Self::Other("IQ4_NL"),
            21 => Self::Other("IQ3_S"),
            22 => Self::Other("IQ2_S"),
            23 => Self::Other("IQ4_XS"),
            24 => Self::Other("I8"),
            25 => Self::Other("I16"),
            26 => Self::Other("I32"),
            27 => Self::Other("I64"),
            28 => Self::Other("F64"),
            29 => Self::Other("IQ1_M"),
            30 => Self::BF16,
            34 => Self::Other("TQ1_0"),
            35 => Self::Other("TQ2_0"),
            39 => Self::Other("MXFP4"),
            _ => return None,
        })
    }

    /// The encoding's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q5_0 => "Q5_0",
            Self::Q5_1 => "Q5_1",
            Self::Q8_0 => "Q8_0",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
            Self::Other(name) => name,
        }
    }

    /// Numbers and bytes of a block, or `None` if this encoding is not read.
    pub(crate) fn block(self) -> Option<(usize, usize)> {
        Some(match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::BF16 => (1, 2),
            Self::Q4_0 => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
            Self::Q4K => (256, 144),
            Self::Q5K => (256, 176),
            Self::Q6K => (256, 210),
            Self::Other(_) => return None,
        })
    }

    /// The integers of a row of blocks of Q8_0 or Q4_0, with the scale of each block.
    pub(crate) fn integers(self, row: &[u8]) -> Option<impl Iterator<Item = (f32, [i8; 32])>> {
        let (true, Some((_, bytes))) = (matches!(self, Self::Q8_0 | Self::Q4_0), self.block()) else { return None };
        let of_block = move |block: &[u8]| {
            let stored = &block[2..];
            let integer = |k: usize| match self {
                Self::Q8_0 => stored[k] as i8,
                _ => (if k < 16 { stored[k] & 15 } else { stored[k - 16] >> 4 }) as i8 - 8,
            };
            (half_at(block, 0), std::array::from_fn(integer))
        };
        Some(row.chunks_exact(bytes).map(of_block))
    }

    /// Appends a block of Q8_0, or of Q4_0, whose integers are −8 to 7.
    pub(crate) fn encode(self, scale: f32, integers: [i8; 32], bytes: &mut Vec<u8>) {
        bytes.extend(f16::from_f32(scale).to_le_bytes());
        match self {
            Self::Q4_0 => {
                bytes.extend((0..16).map(|k| (integers[k] + 8) as u8 & 15 | ((integers[k + 16] + 8) as u8) << 4))
            }
            _ => bytes.extend(integers.map(|integer| integer as u8)),
        }
    }

    /// The integers that weights in blocks may have.
    pub(crate) fn range(self) -> RangeInclusive<i8> {
        if self == Self::Q4_0 { -8..=7 } else { -127..=127 }
    }

    /// Decodes one block, of exactly the bytes that [`block`](Self::block) names.
    pub(crate) fn decode(self, block: &[u8], values: &mut Vec<f32>) {
        match self {
            Self::F32 => values.push(f32::from_le_bytes([block[0], block[1], block[2], block[3]])),
            Self::F16 => values.push(half_at(block, 0)),
            Self::BF16 => values.push(bf16::from_le_bytes([block[0], block[1]]).to_f32()),
            Self::Q4_0 => nibbles(&block[2..], &[], values, |q| half_at(block, 0) * (f32::from(q) - 8.0)),
            Self::Q4_1 => nibbles(&block[4..], &[], values, |q| half_at(block, 0) * f32::from(q) + half_at(block, 2)),
            Self::Q5_0 => {
                nibbles(&block[6..], &block[2..6], values, |q| half_at(block, 0) * (f32::from(q) - 16.0));
            }
            Self::Q5_1 => {
                nibbles(&block[8..], &block[4..8], values, |q| half_at(block, 0) * f32::from(q) + half_at(block, 2));
            }
            Self::Q8_0 => values.extend(block[2..].iter().map(|&q| half_at(block, 0) * f32::from(q as i8))),
            Self::Q4K => groups_of_32(&block[..16], &[], &block[16..], values),
            Self::Q5K => groups_of_32(&block[..16], &block[16..48], &block[48..], values),
            Self::Q6K => groups_of_16(block, values),
            Self::Other(_) => {}
        }
    }
}

fn half_at(block: &[u8], offset: usize) -> f32 {
    f16::from_le_bytes([block[offset], block[offset + 1]]).to_f32()
}

/// Sixteen bytes: the low nibbles are the first half of the block, the high ones the second. `fifth` has one more bit for each of
/// the 32, the lowest first.
fn nibbles(bytes: &[u8], fifth: &[u8], values: &mut Vec<f32>, weight: impl Fn(u8) -> f32) {
    let fifth_bit = |i: usize| fifth.get(i / 8).map_or(0, |byte| (byte >> (i % 8) & 1) << 4);
    values.extend(bytes.iter().enumerate().map(|(i, byte)| weight(byte & 15 | fifth_bit(i))));
    values.extend(bytes.iter().enumerate().map(|(i, byte)| weight(byte >> 4 | fifth_bit(i + 16))));
}

/// `Q4_K` and `Q5_K`: eight groups of 32 weights `d·scale·q − dmin·minimum`. Two groups share 32 bytes of nibbles; bit `g` of
/// `fifth[i]` is the fifth bit of weight `i` of group `g`.
fn groups_of_32(head: &[u8], fifth: &[u8], nibbles: &[u8], values: &mut Vec<f32>) {
    let (d, dmin) = (half_at(head, 0), half_at(head, 2));
    for group in 0..8 {
        let (scale, minimum) = scale_and_minimum(&head[4..], group);
        let (d, minimum) = (d * f32::from(scale), dmin * f32::from(minimum));
        let bytes = &nibbles[group / 2 * 32..][..32];
        values.extend(bytes.iter().enumerate().map(|(i, byte)| {
            let low = if group % 2 == 0 { byte & 15 } else { byte >> 4 };
            let high = fifth.get(i).map_or(0, |bits| (bits >> group & 1) << 4);
            d * f32::from(low | high) - minimum
        }));
    }
}

/// Twelve bytes hold eight scales and eight minima of six bits. Bytes 0 to 3 have the first four scales, bytes 4 to 7 the first
/// four minima, each in the low six bits. Bytes 8 to 11 have the low nibbles of the other four of both; their two high bits are
/// the high bits of bytes 0 to 7.
fn scale_and_minimum(packed: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        let low = packed[group + 4];
        (low & 15 | packed[group - 4] >> 6 << 4, low >> 4 | packed[group] >> 6 << 4)
    }
}

/// `Q6_K`: sixteen groups of 16 weights `d·scale·(q − 32)`: 128 bytes of low nibbles, 64 of two high bits, 16 signed scales, `d`.
fn groups_of_16(block: &[u8], values: &mut Vec<f32>) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let d = half_at(block, 208);
    // Each half of the block is four runs of 32: runs 0 and 1 are the low nibbles of 64 bytes, runs 2 and 3 their high nibbles.
    for run in 0..8 {
        let (half, quarter) = (run / 4, run % 4);
        for i in 0..32 {
            let byte = low[half * 64 + quarter % 2 * 32 + i];
            let nibble = if quarter < 2 { byte & 15 } else { byte >> 4 };
            let bits = high[half * 32 + i] >> (2 * quarter) & 3;
            let scale = f32::from(scales[run * 2 + i / 16] as i8);
            values.push(d * scale * (f32::from(nibble | bits << 4) - 32.0));
        }
    }
}
