//! Sparse noise: products, rows, estimates and matrices against explicit weights.

use super::{DISTRIBUTIONS, Implementation, distance, implementations, inputs, values};
use crate::ops::{
    DenseNoise, InputRows, LinearBias, LinearMembers, NoiseSource, SparseNoise, noise, sparse_embedding,
    sparse_entries, sparse_estimate, sparse_linear,
};
use crate::rng::key::{NoiseKey, PairRange};
use crate::rng::sparse::count;
use crate::testing::reference::floats::members::{sign, transpose};
use crate::testing::reference::{dense_noise, matmul, sparse_noise};
use burn::tensor::{DType, Int, Tensor, TensorData};

/// Pairs, rows of a member, d_input, d_output.
const CASES: [(u32, usize, usize, usize); 7] =
    [(1, 1, 1, 1), (2, 3, 17, 3), (3, 1, 3, 17), (5, 2, 64, 64), (2, 4, 255, 10), (3, 2, 33, 257), (9, 1, 16, 15)];

struct SparseCase {
    noise: SparseNoise,
    shape: [usize; 2],
    rows: usize,
    members: LinearMembers,
}

impl SparseCase {
    fn new(index: usize, key: NoiseKey, input: InputRows) -> Self {
        let (pairs, rows, d_input, d_output) = CASES[index];
        let members = LinearMembers { pairs: PairRange::new(7, pairs), input };
        Self { noise: SparseNoise::new(key, 0.5), shape: [d_input, d_output], rows, members }
    }

    /// Rows of the input.
    fn all_rows(&self) -> usize {
        match self.members.input {
            InputRows::PerMember => self.rows * self.members.pairs.members(),
            InputRows::Shared => self.rows,
        }
    }

    /// The rows of one member in what has `width` columns.
    fn of_member<'a, T>(&self, x: &'a [T], member: usize, width: usize) -> &'a [T] {
        match self.members.input {
            InputRows::PerMember => &x[member * self.rows * width..][..self.rows * width],
            InputRows::Shared => x,
        }
    }

    /// The operation's matrix as a member sees it.
    fn weight(&self, w: &[f64], member: usize) -> Vec<f64> {
        let [d_input, d_output] = self.shape;
        let pair = self.members.pairs.first + (member / 2) as u32;
        let drawn = match self.noise.transposed {
            false => sparse_noise(self.noise.key, pair, self.shape),
            true => transpose(&sparse_noise(self.noise.key, pair, [d_output, d_input]), [d_output, d_input]),
        };
        w.iter().zip(drawn).map(|(w, e)| w + sign(member) * f64::from(self.noise.scale) * e).collect()
    }

    fn linear(&self, on: &Implementation, source: NoiseSource, bias: Option<DenseNoise>) -> [Vec<f64>; 2] {
        let [d_input, d_output] = self.shape;
        let (x, w, b) = (inputs(self.all_rows() * d_input, 1), inputs(d_input * d_output, 2), inputs(d_output, 3));
        let member = |m: usize| {
            let pair = self.members.pairs.first + (m / 2) as u32;
            let mut y = matmul(self.of_member(&x, m, d_input), &self.weight(&w, m), d_input, d_output);
            if let Some(noise) = bias {
                let drawn = dense_noise(noise.key, pair, d_output);
                let b = |o: usize| b[o] + sign(m) * f64::from(noise.scale) * drawn[o];
                y.iter_mut().enumerate().for_each(|(i, y)| *y += b(i % d_output));
            }
            y
        };
        let expected = (0..self.members.pairs.members()).flat_map(member).collect();
        let bias = match bias {
            Some(noise) => LinearBias::Perturbed(on.tensor(&b, [d_output]), noise, NoiseSource::Drawn),
            None => LinearBias::None,
        };
        let (x, w) = (on.tensor(&x, [self.all_rows(), d_input]), on.tensor(&w, self.shape));
        let found = values(sparse_linear(x, w, bias, self.noise, source, self.members));
        [found.into_iter().map(f64::from).collect(), expected]
    }

    fn embedding(&self, on: &Implementation) -> [Vec<f64>; 2] {
        let ([vocabulary, d_model], rows) = (self.shape, self.all_rows());
        // Not all 0: what lies behind a buffer reads as 0 on software.
        let indices: Vec<i32> = (0..rows).map(|row| ((row * 5 + 1) % vocabulary) as i32).collect();
        let w = inputs(vocabulary * d_model, 2);
        let member = |m: usize| {
            let weight = self.weight(&w, m);
            let row = |index: &i32| weight[*index as usize * d_model..][..d_model].to_vec();
            self.of_member(&indices, m, 1).iter().flat_map(row).collect::<Vec<_>>()
        };
        let expected = (0..self.members.pairs.members()).flat_map(member).collect();
        let indices = Tensor::<1, Int>::from_data(TensorData::new(indices.clone(), [rows]), &on.device);
        let w = on.tensor(&w, self.shape);
        let found = values(sparse_embedding(w, indices, self.noise, NoiseSource::Drawn, self.members));
        [found.into_iter().map(f64::from).collect(), expected]
    }
}

