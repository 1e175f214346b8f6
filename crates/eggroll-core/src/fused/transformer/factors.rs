//! Low-rank noise of some pairs, drawn.

use crate::noise::role::{ParameterNoise, Role};
use crate::ops::LowRankNoise;
use crate::rng::fill_noise;

/// The factors `B : [rank, d_input]` and `A : [rank, d_output]` of a weight's noise, for some pairs.
#[derive(Clone, Debug)]
pub struct Factors {
    pub(super) rank: usize,
    pub(super) scale: f32,
    pub(super) shape: [usize; 2],
    /// `[slots, rank·(d_input + d_output)]`
    pub(super) values: Vec<f32>,
}

impl Factors {
    /// Whether noise can be drawn so: it is of low rank, and not from a table.
    pub fn can_draw(noise: &ParameterNoise) -> bool {
        matches!(noise.role, Role::LowRank { .. }) && noise.source.is_stream()
    }

    /// Draws the noise of a weight `[d_input, d_output]`, a slot for each of `pairs`; `None` if it is [not drawn so](Self::can_draw).
    pub fn draw(
        noise: &ParameterNoise,
        [d_input, d_output]: [usize; 2],
        pairs: impl IntoIterator<Item = u32>,
    ) -> Option<Self> {
        let Role::LowRank { rank } = noise.role else { return None };
        if !Self::can_draw(noise) {
            return None;
        }
        let each = rank * (d_input + d_output);
        let mut values = Vec::new();
        for pair in pairs {
            let start = values.len();
            values.resize(start + each, 0.0);
            fill_noise(noise.key, pair, 0, &mut values[start..]);
        }
        let scale = LowRankNoise::new(noise.key, rank, noise.sigma).scale;
        Some(Self { rank, scale, shape: [d_input, d_output], values })
    }

    /// Pairs that it was drawn for.
    pub fn slots(&self) -> usize {
        self.values.len() / (self.rank * (self.shape[0] + self.shape[1])).max(1)
    }
}
