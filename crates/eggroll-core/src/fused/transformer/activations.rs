//! Rows that products read.

use super::precision::Precision;
use crate::backend::cpu::{self, Blocks, PackedRows, Quantized};

/// Rows of activations, `[rows, width]`, as products read them: float32, and also in the format of the weights.
#[derive(Debug)]
pub struct Activations {
    width: usize,
    pub(super) values: Vec<f32>,
    pub(super) packed: PackedRows,
}

impl Activations {
    /// No rows yet, for products with weights of that precision.
    pub fn new(precision: Precision) -> Self {
        let packed = match precision {
            Precision::F32 => PackedRows::F32,
            Precision::Bf16 => PackedRows::Bf16(Default::default()),
            Precision::Int8 => PackedRows::Int8(Quantized::new(Blocks::Rotated)),
            Precision::Q8_0 => PackedRows::Int8(Quantized::new(Blocks::Plain)),
        };
        Self { width: 1, values: Vec::new(), packed }
    }

    /// The format of the weights that the rows are for.
    pub fn precision(&self) -> Precision {
        match &self.packed {
            PackedRows::F32 => Precision::F32,
            PackedRows::Bf16(_) => Precision::Bf16,
            PackedRows::Int8(rows) => match rows.form() {
                Blocks::Rotated => Precision::Int8,
                Blocks::Plain => Precision::Q8_0,
            },
        }
    }

    /// The rows.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Elements of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Takes `[rows, width]` from `write`, which is given as many values to write.
    ///
    /// # Panics
    ///
    /// Panics if `width` is 0.
    #[track_caller]
    pub fn fill(&mut self, rows: usize, width: usize, write: impl FnOnce(&mut [f32])) {
        assert!(width > 0, "activations of width 0");
        self.width = width;
        self.values.resize(rows * width, 0.0);
        write(&mut self.values);
        self.packed.fill(&self.values, self.width);
    }

    /// Takes `x·w / √(mean(x²) + ε)` of every row of `x : [rows, n]`, for a weight `[n]`: RMSNorm (Zhang and Sennrich, arXiv 1910.07467).
    ///
    /// # Panics
    ///
    /// Panics if `x` is not made of rows as long as the weight.
    #[track_caller]
    pub fn rms_norm(&mut self, x: &[f32], weight: &[f32], epsilon: f32) {
        let n = weight.len();
        assert!(n > 0 && x.len().is_multiple_of(n), "rms_norm: {} values in rows of {n}", x.len());
        self.fill(x.len() / n, n, |y| cpu::rms_norm(x, weight, epsilon, y));
    }

    /// Takes `silu(gate)·up`, `silu(x) = x/(1 + exp(−x))`: SwiGLU (Shazeer, arXiv 2002.05202). `gate` is given back with another content.
    ///
    /// # Panics
    ///
    /// Panics if the lengths differ, or are not a multiple of `width`.
    #[track_caller]
    pub fn swiglu(&mut self, gate: &mut Vec<f32>, up: &[f32], width: usize) {
        cpu::swiglu(gate, up);
        self.take(gate, width);
    }

    /// Takes `gelu(gate)·up`, `gelu(x) = x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))`: GeGLU (Shazeer, arXiv 2002.05202) with the
    /// approximation of GELU by tanh. `gate` is given back with another content.
    ///
    /// # Panics
    ///
    /// Panics if the lengths differ, or are not a multiple of `width`.
    #[track_caller]
    pub fn geglu(&mut self, gate: &mut Vec<f32>, up: &[f32], width: usize) {
        cpu::geglu(gate, up);
        self.take(gate, width);
    }

    #[track_caller]
    fn take(&mut self, gate: &mut Vec<f32>, width: usize) {
        assert!(width > 0 && gate.len().is_multiple_of(width), "a gate of {} values in rows of {width}", gate.len());
        self.width = width;
        std::mem::swap(&mut self.values, gate);
        self.packed.fill(&self.values, self.width);
    }
}
