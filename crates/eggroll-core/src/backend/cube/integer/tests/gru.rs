//! The recurrence: words, and several sequences in a cube.

use super::{KernelNoise, LAYOUTS, Layout, VALUES, indices, int8, operand, read, read_words};
use crate::arithmetic::integer::Rounding;
use crate::backend::cube::eligibility::{Demand, runs};
use crate::backend::cube::integer::geometry::{GateNoise, GruTile};
use crate::backend::cube::integer::launch::{self, GateOperands};
use crate::backend::cube::integer::operands::LaunchNoise;
use crate::backend::cube::integer::packed_int8::{Form, Packing};
use crate::testing::reference::integer as oracle;
use burn::tensor::DType;

const NOISY: GateNoise = GateNoise { weight: true, bias: true };
const STEPS: usize = 4;

struct HostGate {
    input: Vec<i8>,
    weight: Vec<i8>,
    bias: Vec<i8>,
    noise: [KernelNoise; 2],
}

struct GruKernelCase {
    state: Vec<i8>,
    starts: Vec<usize>,
    gates: [HostGate; 2],
    width: usize,
    members: usize,
    rank: usize,
}

impl GruKernelCase {
    fn new(width: usize, pairs: u32, rank: usize) -> Self {
        let members = 2 * pairs as usize;
        let gate = |salt: u32| HostGate {
            input: int8(members * STEPS * width, 10 + salt),
            weight: int8(width * width, 20 + salt),
            bias: int8(width, 30 + salt),
            noise: [
                KernelNoise::new(2 * rank * width, rank, pairs, 40 + salt),
                KernelNoise::new(2 * width, 1, pairs, 50 + salt),
            ],
        };
        let starts = (0..members * STEPS).map(|r| usize::from(r % 5 == 2)).collect();
        Self { state: int8(members * width, 1), starts, gates: [gate(0), gate(1)], width, members, rank }
    }

    fn expected(&self, noisy: bool) -> Vec<i8> {
        let width = self.width;
        let mut all = Vec::new();
        for m in 0..self.members {
            let noise = |gate: usize, of: usize| noisy.then(|| self.gates[gate].noise[of].member(m));
            let biases = [0, 1].map(|gate| oracle::vector(&self.gates[gate].bias, noise(gate, 1), Rounding::Floor));
            let mut state = self.state[m * width..(m + 1) * width].to_vec();
            for row in m * STEPS..(m + 1) * STEPS {
                if self.starts[row] != 0 {
                    state.fill(0);
                }
                let input = |gate: usize| &self.gates[gate].input[row * width..(row + 1) * width];
                let product = |gate: usize, v: &[i8]| {
                    oracle::linear(v, &self.gates[gate].weight, noise(gate, 0), None, false, Rounding::Floor)
                };
                state = oracle::gru_step([input(0), input(1)], &state, [&biases[0], &biases[1]], product);
                all.extend(&state);
            }
        }
        all
    }

    fn gate(&self, gate: usize, layout: Layout, noisy: bool) -> GateOperands {
        let (host, width) = (&self.gates[gate], self.width);
        let held = |of: usize| if noisy { host.noise[of].on(layout) } else { LaunchNoise { noise: None } };
        GateOperands {
            input: operand(&host.input, [self.starts.len(), width], layout),
            weight: operand(&host.weight, [width, width], layout),
            held: held(0),
            bias: operand(&host.bias, [1, width], layout),
            bias_held: held(1),
        }
    }

    fn found(&self, layout: Layout, noisy: bool, packing: Packing, [down, each]: [usize; 2]) -> Vec<i8> {
        let state = operand(&self.state, [self.members, self.width], layout);
        let noise = if noisy { NOISY } else { GateNoise { weight: false, bias: false } };
        let shape = [self.members, self.width];
        let tile = GruTile::new(&state.tensor.client, packing, shape, self.rank, [noise; 2]);
        // As many units side by side as leave room for the others.
        let tile = GruTile { across: tile.across.min(256 / down), down, each, ..tile };
        let gates = [0, 1].map(|gate| self.gate(gate, layout, noisy));
        let y = launch::gru(state, indices(&self.starts), gates, DType::I32, tile);
        if layout.form == Form::Word { read_words(y) } else { read(y) }
    }
}

#[test]
fn words_and_several_sequences_equal_oracle() {
    const SEQUENCES: [[usize; 2]; 4] = [[1, 1], [1, 4], [2, 2], [4, 1]];
    // Below a word; words and a rest; whole words, as many as units, and more. Every kernel is compiled anew: each
    // width has two arrangements of sequences with noise and one without, and each arrangement has a rest and whole
    // words.
    for (width, rank, with_noise, without) in
        [(3, 1, [1, 3], 2), (45, 3, [0, 2], 1), (64, 3, [2, 3], 0), (132, 1, [0, 1], 3)]
    {
        let case = GruKernelCase::new(width, 3, rank);
        for (i, noisy) in with_noise.map(|i: usize| (i, true)).into_iter().chain([(without, false)]) {
            let (expected, sequences) = (case.expected(noisy), SEQUENCES[i]);
            for packing in [Packing::One, Packing::Dot, Packing::Apart] {
                let layout = LAYOUTS[i];
                // Words where all rows are made of them.
                let words = packing != Packing::One && width.is_multiple_of(4);
                let layout = if words { layout } else { Layout { form: Form::Value, ..layout } };
                let found = case.found(layout, noisy, packing, sequences);
                assert!(found == expected, "{width}, {noisy}, {sequences:?}, {packing:?}, {layout:?}");
            }
        }
    }
}

#[test]
fn canary_other_gates_fail() {
    let case = GruKernelCase::new(40, 2, 1);
    let expected = case.expected(true);
    let [forget, candidate] = GruKernelCase::new(40, 2, 1).gates;
    let swapped = GruKernelCase { gates: [candidate, forget], ..GruKernelCase::new(40, 2, 1) };
    assert!(swapped.found(VALUES, true, Packing::Dot, [1, 4]) != expected);
    assert!(case.found(VALUES, false, Packing::Dot, [1, 4]) != expected);
}

/// Many sequences share cubes, few are spread over them.
#[test]
fn sequences_of_a_cube() {
    let client = operand(&[0], [1, 1], VALUES).tensor.client;
    let tile = |sequences| GruTile::new(&client, Packing::Dot, [sequences, 256], 1, [NOISY; 2]);
    assert_eq!(tile(64).sequences(), 1);
    assert_eq!((tile(4096).sequences(), tile(4096).units()), (16, 256));
    assert!(tile(1024).sequences() < tile(4096).sequences());
}

/// A recurrence whose state no cube can hold is left to the portable operations, and one whose loops a software driver would end.
#[test]
fn wide_and_long_recurrences_do_not_run() {
    let like = operand(&[0], [1, 1], VALUES).tensor;
    let demand = |steps, width| {
        let tile = GruTile::new(&like.client, Packing::One, [2, width], 4, [NOISY; 2]);
        tile.demand([steps, width], 4, steps * width)
    };
    assert!(runs(&like, &demand(7, 256)));
    assert!(!runs(&like, &demand(1, like.client.properties().hardware.max_shared_memory_size / 12)));
    assert!(!runs(&like, &demand(1 << 16, 256)));
    let software = like.client.properties().identity.name.contains("llvmpipe");
    assert_eq!(runs(&like, &demand(160, 256)), !software);
    assert!(!runs(&like, &Demand { tensors: u32::MAX / 2, ..demand(7, 256) }), "canary: too many buffers");
}
