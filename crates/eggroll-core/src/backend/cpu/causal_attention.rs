//! Causal attention of whole sequences.

use super::tile::MAX_COLUMNS;
use super::transformer::{Attend, place, rotary};
use crate::ops::portable::rows::angles;
use crate::ops::rows::CausalAttention;
use rayon::prelude::*;
use std::cell::Cell;

/// What a thread keeps for its sequences.
#[derive(Default)]
struct Buffers {
    queries: Vec<f32>,
    turned: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    scores: Vec<f32>,
}

thread_local! {
    static BUFFERS: Cell<Buffers> = Cell::default();
}

/// Writes the mixed values, `[batch, steps, width]` as `[query, key, value]`.
///
/// # Panics
///
/// Panics if the lengths do not fit.
pub(crate) fn causal_attention(
    operands: [&[f32]; 3],
    [steps, width]: [usize; 2],
    attention: &CausalAttention,
    out: &mut [f32],
) {
    let each = steps * width;
    if each == 0 {
        return;
    }
    assert!(operands.iter().all(|operand| operand.len() == out.len()), "queries, keys and values");
    let positions: Vec<u32> = (0..steps as u32).collect();
    let tables = attention.rotary.map(|base| (positions, angles(steps, width / attention.heads, base)));
    out.par_chunks_exact_mut(each).enumerate().with_min_len(4).for_each(|(sequence, out)| {
        let [query, key, value] = operands.map(|operand| &operand[sequence * each..][..each]);
        super::scratch::reuse(&BUFFERS, |buffers| {
            one(buffers, [query, key, value], steps, attention, tables.as_ref(), out);
        });
    });
}

fn one(
    buffers: &mut Buffers,
    [query, key, value]: [&[f32]; 3],
    steps: usize,
    attention: &CausalAttention,
    tables: Option<&(Vec<u32>, [Vec<f32>; 2])>,
    out: &mut [f32],
) {
    let width = query.len() / steps;
    let (heads, head_dim) = (attention.heads, width / attention.heads);
    let capacity = steps.next_multiple_of(MAX_COLUMNS);
    let Buffers { queries, turned, keys, values, scores } = buffers;
    let (mut query, mut key) = (query, key);
    if let Some((positions, [cosines, sines])) = tables {
        for (rows, buffer) in [(&mut query, queries), (&mut key, turned)] {
            buffer.clear();
            buffer.extend_from_slice(rows);
            rotary(buffer, heads, positions, cosines, sines, head_dim / 2);
            *rows = buffer;
        }
    }
    keys.resize(heads * capacity * head_dim, 0.0);
    values.resize(heads * capacity * head_dim + MAX_COLUMNS, 0.0);
    place([key, value], [heads, head_dim, capacity], 0, [&mut *keys, &mut *values]);
    let window = attention.window;
    Attend {
        queries: query,
        keys,
        values,
        capacity,
        heads,
        kv_heads: heads,
        head_dim,
        first: 0,
        window,
        scale: 1.0 / (head_dim as f32).sqrt(),
        cap: None,
        scratch: scores,
        out,
    }
    .run();
}
