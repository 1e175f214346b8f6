//! Samples of text from a model.

use super::ByteModel;
use crate::error::{Error, TextError};
use burn::tensor::{Int, Tensor};
use eggroll_core::rng::philox::philox4x32;

/// Draws bytes from a model: `p_v ∝ 2^(l_v/temperature)` for logits `l_v` in bits. Equal seeds give equal text.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_nn::integer::EggModelConfig;
/// use eggroll_run::text::{Sampler, printable};
///
/// # fn main() -> Result<(), eggroll_run::Error> {
/// let model = EggModelConfig::new().with_layers(1).with_width(8).init(&Device::flex());
/// let text = Sampler::new(0.8, 1)?.sample(&model, b"To be", 10);
/// assert_eq!(text.len(), 10);
/// println!("To be{}", printable(&text));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    temperature: f64,
    min_p: f64,
    presence_penalty: f64,
    seed: u64,
}

impl Sampler {
    /// A sampler. Temperature 1 keeps the model's probabilities; towards 0 only the likeliest byte remains.
    ///
    /// # Errors
    ///
    /// [`TextError::Temperature`] if the temperature is negative or not finite.
    pub fn new(temperature: f64, seed: u64) -> Result<Self, Error> {
        if !(temperature >= 0.0 && temperature.is_finite()) {
            return Err(TextError::Temperature(temperature).into());
        }
        Ok(Self { temperature, min_p: 0.0, presence_penalty: 0.0, seed })
    }

    /// Never draws bytes that are less probable than `min_p` times the likeliest, at the temperature (Nguyen et al., "Turning Up the Heat",
    /// arXiv 2407.01082).
    ///
    /// # Errors
    ///
    /// [`TextError::MinP`] if it is not from 0 to 1.
    pub fn with_min_p(mut self, min_p: f64) -> Result<Self, Error> {
        if !(0.0..=1.0).contains(&min_p) {
            return Err(TextError::MinP(min_p).into());
        }
        self.min_p = min_p;
        Ok(self)
    }

    /// Lowers the logits of bytes that already occur, prompt included, by `bits`, once each.
    ///
    /// # Errors
    ///
    /// [`TextError::PresencePenalty`] if it is not finite.
    pub fn with_presence_penalty(mut self, bits: f64) -> Result<Self, Error> {
        if !bits.is_finite() {
            return Err(TextError::PresencePenalty(bits).into());
        }
        self.presence_penalty = bits;
        Ok(self)
    }

    /// `count` bytes, or tokens of the model's [`Alphabet`](super::Alphabet), that follow `prompt`, read from the initial state.
    ///
    /// # Panics
    ///
    /// Panics if `prompt` is empty or has a byte outside the model's vocabulary. Also if a logit is NaN or +∞ or all are −∞, with its position in the
    /// text.
    #[track_caller]
    pub fn sample<M: ByteModel>(&self, model: &M, prompt: &[u8], count: usize) -> Vec<u8> {
        assert!(!prompt.is_empty(), "sampling: an empty prompt");
        let device = model.device();
        let mut state = model.initial_state(1);
        let (mut text, mut read) = (prompt.to_vec(), 0);
        while text.len() - prompt.len() < count {
            let tokens: Vec<i32> = text[read..].iter().map(|byte| i32::from(*byte)).collect();
            read = text.len();
            let tokens = Tensor::<1, Int>::from_ints(&tokens[..], &device).unsqueeze_dim::<2>(0); // [1, steps]
            let (logits, next) = model.forward(tokens, state);
            state = next;
            let [_, steps, vocab] = logits.dims();
            let last = logits.slice([0..1, steps - 1..steps, 0..vocab]).into_data();
            let mut bits: Vec<f64> = last.iter::<f64>().map(|logit| M::LOGIT_BITS * logit).collect();
            check(&bits, text.len());
            self.penalize(&mut bits, &text);
            text.push(self.choose(&bits, read as u64));
        }
        text.split_off(prompt.len())
    }

    /// Subtracts the penalty from the bytes of a text.
    fn penalize(&self, logits: &mut [f64], text: &[u8]) {
        if self.presence_penalty != 0.0 {
            let mut present = [false; 256];
            text.iter().for_each(|byte| present[usize::from(*byte)] = true);
            let of_text = logits.iter_mut().zip(present).filter(|(_, present)| *present);
            of_text.for_each(|(logit, _)| *logit -= self.presence_penalty);
        }
    }

