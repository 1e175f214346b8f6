//! GGUF files of small Llamas, whose matrices are stored in blocks or halves.

use crate::write_gguf::{GgufFile, Value, f32s, tiny};
use eggroll_lm::Item;
use half::{bf16, f16};

const VOCABULARY: u64 = 261;

/// The number of a type of tensors in GGUF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    F32 = 0,
    Q4 = 2,
    Q8 = 8,
    Bf16 = 30,
}

/// Blocks that look random, of weights around 0; every third scale of Q4_0 is negative, as llama.cpp makes them.
fn blocks(kind: Kind, count: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let block = |at: usize| -> Vec<u8> {
        let spread = 1.0 + f32::from(next()) / 256.0;
        let scale = match kind {
            Kind::F32 => return f32s((0..32).map(|_| 0.4 * (f32::from(next()) / 128.0 - 1.0))),
            Kind::Bf16 => {
                let weights = (0..32).map(|_| bf16::from_f32(0.4 * (f32::from(next()) / 128.0 - 1.0)));
                return weights.flat_map(|weight| weight.to_le_bytes()).collect();
            }
            Kind::Q4 if at.is_multiple_of(3) => -0.05 * spread,
            Kind::Q4 => 0.05 * spread,
            Kind::Q8 => 0.003 * spread,
        };
        let stored = (0..if kind == Kind::Q4 { 16 } else { 32 }).map(|_| next().max(1));
        f16::from_f32(scale).to_le_bytes().into_iter().chain(stored).collect()
    };
    (0..count).map(block).collect::<Vec<_>>().concat()
}

/// A Llama of two layers, whose matrices are stored so.
pub fn model(kind: Kind) -> GgufFile {
    let mut file = tiny("llama");
    let sizes = [
        ("block_count", 2),
        ("embedding_length", 32),
        ("feed_forward_length", 64),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
    ];
    sizes.iter().for_each(|(key, size)| file.set(&format!("llama.{key}"), Value::U32(*size)));
    let mut seed = 0;
    let mut matrix = |name: String, rows: u64, columns: u64| {
        seed += 1;
        (name, vec![columns, rows], kind as u32, blocks(kind, (rows * columns / 32) as usize, seed))
    };
    let vector = |name: String| (name, vec![32], 0, f32s([1.0; 32]));
    file.tensors = vec![matrix("token_embd.weight".into(), VOCABULARY, 32)];
    for layer in 0..2 {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        file.tensors.push(vector(name("attn_norm")));
        for (part, rows, columns) in
            [("attn_q", 32, 32), ("attn_k", 16, 32), ("attn_v", 16, 32), ("attn_output", 32, 32)]
        {
            file.tensors.push(matrix(name(part), rows, columns));
        }
        file.tensors.push(vector(name("ffn_norm")));
        for (part, rows, columns) in [("ffn_gate", 64, 32), ("ffn_up", 64, 32), ("ffn_down", 32, 64)] {
            file.tensors.push(matrix(name(part), rows, columns));
        }
    }
    file.tensors.push(vector("output_norm.weight".into()));
    file
}

/// Completions for it.
pub fn items() -> Vec<Item> {
    [("abc", "x"), ("hello", "yz"), ("q", "a")]
        .map(|(prompt, completion)| {
            let tokens = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
            Item::new(&tokens(prompt), &tokens(completion))
        })
        .into()
}
