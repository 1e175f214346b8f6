//! Frequencies of bytes and pairs of bytes: baselines for a model.

use crate::diagnostics::entropy;

/// Added to every count of [`ByteStatistics`] when it predicts.
const SMOOTHING: f64 = 0.01;
const BYTES: usize = 256;

/// Counts of bytes and of pairs of neighboring bytes.
///
/// # Example
///
/// ```
/// use eggroll_run::text::ByteStatistics;
///
/// let counts = ByteStatistics::new(b"abababab");
/// assert_eq!(counts.unigram_entropy(), 1.0); // a or b
/// assert_eq!(counts.bigram_entropy(), 0.0); // always the other one
/// ```
#[derive(Clone, Debug)]
pub struct ByteStatistics {
    bytes: Vec<u64>,
    /// By the first byte, then the second.
    pairs: Vec<u64>,
    /// Pairs by their first byte: the bytes but for the last.
    firsts: Vec<u64>,
}

impl ByteStatistics {
    /// Counts.
    pub fn new(text: &[u8]) -> Self {
        let mut counts = Self { bytes: vec![0; BYTES], pairs: vec![0; BYTES * BYTES], firsts: vec![0; BYTES] };
        for byte in text {
            counts.bytes[usize::from(*byte)] += 1;
        }
        for pair in text.windows(2) {
            counts.pairs[pair_index(pair)] += 1;
            counts.firsts[usize::from(pair[0])] += 1;
        }
        counts
    }

    /// Entropy of the bytes counted, in bits: `−Σ p(b)·log2 p(b)`.
    pub fn unigram_entropy(&self) -> f64 {
        entropy(&self.bytes)
    }

    /// Entropy of a byte given the one before, in bits: `−Σ p(a, b)·log2 p(b | a)`, by the counts of the pairs.
    pub fn bigram_entropy(&self) -> f64 {
        entropy(&self.pairs) - entropy(&self.firsts)
    }

    /// Bits for each byte of another text by the counted frequencies, each count `n` as `n + 0.01` so that every byte is possible.
    pub fn unigram_bits(&self, text: &[u8]) -> f64 {
        let total = total(&self.bytes) + SMOOTHING * BYTES as f64;
        let bits = text.iter().map(|byte| (total / (self.bytes[usize::from(*byte)] as f64 + SMOOTHING)).log2());
        bits.sum::<f64>() / text.len() as f64
    }

    /// Bits for each byte but the first of another text, given the one before, by the counts of pairs, each `n` as `n + 0.01`.
    pub fn bigram_bits(&self, text: &[u8]) -> f64 {
        let bits = text.windows(2).map(|pair| {
            let total = self.firsts[usize::from(pair[0])] as f64 + SMOOTHING * BYTES as f64;
            (total / (self.pairs[pair_index(pair)] as f64 + SMOOTHING)).log2()
        });
        bits.sum::<f64>() / (text.len() - 1) as f64
    }
}

fn pair_index(pair: &[u8]) -> usize {
    usize::from(pair[0]) * BYTES + usize::from(pair[1])
}

fn total(counts: &[u64]) -> f64 {
    counts.iter().sum::<u64>() as f64
}
