//! The likelihood of a text under a model.

use super::ByteModel;
use burn::tensor::{Int, Tensor, TensorData};
use eggroll_core::MemberState;
use eggroll_train::Scores;

/// Steps of one forward: the state is carried on.
const WINDOW: usize = 128;

/// Bits of a model for each byte of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitsPerByte {
    /// `−log2 p[target]` with the exact normalizer, for integer models `p_v = 2^(q_v/16) / Σ_u 2^(q_u/16)`: the bits of an
    /// entropy coder.
    pub exact: f64,
    /// The same by the arithmetic of training ([`ByteModel::log_likelihood`]). Integer arithmetic rounds the normalizer
    /// down, so the result is lower by less than 0.16 bit: compare it with training, not with other models.
    pub integer: f64,
    /// Bytes predicted.
    pub bytes: usize,
}

/// Bits for each byte of `text`, encoded if the model has an [`Alphabet`](super::Alphabet), by the plain model, which must not be perturbed. The text is cut
/// into `sequences` contiguous sequences, each read from a state of zeros. Every byte counts except the first of each sequence. Lengths of sequences differ by
/// at most one; there are no more sequences than pairs of bytes.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_nn::integer::EggModelConfig;
/// use eggroll_run::text::bits_per_byte;
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
pub fn bits_per_byte<M: ByteModel>(model: &M, text: &[u8], sequences: usize) -> BitsPerByte {
    assert!(text.len() >= 2, "bits per byte: a text of {} bytes predicts nothing", text.len());
    let sequences = sequences.clamp(1, text.len() / 2);
    let (short, longer) = (text.len() / sequences, text.len() % sequences);
    let start = |sequence: usize| sequence * short + sequence.min(longer); // the first `longer` have one byte more
    let mut state = model.initial_state(sequences);
    let (mut exact, mut logits) = (0.0, 0.0);
    let mut window = |state: M::State, rows: usize, from: usize, steps: usize| {
        let runs: Vec<&[u8]> = (0..rows).map(|row| &text[start(row) + from..][..steps + 1]).collect();
        let (bits, trained, state) = predict(model, &runs, state);
        exact += bits;
        logits -= trained;
        state
    };
    for from in (0..short - 1).step_by(WINDOW) {
        state = window(state, sequences, from, WINDOW.min(short - 1 - from));
    }
    if longer > 0 {
        window(state.rows(0..longer), longer, short - 1, 1);
    }
    let bytes = text.len() - sequences;
    BitsPerByte { exact: exact / bytes as f64, integer: logits * M::LOGIT_BITS / bytes as f64, bytes }
}

/// Exact bits of every run's bytes after the first, from `state` on, the log-likelihood of training in logits, and the state
/// to continue from.
#[track_caller]
fn predict<M: ByteModel>(model: &M, runs: &[&[u8]], state: M::State) -> (f64, f64, M::State) {
    let (rows, steps) = (runs.len(), runs[0].len() - 1);
    let device = model.device();
    let tokens = |skip: usize| {
        let tokens: Vec<i32> =
            runs.iter().flat_map(|run| run[skip..skip + steps].iter().map(|byte| i32::from(*byte))).collect();
        Tensor::<2, Int>::from_data(TensorData::new(tokens, [rows, steps]), &device)
    };
    let (logits, state) = model.forward(tokens(0), state);
    let [_, _, vocab] = logits.dims();
    let (logits, targets) = (logits.reshape([rows * steps, vocab]), tokens(1).reshape([rows * steps]));
    let trained = Scores::read(vec![M::log_likelihood(logits.clone(), targets.clone(), rows)]);
    let trained = match trained.integers() {
        Some(integers) => integers.iter().map(|value| f64::from(*value)).sum(),
        None => trained.values().iter().map(|value| f64::from(*value)).sum(),
    };
    (M::exact_bits(logits, targets), trained, state)
}
