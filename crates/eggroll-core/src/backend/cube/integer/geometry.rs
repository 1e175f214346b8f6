//! Sizes of cubes and tiles: which unit does what, and what that asks of the device.

use super::arithmetic::values_of_word;
use crate::backend::cube::device::max_units;
use crate::backend::cube::eligibility::Demand;
use crate::backend::cube::geometry::units;
use crate::integer::EXP2_MANTISSA;
use burn::tensor::DType;
use cubecl::CubeDim;
use cubecl::client::Client;

/// Words of depth that shared memory holds at a time in a product.
pub(crate) const WORDS: usize = 16;
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
        let side = if max_units(client) >= 256 { 16 } else { 8 };
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

    /// What a product of `depth` asks for, perturbed by noise of `rank` columns.
    pub(crate) fn demand(&self, depth: usize, rank: usize, elements: usize) -> Demand {
        let shared = WORDS * (self.rows() + self.columns()) + self.rows() * self.rank_capacity;
        let projected = (self.rows() * rank).div_ceil(self.units());
        let each = self.rows_each * self.columns_each;
        let turns = self.depth_turns(depth, projected) + projected + each * rank;
        Demand { elements, tensors: 4, units: self.units() as u32, shared_bytes: 4 * shared, turns }
    }

    /// Turns over the depth of a product, with `more` turns each in addition to those that fill shared memory.
    fn depth_turns(&self, depth: usize, more: usize) -> usize {
        let fill = |len: usize| (WORDS * len).div_ceil(self.units());
        let each = 1 + fill(self.rows()) + fill(self.columns()) + more;
        depth.div_ceil(WORDS * values_of_word(self.packed)).saturating_mul(each)
    }
}

/// How the units of a cube share an update.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UpdateTile {
    /// A tile of a matrix.
    Matrix(ProductTile),
    /// [`LANES`] elements of a vector, by so many units.
    Vector(u32),
}

impl UpdateTile {
    /// The tile for a parameter of `shape` and the noise of `pairs` pairs; `rank` is 0 for a vector.
    pub(crate) fn new(client: &Client, dtype: DType, shape: &[usize], rank: usize, pairs: usize) -> Self {
        match rank {
            0 => Self::Vector(units(client, pairs * LANES)),
            _ => Self::Matrix(ProductTile::new(client, dtype, [shape[0], shape[1]], 0).halved()),
        }
    }

    /// What the votes of `pairs` pairs ask for.
    pub(crate) fn demand(&self, pairs: usize, rank: usize, elements: usize) -> Demand {
        match self {
            Self::Matrix(tile) => {
                let shared_bytes = 4 * WORDS * (tile.rows() + tile.columns());
                let turns = tile.depth_turns(pairs * rank, 0);
                Demand { elements, tensors: 4, units: tile.units() as u32, shared_bytes, turns }
            }
            Self::Vector(units) => {
                let turns = pairs.div_ceil(*units as usize / LANES);
                Demand { elements, tensors: 4, units: *units, shared_bytes: 4 * *units as usize, turns }
            }
        }
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
        let (units, capacity) = (units(client, width) as usize, width.next_multiple_of(LANES));
        Self { units, capacity, rank_capacity: rank.next_power_of_two(), forget, candidate }
    }

    /// Columns of `v·B` that are summed at a time.
    pub(crate) const fn rank_rows(&self) -> usize {
        let most = self.units / 8;
        if self.rank_capacity < most { self.rank_capacity } else { most }
    }

    /// What `steps` steps of `width` ask for, under noise of `rank` columns at most.
    pub(crate) fn demand(&self, [steps, width]: [usize; 2], rank: usize, elements: usize) -> Demand {
        let shared = 3 * self.capacity + self.units + self.rank_capacity;
        let (columns, lanes) = (width.div_ceil(self.units), self.units / self.rank_rows());
        let gate = |noise: GateNoise| {
            let rank = if noise.weight { rank } else { 0 };
            let projection = rank.div_ceil(self.rank_rows()) * (1 + width.div_ceil(lanes) + fold_turns(lanes));
            projection + columns * (1 + width + rank)
        };
        let step = 1 + columns + gate(self.forget) + gate(self.candidate);
        let turns = columns + steps.saturating_mul(step);
        Demand { elements, tensors: 13, units: self.units as u32, shared_bytes: 4 * shared, turns }
    }
}

