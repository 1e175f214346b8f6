//! Sizes of cubes and tiles: which unit does what.

use super::product::WORDS;
use burn::tensor::DType;
use cubecl::CubeDim;
use cubecl::client::Client;

/// Units of kernels that work by element.
pub(crate) const UNITS: usize = 64;
/// Units of a cube at most: what WebGPU guarantees.
const MAX_UNITS: usize = 256;
/// Rows and columns of a unit at most in a product.
const MAX_EACH: usize = 4;
/// Units that share a row of logits.
pub(crate) const LANES: usize = 32;

/// How the units of a cube share a tile of a product: `side × side` units with `rows_each × columns_each` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProductTile {
    pub side: usize,
    pub rows_each: usize,
    pub columns_each: usize,
    /// Whether words of shared memory hold four int8 values, for packed dot products.
    pub packed: bool,
    /// Columns of `x·B` that shared memory holds for each row.
    pub rank_capacity: usize,
}

impl ProductTile {
    /// The tile for a product of `rows × columns`, of values of type `dtype`.
    ///
    /// Where a device has tensors of int8, four are packed into a word: CubeCL makes one instruction of their dot product
    /// if the hardware has it, and a few if not. Where int8 values live in wider types, packing would gain nothing.
    pub(crate) fn new(client: &Client, dtype: DType, [rows, columns]: [usize; 2], rank: usize) -> Self {
        let side = if client.properties().hardware.max_units_per_cube >= 256 { 16 } else { 8 };
        let each = |len: usize| len.div_ceil(side).next_power_of_two().min(MAX_EACH);
        let (rows_each, columns_each) = (each(rows), each(columns));
        Self { side, rows_each, columns_each, packed: dtype == DType::I8, rank_capacity: rank.next_power_of_two() }
    }

    /// Smaller tiles: an update has few elements and a long depth.
    pub(crate) fn halved(self) -> Self {
        let half = |each: usize| (each / 2).max(1);
        Self { rows_each: half(self.rows_each), columns_each: half(self.columns_each), ..self }
    }

    pub(crate) const fn rows(&self) -> usize {
        self.side * self.rows_each
    }

    pub(crate) const fn columns(&self) -> usize {
        self.side * self.columns_each
    }

    pub(crate) const fn units(&self) -> usize {
        self.side * self.side
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.units() as u32)
    }

    /// Bytes of shared memory that a cube needs.
    pub(crate) fn shared_bytes(&self) -> usize {
        4 * (WORDS * (self.rows() + self.columns()) + self.rows() * self.rank_capacity)
    }
}

/// What the cube of one sequence of a GRU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GruTile {
    pub units: usize,
    /// Width that shared memory holds.
    pub capacity: usize,
    /// Rank that shared memory holds.
    pub rank_capacity: usize,
    pub forget: GateNoise,
    pub candidate: GateNoise,
}

/// Which operands of a gate are perturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GateNoise {
    pub weight: bool,
    pub bias: bool,
}

impl GruTile {
    pub(crate) fn new(client: &Client, width: usize, rank: usize, [forget, candidate]: [GateNoise; 2]) -> Self {
        let capacity = width.next_multiple_of(LANES);
        Self { units: units(client, width), capacity, rank_capacity: rank.next_power_of_two(), forget, candidate }
    }

    /// Columns of `v·B` that are summed at a time.
    pub(crate) const fn rank_rows(&self) -> usize {
        let most = self.units / 8;
        if self.rank_capacity < most { self.rank_capacity } else { most }
    }

    /// Bytes of shared memory that a cube needs.
    pub(crate) fn shared_bytes(&self) -> usize {
        4 * (3 * self.capacity + self.units + self.rank_capacity)
    }
}

/// Units for rows of `width` elements: a power of two.
pub(crate) fn units(client: &Client, width: usize) -> usize {
    let widest = MAX_UNITS.min(client.properties().hardware.max_units_per_cube as usize);
    width.next_power_of_two().clamp(LANES, widest)
}
