//! Keys and values of a batch, kept on the device from token to token.

use super::positions::{LayerPositions, Positions};
use super::rotary::Frequencies;
use crate::load::LlamaConfig;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// Keys and values of the rows of a batch, in slots: each row begins after its padding, so all rows end in the same slot.
pub(crate) struct KvCache {
    layers: Vec<LayerCache>,
    /// Slots that are taken.
    filled: usize,
    /// Slots before the first token, `[rows, 1]`.
    padding: Tensor<2, Int>,
    /// Cosines and sines of positions, `[slots, head_dim/2]` each.
    angles: [Tensor<2>; 2],
    /// For layers with a window: the number of positions that they see, and their angles.
    window: Option<(usize, [Tensor<2>; 2])>,
}

/// A layer's part of a [`KvCache`].
pub(super) struct LayerCache {
    /// Keys and values, `[rows, kv_heads, slots, head_dim]` each; `None` only while they are written.
    kept: Option<[Tensor<4>; 2]>,
    filled: usize,
}

impl KvCache {
    /// For a batch without tokens; `padding` has the padding of each row.
    pub(crate) fn new(
        config: &LlamaConfig,
        (device, dtype): (&Device, DType),
        padding: &[usize],
        slots: usize,
    ) -> Self {
        let shape = [padding.len(), config.kv_heads, slots, config.head_dim];
        let empty = || LayerCache { kept: Some([(); 2].map(|()| Tensor::zeros(shape, (device, dtype)))), filled: 0 };
        let layers = (0..config.layers).map(|_| empty()).collect();
        let padding: Vec<i32> = padding.iter().map(|slots| *slots as i32).collect();
        let shape = [padding.len(), 1];
        let (frequencies, own) = Frequencies::of(config);
        let tensors = |frequencies: &Frequencies| frequencies.tensors(slots, (device, dtype));
        Self {
            layers,
            filled: 0,
            padding: Tensor::from_data(TensorData::new(padding, shape), device),
            angles: tensors(&frequencies),
            window: config.window.map(|window| (window.positions, tensors(own.as_ref().unwrap_or(&frequencies)))),
        }
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(config: &LlamaConfig, dtype: DType, slots: usize) -> usize {
        2 * config.layers * config.kv_heads * config.head_dim * slots * dtype.size()
    }

    pub(super) fn layer(&mut self, index: usize) -> &mut LayerCache {
        &mut self.layers[index]
    }

    /// Takes `length` slots; returns their positions.
    pub(super) fn advance(&mut self, length: usize) -> Positions {
        let (begin, end) = (self.filled, self.filled + length);
        self.filled = end;
        let ([rows, _], device) = (self.padding.dims(), self.padding.device());
        let slots = |from: usize, to: usize| Tensor::<1, Int>::arange(from as i64..to as i64, &device);
        // Positions of the new slots; arbitrary for padding.
        let places = (slots(begin, end).unsqueeze::<2>() - self.padding.clone()).clamp_min(0); // [rows, length]
        let of_places = |angles: &Tensor<2>| {
            let [_, half] = angles.dims();
            angles.clone().select(0, places.clone().flatten(0, 1)).reshape([rows, 1, length, half])
        };
        let looks: Tensor<4, Int> = slots(begin, end).reshape([1, 1, length, 1]);
        let seen: Tensor<4, Int> = slots(0, end).reshape([1, 1, 1, end]);
        // The first slot that a token sees. Padding sees itself: a row that sees nothing would give NaN.
        let first = looks.clone() - places.clone().reshape([rows, 1, length, 1]);
        let of = |angles: &[Tensor<2>; 2], first: Tensor<4, Int>| {
            let [cosines, sines] = angles.each_ref().map(of_places);
            // [rows, 1, length, slots]
            let inside = (seen.clone() - first).clamp(-1, 1) * (looks.clone() - seen.clone()).clamp(-1, 1);
            LayerPositions { cosines, sines, hidden: inside.lower_elem(0) }
        };
        let windowed = self.window.as_ref().map(|(positions, angles)| {
            let newest = looks.clone() - (*positions as i64 - 1);
            of(angles, first.clone().max_pair(newest))
        });
        Positions { full: of(&self.angles, first), windowed }
    }
}

impl LayerCache {
    /// Keeps the keys and values of new tokens, `[rows, kv_heads, length, head_dim]`; returns the keys and values of all
    /// tokens so far.
    pub(super) fn append(&mut self, new: [Tensor<4>; 2]) -> [Tensor<4>; 2] {
        let [rows, heads, length, dim] = new[0].dims();
        let slots = self.filled..self.filled + length;
        self.filled = slots.end;
        let kept = self.kept.take().expect("kept whenever they are not written");
        let [[keys, values], [k, v]] = [kept, new];
        let written = [(keys, k), (values, v)]
            .map(|(kept, new)| kept.slice_assign([0..rows, 0..heads, slots.clone(), 0..dim], new));
        self.kept = Some(written.clone());
        written.map(|kept| kept.slice_dim(2, 0..slots.end))
    }
}