fn off([found, expected]: [Vec<f64>; 2], terms: usize) -> f64 {
    distance(&found.iter().map(|value| *value as f32).collect::<Vec<_>>(), &expected, terms)
}

fn keys() -> impl Iterator<Item = NoiseKey> {
    let key = NoiseKey::new(0x1234_5678_9abc_def0, 3, 11);
    DISTRIBUTIONS.into_iter().flat_map(move |distribution| {
        let key = key.with_distribution(distribution);
        [key, key.with_baselines(2)]
    })
}

/// Devices: the portable form on the processor is the only one.
fn devices() -> Vec<Implementation> {
    implementations().into_iter().filter(|on| !on.portable).collect()
}

#[test]
fn equals_explicit_weights() {
    for (index, key) in (0..CASES.len()).flat_map(|index| keys().map(move |key| (index, key))) {
        for input in [InputRows::PerMember, InputRows::Shared] {
            let case = SparseCase::new(index, key, input);
            let transposed = SparseCase { noise: case.noise.transposed(), ..SparseCase::new(index, key, input) };
            let bias = DenseNoise::new(NoiseKey::new(5, 1, 2), 0.3);
            for on in devices() {
                let terms = case.shape[0];
                for (what, both) in [
                    ("product", case.linear(&on, NoiseSource::Drawn, None)),
                    ("product and bias", case.linear(&on, NoiseSource::Drawn, Some(bias))),
                    ("transposed product", transposed.linear(&on, NoiseSource::Drawn, None)),
                    ("rows", case.embedding(&on)),
                ] {
                    let off = off(both, terms) / on.product_slack;
                    assert!(off < 1.0, "{}, {what}, case {index}, {input:?}: {off}", on.name);
                }
            }
        }
    }
}

#[test]
fn canaries_fail() {
    for key in keys() {
        for on in devices() {
            let case = SparseCase::new(3, key, InputRows::PerMember);
            let other = SparseCase {
                noise: SparseNoise::new(NoiseKey::new(1, 3, 11), 0.5),
                ..SparseCase::new(3, key, InputRows::PerMember)
            };
            let [_, expected] = case.linear(&on, NoiseSource::Drawn, None);
            let [found, _] = other.linear(&on, NoiseSource::Drawn, None);
            assert!(off([found, expected], 64) > 1000.0, "{}", on.name);
            let [found, expected] = [other.embedding(&on)[0].clone(), case.embedding(&on)[1].clone()];
            assert!(off([found, expected], 64) > 1000.0, "{}", on.name);
        }
    }
}

