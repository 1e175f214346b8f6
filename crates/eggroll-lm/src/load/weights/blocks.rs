//! Matrices as integers in blocks of 32 with a scale each, as in ggml's Q8_0 and Q4_0.

use super::super::encoding::{Encoding, SUPPORTED};
use super::super::error::LoadError;
use super::super::gguf::{self, TensorInfo};
use super::{PIECE, Weights, rotary};
use eggroll_core::transformer::PackedMatrix;
use half::f16;
use std::path::Path;

const BLOCK: usize = PackedMatrix::BLOCK;

/// A matrix in blocks along its inputs.
pub(crate) struct WeightBlocks {
    /// Q8_0 or Q4_0.
    pub encoding: Encoding,
    /// `[inputs, outputs]`
    pub integers: Vec<i8>,
    /// `[inputs / 32, outputs]`, exact in f16.
    pub scales: Vec<f32>,
}

impl Weights {
    /// A matrix in blocks: unchanged if it is stored in Q8_0 or Q4_0, else rounded to Q8_0.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and for inputs that are not a multiple of blocks, or weights that are not finite or out of Q8_0's
    /// range.
    pub(crate) fn blocks(&self, name: &str, [outputs, inputs]: [usize; 2]) -> Result<WeightBlocks, LoadError> {
        let (tensor, numbers, bytes) = self.find(name, &[outputs, inputs])?;
        let malformed = |reason: String| LoadError::malformed(&self.path, "weights", reason);
        if !inputs.is_multiple_of(BLOCK) || !inputs.is_multiple_of(numbers) {
            let found = format!("{inputs} inputs of tensor \"{name}\"");
            return Err(LoadError::unsupported(&self.path, "size", found, format!("multiples of {BLOCK}, for blocks")));
        }
        let encoding = if tensor.encoding == Encoding::Q4_0 { Encoding::Q4_0 } else { Encoding::Q8_0 };
        let mut found =
            WeightBlocks { encoding, integers: vec![0; inputs * outputs], scales: vec![0.0; inputs / BLOCK * outputs] };
        let row_bytes = inputs / numbers * bytes;
        let mut piece = vec![0; (PIECE / inputs).clamp(1, outputs) * row_bytes];
        let mut values = Vec::with_capacity(inputs);
        for first in (0..outputs).step_by(piece.len() / row_bytes) {
            let rows = (outputs - first).min(piece.len() / row_bytes);
            let piece = &mut piece[..rows * row_bytes];
            self.files[tensor.file].read_at(tensor.offset + (first * row_bytes) as u64, piece)?;
            for (row, stored) in piece.chunks_exact(row_bytes).enumerate() {
                let output = tensor.output_of(first + row);
                let mut put = |block: usize, scale: f32, integers: &mut dyn Iterator<Item = i8>| {
                    if !scale.is_finite() {
                        let reason =
                            format!("block {block} of output {output} of tensor \"{name}\" has the scale {scale}");
                        return Err(malformed(format!("{reason}: weights must be finite, and below 8e6")));
                    }
                    found.scales[block * outputs + output] = scale;
                    for (k, integer) in integers.enumerate() {
                        found.integers[(block * BLOCK + k) * outputs + output] = integer;
                    }
                    Ok(())
                };
                if let Some(parts) = tensor.encoding.integers(stored) {
                    parts
                        .enumerate()
                        .try_for_each(|(block, (scale, integers))| put(block, scale, &mut integers.into_iter()))?;
                    continue;
                }
                values.clear();
                stored.chunks_exact(bytes).for_each(|block| tensor.encoding.decode(block, &mut values));
                for (block, values) in values.chunks_exact(BLOCK).enumerate() {
                    let largest = values.iter().fold(0.0f32, |a, b| if b.is_nan() { *b } else { a.max(b.abs()) });
                    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
                    let scale = f16::from_f32(largest / 127.0).to_f32();
                    put(block, scale, &mut values.iter().map(|value| (value * inverse).round() as i8))?;
                }
            }
        }
        Ok(found)
    }

    /// Writes the GGUF file again, with new blocks for the matrices for which `encoding` returns one. `column` appends the integers of an output, each with its
    /// scale. Everything else is copied.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for weights of another format, and if a file cannot be read or written.
    pub(crate) fn write_gguf(
        &self,
        path: &Path,
        encoding: impl Fn(&str) -> Option<Encoding>,
        column: impl Fn(&str, usize, &mut Vec<(i8, f32)>),
    ) -> Result<(), LoadError> {
        let Some(layout) = &self.layout else {
            return Err(LoadError::unsupported(
                &self.path,
                "format",
                "SafeTensors",
                "GGUF, to be written again as it is",
            ));
        };
        if let Some(tensor) = layout.tensors.iter().find(|tensor| tensor.bytes().is_none()) {
            let what = format!("type of tensor \"{}\"", tensor.name);
            return Err(LoadError::unsupported(&self.path, what, tensor.encoding.name(), SUPPORTED));
        }
        let named = |info: &TensorInfo| match self.kind {
            Some(kind) => gguf::hugging_face(kind, &info.name),
            None => info.name.clone(),
        };
        let bytes = |info: &TensorInfo, encoding: Encoding| {
            let (name, mut bytes, mut of_output) = (named(info), Vec::new(), Vec::new());
            for row in 0..info.shape[0] {
                of_output.clear();
                column(&name, self.tensors[&name].output_of(row), &mut of_output);
                for block in of_output.as_chunks::<BLOCK>().0 {
                    encoding.encode(block[0].1, block.map(|(integer, _)| integer), &mut bytes);
                }
            }
            bytes
        };
        gguf::write((&self.files[0], layout), path, |info| encoding(&named(info)), bytes)
    }
}

impl super::Tensor {
    fn output_of(&self, row: usize) -> usize {
        self.interleaved.map_or(row, |heads| rotary::half_of(row, self.shape[0] / heads))
    }
}
