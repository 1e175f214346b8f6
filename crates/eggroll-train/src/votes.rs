//! The update of integer parameters: the pairs' votes, in place of a gradient and an optimizer.

use crate::fitness::Fitness;
use crate::population::Population;
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::Role;
use eggroll_core::integer::Votes;
use eggroll_core::ops::integer::{integer_type, update};
use eggroll_core::scope::Perturbation;

/// `sign(f_{2q} − f_{2q+1})` of every pair.
pub(crate) fn pair_signs(fitness: &Fitness) -> Vec<i8> {
    fn signs<T: PartialOrd>(scores: &[T]) -> Vec<i8> {
        let sign = |pair: &[T]| i8::from(pair[0] > pair[1]) - i8::from(pair[0] < pair[1]);
        scores.chunks_exact(2).map(sign).collect()
    }
    match fitness.integers() {
        Some(scores) => signs(scores),
        None => signs(&fitness.finite().0),
    }
}

/// Moves every integer parameter of `model` that is not frozen by the votes of the pairs, `signs`.
pub(crate) fn step<M: Module>(model: M, population: &Population, signs: &[i8]) -> M {
    let perturbation = &population.perturbation;
    let Some(rule) = perturbation.noiser.integer() else {
        return model;
    };
    let limit = rule.step_limit(population.generation, signs.len());
    let mut step = Step { perturbation, signs, votes: rule.votes(), limit, scores: None };
    model.map(&mut step)
}

struct Step<'a> {
    perturbation: &'a Perturbation,
    signs: &'a [i8],
    votes: Votes,
    limit: i32,
    /// The signs on the device of the last parameter.
    scores: Option<(Device, Tensor<1, Int>)>,
}

impl Step<'_> {
    fn scores(&mut self, device: &Device) -> Tensor<1, Int> {
        match &self.scores {
            Some((on, scores)) if on == device => scores.clone(),
            _ => {
                let data = TensorData::new(self.signs.to_vec(), [self.signs.len()]);
                let scores = Tensor::from_data(data, (device, integer_type(device)));
                self.scores = Some((device.clone(), scores.clone()));
                scores
            }
        }
    }
}

impl ModuleMapper for Step<'_> {
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        let table = &self.perturbation.table;
        let Some(position) = table.position(param.id) else {
            return param;
        };
        let rank = match table.entries()[position].role {
            Role::LowRank { rank } => rank,
            Role::Dense => 0,
            Role::Frozen => return param,
        };
        let noise =
            self.perturbation.held.integer(position).expect("held for every parameter that is not frozen").clone();
        let scores = self.scores(&param.device());
        let (votes, limit) = (self.votes, self.limit);
        param.map(|value| update(value, noise, scores, rank, votes, limit))
    }
}