/// What the layer norm of rows of `n` elements asks for, with `units` units.
pub(crate) fn layer_norm_demand(units: u32, n: usize, elements: usize) -> Demand {
    let turns = 2 * n.div_ceil(units as usize) + fold_turns(units as usize);
    Demand { elements, tensors: 4, units, shared_bytes: 4 * units as usize, turns }
}

/// What the log-likelihood of a member's rows asks for, with `units` units.
pub(crate) fn log_likelihood_demand(units: u32, [rows, classes]: [usize; 2], elements: usize) -> Demand {
    let row = 1 + classes.div_ceil(LANES) + fold_turns(LANES);
    let turns = rows.div_ceil(units as usize / LANES).saturating_mul(row) + fold_turns(units as usize);
    let shared_bytes = 4 * (units as usize + EXP2_MANTISSA.len());
    Demand { elements, tensors: 3, units, shared_bytes, turns }
}

/// Turns of a sum over `lanes` units.
fn fold_turns(lanes: usize) -> usize {
    lanes.ilog2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISY: GateNoise = GateNoise { weight: true, bias: true };
    const PLAIN: GateNoise = GateNoise { weight: false, bias: false };

    fn gru(noise: GateNoise) -> GruTile {
        GruTile { units: 256, capacity: 256, rank_capacity: 4, forget: noise, candidate: noise }
    }

    /// A loop over the state for each gate and step: 256 turns, twice.
    #[test]
    fn turns_of_a_recurrence_grow_with_its_steps() {
        let turns = |steps, noise| gru(noise).demand([steps, 256], 4, 1).turns;
        assert_eq!(turns(1, PLAIN), 1 + 2 + 2 * 257);
        // 64 units sum one of four columns of noise: four turns and six of the sum over units.
        assert_eq!(turns(1, NOISY), 1 + 2 + 2 * (257 + 4 + 1 + 4 + 6));
        assert_eq!(turns(160, PLAIN), 1 + 160 * 516);
        assert!(turns(126, PLAIN) < 65_535 && turns(128, PLAIN) > 65_535);
    }

    /// Three states, a value for each unit, and `v·B`.
    #[test]
    fn shared_memory_of_a_recurrence() {
        assert_eq!(gru(PLAIN).demand([1, 256], 4, 1).shared_bytes, 4 * (3 * 256 + 256 + 4));
    }

    #[test]
    fn turns_of_a_product_grow_with_its_depth() {
        let tile = ProductTile { side: 16, rows_each: 4, columns_each: 2, packed: false, rank_capacity: 4 };
        // A turn fills 16 words of 64 rows and 32 columns with 256 units.
        let update = |packed| UpdateTile::Matrix(ProductTile { packed, ..tile }).demand(40, 4, 1);
        assert_eq!(update(false).turns, 10 * (1 + 4 + 2));
        assert_eq!(update(true).turns, 3 * (1 + 4 + 2));
        // The projection of 64 rows by 4 columns is one turn more, and the noise is added to 8 elements of a unit.
        assert_eq!(tile.demand(160, 4, 1).turns, 10 * (1 + 4 + 2 + 1) + 1 + 8 * 4);
        assert_eq!(tile.demand(160, 4, 1).shared_bytes, 4 * (16 * (64 + 32) + 64 * 4));
        assert_eq!(update(false).shared_bytes, 4 * 16 * (64 + 32));
    }

    #[test]
    fn turns_of_rows() {
        assert_eq!(layer_norm_demand(64, 200, 1).turns, 2 * 4 + 6);
        assert_eq!(log_likelihood_demand(256, [20, 100], 1).turns, 3 * (1 + 4 + 5) + 8);
        assert_eq!(UpdateTile::Vector(128).demand(10, 0, 1).turns, 3);
    }
}
