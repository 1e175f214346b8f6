//! Sizes of cubes and tiles: which unit does what, and what that asks of the device.

use super::packed_int8::{Form, Packing};
use crate::arithmetic::integer::EXP2_MANTISSA;
use crate::backend::cube::device::max_units;
use crate::backend::cube::eligibility::Demand;
use crate::backend::cube::geometry::units;
use cubecl::CubeDim;
use cubecl::client::Client;

/// Words of depth that shared memory holds at a time in a product.
pub(crate) const WORDS: usize = 16;
/// Rows and columns of a unit at most in a product.
const MAX_EACH: usize = 4;
/// Sequences of a unit at most in a recurrence: it keeps a sum for each of their columns.
const MAX_SEQUENCES: usize = 4;
/// Units that share an element of a recurrence's `v·B`.
const PROJECTION_LANES: usize = 8;
/// Cubes of a recurrence that keep a device busy: below it, sequences are spread over more of them.
const BUSY: usize = 256;
/// Units that share a row of logits.
pub(crate) const LANES: usize = 32;

/// How the units of a cube share a tile of a product: `side × side` units with `rows_each × columns_each` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProductTile {
    pub side: usize,
    pub rows_each: usize,
    pub columns_each: usize,
    /// What words of shared memory are.
    pub packing: Packing,
    /// Columns of `x·B` that shared memory holds for each row.
    pub rank_capacity: usize,
}

impl ProductTile {
    /// The tile for a product of `rows × columns`.
    pub(crate) fn new(client: &Client, packing: Packing, [rows, columns]: [usize; 2], rank: usize) -> Self {
        let side = if max_units(client) >= 256 { 16 } else { 8 };
        let each = |len: usize| len.div_ceil(side).next_power_of_two().min(MAX_EACH);
        let (rows_each, columns_each) = (each(rows), each(columns));
        Self { side, rows_each, columns_each, packing, rank_capacity: rank.next_power_of_two() }
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
        let turns = self.depth_turns(depth, projected) + 2 * projected + each * rank;
        Demand { elements, tensors: 6, units: self.units() as u32, shared_bytes: 4 * shared, turns }
    }

