//! Which unit does what in the linear kernel, and what that asks of the device.

use crate::backend::cube::device::plane_size;
use crate::backend::cube::eligibility::Demand;
use crate::backend::cube::geometry::{COLUMNS, chunk_len, units};
use crate::backend::cube::noise::SourceKind;
use crate::backend::cube::reduce::Lanes;
use crate::rng::NoiseDistribution;
use crate::rng::normal::{BLOCKS, GROUP};
use cubecl::CubeDim;
use cubecl::client::Client;

/// Largest number of rows of a tile, vectors counted: a unit keeps a sum for each of its rows and columns.
const MAX_ROWS: usize = 8;
/// Elements of a vector at most, and groups that a unit takes at a time.
const MAX_VECTOR: usize = 4;

/// The factors of a linear operation's noise.
#[derive(Clone, Copy)]
pub(crate) struct FactorLayout {
    /// 0 for dense noise.
    pub rank: usize,
    /// Rows of the second factor: the rank, or `d_input` for dense noise.
    pub depth: usize,
    /// Where both begin in a pair's noise.
    pub starts: [usize; 2],
}

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
    /// Whether a unit owns the same columns in all rows of the second factor, and keeps their noise in registers.
    pub in_registers: bool,
    /// Neighboring columns that a unit takes at a time: a power of two. More than one only where every row of both factors starts and
    /// ends on a group.
    pub vector: usize,
    /// Groups of columns that a unit takes at a time, so that random signs of one block serve all of them.
    pub groups: usize,
}

impl LinearTile {
    /// The tile for `pair_rows` rows of a pair, and factors of a matrix `[d_input, d_output]`.
    pub(crate) fn new(
        client: &Client,
        pair_rows: usize,
        [d_input, d_output]: [usize; 2],
        factors: FactorLayout,
        (distribution, bias): (NoiseDistribution, BiasKind),
    ) -> Self {
        let (width, rows) = (d_input.max(d_output), pair_rows.next_power_of_two().min(MAX_ROWS));
        // Also where signs are held: results are the same, bit for bit, from every source.
        let is_signs = distribution == NoiseDistribution::Rademacher;
        // A block holds the signs of many groups: fewer units make fewer blocks.
        let units = units(client, if is_signs { width / 16 } else { width / 8 });
        let [first, second] = factors.starts;
        let single = factors.depth == 1;
        let starts_on_group = second.is_multiple_of(GROUP) && (single || d_output.is_multiple_of(GROUP));
        // The bias's noise starts on a group: its columns are in other registers if the weight's do not start on one.
        let in_registers = starts_on_group || (single && bias != BiasKind::Perturbed);
        let whole = starts_on_group && first.is_multiple_of(GROUP) && (d_input | d_output).is_multiple_of(GROUP);
        // Wider vectors only where all units have work for them, and not where one unit's signs serve many groups.
        let busy = (width / (COLUMNS * units as usize)).max(1);
        let vector = if whole && factors.rank > 0 && !is_signs {
            MAX_VECTOR.min(MAX_ROWS / rows).min(1 << busy.ilog2())
        } else {
            1
        };
        let each = d_output.div_ceil(GROUP).div_ceil(units as usize / BLOCKS).max(1);
        let groups = (MAX_ROWS / rows).min(MAX_VECTOR).min(1 << each.ilog2());
        Self {
            units,
            rows,
            rank_capacity: if factors.rank == 0 { 0 } else { factors.rank.next_power_of_two() },
            plane: plane_size(client),
            shared: false,
            source: SourceKind::Drawn(distribution),
            bias,
            bias_source: SourceKind::Drawn(NoiseDistribution::Normal),
            in_registers,
            vector,
            groups: if is_signs && !single { groups } else { 1 },
        }
    }

    /// The tile of a cube that writes the factors, and no product.
    pub(crate) fn of_factors(self) -> Self {
        Self { in_registers: true, groups: 1, ..self }
    }

    /// The tile for tensors with these distances between rows and columns: no vectors where they do not allow them.
    pub(crate) fn on_strides(self, strides: &[[usize; 2]]) -> Self {
        let fit = strides.iter().all(|[row, column]| *column == 1 && row.is_multiple_of(self.vector));
        if fit { self } else { Self { vector: 1, ..self } }
    }

    pub(crate) fn is_low_rank(&self) -> bool {
        self.rank_capacity > 0
    }

    /// What the kernel asks for a matrix `[d_input, d_output]` and a second factor of `depth` rows.
    pub(crate) fn demand(&self, [d_input, d_output]: [usize; 2], depth: usize, elements: usize) -> Demand {
        let shared = self.work_len() + self.lanes().shared_len(self.units) + self.rows * self.rank_capacity.max(1);
        let turns = self.turns(d_input, d_output, depth);
        Demand { elements, tensors: 6, units: self.units, shared_bytes: 4 * shared, turns }
    }

    /// `f32` values of shared memory for sums on their way between units, and for chunks of noise where these are needed.
    pub(crate) fn work_len(&self) -> usize {
        let sums = if self.rows == 1 { 1 } else { self.rows * self.units as usize };
        if self.in_registers { sums } else { sums.max(chunk_len(self.units)) }
    }

    /// Turns of a unit's loops, at most: also without vectors, which strides may not allow.
    fn turns(&self, d_input: usize, d_output: usize, depth: usize) -> usize {
        let sections = self.units as usize / BLOCKS;
        // A run may start and end inside a group.
        let groups = |width: usize| (width.div_ceil(GROUP) + 1).div_ceil(sections);
        let projection = if self.is_low_rank() { depth * (1 + groups(d_input)) } else { 0 };
        let columns = if self.in_registers {
            groups(d_output) * (1 + depth)
        } else {
            7 * depth * d_output.div_ceil(chunk_len(self.units))
        };
        projection + columns
    }

    /// Units that project one row.
    pub(crate) fn lanes(&self) -> Lanes {
        Lanes { count: self.units as usize / self.rows, plane: self.plane }
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.units)
    }
}
