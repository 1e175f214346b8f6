//! From fitness to the gradient of every parameter.

mod clip;
mod cosine;
pub(crate) mod horizon;
mod split_half;

pub use clip::clip_norm;
pub use cosine::gradient_cosine;
pub use split_half::SplitHalf;

use crate::config::{EvolutionStrategyConfig, InputProjection};
use crate::fitness::{Fitness, fold_pairs};
use crate::optimizer::is_half;
use crate::population::Population;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use eggroll_core::ops::{NoiseSource, row_projection};
use eggroll_core::scope::{Perturbation, Use};
use eggroll_core::sync::locked;
use eggroll_core::{MatrixView, ParameterTable, Role};
use std::collections::BTreeSet;

impl EvolutionStrategyConfig {
    /// The folded, scaled weight of every pair, `−scale·(f_{2q} − f_{2q+1})`: ready for a minimizing optimizer.
    /// `None` if all pairs are tied, so that nothing is to be learned.
    pub fn pair_weights(&self, fitness: &Fitness, sigma: f64) -> Option<Vec<f32>> {
        let scores = self.shaping.scores(fitness, self.population_size);
        if scores.iter().all(|score| *score == scores[0]) {
            return None;
        }
        let weights = self.folded(&self.shaping.shape_tasks(&scores, self.population_size), sigma);
        weights.iter().any(|weight| *weight != 0.0).then_some(weights)
    }

    /// [`pair_weights`](Self::pair_weights), and those of every task if estimates are [projected by task](Self::with_task_projection).
    pub(crate) fn weights(&self, fitness: &Fitness, sigma: f64) -> Option<PairWeights> {
        if !self.task_projection {
            return self.pair_weights(fitness, sigma).map(|pairs| PairWeights { pairs, tasks: None });
        }
        let scores = self.shaping.scores(fitness, self.population_size);
        let tasks = self.folded(&self.shaping.shape_each_task(&scores, self.population_size), sigma); // [tasks, pairs]
        let count = self.population_size / 2;
        let pairs = (0..count).map(|pair| tasks[pair..].iter().step_by(count).sum()).collect();
        tasks.iter().any(|weight| *weight != 0.0).then_some(PairWeights { pairs, tasks: Some(tasks) })
    }

    /// Shaped scores as scaled weights of pairs.
    fn folded(&self, shaped: &[f64], sigma: f64) -> Vec<f32> {
        let scale = self.gradient_scale.factor(self.population_size, sigma);
        fold_pairs(shaped).into_iter().map(|weight| (-scale * weight) as f32).collect()
    }
}

/// What every pair counts in an estimate.
pub(crate) struct PairWeights {
    /// For all tasks together.
    pub pairs: Vec<f32>,
    /// For every task, if they are estimated alone: `[tasks, pairs]`, whose sums over tasks are `pairs`.
    pub tasks: Option<Vec<f32>>,
}

impl PairWeights {
    /// The weights with those of the pairs of the other parity 0.
    pub fn half(&self, odd: usize) -> Self {
        let count = self.pairs.len();
        let of_half = |(at, weight): (usize, &f32)| if at % count % 2 == odd { *weight } else { 0.0 };
        let half = |weights: &Vec<f32>| weights.iter().enumerate().map(of_half).collect();
        Self { pairs: half(&self.pairs), tasks: self.tasks.as_ref().map(half) }
    }
}

/// Estimates the gradient of every parameter of `model` that is not frozen, over all noise since the members' state was reset and
/// projected as the population's evaluation wants it.
pub(crate) fn gradients<M: Module>(
    model: &M,
    population: &Population,
    weights: &PairWeights,
    config: &EvolutionStrategyConfig,
) -> GradientsParams {
    with_uses(population, |uses, lookups| {
        let mut visitor = Estimator {
            table: &population.perturbation.table,
            master_weights: config.master_weights,
            perturbations: horizon::perturbations(config, population),
            uses,
            lookups,
            weights,
            uploaded: None,
            uploaded_tasks: None,
            gradients: GradientsParams::new(),
        };
        model.visit(&mut visitor);
        visitor.gradients
    })
}

/// Calls `f` with the uses whose rows estimates are projected onto, and with those that have the rows that members have looked up.
fn with_uses<R>(population: &Population, f: impl FnOnce(&[Use], &[Use]) -> R) -> R {
    let uses = locked(&population.uses);
    let unperturbed = locked(&population.unperturbed_rows);
    let perturbed = uses.as_deref().unwrap_or_default();
    match population.input_projection {
        InputProjection::Off => f(&[], &[]),
        InputProjection::Shared => f(perturbed, perturbed),
        InputProjection::Unperturbed => f(&unperturbed, perturbed),
    }
}

/// Rows that layers were given and whose span estimates are projected onto, each number once.
pub(crate) fn projected_rows(population: &Population) -> Vec<usize> {
    with_uses(population, |uses, _| {
        let rows = uses.iter().filter_map(|used| if let Use::Shared(x) = used { Some(x.dims()[0]) } else { None });
        rows.collect::<BTreeSet<_>>().into_iter().collect()
    })
}

