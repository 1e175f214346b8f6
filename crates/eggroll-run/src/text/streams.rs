//! Training sequences: contiguous streams that a population reads without end.

use super::Text;
use crate::error::{Error, TextError};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Most bytes that all streams may read in a generation: a tensor of them takes four times this size.
const MOST_BYTES: usize = 1 << 32;

/// A text as a number of streams that are read side by side, `steps` bytes in each generation.
///
/// Stream `i` of `S` starts at byte `⌊i·len/S⌋`; in generation `g` it is at byte `(⌊i·len/S⌋ + g·steps) mod len`. A stream
/// therefore reads the whole text in time and continues at its beginning after its end. The position is a function of the
/// generation: there is nothing to save.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_run::text::{ByteStreams, Text};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("letters.txt");
/// std::fs::write(&path, "abcdefgh")?;
/// let streams = ByteStreams::new(Text::read(&path)?, 2, 3)?;
/// assert_eq!(streams.bytes(0), b"abcdefgh"); // abcd and efgh: a byte more than the steps, to predict
/// assert_eq!(streams.bytes(1), b"defghabc");
/// let batch = streams.batch(0, 2, &Device::flex());
/// assert_eq!(batch.inputs.dims(), [4, 3]); // two members read each stream
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ByteStreams {
    text: Text,
    streams: usize,
    steps: usize,
}

/// The text that the members of a population read in one generation.
#[derive(Clone, Debug)]
pub struct TextBatch {
    /// Bytes read: `[members, steps]`.
    pub inputs: Tensor<2, Int>,
    /// Bytes to predict, each the one after: `[members, steps]`.
    pub targets: Tensor<2, Int>,
}

impl ByteStreams {
    /// Streams over `text`.
    ///
    /// # Errors
    ///
    /// - [`TextError::Streams`] if `streams` or `steps` is 0
    /// - [`TextError::Length`] if the text has fewer bytes than streams, or only one, or if a generation would read more than 2³² bytes
    pub fn new(text: Text, streams: usize, steps: usize) -> Result<Self, Error> {
        if streams == 0 || steps == 0 {
            return Err(TextError::Streams { streams, steps }.into());
        }
        if text.len() < streams.max(2) {
            return Err(text.error(format!("too short for {streams} sequences that start at different bytes")));
        }
        if steps.saturating_add(1).saturating_mul(streams) > MOST_BYTES {
            let reason =
                format!("{streams} sequences of {steps} steps are more than the {MOST_BYTES} bytes of a generation");
            return Err(text.error(reason));
        }
        Ok(Self { text, streams, steps })
    }

    /// Streams side by side.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// Bytes by which a stream advances in a generation.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Where a stream is at the beginning of a generation.
    pub fn position(&self, stream: usize, generation: u64) -> usize {
        let len = self.text.len() as u128;
        let start = stream as u128 * len / self.streams as u128;
        ((start + u128::from(generation) * self.steps as u128) % len) as usize
    }

    /// The bytes of a generation and the byte after each stream's: `[streams, steps + 1]`, row after row.
    pub fn bytes(&self, generation: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.streams * (self.steps + 1));
        for stream in 0..self.streams {
            let mut position = self.position(stream, generation);
            let end = bytes.len() + self.steps + 1;
            while bytes.len() < end {
                let run = &self.text[position..];
                bytes.extend_from_slice(&run[..run.len().min(end - bytes.len())]);
                position = 0;
            }
        }
        bytes
    }

    /// The bytes of a generation as tensors; `copies` consecutive members read the same stream.
    ///
    /// # Shapes
    ///
    /// - output: `[streams · copies, steps]` each
    pub fn batch(&self, generation: u64, copies: usize, device: &Device) -> TextBatch {
        let bytes = self.bytes(generation);
        let tensor = |skip: usize| {
            let rows = bytes.chunks_exact(self.steps + 1).flat_map(|row| std::iter::repeat_n(row, copies));
            let values: Vec<i32> =
                rows.flat_map(|row| row[skip..skip + self.steps].iter().map(|b| i32::from(*b))).collect();
            Tensor::from_data(TensorData::new(values, [self.streams * copies, self.steps]), device)
        };
        TextBatch { inputs: tensor(0), targets: tensor(1) }
    }
}
