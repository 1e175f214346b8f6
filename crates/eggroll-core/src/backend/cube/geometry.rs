//! Sizes of cubes and tiles: which unit does what, and what that asks of the device.

use super::device::{max_units, plane_size};
use super::eligibility::Demand;
use super::noise::SourceKind;
use super::reduce::Lanes;
use crate::rng::NoiseDistribution;
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::client::Client;
use cubecl::{CubeCount, CubeDim};

/// Units of kernels that work by element.
pub(crate) const UNITS: usize = 64;
/// Units of a cube at least: two noise groups at a time.
const MIN_UNITS: u32 = 32;
/// Units of a cube at most: what WebGPU guarantees.
const MAX_UNITS: u32 = 256;
/// Columns that a unit owns at a time: the elements of one Philox block, so that a chunk of noise covers a tile.
pub(crate) const COLUMNS: usize = GROUP / BLOCKS;
/// Rows and columns of an estimate that one cube takes.
pub(crate) const SIDE: usize = GROUP;
/// Factor columns of an estimate drawn at a time.
pub(crate) const DEPTH: usize = 16;
/// Groups that a run of [`SIDE`] elements may touch.
pub(crate) const GROUPS: usize = 2;
/// Terms of a sum that one turn of a loop adds where a basis is found.
pub(crate) const TERMS: usize = 4;
/// Rows of a tile at most: a unit keeps a sum for each row and column of its own.
const MAX_ROWS: usize = 8;
/// Classes that a unit of a cross-entropy takes before a second one helps it.
const CLASSES: usize = 8;
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

/// What one cube of a linear kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LinearTile {
    pub units: u32,
    /// Rows of the input: a power of two.
    pub rows: usize,
    /// Rank that shared memory holds `x·B` for; 0 for dense noise.
    pub rank_capacity: usize,
    /// Units of a plane that projections reduce with; 0 for shared memory.
    pub plane: usize,
    /// Whether all members share the rows.
    pub shared: bool,
    pub source: SourceKind,
    pub bias: BiasKind,
    pub bias_source: SourceKind,
}

impl LinearTile {
    /// The tile for `pair_rows` rows of a pair and noise of `width` elements in its longest row.
    pub(crate) fn new(client: &Client, pair_rows: usize, width: usize, rank: usize) -> Self {
        Self {
            units: units(client, width / 4),
            rows: pair_rows.next_power_of_two().min(MAX_ROWS),
            rank_capacity: if rank == 0 { 0 } else { rank.next_power_of_two() },
            plane: plane_size(client),
            shared: false,
            source: SourceKind::Drawn(NoiseDistribution::Normal),
            bias: BiasKind::None,
            bias_source: SourceKind::Drawn(NoiseDistribution::Normal),
        }
    }

    pub(crate) fn is_low_rank(&self) -> bool {
        self.rank_capacity > 0
    }

    /// What the kernel asks for a matrix `[d_input, d_output]` and a second factor of `depth` rows.
    pub(crate) fn demand(&self, [d_input, d_output]: [usize; 2], depth: usize, elements: usize) -> Demand {
        let shared =
            chunk_len(self.units) + self.lanes().shared_len(self.units) + self.rows * self.rank_capacity.max(1);
        let turns = self.turns(d_input, d_output, depth);
        Demand { elements, tensors: 6, units: self.units, shared_bytes: 4 * shared, turns }
    }

    /// Turns of a unit's loops, at most.
    fn turns(&self, d_input: usize, d_output: usize, depth: usize) -> usize {
        let chunk = chunk_len(self.units);
        // Each chunk adds one turn and may break a row in two.
        let projection = d_input / self.lanes().count + 2 * (d_input / chunk) + 4;
        let rows = d_output.div_ceil(chunk) * depth;
        if self.is_low_rank() { depth * projection + 7 * rows } else { 7 * rows }
    }

    /// Units that project one row.
    pub(crate) fn lanes(&self) -> Lanes {
        Lanes { count: self.units as usize / self.rows, plane: self.plane }
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.units)
    }
}

/// What one cube of an embedding takes: one row, or the same row of both members of a pair if they share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EmbeddingTile {
    pub units: u32,
    pub low_rank: bool,
    /// Whether all members share the indices.
    pub shared: bool,
    pub source: SourceKind,
}

impl EmbeddingTile {
    /// The tile for rows of `width` elements.
    pub(crate) fn new(client: &Client, width: usize, low_rank: bool, shared: bool) -> Self {
        let source = SourceKind::Drawn(NoiseDistribution::Normal);
        Self { units: units(client, width / 4), low_rank, shared, source }
    }

    /// What the kernel asks for rows of `width` elements.
    pub(crate) fn demand(&self, width: usize, rank: usize, elements: usize) -> Demand {
        // A run of noise may begin inside a chunk and so meet two.
        let turns = width.div_ceil(chunk_len(self.units)) * (1 + 3 * rank);
        Demand { elements, tensors: 4, units: self.units, shared_bytes: 4 * chunk_len(self.units), turns }
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
    /// Whether the signs of the factors are multiplied in their place.
    pub signs: bool,
}

impl EstimateTile {
    pub(crate) fn new(client: &Client) -> Self {
        let side = if max_units(client) >= 256 { 16 } else { 8 };
        Self { side, each: SIDE / side, source: SourceKind::Drawn(NoiseDistribution::Normal), signs: false }
    }

