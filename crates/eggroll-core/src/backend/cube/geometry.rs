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
/// Terms of a sum that one turn of a loop adds where a basis is found.
pub(crate) const TERMS: usize = 4;
/// Rows of a panel of a basis.
pub(crate) const PANEL: usize = 16;
/// Half of the units write the overlaps of the cube's rows.
pub(crate) const OVERLAPS: OverlapTile = OverlapTile { units: 128, lanes: 32 };
/// Rows of an embedding that a cube takes at most.
const MAX_LOOKED_UP: usize = 32;
/// Elements of a second factor that shared memory holds at a time, if one group of each of its rows is not more.
const SECOND_FACTOR: usize = 2048;
/// Classes that a unit of a cross-entropy takes before a second one helps it.
const CLASSES: usize = 8;
/// Cubes that keep a device busy.
const BUSY: usize = 512;
/// Pairs that a split of an estimate sums at least.
const MIN_PAIRS: usize = 16;
/// Terms that a split of a product sums at least.
const MIN_TERMS: usize = 512;
/// Rows and columns that a cube of a product takes, about.
const PRODUCT_SIDE: usize = 128;

/// What one cube of an embedding takes: some rows of a pair. Rows that members share are written for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EmbeddingTile {
    pub units: u32,
    /// Rows of a pair: a power of two, 1 for dense noise.
    pub rows: usize,
    /// Rank that shared memory holds factors for; 0 for dense noise.
    pub rank_capacity: usize,
    /// Columns of the second factor that shared memory holds at a time, a power of two.
    pub columns: usize,
    /// Neighboring columns that a unit takes at a time, a power of two.
    pub vector: usize,
    /// Whether all members share the indices.
    pub shared: bool,
    pub source: SourceKind,
}

impl EmbeddingTile {
    /// The tile for `pair_rows` rows of each of `pairs` pairs, of matrices with rows of `width` elements, `weight_row` apart; rank 0 is
    /// dense noise.
    pub(crate) fn new(
        client: &Client,
        (pairs, pair_rows): (usize, usize),
        (width, weight_row): (usize, usize),
        rank: usize,
        source: SourceKind,
    ) -> Self {
        let plain = Self { units: 0, rows: 1, rank_capacity: 0, columns: GROUP, vector: 1, shared: false, source };
        if rank == 0 {
            let blocks = width.div_ceil(GROUP).div_ceil(source.groups_together()) * BLOCKS;
            return Self { units: units(client, blocks), ..plain };
        }
        // Few rows leave units idle, so that drawing a factor again costs nothing.
        let wanted = (pairs * pair_rows).div_ceil(BUSY).next_power_of_two().clamp(4, MAX_LOOKED_UP);
        let rows = pair_rows.next_power_of_two().min(wanted);
        let rank_capacity = rank.next_power_of_two();
        let columns = width.next_power_of_two().min(SECOND_FACTOR / rank_capacity).max(GROUP);
        let vector = [4, 2].into_iter().find(|size| (width | weight_row).is_multiple_of(*size)).unwrap_or(1);
        let units = units(client, (columns / vector * rows).max(columns / COLUMNS));
        Self { units, rows, rank_capacity, columns, vector, ..plain }
    }

    pub(crate) fn is_low_rank(&self) -> bool {
        self.rank_capacity > 0
    }

    /// Units that share a row.
    pub(crate) fn across(&self) -> usize {
        (self.columns / self.vector).min(self.units as usize)
    }

    /// What the kernel asks for rows of `width` elements.
    pub(crate) fn demand(&self, width: usize, rank: usize, elements: usize) -> Demand {
        let units = self.units as usize;
        if !self.is_low_rank() {
            let turns = (width.div_ceil(GROUP) + 1).div_ceil(units / BLOCKS);
            return Demand { elements, tensors: 4, units: self.units, shared_bytes: 0, turns };
        }
        let chosen = (self.rows * rank).div_ceil(units);
        let drawn = (rank * (self.columns / GROUP + 1) * BLOCKS).div_ceil(units);
        let of_unit = (self.columns * self.rows / self.vector).div_ceil(units) * (2 + rank);
        let turns = chosen + width.div_ceil(self.columns) * (1 + drawn + of_unit);
        let shared = self.rows * (1 + self.rank_capacity) + self.rank_capacity * self.columns;
        Demand { elements, tensors: 4, units: self.units, shared_bytes: 4 * shared, turns }
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
    /// Groups of noise that a run of [`SIDE`] elements touches: one if all runs start with a group.
    pub groups: usize,
    pub rank_one: bool,
}

impl EstimateTile {
    /// The tile for an estimate `[d_input, d_output]` of rank `rank`.
    pub(crate) fn new(client: &Client, [d_input, d_output]: [usize; 2], rank: usize, signs: bool) -> Self {
        let side = if max_units(client) >= 256 { 16 } else { 8 };
        let aligned = (rank == 1 || d_output.is_multiple_of(GROUP)) && d_input.is_multiple_of(GROUP);
        Self {
            side,
            each: SIDE / side,
            source: SourceKind::Drawn(NoiseDistribution::Normal),
            signs,
            groups: if aligned { 1 } else { 2 },
            rank_one: rank == 1,
        }
    }

