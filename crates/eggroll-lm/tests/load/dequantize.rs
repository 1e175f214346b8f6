//! Every type of tensor against a formula that computes one weight at a time from the bits of its block.

use crate::write_gguf::{GgufFile, Value};
use eggroll_lm::load::Weights;
use half::{bf16, f16};

/// Bytes that look random, with scales that are finite and not too large.
fn blocks(count: usize, bytes: usize, scales: &[usize]) -> Vec<u8> {
    let mut state = 12_345u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let mut data: Vec<u8> = (0..count * bytes).map(|_| next()).collect();
    for block in data.chunks_exact_mut(bytes) {
        for (i, &scale) in scales.iter().enumerate() {
            let value = f16::from_f32(0.0125 * (i + 1) as f32 * (1.0 + f32::from(next()) / 64.0) - 0.01);
            block[scale..scale + 2].copy_from_slice(&value.to_le_bytes());
        }
    }
    data
}

fn read(kind: u32, rows: usize, columns: usize, data: Vec<u8>) -> (Vec<f32>, &'static str) {
    let metadata = vec![("general.architecture".into(), Value::Text("other"))];
    let tensors =
        vec![("first".into(), vec![4], 0, vec![0; 16]), ("x".into(), vec![columns as u64, rows as u64], kind, data)];
    let (_folder, path) = GgufFile { version: 3, metadata, tensors }.write();
    let weights = Weights::open(path).expect("weights");
    (weights.read("x", &[rows, columns]).expect("values"), weights.dtype("x").unwrap())
}

fn half(block: &[u8], at: usize) -> f64 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f64()
}

/// Checks a type whose blocks hold `numbers` weights in `bytes` bytes, with f16 scales at given offsets.
fn check(kind: u32, name: &str, numbers: usize, bytes: usize, scales: &[usize], weight: impl Fn(&[u8], usize) -> f64) {
    // More than one piece of reading, and a last one that is not full.
    let (rows, columns) = (1100, 256);
    let data = blocks(rows * columns / numbers, bytes, scales);
    let (found, dtype) = read(kind, rows, columns, data.clone());
    assert_eq!(dtype, name);
    for (i, &found) in found.iter().enumerate() {
        let block = &data[i / numbers * bytes..][..bytes];
        let expected = weight(block, i % numbers);
        assert!((f64::from(found) - expected).abs() <= 1e-6 * (1.0 + expected.abs()), "{name} {i}: {found} {expected}");
    }
}

/// Nibble `i` of 16 bytes whose low nibbles come first.
fn nibble(bytes: &[u8], i: usize) -> u32 {
    u32::from(bytes[i % 16]) >> (4 * (i / 16)) & 15
}

fn bit(bytes: &[u8], i: usize) -> u32 {
    u32::from(bytes[i / 8]) >> (i % 8) & 1
}

#[test]
fn blocks_of_32() {
    check(2, "Q4_0", 32, 18, &[0], |block, i| half(block, 0) * (f64::from(nibble(&block[2..], i)) - 8.0));
    check(3, "Q4_1", 32, 20, &[0, 2], |block, i| half(block, 0) * f64::from(nibble(&block[4..], i)) + half(block, 2));
    check(6, "Q5_0", 32, 22, &[0], |block, i| {
        half(block, 0) * (f64::from(nibble(&block[6..], i) + 16 * bit(&block[2..], i)) - 16.0)
    });
    check(7, "Q5_1", 32, 24, &[0, 2], |block, i| {
        half(block, 0) * f64::from(nibble(&block[8..], i) + 16 * bit(&block[4..], i)) + half(block, 2)
    });
    check(8, "Q8_0", 32, 34, &[0], |block, i| half(block, 0) * f64::from(block[2 + i] as i8));
}

/// Scale and minimum of a group of 32, each of six bits.
fn six_bits(packed: &[u8], group: usize) -> (f64, f64) {
    let byte = |i: usize| u32::from(packed[i]);
    let (scale, minimum) = match group {
        0..4 => (byte(group) % 64, byte(group + 4) % 64),
        _ => (byte(group + 4) % 16 + 16 * (byte(group - 4) / 64), byte(group + 4) / 16 + 16 * (byte(group) / 64)),
    };
    (f64::from(scale), f64::from(minimum))
}

#[test]
fn blocks_of_256() {
    // Groups 0 and 1 are the low and high nibbles of bytes 0 to 31, groups 2 and 3 those of bytes 32 to 63, and so on.
    let low = |bytes: &[u8], i: usize| u32::from(bytes[i / 64 * 32 + i % 32]) >> (i / 32 % 2 * 4) & 15;
    check(12, "Q4_K", 256, 144, &[0, 2], |block, i| {
        let (scale, minimum) = six_bits(&block[4..], i / 32);
        half(block, 0) * scale * f64::from(low(&block[16..], i)) - half(block, 2) * minimum
    });
    check(13, "Q5_K", 256, 176, &[0, 2], |block, i| {
        let (scale, minimum) = six_bits(&block[4..], i / 32);
        let high = u32::from(block[16 + i % 32]) >> (i / 32) & 1;
        half(block, 0) * scale * f64::from(low(&block[48..], i) + 16 * high) - half(block, 2) * minimum
    });
    check(14, "Q6_K", 256, 210, &[208], |block, i| {
        // Two halves of 128, each of four runs of 32.
        let (part, run, j) = (i / 128, i % 128 / 32, i % 32);
        let low = u32::from(block[part * 64 + run % 2 * 32 + j]) >> (run / 2 * 4) & 15;
        let high = u32::from(block[128 + part * 32 + j]) >> (2 * run) & 3;
        let scale = f64::from(block[192 + i / 16] as i8);
        half(block, 208) * scale * (f64::from(low + 16 * high) - 32.0)
    });
}

#[test]
fn known_blocks() {
    // d = 0.5, m = -1: low nibbles 0 to 15 are the first half, high nibbles 15 to 0 the second.
    let mut block = [f16::from_f32(0.5).to_le_bytes(), f16::from_f32(-1.0).to_le_bytes()].concat();
    block.extend((0..16u8).map(|i| i | (15 - i) << 4));
    let expected: Vec<f32> = (0..16).chain((0..16).rev()).map(|q| 0.5 * q as f32 - 1.0).collect();
    assert_eq!(read(3, 1, 32, block.clone()).0, expected);

    let block = [&block[..2], &block[4..]].concat();
    let expected: Vec<f32> = (0..16).chain((0..16).rev()).map(|q| 0.5 * (q as f32 - 8.0)).collect();
    assert_eq!(read(2, 1, 32, block).0, expected);
}

#[test]
fn halves() {
    let values = [0.0f32, -1.5, 65504.0, 1e-7, 3.140625, 0.1];
    let bytes = values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect();
    assert_eq!(read(1, 2, 3, bytes).0, values.map(|value| f16::from_f32(value).to_f32()));
    let bytes = values.iter().flat_map(|&value| bf16::from_f32(value).to_le_bytes()).collect();
    assert_eq!(read(30, 2, 3, bytes).0, values.map(|value| bf16::from_f32(value).to_f32()));
    let bytes = values.iter().flat_map(|&value| value.to_le_bytes()).collect();
    assert_eq!(read(0, 2, 3, bytes).0, values);
}