    /// Turns over the depth of a product: each fills shared memory and then takes `more` turns.
    fn depth_turns(&self, depth: usize, more: usize) -> usize {
        let fill = |len: usize| (WORDS * len).div_ceil(self.units());
        let each = 1 + fill(self.rows()) + fill(self.columns()) + more;
        depth.div_ceil(WORDS * self.packing.values()).saturating_mul(each)
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
    pub(crate) fn new(client: &Client, shape: &[usize], rank: usize, pairs: usize) -> Self {
        match rank {
            0 => Self::Vector(units(client, pairs * LANES)),
            _ => Self::Matrix(ProductTile::new(client, Packing::One, [shape[0], shape[1]], 0).halved()),
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

/// What a cube of a GRU takes: a few sequences, of which a unit has `each`, in columns that lie `across` units apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GruTile {
    /// Units side by side, each on the columns of a word.
    pub across: usize,
    /// Units one after the other, each on other sequences.
    pub down: usize,
    /// Sequences of a unit.
    pub each: usize,
    /// Words of a state that shared memory holds.
    pub capacity: usize,
    /// Rank that shared memory holds.
    pub rank_capacity: usize,
    /// Units that share an element of `v·B`.
    pub lanes: usize,
    pub packing: Packing,
    /// How operands are read, and the output is written.
    pub form: Form,
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
    /// The tile for so many sequences of `width`: as many in a cube as keep the device busy.
    pub(crate) fn new(
        client: &Client,
        packing: Packing,
        [sequences, width]: [usize; 2],
        rank: usize,
        [forget, candidate]: [GateNoise; 2],
    ) -> Self {
        let words = width.div_ceil(packing.values());
        let across = units(client, words) as usize;
        let down = units(client, words.saturating_mul(sequences)) as usize / across;
        let most = (down.max(1) * MAX_SEQUENCES).min(sequences.next_power_of_two());
        let (capacity, rank_capacity) = (words, rank.next_power_of_two());
        let tile = |of_cube: usize| {
            let each = of_cube.min(MAX_SEQUENCES);
            let (down, lanes) = (of_cube / each, PROJECTION_LANES);
            let form = Form::Value;
            Self { across, down, each, capacity, rank_capacity, lanes, packing, form, forget, candidate }
        };
        let shared = client.properties().hardware.max_shared_memory_size;
        let mut of_cube = most.max(1);
        // Two cubes next to each other hide their waiting.
        while of_cube > 1 && (sequences.div_ceil(of_cube) < BUSY || 2 * tile(of_cube).shared_bytes() > shared) {
            of_cube /= 2;
        }
        tile(of_cube)
    }

    pub(crate) const fn units(&self) -> usize {
        self.across * self.down
    }

    /// Sequences of a cube.
    pub(crate) const fn sequences(&self) -> usize {
        self.down * self.each
    }

    fn shared_bytes(&self) -> usize {
        4 * self.sequences() * (3 * self.capacity + self.rank_capacity * (self.lanes + 1))
    }

    /// What `steps` steps of `width` ask for, under noise of `rank` columns at most.
    pub(crate) fn demand(&self, [steps, width]: [usize; 2], rank: usize, elements: usize) -> Demand {
        let words = width.div_ceil(self.packing.values());
        let turns = words.div_ceil(self.across);
        let gate = |noise: GateNoise| {
            let rank = if noise.weight { rank } else { 0 };
            let runs = self.sequences() * rank;
            let items = (runs * self.lanes).div_ceil(self.units());
            let projection = items * (1 + words.div_ceil(self.lanes)) + runs.div_ceil(self.units());
            projection + turns * (1 + words + self.each * self.packing.values() * rank)
        };
        let step = 1 + turns + gate(self.forget) + gate(self.candidate);
        let turns = turns + steps.saturating_mul(step);
        Demand { elements, tensors: 13, units: self.units() as u32, shared_bytes: self.shared_bytes(), turns }
    }
}

/// What the norm of rows of `n` elements asks for, with `units` units.
pub(crate) fn norm_demand(units: u32, n: usize, elements: usize) -> Demand {
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

    fn gru(noise: GateNoise, packing: Packing) -> GruTile {
        let capacity = 256 / packing.values();
        let (across, down) = (capacity, 256 / capacity);
        let (rank_capacity, lanes, form) = (4, 8, Form::Value);
        GruTile {
            across,
            down,
            each: 2,
            capacity,
            rank_capacity,
            lanes,
            packing,
            form,
            forget: noise,
            candidate: noise,
        }
    }

    /// A loop over the words of the state for each gate and step: 256 turns, twice.
    #[test]
    fn turns_of_a_recurrence_grow_with_its_steps() {
        let turns = |steps, noise| gru(noise, Packing::One).demand([steps, 256], 4, 1).turns;
        assert_eq!(turns(1, PLAIN), 1 + 2 + 2 * 257);
        // Eight units sum each of four columns of noise for two sequences: 32 turns, and one more; the noise is added to two elements.
        assert_eq!(turns(1, NOISY), 1 + 2 + 2 * (257 + 2 * 4 + 1 + 32 + 1));
        assert_eq!(turns(160, PLAIN), 1 + 160 * 516);
        assert!(turns(126, PLAIN) < 65_535 && turns(128, PLAIN) > 65_535);
        // A word of four values, and eight sequences.
        let packed = |noise| gru(noise, Packing::Dot).demand([1, 256], 4, 1).turns;
        assert_eq!(packed(PLAIN), 1 + 2 + 2 * 65);
        assert_eq!(packed(NOISY), 1 + 2 + 2 * (65 + 2 * 4 * 4 + 1 + 8 + 1));
    }

    /// Three states for each sequence, `v·B` and its parts.
    #[test]
    fn shared_memory_of_a_recurrence() {
        assert_eq!(gru(PLAIN, Packing::One).demand([1, 256], 4, 1).shared_bytes, 4 * 2 * (3 * 256 + 4 * 9));
        assert_eq!(gru(PLAIN, Packing::Apart).demand([1, 256], 4, 1).shared_bytes, 4 * 8 * (3 * 64 + 4 * 9));
    }

    #[test]
    fn turns_of_a_product_grow_with_its_depth() {
        let tile = ProductTile { side: 16, rows_each: 4, columns_each: 2, packing: Packing::One, rank_capacity: 4 };
        // A turn fills 16 words of 64 rows and 32 columns with 256 units.
        let update = UpdateTile::Matrix(tile).demand(40, 4, 1);
        assert_eq!(update.turns, 10 * (1 + 4 + 2));
        // The projection of 64 rows by 4 columns is one turn more, twice as it is rounded, and the noise is added to 8 elements of a unit.
        assert_eq!(tile.demand(160, 4, 1).turns, 10 * (1 + 4 + 2 + 1) + 2 + 8 * 4);
        let packed = ProductTile { packing: Packing::Dot, ..tile };
        assert_eq!(packed.demand(160, 4, 1).turns, 3 * (1 + 4 + 2 + 1) + 2 + 8 * 4);
        assert_eq!(tile.demand(160, 4, 1).shared_bytes, 4 * (16 * (64 + 32) + 64 * 4));
        assert_eq!(update.shared_bytes, 4 * 16 * (64 + 32));
    }

    #[test]
    fn turns_of_rows() {
        assert_eq!(norm_demand(64, 200, 1).turns, 2 * 4 + 6);
        assert_eq!(log_likelihood_demand(256, [20, 100], 1).turns, 3 * (1 + 4 + 5) + 8);
        assert_eq!(UpdateTile::Vector(128).demand(10, 0, 1).turns, 3);
    }
}