    pub(crate) fn units(&self) -> u32 {
        (self.side * self.side) as u32
    }

    /// How often tiles draw an element of the noise of a `[d_input, d_output]` estimate, on average.
    pub(crate) fn redraws(d_input: usize, d_output: usize) -> usize {
        let (down, across) = (d_input.div_ceil(SIDE), d_output.div_ceil(SIDE));
        (d_input * across + d_output * down) / (d_input + d_output).max(1)
    }

    /// What the kernel asks for `columns` columns of noise: shared memory holds a tile of both factors.
    pub(crate) fn demand(&self, columns: usize, elements: usize) -> Demand {
        let items = DEPTH * 2 * self.groups * BLOCKS;
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

/// How the cube that makes a panel of a basis orthonormal shares the work: runs of units take an earlier row each.
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
        Self { units: units(client, width), lanes, capacity: Self::panel_rows(rows).next_power_of_two() }
    }

    /// Rows of each panel of `rows` rows; of few rows one panel is quicker, in one launch.
    pub(crate) fn panel_rows(rows: usize) -> usize {
        if rows <= 2 * PANEL { rows.max(1) } else { PANEL }
    }

    /// What the kernels ask for `rows` rows of `width` elements that take `x_elements` elements of memory.
    pub(crate) fn demand(&self, rows: usize, width: usize, x_elements: usize) -> Demand {
        let panel = Self::panel_rows(rows);
        let of_panel = Demand {
            elements: (rows * width).max(rows * PANEL).max(x_elements),
            tensors: 3,
            units: self.units,
            shared_bytes: 4 * (self.shared_len() + self.capacity),
            turns: self.turns(panel, width),
        };
        if panel == rows {
            return of_panel;
        }
        Demand {
            units: self.units.max(OVERLAPS.units),
            shared_bytes: of_panel.shared_bytes.max(4 * PANEL * OVERLAPS.units as usize),
            turns: of_panel.turns.max(rows).max(width.div_ceil(OVERLAPS.lanes)),
            ..of_panel
        }
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

/// How a cube shares the overlaps of a panel with the rows before it: runs of `lanes` units take an earlier row each.
pub(crate) struct OverlapTile {
    pub units: u32,
    pub lanes: usize,
}

impl OverlapTile {
    /// Earlier rows that a cube takes.
    pub(crate) const fn runs(&self) -> usize {
        self.units as usize / self.lanes
    }
}

/// What a kernel asks of which a unit takes an element, or a lane of a few groups of noise.
pub(crate) fn by_element(tensors: u32, elements: usize) -> Demand {
    let turns = SourceKind::Drawn(NoiseDistribution::Rademacher).groups_together();
    Demand { elements, tensors, units: UNITS as u32, shared_bytes: 0, turns }
}

/// Units of a cube that has work for `wanted`: a power of two.
pub(crate) fn units(client: &Client, wanted: usize) -> u32 {
    // Rounded down to a power of two: the device's limit need not be one.
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

/// Splits of a product's `terms`, when it has `shape`: of equal length, and enough to keep a device busy.
pub(crate) fn term_splits(terms: usize, [rows, columns]: [usize; 2]) -> usize {
    let tiles = rows.div_ceil(PRODUCT_SIDE) * columns.div_ceil(PRODUCT_SIDE);
    let wanted = (BUSY / tiles).min(terms / MIN_TERMS).max(1).ilog2();
    1 << wanted.min(terms.trailing_zeros())
}

/// At least `cubes` cubes, spread over two dimensions where one has a limit; kernels stop behind the last.
pub(crate) fn cube_count(client: &Client, cubes: usize) -> CubeCount {
    let limit = client.properties().hardware.max_cube_count.0 as usize;
    let across = cubes.clamp(1, limit.max(1));
    CubeCount::Static(across as u32, cubes.div_ceil(across) as u32, 1)
}
