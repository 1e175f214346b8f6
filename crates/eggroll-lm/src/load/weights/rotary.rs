//! Order of the rows of queries and keys.
//!
//! A rotary embedding turns pairs of a head's coordinates. GGUF files of the architectures `llama` and `smollm3` store the two rows of a pair next to
//! each other, `(2i, 2i + 1)`. Hugging Face stores all first rows of a head, then all second ones, `(i, i + head_dim / 2)`.

use super::super::error::LoadError;
use super::super::gguf::{Gguf, TensorInfo};

/// Heads of a tensor whose rows are interleaved, `None` for other tensors.
pub(super) fn heads(gguf: &Gguf, tensor: &TensorInfo) -> Result<Option<usize>, LoadError> {
    let part = tensor.name.strip_prefix("blk.").and_then(|name| name.split('.').nth(1));
    let metadata = &gguf.metadata;
    let all = &format!("{}.attention.head_count", gguf.architecture()?);
    let heads = match part {
        Some("attn_q") => metadata.size(all)?,
        Some("attn_k") => metadata.size(&format!("{all}_kv"))?.or(metadata.size(all)?),
        _ => return Ok(None),
    };
    let heads = metadata.required(all, heads)?;
    let rows = tensor.shape[0];
    if heads == 0 || !rows.is_multiple_of(heads) || !(rows / heads).is_multiple_of(2) {
        let name = &tensor.name;
        return Err(
            metadata.malformed(format!("tensor {name:?} has {rows} rows, expected {heads} heads of an even size"))
        );
    }
    Ok(Some(heads))
}

/// Reorders `(2i, 2i + 1)` to `(i, i + head_dim / 2)` in every head.
pub(super) fn to_halves(values: &mut [f32], heads: usize, rows: usize) {
    let (head_dim, row) = (rows / heads, values.len() / rows);
    let mut head = vec![0.0; head_dim * row];
    for stored in values.chunks_exact_mut(head_dim * row) {
        for (i, pair) in stored.chunks_exact(2 * row).enumerate() {
            head[i * row..][..row].copy_from_slice(&pair[..row]);
            head[(head_dim / 2 + i) * row..][..row].copy_from_slice(&pair[row..]);
        }
        stored.copy_from_slice(&head);
    }
}

/// The position in halves of a row that is stored in pairs.
pub(super) fn half_of(row: usize, head_dim: usize) -> usize {
    let (head, within) = (row / head_dim, row % head_dim);
    head * head_dim + within % 2 * (head_dim / 2) + within / 2
}

#[cfg(test)]
mod tests {
    use super::{half_of, to_halves};

    #[test]
    fn pairs_become_halves_in_every_head() {
        // Two heads of four rows of two columns.
        let mut values: Vec<f32> = (0..16).map(|value| value as f32).collect();
        to_halves(&mut values, 2, 8);
        assert_eq!(values, [0., 1., 4., 5., 2., 3., 6., 7., 8., 9., 12., 13., 10., 11., 14., 15.]);
        for (row, stored) in (0..16).step_by(2).enumerate() {
            assert_eq!(values[2 * half_of(row, 4)], stored as f32, "row {row}");
        }
    }
}
