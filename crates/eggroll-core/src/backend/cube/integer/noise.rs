//! int8 noise: Philox inline, its bytes looked up in shared memory.

use crate::backend::cube::noise::{Stream, words_of_block};
use crate::rng::integer::{GROUP, QUANTILES};
use cubecl::prelude::*;

/// Blocks of four words in a group.
pub(crate) const BLOCKS: usize = GROUP / 16;
/// Words of the table of quantiles: only the upper half, four in a word.
const TABLE: usize = QUANTILES.len() / 8;

/// Bytes of shared memory that a cube needs.
pub(crate) const SHARED_BYTES: usize = 4 * TABLE;

/// Four quantiles.
const fn table_word(word: usize) -> u32 {
    u32::from_le_bytes([
        QUANTILES[4 * word] as u8,
        QUANTILES[4 * word + 1] as u8,
        QUANTILES[4 * word + 2] as u8,
        QUANTILES[4 * word + 3] as u8,
    ])
}

/// Writes `noise : [pairs, elements]`; a unit takes one block of one pair.
#[cube(launch)]
pub(crate) fn noise_kernel<I: Int>(
    noise: &mut [I],
    stream: Stream,
    pairs: usize,
    first_pair: u32,
    #[define(I)] _dtype: ElemType,
) {
    let mut table = Shared::<[u32]>::new_slice(TABLE);
    #[unroll]
    for word in 0..TABLE {
        if UNIT_POS as usize == word {
            table[word] = comptime!(table_word(word)).runtime();
        }
    }
    sync_cube();
    let blocks = stream.elements.div_ceil(GROUP) * BLOCKS;
    let pair = ABSOLUTE_POS / blocks;
    if pair < pairs {
        let block = ABSOLUTE_POS % blocks;
        let words = words_of_block(&stream, first_pair + pair as u32, block as u32);
        let first = block / BLOCKS * GROUP + block % BLOCKS * 4;
        write_word::<I>(noise, &table, pair, first, stream.elements, words.0);
        write_word::<I>(noise, &table, pair, first + GROUP / 4, stream.elements, words.1);
        write_word::<I>(noise, &table, pair, first + GROUP / 2, stream.elements, words.2);
        write_word::<I>(noise, &table, pair, first + 3 * GROUP / 4, stream.elements, words.3);
    }
}

#[cube]
fn write_word<I: Int>(noise: &mut [I], table: &Shared<[u32]>, pair: usize, first: usize, elements: usize, word: u32) {
    #[unroll]
    for i in 0..4usize {
        if first + i < elements {
            let byte = (word >> comptime!(8 * i as u32)) & 255u32;
            let four = table[((byte & 127u32) >> 2u32) as usize];
            let value = ((four >> ((byte & 3u32) * 8u32)) & 255u32) as i32;
            noise[pair * elements + first + i] = I::cast_from(select(byte >= 128u32, -value, value));
        }
    }
}
