//! Sizes of cubes and tiles: which unit does what.

use super::estimate::SIDE;
use super::noise::chunk_len;
use crate::rng::NoiseDistribution;
use cubecl::client::Client;
use cubecl::{CubeCount, CubeDim};

/// Units of a cube at least: two noise groups at a time.
pub(crate) const MIN_UNITS: u32 = 32;
/// Units of a cube at most: what WebGPU guarantees.
const MAX_UNITS: u32 = 256;
/// Rows of a tile at most: a unit keeps a sum for each row and column of its own.
const MAX_ROWS: usize = 8;
/// Cubes that keep a device busy.
const BUSY: usize = 512;
/// Pairs that a split of an estimate sums at least.
const MIN_PAIRS: usize = 16;

/// What a linear kernel does about the bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BiasKind {
    None,
    Plain,
    Perturbed,
}

/// Where a kernel finds its noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SourceKind {
    Drawn(NoiseDistribution),
    Cached,
    Table,
}

/// What one cube of a linear kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LinearTile {
    pub units: u32,
    /// Rows of the input: a power of two.
    pub rows: usize,
    /// Rank that shared memory holds `x·B` for; 0 for dense noise.
    pub rank_capacity: usize,
    /// Whether all members share the rows.
    pub shared: bool,
    pub source: SourceKind,
    pub bias: BiasKind,
    pub bias_source: SourceKind,
}

impl LinearTile {
    /// The tile for `pair_rows` rows of a pair and noise of `width` elements in its longest row.
    pub(crate) fn new(client: &Client, pair_rows: usize, width: usize, rank: usize) -> Self {
        let widest = MAX_UNITS.min(client.properties().hardware.max_units_per_cube);
        let wanted = (width / 4).next_power_of_two().min(widest as usize) as u32;
        Self {
            units: wanted.max(MIN_UNITS),
            rows: pair_rows.next_power_of_two().min(MAX_ROWS),
            rank_capacity: if rank == 0 { 0 } else { rank.next_power_of_two() },
            shared: false,
            source: SourceKind::Drawn(NoiseDistribution::Normal),
            bias: BiasKind::None,
            bias_source: SourceKind::Drawn(NoiseDistribution::Normal),
        }
    }

    pub(crate) fn is_low_rank(&self) -> bool {
        self.rank_capacity > 0
    }

    /// Bytes of shared memory that a cube needs.
    pub(crate) fn shared_bytes(&self) -> usize {
        4 * (chunk_len(self.units) + self.units as usize + self.rows * self.rank_capacity.max(1))
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.units)
    }
}

/// How the units of a cube share a tile of an estimate: `side × side` units with `each × each` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EstimateTile {
    pub side: usize,
    pub each: usize,
    pub source: SourceKind,
}

impl EstimateTile {
    pub(crate) fn new(client: &Client, source: SourceKind) -> Self {
        let side = if client.properties().hardware.max_units_per_cube >= 256 { 16 } else { 8 };
        Self { side, each: SIDE / side, source }
    }

    pub(crate) fn units(&self) -> u32 {
        (self.side * self.side) as u32
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.units())
    }
}

/// Pairs of each split of an estimate, and the number of splits, when one split has `cubes` cubes.
pub(crate) fn splits(pairs: usize, cubes: usize) -> (usize, usize) {
    let wanted = (BUSY / cubes.max(1)).clamp(1, pairs.div_ceil(MIN_PAIRS).max(1));
    let each = pairs.div_ceil(wanted).max(1);
    (each, pairs.div_ceil(each).max(1))
}

/// At least `cubes` cubes, spread over two dimensions where one has a limit; kernels stop behind the last.
pub(crate) fn cube_count(client: &Client, cubes: usize) -> CubeCount {
    let limit = client.properties().hardware.max_cube_count.0 as usize;
    let across = cubes.clamp(1, limit.max(1));
    CubeCount::Static(across as u32, cubes.div_ceil(across) as u32, 1)
}
