//! From fitness to the gradient of every parameter.

mod cosine;
mod forecast;
pub(crate) mod horizon;
mod parts;
mod split_half;

pub use cosine::gradient_cosine;
pub use forecast::{ExpectedCosine, Forecast, ParameterForecast};
pub use split_half::SplitHalf;

use crate::config::EvolutionStrategyConfig;
use crate::fitness::{Fitness, fold_pairs};
use crate::optimizer::is_half;
use crate::population::{EstimatePlan, Population, weights_of_rows};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor};
use eggroll_core::ops::{NoiseSource, row_projection};
use eggroll_core::scope::Perturbation;
use eggroll_core::{MatrixView, ParameterTable, Role};
use parts::{ByPart, PartWeights};

impl EvolutionStrategyConfig {
    /// The folded, scaled weight of every pair, `−scale·(f_{2q} − f_{2q+1})`: ready for a minimizing optimizer.
    /// `None` if all pairs are tied: there is nothing to learn.
    pub fn pair_weights(&self, fitness: &Fitness, sigma: f64) -> Option<Vec<f32>> {
        let scores = self.shaping.scores(fitness, self.population_size);
        if scores.iter().all(|score| *score == scores[0]) {
            return None;
        }
        let weights = self.folded(&self.shaping.shape_tasks(&scores, self.population_size), sigma);
        weights.iter().any(|weight| *weight != 0.0).then_some(weights)
    }

    /// [`pair_weights`](Self::pair_weights), and the weights of every part if some estimate is made `by_part`.
    pub(crate) fn weights(&self, fitness: &Fitness, sigma: f64, by_part: bool) -> Option<PairWeights> {
        if !by_part {
            return self.pair_weights(fitness, sigma).map(|pairs| PairWeights { pairs, parts: None });
        }
        let scores = self.shaping.scores(fitness, self.population_size);
        if scores.chunks(self.population_size).all(|part| part.iter().all(|score| *score == part[0])) {
            return None;
        }
        let own = self.folded(&self.shaping.shape_parts(&scores, self.population_size), sigma); // [parts, pairs]
        let mut pairs = vec![-0.0; self.population_size / 2];
        for part in own.chunks(pairs.len()) {
            pairs.iter_mut().zip(part).for_each(|(sum, weight)| *sum += weight);
        }
        if own.iter().all(|weight| *weight == 0.0) {
            return None;
        }
        Some(PairWeights { pairs, parts: Some(PartWeights { own, steps: fitness.steps() }) })
    }

    /// Shaped scores as scaled weights of pairs.
    fn folded(&self, shaped: &[f64], sigma: f64) -> Vec<f32> {
        let scale = self.gradient_scale.factor(self.population_size, sigma);
        fold_pairs(shaped).into_iter().map(|weight| (-scale * weight) as f32).collect()
    }
}

/// The weight of every pair in an estimate.
pub(crate) struct PairWeights {
    /// For all parts together.
    pub pairs: Vec<f32>,
    /// For every part, if some estimate is made by part.
    pub parts: Option<PartWeights>,
}

impl PairWeights {
    /// All numbers, pair by pair.
    pub fn all(&self) -> impl Iterator<Item = f32> {
        let parts = self.parts.iter().flat_map(|parts| &parts.own);
        parts.chain(&self.pairs).copied()
    }

    /// The weights of the pairs of one parity; 0 for the others.
    pub fn half(&self, odd: usize) -> Self {
        let count = self.pairs.len();
        let of_half = |(at, weight): (usize, &f32)| if at % count % 2 == odd { *weight } else { 0.0 };
        let half = |weights: &Vec<f32>| weights.iter().enumerate().map(of_half).collect();
        let parts = |parts: &PartWeights| PartWeights { own: half(&parts.own), steps: parts.steps };
        Self { pairs: half(&self.pairs), parts: self.parts.as_ref().map(parts) }
    }
}

/// Estimates the gradient of every parameter of `model` that is not frozen, over all noise since the members' state was reset.
/// There is a plan for each position of the table.
pub(crate) fn gradients<M: Module>(
    model: &M,
    population: &Population,
    weights: &PairWeights,
    plans: &[EstimatePlan],
    config: &EvolutionStrategyConfig,
) -> GradientsParams {
    let table = &population.perturbation.table;
    let by_part = match &weights.parts {
        Some(parts) => {
            let mut places = Places { table, plans, found: Vec::new() };
            model.visit(&mut places);
            by_part(population, parts, plans, config.master_weights, &places.found)
        }
        None => vec![None; plans.len()],
    };
    let mut estimator = Estimator {
        table,
        master_weights: config.master_weights,
        perturbations: horizon::perturbations(config, population),
        plans,
        weights,
        by_part,
        uploaded: None,
        gradients: GradientsParams::new(),
    };
    model.visit(&mut estimator);
    estimator.gradients
}

/// The position, type and device of every float parameter that learns by part.
struct Places<'a> {
    table: &'a ParameterTable,
    plans: &'a [EstimatePlan],
    found: Vec<(usize, (DType, Device))>,
}

