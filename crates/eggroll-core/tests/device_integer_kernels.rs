//! On a device every integer operation is one kernel of ours, whatever the population and the steps, also under Burn's
//! Fusion: the portable defaults would launch none. One test, because the count is that of the whole process.

#![cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))]

use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::integer::Votes;
use eggroll_core::ops::integer::Rounding::{Floor, Nearest};
use eggroll_core::ops::integer::*;
use eggroll_core::{DeviceName, NoiseKey, PairRange, counters};

const WIDTH: usize = 24;
const STEPS: usize = 5;
const RANK: usize = 2;

fn launches<const D: usize>(work: impl FnOnce() -> Tensor<D, Int>) -> u64 {
    let before = counters::kernels();
    // Reading makes a lazy backend run what it has put off.
    let values: Vec<i64> = work().into_data().iter().collect();
    assert!(!values.is_empty());
    counters::kernels() - before
}

/// What operations need, made beforehand.
struct Operands {
    device: Device,
    pairs: PairRange,
    noise: Tensor<2, Int>,
}

impl Operands {
    fn new(device: Device, pairs: u32) -> Self {
        let pairs = PairRange::new(0, pairs);
        let noise = noise(NoiseKey::new(1, 2, 3), pairs, 2 * RANK * WIDTH, &device);
        assert!(noise.clone().into_data().num_elements() > 0);
        Self { device, pairs, noise }
    }

    fn ints<const D: usize>(&self, shape: [usize; D]) -> Tensor<D, Int> {
        let values: Vec<i8> = (0..shape.iter().product::<usize>()).map(|i| (i * 31 % 200) as i8).collect();
        Tensor::from_data(TensorData::new(values, shape), (&self.device, integer_type(&self.device)))
    }

    fn rows(&self) -> usize {
        self.pairs.members() * STEPS
    }

    fn indices(&self) -> Tensor<1, Int> {
        Tensor::zeros([self.rows()], &self.device)
    }

    fn held(&self, elements: usize, rank: usize) -> Option<IntegerNoise> {
        let noise = self.noise.clone().slice([0..self.pairs.count as usize, 0..elements]);
        Some(IntegerNoise { noise, first_pair: 0, rank, sigma_shift: 2, pairs: self.pairs })
    }

    fn gate(&self) -> Gate {
        Gate {
            input: self.ints([self.rows(), WIDTH]),
            weight: self.ints([WIDTH, WIDTH]),
            weight_noise: self.held(2 * RANK * WIDTH, RANK),
            bias: self.ints([WIDTH]),
            bias_noise: self.held(2 * WIDTH, 1),
        }
    }

    fn vector(&self) -> Vector {
        Vector { values: self.ints([WIDTH]), noise: self.held(2 * WIDTH, 1) }
    }

    fn update(&self, rank: usize) -> Tensor<2, Int> {
        let scores = Tensor::<1, Int>::ones([self.pairs.count as usize], &self.device).cast(integer_type(&self.device));
        let shape = if rank == 0 { [1, RANK * WIDTH] } else { [WIDTH, WIDTH] };
        update(self.ints(shape), self.noise.clone(), scores, rank, Votes::Values, 100)
    }
}

fn check(on: &Operands, expected: u64) {
    let noisy = || on.held(2 * RANK * WIDTH, RANK);
    let (matrix, rows) = (|| on.ints([WIDTH, WIDTH]), || on.ints([on.rows(), WIDTH]));
    let counts = [
        ("noise", launches(|| noise(NoiseKey::new(1, 2, 3), on.pairs, 70, &on.device))),
        ("linear", launches(|| linear(rows(), matrix(), noisy(), None, false, Floor))),
        ("plain linear", launches(|| linear(rows(), matrix(), None, None, false, Floor))),
        ("embedding", launches(|| embedding(on.indices(), matrix(), noisy(), None, Floor))),
        ("norm", launches(|| norm(rows(), on.vector(), None, Floor))),
        ("add", launches(|| add(rows(), rows(), Floor))),
        ("GRU", launches(|| gru(on.ints([on.pairs.members(), WIDTH]), on.indices(), on.gate(), on.gate()))),
        ("log-likelihood", launches(|| log_likelihood(rows(), on.indices(), on.pairs.members(), Floor))),
        ("update of a matrix", launches(|| on.update(RANK))),
        ("update of a vector", launches(|| on.update(0))),
        ("rounded linear", launches(|| linear(rows(), matrix(), noisy(), Some(on.vector()), true, Nearest))),
        ("head", launches(|| head(rows(), matrix(), noisy()))),
    ];
    for (name, count) in counts {
        assert_eq!(count, expected, "{name}, {} pairs", on.pairs.count);
    }
    let chain = launches(|| add(linear(rows(), matrix(), noisy(), None, false, Floor) + 1, rows(), Floor));
    assert_eq!(chain, 2 * expected, "{} pairs", on.pairs.count);
}

#[test]
fn one_kernel_for_each_operation() {
    // Below a tile of rows, and several of the largest.
    for pairs in [2, 40] {
        check(&Operands::new(DeviceName::of_tests(), pairs), 1);
    }
    // Canary: other devices count no kernel.
    check(&Operands::new(Device::flex(), 2), 0);
}