    /// A byte by its logits in bits; `index` tells draws apart.
    fn choose(&self, logits: &[f64], index: u64) -> u8 {
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let likeliest = || logits.iter().position(|logit| *logit == largest).unwrap_or(0) as u8;
        if self.temperature == 0.0 {
            return likeliest();
        }
        let weight = |logit: &f64| {
            let weight = ((logit - largest) / self.temperature).exp2();
            if weight < self.min_p { 0.0 } else { weight }
        };
        let words =
            philox4x32([index as u32, (index >> 32) as u32, 0, 0], [self.seed as u32, (self.seed >> 32) as u32]);
        let uniform = f64::from(words[0]) / 2f64.powi(32);
        let mut left = uniform * logits.iter().map(weight).sum::<f64>();
        for (byte, logit) in logits.iter().enumerate() {
            left -= weight(logit);
            if left < 0.0 {
                return byte as u8;
            }
        }
        // Rounding can leave a rest: the likeliest byte takes it.
        likeliest()
    }
}

/// Refuses logits that have no probabilities.
#[track_caller]
fn check(logits: &[f64], place: usize) {
    if let Some((byte, logit)) = logits.iter().enumerate().find(|(_, logit)| logit.is_nan() || **logit == f64::INFINITY)
    {
        panic!(
            "sampling: at byte {place} of the text, prompt included, the logit of byte {byte} is {logit}: the model gives no probabilities"
        );
    }
    assert!(
        logits.iter().any(|logit| logit.is_finite()),
        "sampling: at byte {place} of the text, prompt included, no byte is possible: all {} logits are -inf",
        logits.len()
    );
}

/// Bytes as text for a terminal: printable ASCII and line feeds as they are, all others as `\xNN`.
///
/// # Example
///
/// ```
/// assert_eq!(eggroll_run::text::printable(b"one\n\xFF\\two"), "one\n\\xff\\\\two");
/// ```
pub fn printable(bytes: &[u8]) -> String {
    let shown = |byte: &u8| match byte {
        b'\n' => "\n".to_owned(),
        b'\\' => "\\\\".to_owned(),
        0x20..=0x7e => char::from(*byte).to_string(),
        other => format!("\\x{other:02x}"),
    };
    bytes.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_probabilities_of_the_logits() {
        const DRAWS: u64 = 20_000;
        for (temperature, expected) in [(1.0, 2.0 / 3.0), (0.5, 4.0 / 5.0), (2.0, 2f64.sqrt() / (1.0 + 2f64.sqrt()))] {
            let sampler = Sampler::new(temperature, 7).expect("a sampler");
            let first = (0..DRAWS).filter(|index| sampler.choose(&[1.0, 0.0], *index) == 0).count();
            let (found, error) = (first as f64 / DRAWS as f64, (expected * (1.0 - expected) / DRAWS as f64).sqrt());
            assert!((found - expected).abs() < 4.0 * error, "{temperature}: {found}, expected {expected} ± {error}");
        }
        assert_eq!(Sampler::new(0.0, 7).expect("a sampler").choose(&[-9.0, 3.0, -127.0, 2.0], 0), 1);
        let (flat, plain) = ([0.0, 1.0, -2.0, 1.0], Sampler::new(1.0, 7).expect("a sampler"));
        let drawn = |sampler: Sampler| -> Vec<u8> {
            let mut drawn: Vec<u8> = (0..400).map(|index| sampler.choose(&flat, index)).collect();
            drawn.sort_unstable();
            drawn.dedup();
            drawn
        };
        assert_eq!(drawn(plain), [0, 1, 2, 3]);
        assert_eq!(drawn(plain.with_min_p(0.2).expect("a share")), [0, 1, 3]); // the third has 1/8 of the likeliest
        assert_eq!(drawn(plain.with_min_p(1.0).expect("a share")), [1, 3]);
        let penalized = |bits| {
            let mut logits = flat;
            plain.with_presence_penalty(bits).expect("finite").penalize(&mut logits, &[1, 1, 0]);
            logits
        };
        assert_eq!(penalized(3.0), [-3.0, -2.0, -2.0, 1.0]); // once each
        assert_eq!(penalized(0.0), flat);
        for refused in [plain.with_min_p(1.5), plain.with_min_p(f64::NAN), plain.with_presence_penalty(f64::INFINITY)] {
            assert!(refused.is_err());
        }
        assert_eq!(Sampler::new(1e-3, 7).expect("a sampler").choose(&[-9.0, 3.0, -127.0, 2.0], 0), 1);
    }

    #[test]
    fn logits_without_probabilities_are_refused() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let text = |logits: Vec<f64>| {
            let panic = std::panic::catch_unwind(|| check(&logits, 7)).expect_err("refused");
            panic.downcast_ref::<String>().expect("a text").clone()
        };
        for (logits, found) in [
            (vec![nan; 3], "logit of byte 0 is NaN"),
            (vec![0.0, nan, -inf], "logit of byte 1 is NaN"),
            (vec![0.0, inf], "logit of byte 1 is inf"),
            (vec![-inf; 4], "all 4 logits are -inf"),
        ] {
            let text = text(logits);
            assert!(text.contains(found) && text.contains("at byte 7 of the text"), "{text}");
        }
        check(&[-inf, 0.0], 7);
    }
}
