//! Recorded noise in place of drawn noise, so that whole models run through the library's noisers, scope, layers and estimates on
//! the noise of the reference.

use crate::compare::values;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use eggroll::core::ops::NoiseSource;
use eggroll::core::ops::explicit::Factors;
use eggroll::core::scope::Perturbation;
use eggroll::core::{MaterializedNoise, NoiserConfig, ParameterEntry, ParameterTable, Role};
use eggroll::train::{FitnessShaping, GradientScale, fold_pairs};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Recorded noise of one parameter, for all pairs.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a handful of draws in a test")]
pub enum Draw {
    /// For low-rank parameters.
    LowRank(Factors),
    /// For dense parameters: `[pairs, elements]`.
    Dense(Tensor<2>),
}

impl Draw {
    /// The noise as the library holds it: `[pairs, elements]`.
    fn source(self) -> NoiseSource {
        let noise = match self {
            Self::LowRank(Factors { b, a }) => Tensor::cat(vec![b.flatten(1, 2), a.flatten(1, 2)], 1),
            Self::Dense(epsilon) => epsilon,
        };
        NoiseSource::Cached { noise, first_pair: 0 }
    }
}

/// The perturbation of `model` by recorded noise: `record` gives that of a parameter in a noise epoch.
#[track_caller]
pub fn perturbation<M: Module>(
    model: &M,
    noiser: &NoiserConfig,
    frozen: &[&str],
    (noise_generation, sigma): (u32, f64),
    record: impl Fn(&ParameterEntry, u32) -> Draw,
) -> Perturbation {
    let noiser = noiser.init().expect("a noiser");
    let frozen: Vec<String> = frozen.iter().map(|name| (*name).to_owned()).collect();
    let table = ParameterTable::new(model, noiser.as_ref(), &frozen).expect("a table");
    let source = |entry: &ParameterEntry| match entry.role {
        Role::Frozen => NoiseSource::Drawn,
        _ => record(entry, noise_generation).source(),
    };
    let held = MaterializedNoise::of_floats(noise_generation, table.entries().iter().map(source).collect());
    Perturbation { noiser, table: Arc::new(table), seed: 0, generation: noise_generation, sigma, held: Arc::new(held) }
}

/// The weight of every pair for a minimizing optimizer, as a strategy computes it from fitness.
pub fn pair_weights(fitness: &[f64], shaping: FitnessShaping, scale: GradientScale, sigma: f64) -> Vec<f64> {
    let folded = fold_pairs(&shaping.shape(fitness));
    folded.iter().map(|weight| -scale.factor(fitness.len(), sigma) * weight).collect()
}

/// The estimated gradient of every parameter that is not frozen: for an optimizer, and by path.
pub fn gradients<M: Module>(
    model: &M,
    perturbation: &Perturbation,
    weights: &[f64],
    device: &Device,
) -> (GradientsParams, BTreeMap<String, Vec<f64>>) {
    let weights: Vec<f32> = weights.iter().map(|weight| *weight as f32).collect();
    let weights = TensorData::new(weights.clone(), [weights.len()]);
    let weights = Tensor::from_data(weights, device);
    let mut visitor = Estimator { perturbation, weights, gradients: GradientsParams::new(), by_path: BTreeMap::new() };
    model.visit(&mut visitor);
    (visitor.gradients, visitor.by_path)
}

struct Estimator<'a> {
    perturbation: &'a Perturbation,
    weights: Tensor<1>,
    gradients: GradientsParams,
    by_path: BTreeMap<String, Vec<f64>>,
}

impl ModuleVisitor for Estimator<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let table = &self.perturbation.table;
        let position = table.position(param.id).expect("a parameter of the model");
        let noise = self.perturbation.parameter(position);
        if noise.role == Role::Frozen {
            return;
        }
        let gradient = noise.estimate(self.weights.clone(), &param.dims(), param.dtype());
        let gradient = gradient.reshape(param.dims());
        self.by_path.insert(table.entries()[position].path.clone(), values(gradient.clone()));
        self.gradients.register(param.id, gradient);
    }
}

/// The values of every parameter by path.
pub fn parameters<M: Module>(model: &M, table: &ParameterTable) -> BTreeMap<String, Vec<f64>> {
    struct ParameterReader<'a>(&'a ParameterTable, BTreeMap<String, Vec<f64>>);

    impl ModuleVisitor for ParameterReader<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let position = self.0.position(param.id).expect("a parameter of the model");
            self.1.insert(self.0.entries()[position].path.clone(), values(param.val()));
        }
    }

    let mut reader = ParameterReader(table, BTreeMap::new());
    model.visit(&mut reader);
    assert_eq!(reader.1.len(), table.entries().len());
    reader.1
}
