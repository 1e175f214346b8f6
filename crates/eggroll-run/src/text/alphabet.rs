//! The bytes of a text as tokens.

use super::Text;
use crate::error::Error;

/// ASCII's substitute, for a character that is not known.
const SUBSTITUTE: u8 = 0x1A;

/// The bytes that a model distinguishes. A text of 65 different bytes needs no vocabulary of 256: embedding, head and normalizer shrink
/// accordingly.
///
/// Token 0 is byte 0, which starts a document. Then come the other bytes of the text, in order, and last one token for all other bytes.
/// If fewer than two bytes are missing, tokens are the bytes.
///
/// # Example
///
/// ```
/// use eggroll_run::text::Alphabet;
///
/// let alphabet = Alphabet::of(b"banana");
/// assert_eq!(alphabet.tokens(), 5); // 0, a, b, n, any other
/// assert_eq!(alphabet.encode(b"bandana"), [2, 1, 3, 4, 1, 3, 1]);
/// assert_eq!(alphabet.decode(&[2, 1, 3]), b"ban");
/// assert_eq!(alphabet.bits_of_others(b"bandana"), 252f64.log2()); // which of the others it was
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alphabet {
    /// By byte.
    tokens: [u8; 256],
    /// By token.
    bytes: Vec<u8>,
}

impl Alphabet {
    /// All bytes: tokens are the bytes.
    pub fn all() -> Self {
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        Self { tokens: std::array::from_fn(|byte| bytes[byte]), bytes }
    }

    /// The bytes of a text.
    pub fn of(text: &[u8]) -> Self {
        let mut present = [false; 256];
        present[0] = true;
        text.iter().for_each(|byte| present[usize::from(*byte)] = true);
        let mut bytes: Vec<u8> = (0..=u8::MAX).filter(|byte| present[usize::from(*byte)]).collect();
        if bytes.len() >= 255 {
            return Self::all();
        }
        let mut tokens = [bytes.len() as u8; 256];
        for (token, byte) in bytes.iter().enumerate() {
            tokens[usize::from(*byte)] = token as u8;
        }
        bytes.push(SUBSTITUTE);
        Self { tokens, bytes }
    }

    /// The number of tokens, from 2 to 256: a model's vocabulary.
    pub fn tokens(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes as tokens.
    pub fn encode(&self, text: &[u8]) -> Vec<u8> {
        text.iter().map(|byte| self.tokens[usize::from(*byte)]).collect()
    }

    /// A text of tokens, in memory.
    ///
    /// # Errors
    ///
    /// [`TextError::Length`](crate::error::TextError::Length) if it is empty.
    pub fn encode_text(&self, text: &Text) -> Result<Text, Error> {
        if self.tokens() == 256 { Ok(text.clone()) } else { Text::read_as(text.path(), self.encode(text)) }
    }

    /// Tokens as bytes; the token for all other bytes becomes ASCII's substitute, 26.
    ///
    /// # Panics
    ///
    /// Panics if a token is not below [`tokens`](Self::tokens).
    #[track_caller]
    pub fn decode(&self, tokens: &[u8]) -> Vec<u8> {
        tokens.iter().map(|token| self.bytes[usize::from(*token)]).collect()
    }

    /// Bits to distinguish the other bytes of a text, all equally likely, in a code of this alphabet: add them to a model's bits.
    pub fn bits_of_others(&self, text: &[u8]) -> f64 {
        if self.tokens() == 256 {
            return 0.0;
        }
        let other = self.tokens() - 1; // also the number of bytes that are known
        let count = text.iter().filter(|byte| usize::from(self.tokens[usize::from(**byte)]) == other).count();
        count as f64 * ((256 - other) as f64).log2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_token() {
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        for missing in 0..=256 {
            let alphabet = Alphabet::of(&bytes[..256 - missing]);
            let tokens = alphabet.encode(&bytes);
            let known = (256 - missing).max(1); // byte 0 always is
            assert_eq!(alphabet.tokens(), if known >= 255 { 256 } else { known + 1 });
            assert!(tokens.iter().all(|token| usize::from(*token) < alphabet.tokens()));
            assert_eq!(alphabet.decode(&tokens[..known]), bytes[..known]);
            let others = if known >= 255 { 0 } else { 256 - known };
            let bits = others as f64 * (others.max(1) as f64).log2();
            assert_eq!(alphabet.bits_of_others(&bytes), bits, "{missing} missing");
        }
        assert_eq!(Alphabet::all(), Alphabet::of(&bytes));
        assert_eq!(Alphabet::of(b"").encode(&[0, 1, 255]), [0, 1, 1]);
        assert_eq!(Alphabet::of(b"a").decode(&[0, 1, 2]), [0, b'a', SUBSTITUTE]);
    }
}