impl ModuleVisitor for Places<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let is_new = |position: &usize| self.found.iter().all(|(found, _)| found != position);
        let position = self.table.position(param.id).filter(is_new);
        if let Some(position) = position.filter(|position| self.plans[*position].has_parts()) {
            let value = param.val();
            self.found.push((position, (value.dtype(), value.device())));
        }
    }
}

/// The estimates of the parameters at these places from the scores of every part, flat, by position.
fn by_part(
    population: &Population,
    weights: &PartWeights,
    plans: &[EstimatePlan],
    master_weights: bool,
    places: &[(usize, (DType, Device))],
) -> Vec<Option<Tensor<1>>> {
    // What layers were given is of one generation: there is no horizon.
    let perturbation = &population.perturbation;
    let pairs = population.size / 2;
    let parts = weights.own.len() / pairs;
    let moves = population.map_parameters(places, |(position, (dtype, _))| {
        let EstimatePlan::Parts { uses, .. } = &plans[*position] else { unreachable!("its place was found") };
        let noise = perturbation.parameter(*position);
        let [made, _] = types(master_weights, *dtype, &noise.source);
        let rows = noise.on_rows(pairs, uses.clone(), &perturbation.table.entries()[*position].shape, made);
        (rows.power(parts), rows)
    });
    let (powers, rows): (Vec<_>, Vec<_>) =
        moves.into_iter().map(|moved| moved.map_or((None, None), |(power, rows)| (power, Some(rows)))).unzip();
    let key = perturbation.parameter(0).key;
    let has_noise: Vec<bool> = (0..pairs).map(|pair| !key.is_baseline(pair as u32)).collect();
    let by_part = ByPart::new(weights, &has_noise, rows, &powers);
    population.map_parameters(places, |(position, (dtype, device))| {
        let EstimatePlan::Parts { rows, counted, acts_later, .. } = &plans[*position] else {
            unreachable!("its place was found")
        };
        let weights = weights_of_rows(by_part.weights(*acts_later), pairs, *rows, counted.as_deref());
        let estimate = by_part.estimate(*position, Tensor::from_data(weights, (device, DType::F32)));
        let [made, kept] = types(master_weights, *dtype, &perturbation.parameter(*position).source);
        if made == kept { estimate } else { estimate.cast(kept) }
    })
}

/// The type in which the estimate of a parameter is made (the type of held noise), and the type in which it is kept.
fn types(master_weights: bool, dtype: DType, source: &NoiseSource) -> [DType; 2] {
    match (master_weights && is_half(dtype), source) {
        (false, _) => [dtype; 2],
        (true, NoiseSource::Drawn) => [DType::F32; 2],
        (true, _) => [dtype, DType::F32],
    }
}

struct Estimator<'a> {
    table: &'a ParameterTable,
    /// Whether estimates of half-precision parameters are in f32.
    master_weights: bool,
    /// How the members were perturbed: the estimate is the sum over all, with the same weights.
    perturbations: Vec<Perturbation>,
    plans: &'a [EstimatePlan],
    weights: &'a PairWeights,
    /// The estimates from the scores of every part, by position.
    by_part: Vec<Option<Tensor<1>>>,
    /// The weights on the device of the last parameter: in a model on one device they are uploaded once.
    uploaded: Option<(Device, Tensor<1>)>,
    gradients: GradientsParams,
}

impl Estimator<'_> {
    /// The weights next to a parameter, in float32: a parameter's type may be too narrow for them.
    fn weights(&mut self, device: Device) -> Tensor<1> {
        match &self.uploaded {
            Some((on, weights)) if *on == device => weights.clone(),
            _ => {
                let weights = Tensor::from_data(self.weights.pairs.as_slice(), (&device, DType::F32));
                self.uploaded.insert((device, weights)).1.clone()
            }
        }
    }

    /// The estimate from the mean weights, flat.
    fn by_mean(&mut self, position: usize, shape: &[usize], (dtype, device): (DType, Device)) -> Tensor<1> {
        let weights = self.weights(device);
        let estimate = |perturbation: &Perturbation| {
            let noise = perturbation.parameter(position);
            let [made, kept] = types(self.master_weights, dtype, &noise.source);
            let estimate = noise.estimate(weights.clone(), shape, made);
            if made == kept { estimate } else { estimate.cast(kept) }
        };
        let estimates = self.perturbations.iter().map(estimate);
        let gradient = estimates.reduce(|sum, next| sum + next).expect("the members were perturbed");
        let (EstimatePlan::Projected(x), Some(view)) = (&self.plans[position], MatrixView::of(shape)) else {
            return gradient;
        };
        let (elements, x) = (gradient.dims(), x.clone().cast(gradient.dtype()));
        row_projection(gradient.reshape([view.d_input, view.d_output]), x).reshape(elements)
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
        let (shape, place) = (value.dims(), (value.dtype(), value.device()));
        let gradient = match self.by_part[position].take() {
            Some(gradient) => gradient,
            None => self.by_mean(position, &shape, place),
        };
        self.gradients.register(param.id, MatrixView::shape_flat(gradient, shape));
    }
}