    pub(crate) fn units(&self) -> u32 {
        (self.side * self.side) as u32
    }

    /// What the kernel asks for `columns` columns of noise: shared memory holds a tile of both factors.
    pub(crate) fn demand(&self, columns: usize, elements: usize) -> Demand {
        let items = DEPTH * 2 * GROUPS * BLOCKS;
        let turns = columns.div_ceil(DEPTH) * (1 + items.div_ceil(self.units() as usize));
        Demand { elements, tensors: 3, units: self.units(), shared_bytes: 4 * 2 * DEPTH * SIDE, turns }
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.units())
    }
}

/// How the units of a cube share the rows of one member: runs of them take a row each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemberTile {
    pub units: u32,
    pub lanes: Lanes,
}

impl MemberTile {
    /// The tile for a member's rows and their classes.
    pub(crate) fn new(client: &Client, rows: usize, classes: usize) -> Self {
        let units = units(client, rows.saturating_mul(classes.div_ceil(CLASSES)));
        let busy = classes.div_ceil(CLASSES).next_power_of_two();
        let idle = units as usize / rows.next_power_of_two().min(units as usize);
        let count = busy.max(idle).min(units as usize);
        Self { units, lanes: Lanes { count, plane: plane_size(client) } }
    }

    /// What the kernel asks for a member's rows and their classes.
    pub(crate) fn demand(&self, rows: usize, classes: usize, elements: usize) -> Demand {
        let turns = rows.div_ceil(self.rows()) * (1 + 2 * classes.div_ceil(self.lanes.count));
        Demand { elements, tensors: 3, units: self.units, shared_bytes: 4 * self.shared_len(), turns }
    }

    /// Rows that a cube takes at a time.
    pub(crate) fn rows(&self) -> usize {
        self.units as usize / self.lanes.count
    }

    /// All units as one run.
    pub(crate) fn whole(&self) -> Lanes {
        Lanes { count: self.units as usize, ..self.lanes }
    }

    pub(crate) fn shared_len(&self) -> usize {
        self.lanes.shared_len(self.units)
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.units)
    }
}

/// How the one cube that finds a basis shares the work: runs of units take an earlier row each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BasisTile {
    pub units: u32,
    pub lanes: Lanes,
    /// Rows that shared memory holds overlaps for.
    pub capacity: usize,
}

impl BasisTile {
    /// The tile for `rows` rows of `width` elements.
    pub(crate) fn new(client: &Client, rows: usize, width: usize) -> Self {
        let lanes = Lanes { count: MIN_UNITS as usize, plane: plane_size(client) };
        Self { units: units(client, width), lanes, capacity: rows.next_power_of_two() }
    }

    /// What the kernel asks for `rows` rows of `width` elements.
    pub(crate) fn demand(&self, rows: usize, width: usize) -> Demand {
        let shared_bytes = 4 * (self.shared_len() + self.capacity);
        Demand { elements: rows * width, tensors: 2, units: self.units, shared_bytes, turns: self.turns(rows, width) }
    }

    /// Turns of a unit's loops, at most.
    fn turns(&self, rows: usize, width: usize) -> usize {
        let columns = width.div_ceil(self.units as usize);
        // On average half of the rows stand before a row; both sums are made twice.
        let overlap = (rows / 2 / self.runs() + 1) * (width.div_ceil(TERMS * self.lanes.count) + 1);
        let difference = columns * (rows / 2 / TERMS + 2);
        rows.saturating_mul(2 * (overlap + difference) + 2 * columns + 1)
    }

    /// Earlier rows that the cube takes at a time.
    pub(crate) fn runs(&self) -> usize {
        self.units as usize / self.lanes.count
    }

    /// All units as one run.
    pub(crate) fn whole(&self) -> Lanes {
        Lanes { count: self.units as usize, ..self.lanes }
    }

    pub(crate) fn shared_len(&self) -> usize {
        self.lanes.shared_len(self.units)
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.units)
    }
}

/// What a kernel asks of which a unit takes an element or a block of noise.
pub(crate) fn by_element(tensors: u32, elements: usize) -> Demand {
    Demand { elements, tensors, units: UNITS as u32, shared_bytes: 0, turns: 0 }
}

/// Units of a cube that has work for `wanted`: a power of two.
pub(crate) fn units(client: &Client, wanted: usize) -> u32 {
    // Rounded down to a power of two, whatever the device's limit is.
    let most = 1 << MAX_UNITS.min(max_units(client)).max(MIN_UNITS).ilog2();
    (wanted.next_power_of_two().min(most) as u32).max(MIN_UNITS)
}

/// Elements that a cube of `units` units draws at a time.
pub(crate) const fn chunk_len(units: u32) -> usize {
    units as usize * COLUMNS
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