/// More entries than one scatter takes, and few.
#[test]
fn estimates_equal_explicit_sums() {
    for (pairs, shape) in [(3, [17, 3]), (300, [130, 20]), (5, [3, 257]), (1, [1, 1])] {
        for key in keys() {
            let (weights, noise) = (inputs(pairs, 4), SparseNoise::new(key, 0.2));
            let sum = |first: u32| {
                let mut sum = vec![0.0; shape[0] * shape[1]];
                for (q, weight) in weights.iter().enumerate() {
                    let drawn = sparse_noise(key, first + q as u32, shape);
                    sum.iter_mut().zip(drawn).for_each(|(sum, e)| *sum += weight * f64::from(noise.scale) * e);
                }
                sum
            };
            for on in devices() {
                let weights = on.tensor(&weights, [pairs]);
                let found = values(sparse_estimate(weights, noise, NoiseSource::Drawn, 3, shape, DType::F32));
                assert!(distance(&found, &sum(3), pairs) < 1.0, "{}, {shape:?}", on.name);
                let other = sum(5);
                assert!(other == sum(3) || distance(&found, &other, pairs) > 10.0, "canary: {}, {shape:?}", on.name);
            }
        }
    }
}

/// The last bits of sums in which many entries meet do not depend on the run.
#[test]
fn sums_are_repeatable() {
    let (pairs, shape) = (64, [130, 20]);
    let (weights, x) = (inputs(pairs, 4), inputs(2 * pairs * shape[0], 1));
    let noise = SparseNoise::new(NoiseKey::new(5, 1, 2), 0.2);
    for on in devices() {
        let run = || {
            let entries = || {
                let place = (&on.device, DType::F32);
                sparse_entries(noise, &NoiseSource::Drawn, PairRange::new(3, pairs as u32), shape, place)
            };
            let estimate = entries().estimate(on.tensor(&weights, [pairs]), noise.scale, shape);
            let x = on.tensor(&x, [2 * pairs, shape[0]]);
            [values(estimate), values(entries().product(x, noise.scale, shape[1], InputRows::PerMember))]
        };
        let first = run();
        assert!((0..20).all(|_| run() == first), "{}", on.name);
    }
}

#[test]
fn sources_and_matrices() {
    for key in keys() {
        for on in devices() {
            let case = SparseCase::new(4, key, InputRows::PerMember);
            let (pairs, entries, place) = (case.members.pairs, count(case.shape), (&on.device, DType::F32));
            let [drawn, _] = case.linear(&on, NoiseSource::Drawn, None);
            let held = noise(key.with_baselines(0), pairs, entries, place.0, place.1);
            let cached = NoiseSource::Cached { noise: held, first_pair: pairs.first };
            assert!(case.linear(&on, cached, None)[0] == drawn, "{}", on.name);
            let table = noise(key.with_baselines(0), PairRange::new(0, 1), 1000, place.0, place.1).reshape([1000]);
            assert!(case.linear(&on, NoiseSource::Table(table), None)[0] != drawn, "canary: {}", on.name);

            let matrices =
                sparse_entries(case.noise, &NoiseSource::Drawn, pairs, case.shape, place).matrices(case.shape);
            let expected: Vec<f64> =
                (0..pairs.count).flat_map(|pair| sparse_noise(key, pairs.first + pair, case.shape)).collect();
            assert!(distance(&values(matrices), &expected, 1) < 1.0, "{}", on.name);
        }
    }
}

#[test]
#[should_panic(expected = "the cached noise [1, 3] of pairs 0..1 is not that of pairs 0..1 with 17 elements")]
fn refuses_noise_of_another_parameter() {
    let on = &implementations()[0];
    let source = NoiseSource::Cached { noise: Tensor::zeros([1, 3], &on.device), first_pair: 0 };
    let noise = SparseNoise::new(NoiseKey::new(0, 0, 0), 1.0);
    sparse_estimate(Tensor::zeros([1], &on.device), noise, source, 0, [17, 3], DType::F32);
}
