//! A whole generation of a multilayer perceptron 3 → 8 → 5 → 2: `mlp_step_*.npz`.

use crate::compare::{ROUNDING, assert_close, assert_differs, values};
use crate::devices;
use crate::loader::{Array, Golden};
use crate::recorded::{Draw, gradients, pair_weights, parameters, perturbation};
use burn::module::Param;
use burn::optim::SgdConfig;
use burn::tensor::activation::{relu, silu};
use burn::tensor::module::layer_norm;
use burn::tensor::{Device, Tensor};
use eggroll::core::scope::Perturbation;
use eggroll::core::{EggrollConfig, NoiserConfig, PairRange, ParameterEntry, Role};
use eggroll::nn::Linear;
use eggroll::train::{FitnessShaping, GradientScale, OptimizerConfig};

/// Layer normalization without gain and bias, then rectified.
fn normalized_relu(x: Tensor<2>) -> Tensor<2> {
    let gain = Tensor::ones([x.dims()[1]], &x.device());
    relu(layer_norm(x, gain, None, 1e-5))
}

/// One of the files.
struct MlpStep {
    golden: Golden,
    activation: fn(Tensor<2>) -> Tensor<2>,
}

fn steps() -> [MlpStep; 3] {
    let step = |file, activation| MlpStep { golden: Golden::open(file), activation };
    [
        step("mlp_step_relu.npz", relu::<2>),
        step("mlp_step_silu.npz", silu::<2>),
        step("mlp_step_pqn.npz", normalized_relu),
    ]
}

impl MlpStep {
    fn layers(&self, device: &Device) -> Vec<Linear> {
        let parameter = |name: String| self.golden.array(&name);
        let layer = |layer: usize| Linear {
            weight: Param::from_tensor(parameter(format!("{layer}_weight")).flipped().tensor(device)),
            bias: Some(Param::from_tensor(parameter(format!("{layer}_bias")).tensor(device))),
        };
        (0..3).map(layer).collect()
    }

    /// A parameter after the step, in Burn's layout. Paths are those of the file but for the dot.
    fn new_parameter(&self, path: &str) -> Array {
        let array = self.golden.array(&format!("new_{}", path.replace('.', "_")));
        if array.shape.len() == 2 { array.flipped() } else { array.clone() }
    }

    fn perturbation(&self, layers: &Vec<Linear>, sigma: f64, device: &Device) -> Perturbation {
        let noiser = NoiserConfig::from(EggrollConfig::new().with_rank(self.golden.scalar("rank") as usize));
        let record = |entry: &ParameterEntry, _| {
            let noise = self.golden.array(&format!("noise_{}", entry.path.replace('.', "_")));
            match entry.role {
                Role::LowRank { .. } => Draw::LowRank(noise.factors(entry.shape[0], device)),
                _ => Draw::Dense(noise.dense(device)),
            }
        };
        perturbation(layers, &noiser, &[], (0, sigma), record)
    }

    fn forward(&self, layers: &[Linear], x: Tensor<2>) -> Tensor<2> {
        let (first, rest) = layers.split_first().expect("layers");
        rest.iter().fold(first.forward(x), |x, layer| layer.forward((self.activation)(x)))
    }

    /// Outputs of all members, evaluated in chunks of the given numbers of pairs.
    fn outputs(&self, layers: &[Linear], perturbation: &Perturbation, chunks: &[u32], device: &Device) -> Vec<f64> {
        let x = self.golden.array("x").tensor::<2>(device); // one row for each member
        let mut first = 0;
        let chunk = |count: &u32| {
            let pairs = PairRange::new(first, *count);
            first += count;
            let x = x.clone().narrow(0, 2 * pairs.first as usize, pairs.members());
            let (y, scope) = perturbation.run(pairs, || self.forward(layers, x));
            assert!(scope.uses.iter().all(|how| how.is_used()), "{:?}", scope.uses);
            values(y)
        };
        let outputs = chunks.iter().flat_map(chunk).collect();
        assert_eq!(x.dims()[0], 2 * chunks.iter().sum::<u32>() as usize);
        outputs
    }
}

/// `−Σ (y − 2)²` of every member.
fn scores(outputs: &[f64]) -> Vec<f64> {
    outputs.chunks(2).map(|y| -y.iter().map(|y| (y - 2.0).powi(2)).sum::<f64>()).collect()
}

#[test]
fn outputs() {
    for step in steps() {
        for device in devices() {
            let (layers, sigma) = (step.layers(&device), step.golden.scalar("sigma"));
            let (y, y_eval) = (step.golden.values("y"), step.golden.values("y_eval"));
            let perturbation = step.perturbation(&layers, sigma, &device);
            let plain = values(step.forward(&layers, step.golden.array("x").tensor(&device)));
            assert_close("unperturbed", &plain, y_eval, ROUNDING);
            assert_differs("unperturbed against perturbed", &plain, y, ROUNDING);
            for chunks in [&[8][..], &[3, 5], &[1; 8]] {
                let outputs = step.outputs(&layers, &perturbation, chunks, &device);
                assert_close(&format!("chunks {chunks:?}"), &outputs, y, ROUNDING);
            }
            let opposite = step.perturbation(&layers, -sigma, &device);
            let outputs = step.outputs(&layers, &opposite, &[8], &device);
            assert_differs("opposite signs", &outputs, y, ROUNDING);
        }
    }
}

/// The activations are not interchangeable.
#[test]
fn canary_other_activations_differ() {
    let activations = steps().map(|step| step.activation);
    for (i, mut step) in steps().into_iter().enumerate() {
        step.activation = activations[(i + 1) % activations.len()];
        for device in devices() {
            let outputs = values(step.forward(&step.layers(&device), step.golden.array("x").tensor(&device)));
            assert_differs("another activation", &outputs, step.golden.values("y_eval"), ROUNDING);
        }
    }
}

/// Outputs, scores, fitness, estimate and one step of gradient descent, each from the library's own values before it.
#[test]
fn whole_generation() {
    for step in steps() {
        for device in devices() {
            let golden = &step.golden;
            let (layers, sigma) = (step.layers(&device), golden.scalar("sigma"));
            let perturbation = step.perturbation(&layers, sigma, &device);
            let scores = scores(&step.outputs(&layers, &perturbation, &[8], &device));
            assert_close("scores", &scores, golden.values("score"), ROUNDING);
            let shaping = FitnessShaping::ZScore;
            assert_close("fitness", &shaping.shape(&scores), golden.values("fitness"), ROUNDING);

            let train = |scores: &[f64]| {
                let weights = pair_weights(scores, shaping.clone(), GradientScale::SqrtPopulation, sigma);
                let (estimate, _) = gradients(&layers, &perturbation, &weights, &device);
                let mut optimizer = OptimizerConfig::from(SgdConfig::new()).init();
                let model = optimizer.step(golden.scalar("lr"), layers.clone(), estimate);
                parameters(&model, &perturbation.table)
            };
            let right = train(&scores);
            let opposite = train(&scores.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect::<Vec<_>>());
            let mut rotated = scores.clone();
            rotated.rotate_left(2);
            let rotated = train(&rotated);
            assert_eq!(right.len(), 6);
            for (path, found) in &right {
                let expected = step.new_parameter(path).values;
                assert_close(path, found, &expected, ROUNDING);
                assert_differs(&format!("{path}, wrong sign"), &opposite[path], &expected, ROUNDING);
                assert_differs(&format!("{path}, another pair"), &rotated[path], &expected, ROUNDING);
            }
        }
    }
}
