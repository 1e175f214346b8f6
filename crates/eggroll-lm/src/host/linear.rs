//! Linear layers of a model, packed.

use super::noise::Noise;
use crate::values::floats;
use burn::module::{Param, ParamId};
use burn::tensor::Tensor;
use eggroll_core::transformer::{Activations, MemberRow, PackedMatrix, Precision};
use eggroll_nn::Linear;

/// A layer's weight, packed, and its number among the matrices of the model.
#[derive(Debug)]
pub(super) struct PackedLinear {
    pub id: ParamId,
    pub number: usize,
    matrix: PackedMatrix,
    bias: Option<Vec<f32>>,
}

/// The share of a model's packed weights that an update has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Weights whose packed value differs from the one before.
    pub changed: usize,
    /// Weights that were packed again.
    pub weights: usize,
}

impl Changed {
    /// The share of weights that have changed; `None` if none was packed again.
    pub fn share(&self) -> Option<f64> {
        (self.weights > 0).then(|| self.changed as f64 / self.weights as f64)
    }
}

impl std::iter::Sum for Changed {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), |a, b| Self { changed: a.changed + b.changed, weights: a.weights + b.weights })
    }
}

impl PackedLinear {
    pub fn new(layer: &Linear, number: usize, precision: Precision) -> Self {
        let weight = layer.weight.val();
        let shape = weight.dims();
        Self {
            id: layer.weight.id,
            number,
            matrix: PackedMatrix::new(&floats(weight), shape, precision),
            bias: layer.bias.as_ref().map(vector),
        }
    }

    /// From a packed weight.
    pub fn of(id: ParamId, number: usize, matrix: PackedMatrix, bias: Option<Vec<f32>>) -> Self {
        Self { id, number, matrix, bias }
    }

    pub fn matrix(&self) -> &PackedMatrix {
        &self.matrix
    }

    pub fn matrix_mut(&mut self) -> &mut PackedMatrix {
        &mut self.matrix
    }

    pub fn shape(&self) -> [usize; 2] {
        self.matrix.shape()
    }

    /// Takes over the trained parameters of the same layer after an update: its weight, which is packed again, its bias,
    /// or both.
    pub fn update(&mut self, layer: &Linear, trained: impl Fn(ParamId) -> bool) -> Changed {
        if !trained(layer.weight.id) {
            if layer.bias.as_ref().is_some_and(|bias| trained(bias.id)) {
                self.bias = layer.bias.as_ref().map(vector);
            }
            return Changed::default();
        }
        let next = Self::new(layer, self.number, self.matrix.precision());
        let weights = self.shape().iter().product();
        let changed = next.matrix.changed(&self.matrix).map(|changed| Changed { changed, weights });
        *self = next;
        changed.unwrap_or_default()
    }

    /// `y = x·W + b` for rows of members, or added to `y`.
    pub fn forward(
        &self,
        x: &Activations,
        noise: Option<&Noise>,
        rows: &[MemberRow],
        add: bool,
        scratch: &mut Vec<f32>,
        y: &mut [f32],
    ) {
        if let Some(noise) = noise {
            noise.note_rows(self.number, x.values());
        }
        let factors = noise.and_then(|noise| noise.of(self.number));
        self.matrix.multiply(x, factors.map(|factors| (factors, rows)), add, scratch, y);
        if let Some(bias) = &self.bias {
            for y in y.chunks_exact_mut(bias.len()) {
                y.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
            }
        }
    }
}

/// The values of a vector parameter.
pub(super) fn vector(parameter: &Param<Tensor<1>>) -> Vec<f32> {
    floats(parameter.val())
}
