//! A noiser that plays back recorded noise, so that whole models run through the library's scope, layers and estimates
//! on the noise of the reference.

use crate::compare::values;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use eggroll::core::ops::explicit::{self, Factors};
use eggroll::core::ops::{DenseNoise, InputRows, LinearMembers, LowRankNoise, PairRange};
use eggroll::core::scope::Perturbation;
use eggroll::core::{NoiseKey, Noiser, NoiserConfig, ParameterEntry, ParameterNoise, ParameterTable, Role};
use eggroll::train::{EstimateScale, FitnessShaping, fold_pairs};
use std::collections::{BTreeMap, HashMap};
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

/// Roles of a noiser of the library, noise from a record.
#[derive(Debug)]
struct Recorded {
    roles: Arc<dyn Noiser>,
    draws: HashMap<NoiseKey, Draw>,
}

impl Recorded {
    #[track_caller]
    fn factors(&self, noise: &ParameterNoise, rank: usize) -> Factors {
        match self.draws.get(&noise.key) {
            Some(Draw::LowRank(factors)) if factors.a.dims()[1] == rank => factors.clone(),
            other => panic!("no record of rank {rank} for {noise:?}, but {other:?}"),
        }
    }

    #[track_caller]
    fn epsilon(&self, noise: &ParameterNoise) -> Tensor<2> {
        match self.draws.get(&noise.key) {
            Some(Draw::Dense(epsilon)) => epsilon.clone(),
            other => panic!("no dense record for {noise:?}, but {other:?}"),
        }
    }
}

fn of_pairs<const D: usize>(noise: Tensor<D>, pairs: PairRange) -> Tensor<D> {
    noise.narrow(0, pairs.first as usize, pairs.count as usize)
}

impl Noiser for Recorded {
    fn role(&self, shape: &[usize]) -> Role {
        self.roles.role(shape)
    }

    fn linear(
        &self,
        x: Tensor<2>,
        (weight, noise): (Tensor<2>, ParameterNoise),
        bias: Option<(Tensor<1>, ParameterNoise)>,
        LinearMembers { pairs, input }: LinearMembers,
    ) -> Tensor<2> {
        assert!(input == InputRows::PerMember, "the record is of inputs per member");
        let Role::LowRank { rank } = noise.role else {
            panic!("the record is of low-rank layers, not of {noise:?}");
        };
        let Factors { b, a } = self.factors(&noise, rank);
        let factors = Factors { b: of_pairs(b, pairs), a: of_pairs(a, pairs) };
        let scale = LowRankNoise::new(noise.key, rank, noise.sigma).scale;
        let y = explicit::low_rank_linear(x, weight, factors, scale, input);
        let Some((bias, noise)) = bias else {
            return y;
        };
        let ([rows, d_output], members) = (y.dims(), pairs.members());
        let bias = self.vector(bias, noise, pairs).unsqueeze_dim::<3>(1); // [members, 1, d_output]
        (y.reshape([members, rows / members, d_output]) + bias).reshape([rows, d_output])
    }

    fn vector(&self, vector: Tensor<1>, noise: ParameterNoise, pairs: PairRange) -> Tensor<2> {
        match noise.role {
            Role::Frozen => vector.unsqueeze::<2>().repeat_dim(0, pairs.members()),
            _ => {
                let scale = DenseNoise::new(noise.key, noise.sigma).scale;
                explicit::perturbed_vector(vector, of_pairs(self.epsilon(&noise), pairs), scale)
            }
        }
    }

    fn estimate(&self, weights: Tensor<1>, noise: ParameterNoise, shape: &[usize]) -> Tensor<1> {
        match noise.role {
            Role::LowRank { rank } => {
                let scale = LowRankNoise::new(noise.key, rank, noise.sigma).scale;
                let sum = explicit::low_rank_estimate(weights, self.factors(&noise, rank), scale);
                assert_eq!(sum.dims()[..], *shape);
                sum.flatten(0, 1)
            }
            Role::Dense => {
                let scale = DenseNoise::new(noise.key, noise.sigma).scale;
                explicit::dense_estimate(weights, self.epsilon(&noise), scale)
            }
            Role::Frozen => panic!("a frozen parameter has no estimate"),
        }
    }
}

/// The perturbation of `model` in `noise_generation` by recorded noise: `record` gives that of a parameter in a noise
/// generation, among those listed.
#[track_caller]
pub fn perturbation<M: Module>(
    model: &M,
    noiser: &NoiserConfig,
    frozen: &[&str],
    (noise_generation, sigma): (u32, f64),
    recorded: &[u32],
    record: impl Fn(&ParameterEntry, u32) -> Draw,
) -> Perturbation {
    let roles = noiser.init().expect("a noiser");
    let frozen: Vec<String> = frozen.iter().map(|name| (*name).to_owned()).collect();
    let table = ParameterTable::new(model, roles.as_ref(), &frozen).expect("a table");
    let entries = table.entries().iter().enumerate().filter(|(_, entry)| entry.role != Role::Frozen);
    let draws = entries.flat_map(|(position, entry)| {
        let key = move |t| NoiseKey::new(0, position as u32, t);
        recorded.iter().map(move |t| (key(*t), entry, *t))
    });
    let draws = draws.map(|(key, entry, t)| (key, record(entry, t))).collect();
    let noiser = Arc::new(Recorded { roles, draws });
    Perturbation { noiser, table: Arc::new(table), seed: 0, generation: noise_generation, sigma, held: Arc::default() }
}

/// The weight of every pair for a minimising optimizer, as a strategy computes it from fitness.
pub fn pair_weights(fitness: &[f64], shaping: FitnessShaping, scale: EstimateScale, sigma: f64) -> Vec<f64> {
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
        let gradient = self.perturbation.noiser.estimate(self.weights.clone(), noise, &param.dims());
        let gradient = gradient.reshape(param.dims());
        self.by_path.insert(table.entries()[position].path.clone(), values(gradient.clone()));
        self.gradients.register(param.id, gradient);
    }
}

/// The values of every parameter by path.
pub fn parameters<M: Module>(model: &M, table: &ParameterTable) -> BTreeMap<String, Vec<f64>> {
    struct Reader<'a>(&'a ParameterTable, BTreeMap<String, Vec<f64>>);

    impl ModuleVisitor for Reader<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let position = self.0.position(param.id).expect("a parameter of the model");
            self.1.insert(self.0.entries()[position].path.clone(), values(param.val()));
        }
    }

    let mut reader = Reader(table, BTreeMap::new());
    model.visit(&mut reader);
    assert_eq!(reader.1.len(), table.entries().len());
    reader.1
}
