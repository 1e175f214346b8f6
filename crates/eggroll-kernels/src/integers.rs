//! Calls of the operations on integers.

use crate::tensors::Tensors;
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use eggroll_core::NoiseKey;
use eggroll_core::integer::{Rounding, Votes};
use eggroll_core::ops::PairRange;
use eggroll_core::ops::integer::backend::{
    GatePrimitive, IntegerBias, IntegerMembers, IntegerNoisePrimitive, IntegerOps, VectorPrimitive,
};

const PAIRS: PairRange = PairRange { first: 0, count: 16 };

/// Makes operands of one type.
struct Operands<'a> {
    tensors: &'a Tensors,
    dtype: DType,
}

impl Operands<'_> {
    fn empty<const D: usize>(&self, shape: [usize; D]) -> CubeTensor {
        self.tensors.empty(shape, self.dtype)
    }

    fn indices(&self, count: usize) -> CubeTensor {
        self.tensors.empty([count], DType::I32)
    }

    /// Held noise of `elements` elements of rank `rank` for a pair; none of rank 0.
    fn noise(&self, rank: usize, elements: usize) -> IntegerNoisePrimitive<CubeBackend> {
        match rank {
            0 => IntegerNoisePrimitive::None,
            _ => {
                let members = IntegerMembers { skip: 0, rank, shift: 4, pairs: PAIRS };
                IntegerNoisePrimitive::Held(self.empty([PAIRS.count as usize, elements]), members)
            }
        }
    }

    fn gate(&self, rows: usize, width: usize, [weight, bias]: [usize; 2]) -> GatePrimitive<CubeBackend> {
        GatePrimitive {
            input: self.empty([rows, width]),
            weight: self.empty([width, width]),
            weight_noise: self.noise(weight, weight * 2 * width),
            bias: self.empty([width]),
            bias_noise: self.noise(bias, width),
        }
    }
}

/// Launches every operation on values of type `dtype`.
pub(crate) fn launch(tensors: &Tensors, dtype: DType) {
    let of = Operands { tensors, dtype };
    CubeBackend::integer_noise(of.empty([1]), NoiseKey::new(1, 2, 3), PAIRS, 4096);
    CubeBackend::integer_add(of.empty([4096]), of.empty([4096]), Rounding::Floor);
    let members = PAIRS.members();
    // Every number of rows and columns of a unit.
    for (rows, d_output) in [(1, 16), (1, 256), (2, 32), (2, 256), (64, 16), (64, 256)] {
        for rank in [0, 1, 4] {
            let noise = of.noise(rank, rank * (256 + d_output));
            let (x, weight) = (of.empty([members * rows, 256]), of.empty([256, d_output]));
            CubeBackend::integer_linear(x, weight, noise, IntegerBias::None, false, Rounding::Floor);
        }
    }
    products_of_the_transformer(&of);
    for rank in [0, 1] {
        let noise = of.noise(rank, rank * (96 + 256));
        let (tokens, weight) = (of.indices(members * 64), of.empty([96, 256]));
        CubeBackend::integer_embedding(tokens, weight, noise, IntegerBias::None, Rounding::Floor);
        for n in [32, 256, 2048] {
            let gain = VectorPrimitive { values: of.empty([n]), noise: of.noise(rank, n) };
            CubeBackend::integer_norm(of.empty([members, n]), gain, IntegerBias::None, Rounding::Floor);
        }
    }
    for (rows, classes) in [(1, 96), (64, 96), (64, 256)] {
        let logits = of.empty([members * rows, classes]);
        CubeBackend::integer_log_likelihood(logits, of.indices(rows), members, Rounding::Floor);
    }
    recurrences(&of);
    updates(&of);
}

/// Rows that start with a word and rows that do not, with and without a bias.
fn products_of_the_transformer(of: &Operands) {
    let rows = PAIRS.members() * 64;
    for (width, rank) in [(256, 0), (256, 1), (255, 1)] {
        let noise = |elements| of.noise(rank, rank * elements);
        for activate in [false, true] {
            let bias = match of.noise(rank, 2 * width) {
                IntegerNoisePrimitive::None => IntegerBias::Plain(of.empty([width])),
                IntegerNoisePrimitive::Held(noise, members) => {
                    IntegerBias::Perturbed(of.empty([width]), noise, members)
                }
            };
            let (x, weight) = (of.empty([rows, width]), of.empty([width, width]));
            CubeBackend::integer_linear(x, weight, noise(2 * width), bias, activate, Rounding::Nearest);
        }
        for rounding in [Rounding::Floor, Rounding::Nearest] {
            let (x, weight) = (of.empty([rows, width]), of.empty([width, width]));
            CubeBackend::integer_linear(x, weight, noise(2 * width), IntegerBias::None, false, rounding);
        }
        CubeBackend::integer_head(of.empty([rows, width]), of.empty([96, width]), noise(96 + width));
        let (tokens, weight) = (of.indices(rows), of.empty([96, width]));
        CubeBackend::integer_embedding(tokens, weight, noise(96 + width), IntegerBias::None, Rounding::Floor);
    }
    // Several sequences a cube.
    for (sequences, width) in [(1024, 256), (4096, 256), (4096, 255)] {
        let gate = || GatePrimitive {
            input: of.empty([sequences * 4, width]),
            weight: of.empty([width, width]),
            weight_noise: IntegerNoisePrimitive::None,
            bias: of.empty([width]),
            bias_noise: IntegerNoisePrimitive::None,
        };
        CubeBackend::integer_gru(of.empty([sequences, width]), of.indices(sequences * 4), gate(), gate());
    }
}

fn recurrences(of: &Operands) {
    let (members, steps) = (PAIRS.members(), 100);
    for width in [32, 256, 512] {
        for noise in [[0, 0], [1, 1], [4, 1], [1, 0]] {
            let gate = || of.gate(members * steps, width, noise);
            let starts = of.indices(members * steps);
            CubeBackend::integer_gru(of.empty([members, width]), starts, gate(), gate());
        }
    }
}

fn updates(of: &Operands) {
    let pairs = PAIRS.count as usize;
    let scores = || of.empty([pairs]);
    for votes in [Votes::Signs, Votes::Values] {
        for shape in [[16, 16], [256, 96], [1024, 1024]] {
            for rank in [1, 4] {
                let noise = of.empty([pairs, rank * (shape[0] + shape[1])]);
                CubeBackend::integer_update(of.empty(shape), noise, scores(), rank, votes, 100);
            }
        }
        CubeBackend::integer_update(of.empty([256]), of.empty([pairs, 256]), scores(), 0, votes, 100);
    }
}
