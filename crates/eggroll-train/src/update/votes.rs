//! The update of integer parameters: the pairs' votes, in place of a gradient.

use crate::fitness::Fitness;
use crate::optimizer::Optimizer;
use crate::population::{EstimatePlan, Population};
use burn::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use eggroll_core::integer::Votes;
use eggroll_core::ops::integer::{integer_type, sum_part_votes, sum_votes, update};
use eggroll_core::scope::Perturbation;
use eggroll_core::{IntegerRule, Role};

/// Moves every integer parameter of `model` that is not frozen by the votes of the pairs, counted as `plans` say. An `optimizer` of integers
/// makes the step; otherwise weights move where votes exceed the noiser's threshold.
pub(super) fn step<M: Module>(
    model: M,
    population: &Population,
    (fitness, plans): (&Fitness, Vec<EstimatePlan>),
    optimizer: &mut Optimizer,
    rate: ModuleLearningRate,
) -> M {
    let perturbation = &population.perturbation;
    let Some(rule) = perturbation.noiser.properties().integer else {
        return model;
    };
    let pair_votes = fitness.pair_votes(population.size, rule.levels());
    if !rule.moves(&pair_votes) && !plans.iter().any(EstimatePlan::is_by_part) {
        return model;
    }
    let how = match optimizer.moves_integers() {
        true => How::Optimizer(optimizer, rate),
        false => How::Threshold(population.generation),
    };
    let part_sums = match how {
        How::Optimizer(..) => part_sums(population, fitness, &plans, rule.votes()),
        How::Threshold(_) => Vec::new(),
    };
    let done = vec![false; perturbation.table.entries().len()];
    let mut step = VoteMapper { perturbation, pair_votes, part_sums, rule, how, scores: None, done };
    model.map(&mut step)
}

/// The sums of the votes of all parts, by position, of parameters that learn by part.
fn part_sums(
    population: &Population,
    fitness: &Fitness,
    plans: &[EstimatePlan],
    kind: Votes,
) -> Vec<Option<Tensor<2>>> {
    let Perturbation { table, held, .. } = &population.perturbation;
    let mut part_votes = [None, None];
    let mut work = Vec::new();
    for (position, plan) in plans.iter().enumerate() {
        let (EstimatePlan::Parts { uses, acts_later, .. }, Some(noise)) = (plan, held.integer(position)) else {
            continue;
        };
        let entry = &table.entries()[position];
        let (Role::LowRank { rank }, &[d_input, d_output]) = (entry.role, entry.shape.as_slice()) else { continue };
        part_votes[usize::from(*acts_later)].get_or_insert_with(|| fitness.part_votes(population.size, *acts_later));
        work.push((position, (uses, *acts_later, noise, rank, [d_input, d_output])));
    }
    population.map_parameters(&work, |(_, (uses, acts_later, noise, rank, shape))| {
        let votes = part_votes[usize::from(*acts_later)].as_ref().expect("counted above");
        sum_part_votes((*noise).clone(), votes, uses, *rank, kind, *shape)
    })
}

/// The effect of votes.
enum How<'a> {
    /// A step by one of every weight whose vote reaches the limit of this generation.
    Threshold(u64),
    /// The optimizer's use of them.
    Optimizer(&'a mut Optimizer, ModuleLearningRate),
}

struct VoteMapper<'a> {
    perturbation: &'a Perturbation,
    /// Of every pair.
    pair_votes: Vec<i8>,
    /// The sums of parameters that learn by part, by position, if there are any.
    part_sums: Vec<Option<Tensor<2>>>,
    rule: IntegerRule,
    how: How<'a>,
    /// The same on the device of the last parameter.
    scores: Option<(Device, Tensor<1, Int>)>,
    /// Whether the parameter has taken its step, by position: tied fields take one.
    done: Vec<bool>,
}

impl VoteMapper<'_> {
    fn scores(&mut self, device: &Device) -> Tensor<1, Int> {
        match &self.scores {
            Some((on, scores)) if on == device => scores.clone(),
            _ => {
                let data = TensorData::new(self.pair_votes.clone(), [self.pair_votes.len()]);
                let scores = Tensor::from_data(data, (device, integer_type(device)));
                self.scores = Some((device.clone(), scores.clone()));
                scores
            }
        }
    }
}

impl ModuleMapper for VoteMapper<'_> {
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        let table = &self.perturbation.table;
        let Some(position) = table.position(param.id) else {
            return param;
        };
        if std::mem::replace(&mut self.done[position], true) {
            return param;
        }
        let rank = match table.entries()[position].role {
            Role::Frozen => return param,
            Role::LowRank { rank } => rank,
            _ => 0,
        };
        let noise =
            self.perturbation.held.integer(position).expect("held for every parameter that is not frozen").clone();
        let scores = self.scores(&param.device());
        let of_parts = self.part_sums.get_mut(position).and_then(Option::take);
        let (id, votes) = (param.id, self.rule.votes());
        match &mut self.how {
            How::Threshold(generation) => {
                let limit = self.rule.step_limit(*generation, rank, &self.pair_votes);
                param.map(|value| update(value, noise, scores, rank, votes, limit))
            }
            How::Optimizer(optimizer, rate) => param.map(|value| {
                let dtype = value.dtype();
                let float = |values: Tensor<D, Int>| -> Tensor<D> { values.float().cast(DType::F32) };
                let shape = value.dims();
                let sums = match of_parts {
                    Some(sums) => sums.reshape(shape),
                    None => float(sum_votes(noise, scores, rank, votes, shape)),
                };
                optimizer.step_integer(rate.clone(), id, float(value), -sums).int().cast(dtype)
            }),
        }
    }
}
