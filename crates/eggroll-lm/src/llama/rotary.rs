//! Angles of rotary positions.

use crate::load::{LlamaConfig, RopeScaling};
use std::f64::consts::TAU;

/// Angles per position, one for each pair of a head's dimensions: `θ^(−2i/head_dim)`, scaled for longer contexts where the
/// configuration says so.
#[derive(Clone, Debug)]
pub(crate) struct Frequencies(Vec<f64>);

impl Frequencies {
    pub(crate) fn new(config: &LlamaConfig) -> Self {
        let half = config.head_dim / 2;
        let plain = (0..half).map(|i| config.rope_theta.powf(-(i as f64) / half as f64));
        Self(match &config.rope_scaling {
            None => plain.collect(),
            Some(RopeScaling::Linear { factor }) => plain.map(|frequency| frequency / factor).collect(),
            Some(RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context_length }) => {
                let original = *original_context_length as f64;
                let scaled = |frequency: f64| {
                    // How often the pair turns within the original context.
                    let turns = original * frequency / TAU;
                    let smooth = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                    let smooth = smooth.clamp(0.0, 1.0);
                    frequency * (smooth + (1.0 - smooth) / factor)
                };
                plain.map(scaled).collect()
            }
        })
    }

    /// Pairs of a head.
    pub(crate) fn half(&self) -> usize {
        self.0.len()
    }

    /// Appends the cosines and sines of a position's angles.
    pub(crate) fn push(&self, position: usize, cosines: &mut Vec<f32>, sines: &mut Vec<f32>) {
        for frequency in &self.0 {
            let (sine, cosine) = (position as f64 * frequency).sin_cos();
            cosines.push(cosine as f32);
            sines.push(sine as f32);
        }
    }
}
