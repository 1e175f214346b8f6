//! Members of a population as separate models: the way out for modules that have no perturbed drop-in replacement.

use crate::arithmetic::integer::Rounding;
use crate::model::identity::ParameterTensor;
use crate::noise::matrix::MatrixView;
use crate::noise::role::Role;
use crate::ops::integer::{IntegerNoise, embedding, perturbed_vector};
use crate::rng::key::PairRange;
use crate::scope::{CloneError, Perturbation, ReachedFields};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Int, Tensor};
use std::collections::VecDeque;

impl Perturbation {
    /// The two members of `pair` as models: copies of `model` whose parameters are
    ///
    /// - `θ + E` and `θ − E` for floats, with the noise `E` of [`ParameterNoise::noise`](crate::ParameterNoise::noise), made once for both;
    /// - `clip(θ + ⌊s·N / 2^(4 + sigma shift)⌋)` for integers, `N = B·Aᵀ` or the product of two draws, `s = ±1`;
    /// - `θ` where they are frozen.
    ///
    /// The noise is the same as in the perturbed operations, and so are a model's members. They agree up to the order of float sums, and exactly for
    /// the integer tables and vectors of recurrent models. In a transformer, which rounds to nearest, integer values may differ by one. An integer
    /// product `x·W` differs: the perturbed operation shifts `(x·B)·Aᵀ` once, but a formed weight has been shifted element by element.
    ///
    /// A formed weight also rounds to its type: in half precision, small noise on large weights is lost, while the
    /// perturbed operations keep it.
    ///
    /// Parameters keep their identifiers, and tied parameters stay tied. A clone of the model in a field of `model`, such as a frozen teacher, does
    /// not change if it has `no_grad()` ([identifiers](crate::ParameterTable#identifiers)). Holds one pair's noise of all parameters while it runs.
    ///
    /// # Panics
    ///
    /// Panics if the perturbation's table was not made of `model`, with the first parameter that differs. Panics with the
    /// [`CloneError`] if `model` has a clone without `no_grad()`.
    #[track_caller]
    pub fn materialize<M: Module>(&self, model: &M, pair: u32) -> [M; 2] {
        let count = self.table.entries().len();
        let mut mapper = Materialize {
            perturbation: self,
            pair,
            member: 0,
            floats: vec![None; count],
            integers: vec![None; count],
            fields: (0..count).map(|_| ReachedFields::default()).collect(),
            positions: VecDeque::new(),
            refused: None,
        };
        let members = [0, 1].map(|member| {
            mapper.member = member;
            model.clone().map(&mut mapper)
        });
        if let Some(error) = mapper.refused {
            panic!("materialize: {error}");
        }
        if let Some(position) = mapper.fields.into_iter().position(|fields| fields.into_first().is_none()) {
            panic!(
                "materialize: this is not the model that the noise was made for: it lacks the parameter \"{}\", or \
                 has it with no_grad()",
                self.table.entries()[position].path
            );
        }
        members
    }
}

struct Materialize<'a> {
    perturbation: &'a Perturbation,
    pair: u32,
    /// Of the pair: 0 or 1.
    member: usize,
    /// The pair's noise of float parameters, row-major, by position.
    floats: Vec<Option<Tensor<1>>>,
    /// Both members' values of integer parameters, `[2, elements]`, by position.
    integers: Vec<Option<Tensor<2, Int>>>,
    /// Fields of the model, by position.
    fields: Vec<ReachedFields>,
    /// The positions that the first member has found, for the second.
    positions: VecDeque<Option<usize>>,
    refused: Option<CloneError>,
}

impl Materialize<'_> {
    /// The position of a parameter to perturb; the second member asks in the order of the first.
    fn position<T: ParameterTensor>(&mut self, param: &Param<T>) -> Option<usize> {
        if self.member == 1 {
            return self.positions.pop_front().flatten();
        }
        let position = self.find(param);
        self.positions.push_back(position);
        position
    }

    fn find<T: ParameterTensor>(&mut self, param: &Param<T>) -> Option<usize> {
        let table = &self.perturbation.table;
        let position = table.position(param.id)?;
        let (entry, shape) = (&table.entries()[position], &*param.shape());
        // Every call is for another field.
        match self.fields[position].admit_next(param, table, position) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => {
                self.refused.get_or_insert(error);
                return None;
            }
        }
        assert!(
            *entry.shape == *shape,
            "materialize: \"{}\" has the shape {shape:?}, its noise is for {:?}",
            entry.path,
            entry.shape
        );
        (entry.role != Role::Frozen).then_some(position)
    }

    /// Both members' values of an integer parameter: `[2, elements]`.
    fn integer_members<const D: usize>(
        &self,
        position: usize,
        value: Tensor<D, Int>,
        noise: IntegerNoise,
    ) -> Tensor<2, Int> {
        let (shape, elements) = (value.dims(), value.shape().num_elements());
        match self.perturbation.table.entries()[position].role {
            Role::LowRank { .. } => {
                // Every row of the matrix, looked up by both members.
                let rows = Tensor::<1, Int>::arange(0..shape[0] as i64, &value.device()).repeat_dim(0, 2);
                embedding(rows, value.reshape([shape[0], elements / shape[0]]), Some(noise), None, Rounding::Floor)
                    .reshape([2, elements])
            }
            _ => perturbed_vector(value.reshape([elements]), noise),
        }
    }
}

impl ModuleMapper for Materialize<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(position) = self.position(&param) else {
            return param;
        };
        let Self { perturbation, pair, member, .. } = *self;
        param.map(|value| {
            let shape = value.dims();
            let noise = self.floats[position].get_or_insert_with(|| {
                let (device, dtype) = (value.device(), value.dtype());
                let noise = perturbation.parameter(position).noise(pair, &shape, (&device, dtype));
                MatrixView::shape_flat(noise, shape).reshape([shape.iter().product::<usize>()])
            });
            let noise = noise.clone().reshape(shape);
            if member == 0 { value + noise } else { value - noise }
        })
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        let Some(position) = self.position(&param) else {
            return param;
        };
        let Some(noise) = self.perturbation.integer(position, PairRange::new(self.pair, 1)) else {
            return param;
        };
        let members = self.integers[position].take();
        let members = members.unwrap_or_else(|| self.integer_members(position, param.val(), noise));
        self.integers[position] = Some(members.clone());
        let member = self.member;
        param.map(|value| members.slice_dim(0, member..member + 1).reshape(value.dims()))
    }
}
