//! Matrices in the numbers of their file: integers in blocks of 32 with a scale each, as in ggml's Q8_0 and Q4_0, or bfloat16.

use super::super::encoding::{Encoding, SUPPORTED};
use super::super::error::LoadError;
use super::super::gguf::{self, Layout, TensorInfo};
use super::{PIECE, Tensor, Weights, rotary};
use eggroll_core::transformer::PackedMatrix;
use half::{bf16, f16};
use sha2::{Digest, Sha256};
use std::path::Path;

const BLOCK: usize = PackedMatrix::BLOCK;

/// A matrix `[inputs, outputs]` in the numbers of its file.
pub(crate) enum StoredMatrix {
    /// In blocks along the inputs.
    Blocks {
        /// Q8_0 or Q4_0.
        encoding: Encoding,
        /// `[inputs, outputs]`
        integers: Vec<i8>,
        /// `[inputs / 32, outputs]`, exact in f16.
        scales: Vec<f32>,
    },
    /// The bits of bfloat16.
    Bf16(Vec<u16>),
}

impl StoredMatrix {
    /// How the file stores it.
    pub fn encoding(&self) -> Encoding {
        match self {
            Self::Blocks { encoding, .. } => *encoding,
            Self::Bf16(_) => Encoding::BF16,
        }
    }

    /// Packs it for products.
    pub fn packed(&self, shape: [usize; 2]) -> PackedMatrix {
        match self {
            Self::Blocks { encoding, integers, scales } => {
                PackedMatrix::of_blocks(integers, scales, shape, encoding.range())
            }
            Self::Bf16(bits) => PackedMatrix::of_bf16(bits, shape),
        }
    }

    /// Standard deviation of all weights.
    pub fn spread(&self, [_, outputs]: [usize; 2]) -> f64 {
        match self {
            Self::Blocks { integers, scales, .. } => {
                let rows = integers.chunks_exact(outputs).enumerate();
                spread(rows.flat_map(|(k, row)| {
                    row.iter().zip(&scales[k / BLOCK * outputs..]).map(|(q, s)| f64::from(f32::from(*q) * s))
                }))
            }
            Self::Bf16(bits) => spread(bits.iter().map(|bits| bf16::from_bits(*bits).to_f64())),
        }
    }
}

fn spread(weights: impl Iterator<Item = f64>) -> f64 {
    let sums = |(count, sum, squares), w: f64| (count + 1.0, sum + w, squares + w * w);
    let (count, sum, squares): (f64, f64, f64) = weights.fold((0.0, 0.0, 0.0), sums);
    (squares / count - (sum / count).powi(2)).max(0.0).sqrt()
}

