//! The trait of language models of bytes, of integers or of floats.

use burn::module::Module;
use burn::tensor::kind::Basic;
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::MemberState;
use eggroll_core::ops::integer::{Rounding, log_likelihood};
use eggroll_nn::integer::transformer::{Transformer, TransformerState};
use eggroll_nn::integer::{EggModel, EggState};
use eggroll_train::Scores;

/// A language model of bytes, or of the tokens of an [`Alphabet`](super::Alphabet), for [`bits_per_byte`](super::bits_per_byte) and
/// [`Sampler`](super::Sampler).
pub trait ByteModel: Module {
    /// Kind of the logits: [`Int`] or [`Float`](burn::tensor::Float).
    type Kind: Basic;
    /// The state of sequences.
    type State: MemberState;
    /// Log-likelihoods of members: `[members]`.
    type LogLikelihood: Scores;
    /// Bits of a logit of 1: a byte's probability is proportional to `2^(LOGIT_BITS·logit)`.
    const LOGIT_BITS: f64;

    /// Where the parameters are.
    fn device(&self) -> Device;

    /// The state before any byte.
    fn initial_state(&self, sequences: usize) -> Self::State;

    /// The logits of the next byte after every byte, and the state to continue from.
    ///
    /// # Shapes
    ///
    /// - tokens: `[sequences, steps]`
    /// - output: `[sequences, steps, vocab]`
    fn forward(&self, tokens: Tensor<2, Int>, state: Self::State) -> (Tensor<3, Self::Kind>, Self::State);

    /// The log-likelihood that training raises, a sum for each member, in units of logits.
    ///
    /// # Shapes
    ///
    /// - logits: `[members · rows, vocab]`, targets: `[members · rows]`
    /// - output: `[members]`
    fn log_likelihood(logits: Tensor<2, Self::Kind>, targets: Tensor<1, Int>, members: usize) -> Self::LogLikelihood;

    /// `−Σ log2 p[target]` over all rows, with the exact normalizer.
    ///
    /// # Shapes
    ///
    /// - logits: `[rows, vocab]`, targets: `[rows]`
    fn exact_bits(logits: Tensor<2, Self::Kind>, targets: Tensor<1, Int>) -> f64;
}

impl ByteModel for EggModel {
    type Kind = Int;
    type State = EggState;
    type LogLikelihood = Tensor<1, Int>;
    const LOGIT_BITS: f64 = 1.0 / 16.0;

    fn device(&self) -> Device {
        self.head.weight.device()
    }

    fn initial_state(&self, sequences: usize) -> EggState {
        self.initial_state(sequences)
    }

    #[track_caller]
    fn forward(&self, tokens: Tensor<2, Int>, state: EggState) -> (Tensor<3, Int>, EggState) {
        self.forward(tokens, state)
    }

    #[track_caller]
    fn log_likelihood(logits: Tensor<2, Int>, targets: Tensor<1, Int>, members: usize) -> Tensor<1, Int> {
        log_likelihood(logits, targets, members, Rounding::Floor)
    }

    fn exact_bits(logits: Tensor<2, Int>, targets: Tensor<1, Int>) -> f64 {
        let [_, vocab] = logits.dims();
        // `2^(logit/16)` of every logit from −128 on, relative to the largest.
        let powers: [f64; 256] = std::array::from_fn(|q| ((q as f64 - 255.0) / 16.0).exp2());
        let (logits, targets) = (logits.into_data(), targets.into_data());
        let logits: Vec<i64> = logits.iter::<i64>().collect();
        let bits = logits.chunks_exact(vocab).zip(targets.iter::<i64>()).map(|(row, target)| {
            let total: f64 = row.iter().map(|logit| powers[(logit + 128) as usize]).sum();
            (total / powers[(row[target as usize] + 128) as usize]).log2()
        });
        bits.sum()
    }
}

impl ByteModel for Transformer {
    type Kind = Int;
    type State = TransformerState;
    type LogLikelihood = Tensor<1, Int>;
    const LOGIT_BITS: f64 = 1.0 / 256.0;

    fn device(&self) -> Device {
        self.embedding.weight.device()
    }

    fn initial_state(&self, _sequences: usize) -> TransformerState {
        TransformerState::default()
    }

    #[track_caller]
    fn forward(&self, tokens: Tensor<2, Int>, state: TransformerState) -> (Tensor<3, Int>, TransformerState) {
        self.forward(tokens, state)
    }

    #[track_caller]
    fn log_likelihood(logits: Tensor<2, Int>, targets: Tensor<1, Int>, members: usize) -> Tensor<1, Int> {
        log_likelihood(logits, targets, members, Rounding::Nearest)
    }

    fn exact_bits(logits: Tensor<2, Int>, targets: Tensor<1, Int>) -> f64 {
        let [_, vocab] = logits.dims();
        let (logits, targets) = (logits.into_data(), targets.into_data());
        let bits: Vec<f64> = logits.iter::<f64>().map(|logit| Self::LOGIT_BITS * logit).collect();
        let rows = bits.chunks_exact(vocab).zip(targets.iter::<i64>()).map(|(row, target)| {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = row.iter().map(|bits| (bits - largest).exp2()).sum();
            total.log2() + largest - row[target as usize]
        });
        rows.sum()
    }
}
