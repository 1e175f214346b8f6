//! Consecutive pairs under low-rank noise: their factors, found or drawn, and their biases.

use super::linear::{BiasSlice, LinearSlices};
use super::source::SourceSlice;
use super::tile::MAX_COLUMNS;
use crate::ops::LowRankNoise;
use crate::rng::fill_noise;
use crate::work::profile::{self, Component};

/// Pairs of a task at most.
pub(super) const MAX_PAIRS: usize = 32;

/// Consecutive pairs that one task works on.
pub(super) struct PairBlock<'a> {
    pub(super) op: &'a LinearSlices<'a>,
    pub(super) noise: &'a LowRankNoise,
    pub(super) source: SourceSlice<'a>,
    /// Floats of one pair's factors.
    pub(super) factors: usize,
    pub(super) first: u32,
    pub(super) pairs: usize,
    pub(super) traced: bool,
}

impl PairBlock<'_> {
    pub(super) fn rows(&self) -> usize {
        self.pairs * 2 * self.op.rows
    }

    /// `x·B`, bias of every member, and factors if they are not held. Loads of a tile's last vector may run past the end of
    /// a bias.
    pub(super) fn scratch_len(&self) -> usize {
        let drawn = if self.source.writes(self.noise.key) { self.factors } else { 0 };
        self.pairs * (drawn + 2 * self.op.d_output) + self.rows() * self.noise.rank + MAX_COLUMNS
    }

    /// Where `B` and `A` begin in a pair's factors.
    pub(super) fn starts(&self) -> [usize; 2] {
        self.noise.starts([self.op.d_input, self.op.d_output])
    }

    /// `B`, `[rank, d_input]`, and `A`, `[rank, d_output]`, of a pair's factors.
    pub(super) fn parts<'f>(&self, factors: &'f [f32]) -> [&'f [f32]; 2] {
        let (sides, starts) = ([self.op.d_input, self.op.d_output], self.starts());
        [0, 1].map(|part| &factors[starts[part]..][..self.noise.rank * sides[part]])
    }

    /// Finds or draws the factors, and the biases.
    pub(super) fn prepare<'s>(&'s self, scratch: &'s mut [f32]) -> Prepared<'s> {
        let drawn = if self.source.writes(self.noise.key) { self.factors } else { 0 };
        let _span = profile::task(self.traced, Component::Noise, 4 * self.pairs * (drawn + self.op.bias.drawn()));
        let (t, rest) = scratch.split_at_mut(self.rows() * self.noise.rank);
        let (drawn_factors, biases) = rest.split_at_mut(self.pairs * drawn);
        let mut factors: [&[f32]; MAX_PAIRS] = [&[]; MAX_PAIRS];
        let mut room = drawn_factors.chunks_exact_mut(self.factors);
        for (p, factors) in factors[..self.pairs].iter_mut().enumerate() {
            let pair = self.first + p as u32;
            match self.source.held(self.noise.key, pair, self.factors) {
                Some(held) => *factors = held,
                None => fill_noise(self.noise.key, pair, 0, room.next().expect("room for what is not held")),
            }
        }
        let drawn_factors: &'s [f32] = drawn_factors;
        let not_held = factors[..self.pairs].iter_mut().filter(|factors| factors.is_empty());
        not_held.zip(drawn_factors.chunks_exact(self.factors)).for_each(|(factors, drawn)| *factors = drawn);
        let together = match self.source {
            SourceSlice::Drawn => Some(drawn_factors),
            _ => self.source.held_together(self.noise.key, self.first, self.pairs, self.factors),
        };
        if !matches!(self.op.bias, BiasSlice::None) {
            let members = biases.chunks_exact_mut(2 * self.op.d_output).take(self.pairs);
            for (p, bias) in members.enumerate() {
                self.op.bias.fill_pair(self.first + p as u32, bias);
            }
        }
        Prepared { t, factors, together, biases }
    }
}

/// What a task works with.
pub(super) struct Prepared<'s> {
    /// `x·B`, to be written.
    pub(super) t: &'s mut [f32],
    /// Both factors of every pair.
    pub(super) factors: [&'s [f32]; MAX_PAIRS],
    /// The same, one pair after the other, if they are in memory like that.
    pub(super) together: Option<&'s [f32]>,
    /// `[members, d_output]`, with slack behind.
    pub(super) biases: &'s [f32],
}