impl Weights {
    /// A matrix in blocks: unchanged if it is stored in Q8_0 or Q4_0, else rounded to Q8_0.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and for inputs that are not a multiple of blocks, or weights that are not finite or out of Q8_0's
    /// range.
    pub(crate) fn blocks(&self, name: &str, [outputs, inputs]: [usize; 2]) -> Result<StoredMatrix, LoadError> {
        let (tensor, numbers, _) = self.find(name, &[outputs, inputs])?;
        if !inputs.is_multiple_of(BLOCK) || !inputs.is_multiple_of(numbers) {
            let found = format!("{inputs} inputs of tensor \"{name}\"");
            return Err(LoadError::unsupported(&self.path, "size", found, format!("multiples of {BLOCK}, for blocks")));
        }
        let encoding = if tensor.encoding == Encoding::Q4_0 { Encoding::Q4_0 } else { Encoding::Q8_0 };
        let (mut integers, mut scales) = (vec![0; inputs * outputs], vec![0.0; inputs / BLOCK * outputs]);
        let mut values = Vec::with_capacity(inputs);
        self.each_output(name, [outputs, inputs], |tensor, output, stored| {
            let mut put = |block: usize, scale: f32, of_block: &mut dyn Iterator<Item = i8>| {
                if !scale.is_finite() {
                    let found = format!("block {block} of output {output} of tensor \"{name}\" has the scale {scale}");
                    let reason = format!("{found}: weights must be finite, and below 8e6");
                    return Err(LoadError::malformed(&self.path, "weights", reason));
                }
                scales[block * outputs + output] = scale;
                for (k, integer) in of_block.enumerate() {
                    integers[(block * BLOCK + k) * outputs + output] = integer;
                }
                Ok(())
            };
            if let Some(mut parts) = tensor.encoding.integers(stored).map(Iterator::enumerate) {
                return parts.try_for_each(|(block, (scale, integers))| put(block, scale, &mut integers.into_iter()));
            }
            tensor.decode(stored, &mut values);
            for (block, values) in values.chunks_exact(BLOCK).enumerate() {
                let largest =
                    values.iter().fold(0.0f32, |a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b.abs()) });
                let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
                let scale = f16::from_f32(largest / 127.0).to_f32();
                put(block, scale, &mut values.iter().map(|value| (value * inverse).round() as i8))?;
            }
            Ok(())
        })?;
        Ok(StoredMatrix::Blocks { encoding, integers, scales })
    }

    /// A matrix in bfloat16: unchanged if it is stored in it, else rounded.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and for weights that are not finite in bfloat16.
    pub(crate) fn bfloat16(&self, name: &str, [outputs, inputs]: [usize; 2]) -> Result<StoredMatrix, LoadError> {
        let (mut bits, mut values) = (vec![0; inputs * outputs], Vec::with_capacity(inputs));
        self.each_output(name, [outputs, inputs], |tensor, output, stored| {
            tensor.decode(stored, &mut values);
            for (input, value) in values.iter().enumerate() {
                let rounded = bf16::from_f32(*value);
                if !rounded.is_finite() {
                    let reason =
                        format!("output {output} of tensor \"{name}\" has the weight {value} at input {input}");
                    let reason = format!("{reason}: weights must be finite in bfloat16");
                    return Err(LoadError::malformed(&self.path, "weights", reason));
                }
                bits[input * outputs + output] = rounded.to_bits();
            }
            Ok(())
        })?;
        Ok(StoredMatrix::Bf16(bits))
    }

    /// Gives every output of a matrix, with its bytes in the file.
    fn each_output(
        &self,
        name: &str,
        [outputs, inputs]: [usize; 2],
        mut take: impl FnMut(&Tensor, usize, &[u8]) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let (tensor, numbers, bytes) = self.find(name, &[outputs, inputs])?;
        let row_bytes = inputs / numbers * bytes;
        let mut piece = vec![0; (PIECE / inputs).clamp(1, outputs) * row_bytes];
        for first in (0..outputs).step_by(piece.len() / row_bytes) {
            let rows = (outputs - first).min(piece.len() / row_bytes);
            let piece = &mut piece[..rows * row_bytes];
            self.files[tensor.file].read_at(tensor.offset + (first * row_bytes) as u64, piece)?;
            for (row, stored) in piece.chunks_exact(row_bytes).enumerate() {
                take(tensor, tensor.output_of(first + row), stored)?;
            }
        }
        Ok(())
    }

    /// Refuses a model that cannot be [written again](Self::write_gguf).
    ///
    /// # Errors
    ///
    /// [`LoadError`] for another format than GGUF, and for types that cannot be read.
    pub(crate) fn check_writable(&self) -> Result<&Layout, LoadError> {
        let Some(layout) = &self.layout else {
            let expected = "GGUF, to be written again as it is";
            return Err(LoadError::unsupported(&self.path, "format", "SafeTensors", expected));
        };
        match layout.tensors.iter().find(|tensor| tensor.bytes().is_none()) {
            None => Ok(layout),
            Some(tensor) => {
                let what = format!("type of tensor \"{}\"", tensor.name);
                Err(LoadError::unsupported(&self.path, what, tensor.encoding.name(), SUPPORTED))
            }
        }
    }

    /// SHA-256 of the names, shapes and bytes of all tensors.
    ///
    /// # Errors
    ///
    /// As [`check_writable`](Self::check_writable), and if the file cannot be read.
    pub(crate) fn digest(&self) -> Result<[u8; 32], LoadError> {
        let mut hasher = Sha256::new();
        let mut piece = vec![0; PIECE];
        for tensor in &self.check_writable()?.tensors {
            hasher.update(format!("{:?} {:?} {}", tensor.name, tensor.shape, tensor.encoding.name()));
            let bytes = tensor.bytes().unwrap_or(0);
            for first in (0..bytes).step_by(PIECE) {
                let piece = &mut piece[..(bytes - first).min(PIECE as u64) as usize];
                self.files[0].read_at(tensor.offset + first, piece)?;
                hasher.update(piece);
            }
        }
        Ok(hasher.finalize().into())
    }

    /// Writes the GGUF file again, with new numbers for the matrices for which `encoding` returns one. `column` appends the bytes of an output. Everything else
    /// is copied.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for weights of another format, and if a file cannot be read or written.
    pub(crate) fn write_gguf(
        &self,
        path: &Path,
        encoding: impl Fn(&str) -> Option<Encoding>,
        column: impl Fn(&str, usize, Encoding, &mut Vec<u8>),
    ) -> Result<(), LoadError> {
        let layout = self.check_writable()?;
        let named = |info: &TensorInfo| match self.kind {
            Some(kind) => gguf::hugging_face(kind, &info.name),
            None => info.name.clone(),
        };
        let bytes = |info: &TensorInfo, encoding: Encoding| {
            let (name, mut bytes) = (named(info), Vec::new());
            for row in 0..info.shape[0] {
                column(&name, self.tensors[&name].output_of(row), encoding, &mut bytes);
            }
            bytes
        };
        gguf::write((&self.files[0], layout), path, |info| encoding(&named(info)), bytes)
    }
}

impl Tensor {
    /// The numbers of a row of blocks, in place of what `values` holds.
    fn decode(&self, stored: &[u8], values: &mut Vec<f32>) {
        let (_, bytes) = self.encoding.block().expect("encodings that are not read were refused");
        values.clear();
        stored.chunks_exact(bytes).for_each(|block| self.encoding.decode(block, values));
    }

    fn output_of(&self, row: usize) -> usize {
        self.interleaved.map_or(row, |heads| rotary::half_of(row, self.shape[0] / heads))
    }
}
