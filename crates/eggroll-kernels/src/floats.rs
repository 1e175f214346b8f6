//! Calls of the operations on floats.

use crate::tensors::Tensors;
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use eggroll_core::ops::backend::{BiasPrimitive, PerturbedOps, SourcePrimitive};
use eggroll_core::ops::{DenseNoise, InputRows, LinearMembers, LowRankNoise, MatrixNoise, PairRange};
use eggroll_core::{NoiseDistribution, NoiseKey};

/// Where noise comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoiseStorage {
    Drawn(NoiseDistribution),
    Cached,
    Table,
}

const NORMAL: NoiseStorage = NoiseStorage::Drawn(NoiseDistribution::Normal);
const SOURCES: [NoiseStorage; 4] =
    [NORMAL, NoiseStorage::Drawn(NoiseDistribution::Rademacher), NoiseStorage::Cached, NoiseStorage::Table];
/// Elements of a table of noise.
const TABLE: usize = 1 << 28;
const PAIRS: PairRange = PairRange { first: 0, count: 64 };

/// Noise of one operation: a rank, or 0 for dense noise.
#[derive(Clone, Copy, Debug)]
struct OperationNoise {
    rank: usize,
    source: NoiseStorage,
}

impl NoiseStorage {
    fn key(self) -> NoiseKey {
        let key = NoiseKey::new(1, 2, 3);
        match self {
            Self::Drawn(distribution) => key.with_distribution(distribution),
            _ => key,
        }
    }

    fn of(self, tensors: &Tensors, elements: usize, dtype: DType) -> SourcePrimitive<CubeBackend> {
        match self {
            Self::Drawn(_) => SourcePrimitive::Drawn,
            Self::Cached => {
                SourcePrimitive::Cached(tensors.empty([PAIRS.count as usize, elements], dtype), PAIRS.first)
            }
            Self::Table => SourcePrimitive::Table(tensors.empty([TABLE], dtype)),
        }
    }
}

/// The bias of a linear operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BiasVariant {
    None,
    Plain,
    Perturbed,
}

/// Launches every operation in `dtype`.
pub(crate) fn launch(tensors: &Tensors, dtype: DType) {
    linears(tensors, dtype);
    embeddings(tensors, dtype);
    vectors(tensors, dtype);
    estimates(tensors, dtype);
    for (rows, classes) in [(1, 10), (32, 10), (512, 10), (1, 256), (128, 256), (16, 50_000)] {
        let members = PAIRS.members();
        let (logits, targets) = (tensors.empty([members * rows, classes], dtype), tensors.empty([rows], DType::I32));
        CubeBackend::member_cross_entropy(logits, targets, members);
    }
    for (rows, width) in [(4, 25), (32, 784), (512, 8192)] {
        let gradient = tensors.empty([width, 64], dtype);
        CubeBackend::row_projection(gradient, tensors.empty([rows, width], dtype));
    }
}

fn linears(tensors: &Tensors, dtype: DType) {
    use InputRows::{PerMember, Shared};
    let plain = OperationNoise { rank: 1, source: NORMAL };
    // Every size of a cube, every number of rows of a tile.
    for shape in [[4, 32], [256, 10], [512, 512], [8192, 8192]] {
        for (input, rows) in [(PerMember, 1), (PerMember, 2), (PerMember, 32), (Shared, 1), (Shared, 2), (Shared, 32)] {
            linear(tensors, dtype, shape, (input, rows), plain, BiasVariant::None);
        }
    }
    for rank in [0, 1, 2, 4, 8, 16] {
        linear(tensors, dtype, [4, 32], (PerMember, 1), OperationNoise { rank, ..plain }, BiasVariant::Perturbed);
        linear(tensors, dtype, [2048, 256], (PerMember, 1), OperationNoise { rank, ..plain }, BiasVariant::None);
    }
    for source in SOURCES {
        for bias in [BiasVariant::None, BiasVariant::Plain, BiasVariant::Perturbed] {
            linear(tensors, dtype, [2048, 256], (PerMember, 1), OperationNoise { rank: 1, source }, bias);
            linear(tensors, dtype, [784, 256], (Shared, 32), OperationNoise { rank: 4, source }, bias);
            linear(tensors, dtype, [256, 256], (PerMember, 1), OperationNoise { rank: 0, source }, bias);
        }
    }
}

