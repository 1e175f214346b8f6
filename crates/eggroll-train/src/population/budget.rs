//! How many members are evaluated at a time, and whether their noise is held, by the available memory.

use super::Population;
use crate::memory::Chunk;
use eggroll_core::NoiseSourceConfig;
use eggroll_core::scope::Perturbation;
use eggroll_core::sync::locked;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Population {
    /// Members of the first chunk of a run, from which the memory of a member is learned.
    pub(super) const FIRST_CHUNK: usize = 32;
    /// Lower bound on the bytes that perturbed layers may return for one chunk, if chunks are not configured: large, because every
    /// operation has its own cost.
    const CHUNK_BYTES: u64 = 32 << 20;
    /// The share of a device's memory that they may return; the remainder is for the model's other tensors and its parameters.
    const DEVICE_SHARE: u64 = 8;
    /// Upper bound on what they return: kernels address 2³² elements of two bytes or more, and Vulkan buffers of 4 GiB.
    const MOST_CHUNK_BYTES: u64 = 4 << 30;
    /// The same for one core's chunk: a usual second-level cache.
    pub(super) const CORE_BYTES: u64 = 1 << 20;
    /// Twice the bytes of noise that an evaluation of many forwards may hold, if the memory is unknown.
    pub(super) const HELD_BYTES: u64 = 2 << 30;

    /// Bytes that the perturbed layers may return for a chunk that is alone.
    pub(super) fn chunk_bytes(&self) -> u64 {
        let device = if self.is_on_host() { None } else { self.memory_limit };
        let bytes = device.map_or(0, |memory| memory / Self::DEVICE_SHARE);
        bytes.clamp(Self::CHUNK_BYTES, Self::MOST_CHUNK_BYTES)
    }

    /// Members of the next chunk, in whole pairs. The layers' outputs stay below `budget` bytes, and the outputs of all
    /// chunks that are evaluated side by side stay below the limit.
    pub(super) fn chunk_size(&self, budget: u64, side_by_side: usize) -> usize {
        let limit = self.memory_limit.map_or(u64::MAX, |limit| limit / side_by_side as u64);
        let budget = budget.min(limit);
        let wanted = match (self.chunk_size, self.member_bytes.load(Relaxed)) {
            (Some(chunk), 0) if self.is_to_be_measured(side_by_side) => chunk.min(Self::FIRST_CHUNK),
            (Some(chunk), _) => chunk,
            (None, 0) => Self::FIRST_CHUNK,
            (None, bytes) => usize::try_from(budget / bytes).unwrap_or(usize::MAX),
        };
        wanted.clamp(2, self.members).next_multiple_of(2)
    }

    /// Whether a small first chunk has to measure the bytes of a member: if chunks are chosen by them, or may not fit.
    pub(super) fn is_to_be_measured(&self, side_by_side: usize) -> bool {
        let member_bytes = self.perturbation.table.least_output_bytes();
        let risky = |members: usize, limit: u64| Chunk { member_bytes, side_by_side, limit }.is_risky(members);
        let known = self.member_bytes.load(Relaxed) > 0 || locked(&self.uses).is_some();
        let chunk = self.chunk_size.map(|members| members.min(self.members));
        !known && chunk.is_none_or(|members| self.memory_limit.is_some_and(|limit| risky(members, limit)))
    }

    /// Panics if a chunk of `members` would not fit into memory, with a size that fits.
    #[track_caller]
    pub(super) fn check_memory(&self, members: usize, side_by_side: usize) {
        let Some(limit) = self.memory_limit else { return };
        let member_bytes = self.member_bytes.load(Relaxed);
        if let Err(error) = (Chunk { member_bytes, side_by_side, limit }).check(members) {
            panic!("{error}");
        }
    }

    /// The perturbation with its noise held, if it was drawn on the fly and fits. It may take half of host memory, or the share of a
    /// chunk on a device.
    pub(super) fn holding(&self) -> Perturbation {
        let perturbation = &self.perturbation;
        let pairs = self.pairs();
        let bytes = NoiseSourceConfig::Cached.materialized_bytes(&perturbation.table, pairs.count);
        let share = if self.is_on_host() { 2 } else { Self::DEVICE_SHARE };
        let room = self.memory_limit.map_or(Self::HELD_BYTES / 2, |limit| limit / share);
        if perturbation.held.bytes() > 0 || bytes > room {
            return perturbation.clone();
        }
        let (seed, generation) = (perturbation.seed, perturbation.generation);
        let held = NoiseSourceConfig::Cached.hold(&perturbation.table, seed, generation, pairs, None);
        Perturbation { held: Arc::new(held), ..perturbation.clone() }
    }
}
