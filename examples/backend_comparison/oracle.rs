//! The perturbed forward and the estimate against explicit weights and sums in f64, and a canary that must fail.

use burn::tensor::{DType, Device, Tensor, TensorData};
use eggroll::core::ops::{
    InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource, PairRange, low_rank_estimate, low_rank_linear,
};
use eggroll::core::{DeviceName, NoiseKey, reference};
use eggroll_examples::Failure;

/// Odd sizes: no multiple of any tile or vector width.
const SHAPE: [usize; 2] = [17, 33];
const PAIRS: u32 = 3;
const FIRST_PAIR: u32 = 7;
/// Rows of one member.
const ROWS: usize = 3;
const RANK: usize = 2;
const SIGMA: f64 = 0.5;
/// Absolute, for values of a few units: f32 is off by about 1e-5.
const TOLERANCE: f64 = 1e-3;
/// The same where products of f32 may be TF32, which keeps 10 bits of each factor: sums of 17 products of normals are then off by up to 0.01.
const TF32_TOLERANCE: f64 = 0.03;
/// How far off the noise of other pairs must be.
const FAR: f64 = 0.1;

/// The largest absolute error of forward and estimate on a device.
///
/// An error if it is above the tolerance, or if the noise of the neighboring pairs would have passed too.
pub fn max_error(backend: DeviceName, device: &Device) -> Result<f64, Failure> {
    let tolerance = if backend.to_string().starts_with("cuda") { TF32_TOLERANCE } else { TOLERANCE };
    let case = OracleCase::new();
    let mut largest = 0f64;
    for (name, compute, expected) in [
        ("forward", OracleCase::forward as fn(&OracleCase, u32, &Device) -> Vec<f32>, case.expected_forward()),
        ("estimate", OracleCase::estimate, case.expected_estimate()),
    ] {
        let error = distance(&compute(&case, FIRST_PAIR, device), &expected);
        if error >= tolerance {
            return Err(format!("{name} is off by {error:.1e}, more than {tolerance:.0e}").into());
        }
        let canary = distance(&compute(&case, FIRST_PAIR + 1, device), &expected);
        if canary < FAR {
            return Err(format!("canary: {name} under the noise of other pairs is off by only {canary:.1e}").into());
        }
        largest = largest.max(error);
    }
    Ok(largest)
}

struct OracleCase {
    /// `[members · rows, d_input]`
    x: Vec<f32>,
    /// `[d_input, d_output]`
    w: Vec<f32>,
    /// `[pairs]`
    weights: Vec<f32>,
    noise: LowRankNoise,
}

impl OracleCase {
    fn new() -> Self {
        let [d_input, d_output] = SHAPE;
        Self {
            x: values(1, Self::pairs(0).members() * ROWS * d_input),
            w: values(2, d_input * d_output),
            weights: values(3, PAIRS as usize),
            noise: LowRankNoise::new(NoiseKey::new(0x1234_5678_9abc_def0, 0, 11), RANK, SIGMA),
        }
    }

    fn pairs(first: u32) -> PairRange {
        PairRange::new(first, PAIRS)
    }

    fn forward(&self, first: u32, device: &Device) -> Vec<f32> {
        let x = tensor(&self.x, [self.x.len() / SHAPE[0], SHAPE[0]], device);
        let members = LinearMembers { pairs: Self::pairs(first), input: InputRows::PerMember };
        let w = tensor(&self.w, SHAPE, device);
        read(low_rank_linear(x, w, LinearBias::None, self.noise, NoiseSource::Drawn, members))
    }

    fn estimate(&self, first: u32, device: &Device) -> Vec<f32> {
        let weights = tensor(&self.weights, [self.weights.len()], device);
        read(low_rank_estimate(weights, self.noise, NoiseSource::Drawn, first, SHAPE, DType::F32))
    }

    /// `x_m·(W + s·c·B·Aᵀ)` for every member.
    fn expected_forward(&self) -> Vec<f64> {
        let rows = self.x.chunks(ROWS * SHAPE[0]).enumerate();
        let member = |(m, rows): (usize, &[f32])| {
            let sign = if m.is_multiple_of(2) { 1.0 } else { -1.0 };
            let noise = self.matrix(m / 2);
            let perturbed: Vec<f64> = self.w.iter().zip(noise).map(|(w, e)| f64::from(*w) + sign * e).collect();
            let rows: Vec<f64> = rows.iter().map(|x| f64::from(*x)).collect();
            reference::matmul(&rows, &perturbed, SHAPE[0], SHAPE[1])
        };
        rows.flat_map(member).collect()
    }

    /// `Σ_q w_q·c·B_q·A_qᵀ`
    fn expected_estimate(&self) -> Vec<f64> {
        let mut sum = vec![0.0; SHAPE[0] * SHAPE[1]];
        for (pair, weight) in self.weights.iter().enumerate() {
            sum.iter_mut().zip(self.matrix(pair)).for_each(|(sum, e)| *sum += f64::from(*weight) * e);
        }
        sum
    }

    /// `c·B·Aᵀ` of one of the pairs.
    fn matrix(&self, pair: usize) -> Vec<f64> {
        let drawn = reference::low_rank_noise(self.noise.key, FIRST_PAIR + pair as u32, RANK, SHAPE);
        drawn.into_iter().map(|value| f64::from(self.noise.scale) * value).collect()
    }
}

/// Fixed inputs, exact in f32.
fn values(parameter: u32, count: usize) -> Vec<f32> {
    let key = NoiseKey::new(0, parameter, 0);
    (0..count).map(|element| reference::normal(key, 0, element) as f32).collect()
}

fn tensor<const D: usize>(values: &[f32], shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), device)
}

fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("an f32 tensor")
}

/// Largest absolute distance; infinite for NaN or another length, so that neither passes.
fn distance(found: &[f32], expected: &[f64]) -> f64 {
    if found.len() != expected.len() {
        return f64::INFINITY;
    }
    let distances = found.iter().zip(expected).map(|(found, expected)| (f64::from(*found) - expected).abs());
    distances.map(|distance| if distance.is_nan() { f64::INFINITY } else { distance }).fold(0.0, f64::max)
}