fn linear(
    tensors: &Tensors,
    dtype: DType,
    [d_input, d_output]: [usize; 2],
    (input, rows): (InputRows, usize),
    OperationNoise { rank, source }: OperationNoise,
    bias: BiasVariant,
) {
    let all_rows = if input == InputRows::Shared { rows } else { PAIRS.members() * rows };
    let (x, weight) = (tensors.empty([all_rows, d_input], dtype), tensors.empty([d_input, d_output], dtype));
    let vector = || tensors.empty([d_output], dtype);
    let bias = match bias {
        BiasVariant::None => BiasPrimitive::None,
        BiasVariant::Plain => BiasPrimitive::Plain(vector()),
        BiasVariant::Perturbed => {
            let noise = DenseNoise::new(source.key(), 0.1);
            BiasPrimitive::Perturbed(vector(), noise, source.of(tensors, d_output, dtype))
        }
    };
    let members = LinearMembers { pairs: PAIRS, input };
    if rank == 0 {
        let held = source.of(tensors, d_input * d_output, dtype);
        CubeBackend::dense_linear(x, weight, bias, DenseNoise::new(source.key(), 0.1), held, members);
    } else {
        let held = source.of(tensors, rank * (d_input + d_output), dtype);
        let noise = LowRankNoise::new(source.key(), rank, 0.1);
        CubeBackend::low_rank_linear(x, weight, bias, noise, held, members);
    }
}

fn embeddings(tensors: &Tensors, dtype: DType) {
    for input in [InputRows::PerMember, InputRows::Shared] {
        for rank in [0, 1, 4] {
            for width in [32, 256, 512, 2048] {
                embedding(tensors, dtype, width, input, OperationNoise { rank, source: NORMAL }, DType::I32);
            }
            for source in SOURCES {
                embedding(tensors, dtype, 256, input, OperationNoise { rank, source }, DType::I32);
            }
        }
    }
    if tensors.supports(DType::I64) {
        let noise = OperationNoise { rank: 1, source: NORMAL };
        embedding(tensors, dtype, 256, InputRows::PerMember, noise, DType::I64);
    }
}

fn embedding(
    tensors: &Tensors,
    dtype: DType,
    width: usize,
    input: InputRows,
    OperationNoise { rank, source }: OperationNoise,
    index: DType,
) {
    let count = 4096;
    let rows = if input == InputRows::Shared { 64 } else { PAIRS.members() * 64 };
    let noise = match rank {
        0 => MatrixNoise::Dense(DenseNoise::new(source.key(), 0.1)),
        _ => MatrixNoise::LowRank(LowRankNoise::new(source.key(), rank, 0.1)),
    };
    let held = source.of(tensors, noise.elements([count, width]), dtype);
    let (weight, indices) = (tensors.empty([count, width], dtype), tensors.empty([rows], index));
    CubeBackend::perturbed_embedding(weight, indices, noise, held, LinearMembers { pairs: PAIRS, input });
}

fn vectors(tensors: &Tensors, dtype: DType) {
    let elements = 2048;
    for source in SOURCES {
        let (vector, noise) = (tensors.empty([elements], dtype), DenseNoise::new(source.key(), 0.1));
        CubeBackend::perturbed_vector(vector, noise, source.of(tensors, elements, dtype), PAIRS);
        if let NoiseStorage::Drawn(_) = source {
            CubeBackend::noise(tensors.empty([1], dtype), source.key(), PAIRS, elements);
        }
    }
}

fn estimates(tensors: &Tensors, dtype: DType) {
    let weights = || -> CubeTensor { tensors.empty([PAIRS.count as usize], DType::F32) };
    for source in SOURCES {
        for [d_input, d_output] in [[32, 32], [256, 2048], [8192, 8192]] {
            for signs in [false, true] {
                for rank in [1, 4] {
                    let noise = LowRankNoise { signs, ..LowRankNoise::new(source.key(), rank, 0.1) };
                    let held = source.of(tensors, rank * (d_input + d_output), dtype);
                    CubeBackend::low_rank_estimate(weights(), noise, held, PAIRS.first, d_input, d_output, dtype);
                }
            }
        }
        let (noise, elements) = (DenseNoise::new(source.key(), 0.1), 1 << 16);
        let held = source.of(tensors, elements, dtype);
        CubeBackend::dense_estimate(weights(), noise, held, PAIRS.first, elements, dtype);
    }
}
