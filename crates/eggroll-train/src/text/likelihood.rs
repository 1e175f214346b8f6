//! How well a model predicts a text.

use crate::carried::Carried;
use burn::tensor::{Int, Tensor, TensorData};
use eggroll_core::ops::integer::log_likelihood;
use eggroll_nn::integer::{EggModel, EggState};

/// Steps of one forward: the state is carried on.
const WINDOW: usize = 128;

/// Bits that a model needs for each byte of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitsPerByte {
    /// `−log2 p[target]` with `p_v = 2^(q_v/16) / Σ_u 2^(q_u/16)`: what an entropy coder would need.
    pub exact: f64,
    /// The same by the integer arithmetic that training uses ([`log_likelihood`]). It rounds the normalizer down and so comes
    /// out lower, by less than 0.16 bit: to compare with training, not with other models.
    pub integer: f64,
    /// Bytes predicted.
    pub bytes: usize,
}

/// Bits for each byte of `text` by the plain model, which must not be perturbed: the text is cut into `sequences` contiguous
/// sequences, each read from a state of zeros, and every byte counts but the first of each sequence. Lengths of sequences differ
/// by one at most; there are no more sequences than pairs of bytes.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_nn::integer::EggModelConfig;
/// use eggroll_train::text::bits_per_byte;
///
/// let model = EggModelConfig::new().with_layers(1).with_width(8).init(&Device::flex());
/// let found = bits_per_byte(&model, b"a text of 23 bytes, say", 2);
/// assert_eq!(found.bytes, 21);
/// assert!(found.exact > 2.0); // nothing is learned yet
/// ```
///
/// # Panics
///
/// Panics if `text` has fewer than two bytes, or a byte that the model's vocabulary does not have.
#[track_caller]
pub fn bits_per_byte(model: &EggModel, text: &[u8], sequences: usize) -> BitsPerByte {
    assert!(text.len() >= 2, "bits per byte: a text of {} bytes predicts nothing", text.len());
    let sequences = sequences.clamp(1, text.len() / 2);
    let (short, longer) = (text.len() / sequences, text.len() % sequences);
    let start = |sequence: usize| sequence * short + sequence.min(longer); // the first `longer` have one byte more
    let mut state = model.initial_state(sequences);
    let (mut exact, mut sixteenths) = (0.0, 0i64);
    let mut window = |state: &mut EggState, rows: usize, from: usize, steps: usize| {
        let runs: Vec<&[u8]> = (0..rows).map(|row| &text[start(row) + from..][..steps + 1]).collect();
        let (bits, integer) = predict(model, &runs, state);
        exact += bits;
        sixteenths -= integer;
    };
    for from in (0..short - 1).step_by(WINDOW) {
        window(&mut state, sequences, from, WINDOW.min(short - 1 - from));
    }
    if longer > 0 {
        state = state.rows(0..longer);
        window(&mut state, longer, short - 1, 1);
    }
    let bytes = text.len() - sequences;
    BitsPerByte { exact: exact / bytes as f64, integer: sixteenths as f64 / (16 * bytes) as f64, bytes }
}

/// Exact bits and integer log-likelihood of every run's bytes after the first, from `state` on.
#[track_caller]
fn predict(model: &EggModel, runs: &[&[u8]], state: &mut EggState) -> (f64, i64) {
    let (rows, steps) = (runs.len(), runs[0].len() - 1);
    let device = model.head.weight.device();
    let tokens = |skip: usize| -> Vec<i32> {
        runs.iter().flat_map(|run| run[skip..skip + steps].iter().map(|byte| i32::from(*byte))).collect()
    };
    let inputs = Tensor::<2, Int>::from_data(TensorData::new(tokens(0), [rows, steps]), &device);
    let (logits, next) = model.forward(inputs, state.clone());
    *state = next;
    let vocab = logits.dims()[2];
    let logits = logits.reshape([rows * steps, vocab]);
    let targets = tokens(1);
    let on_device = Tensor::<1, Int>::from_data(TensorData::new(targets.clone(), [rows * steps]), &device);
    let integer = log_likelihood(logits.clone(), on_device, rows).into_data();
    let integer = integer.iter::<i64>().sum();
    let logits: Vec<i64> = logits.into_data().iter::<i64>().collect();
    let powers = powers(1.0);
    let bits = logits.chunks_exact(vocab).zip(targets).map(|(row, target)| {
        let total: f64 = row.iter().map(|logit| powers[(logit + 128) as usize]).sum();
        (total / powers[(row[target as usize] + 128) as usize]).log2()
    });
    (bits.sum(), integer)
}

/// `2^(logit/(16·temperature))` of every logit from −128 on, relative to the largest.
pub(super) fn powers(temperature: f64) -> [f64; 256] {
    std::array::from_fn(|q| ((q as f64 - 255.0) / (16.0 * temperature)).exp2())
}