struct Estimator<'a> {
    table: &'a ParameterTable,
    /// Whether estimates of half-precision parameters are in f32.
    master_weights: bool,
    /// How the members were perturbed: the estimate is the sum over all, with the same weights.
    perturbations: Vec<Perturbation>,
    /// The rows that weights are projected onto.
    uses: &'a [Use],
    /// The rows that members have looked up.
    lookups: &'a [Use],
    weights: &'a PairWeights,
    /// The weights on the device of the last parameter: in a model on one device they are uploaded once.
    uploaded: Option<(Device, Tensor<1>)>,
    /// Those of every task, `[tasks, pairs]`.
    uploaded_tasks: Option<(Device, Tensor<2>)>,
    gradients: GradientsParams,
}

impl Estimator<'_> {
    /// The types in which the estimate of a parameter is made, which is that of held noise, and kept.
    fn types(&self, dtype: DType, source: &NoiseSource) -> [DType; 2] {
        match (self.master_weights && is_half(dtype), source) {
            (false, _) => [dtype; 2],
            (true, NoiseSource::Drawn) => [DType::F32; 2],
            (true, _) => [dtype, DType::F32],
        }
    }

    /// The weights next to a parameter, in float32: a parameter's type may be too narrow for them.
    fn weights(&mut self, device: Device) -> Tensor<1> {
        let weights = &self.weights.pairs;
        on_device(&mut self.uploaded, device, weights, [weights.len()])
    }

    /// Those of every task, if they are estimated alone and a layer that was given these rows has one for each.
    fn task_weights(&mut self, x: &Tensor<2>) -> Option<Tensor<2>> {
        let (weights, pairs) = (self.weights.tasks.as_ref()?, self.weights.pairs.len());
        let (tasks, device) = (weights.len() / pairs, x.device());
        if x.dims()[0] != tasks {
            return None;
        }
        Some(on_device(&mut self.uploaded_tasks, device, weights, [tasks, pairs]))
    }
}

/// Weights on a device, uploaded unless they are there.
fn on_device<const D: usize>(
    uploaded: &mut Option<(Device, Tensor<D>)>,
    device: Device,
    weights: &[f32],
    shape: [usize; D],
) -> Tensor<D> {
    match uploaded {
        Some((on, weights)) if *on == device => weights.clone(),
        _ => {
            let data = TensorData::new(weights.to_vec(), shape);
            let weights = Tensor::from_data(data, (&device, DType::F32));
            uploaded.insert((device, weights)).1.clone()
        }
    }
}

impl ModuleVisitor for Estimator<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(position) = self.table.position(param.id) else {
            return;
        };
        // A tied parameter is visited more than once.
        if self.table.entries()[position].role == Role::Frozen || self.gradients.get::<D>(param.id).is_some() {
            return;
        }
        let value = param.val();
        if let Some(Use::Shared(x)) = self.uses.get(position)
            && let Some(weights) = self.task_weights(x)
        {
            // A projection has no unroll horizon: there is one perturbation.
            let noise = self.perturbations[0].parameter(position);
            let [made, kept] = self.types(value.dtype(), &noise.source);
            let x = if made == value.dtype() { (**x).clone() } else { (**x).clone().cast(made) };
            let gradient = noise.task_estimate(weights, x, &value.dims(), made);
            let gradient = if made == kept { gradient } else { gradient.cast(kept) };
            self.gradients.register(param.id, MatrixView::shape_flat(gradient, value.dims()));
            return;
        }
        let weights = self.weights(value.device());
        let estimate = |perturbation: &Perturbation| {
            let noise = perturbation.parameter(position);
            let [made, kept] = self.types(value.dtype(), &noise.source);
            let estimate = noise.estimate(weights.clone(), &value.dims(), made);
            if made == kept { estimate } else { estimate.cast(kept) }
        };
        let estimates = self.perturbations.iter().map(estimate);
        let gradient = estimates.reduce(|sum, next| sum + next).expect("the members were perturbed");
        let elements = gradient.dims();
        let uses = (self.lookups.get(position), self.uses.get(position));
        let gradient = match (uses, MatrixView::of(&value.dims())) {
            ((Some(Use::Rows(read)), _), Some(view)) if read.contains(&false) => {
                only_rows(gradient.reshape([view.d_input, view.d_output]), read).reshape(elements)
            }
            ((_, Some(Use::Shared(x))), Some(view)) => {
                let x =
                    if gradient.dtype() == x.dtype() { (**x).clone() } else { (**x).clone().cast(gradient.dtype()) };
                row_projection(gradient.reshape([view.d_input, view.d_output]), x).reshape(elements)
            }
            _ => gradient,
        };
        let gradient = MatrixView::shape_flat(gradient, value.dims());
        self.gradients.register(param.id, gradient);
    }
}

/// The rows of a gradient that any member has looked up; the others are 0: nothing depends on their noise.
fn only_rows(gradient: Tensor<2>, read: &[bool]) -> Tensor<2> {
    let unread: Vec<bool> = read.iter().map(|read| !read).collect();
    let unread = Tensor::<2, Bool>::from_data(TensorData::new(unread, [read.len(), 1]), &gradient.device());
    let dims = gradient.dims();
    gradient.mask_fill(unread.expand(dims), 0.0)
}
