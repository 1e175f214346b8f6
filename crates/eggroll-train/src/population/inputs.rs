//! What layers are given by members without noise: to project estimates onto, or to look at.

use super::credits::Credits;
use super::row_check::RowCheck;
use super::rows::ScoreParts;
use super::{MemberChunk, Population, are_same};
use crate::fitness::{Fitness, Scores};
use burn::module::ParamId;
use burn::tensor::Tensor;
use eggroll_core::ops::Input;
use eggroll_core::scope::{Inputs, ParameterUse};
use eggroll_core::sync::locked;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Population {
    /// Asks the next [`evaluate`](Self::evaluate) to note what layers are given, for [`layer_inputs`](Self::layer_inputs). It calls its
    /// closure once more, for two members without noise, whose fitness is dropped.
    pub fn observe_inputs(&self) {
        self.observes.store(true, Relaxed);
    }

    /// Notes the rows that the model without noise gives matrices, `[parts · k, d_input]`, the `k` rows of part 0 first: for an evaluation loop that asks
    /// no scope. Scores of this many parts are [credited](crate::Credit) by them; matrices without rows learn from the mean.
    pub fn note_rows(&self, rows: Vec<(ParamId, Tensor<2>)>) {
        let table = &self.perturbation.table;
        let mut inputs = vec![Inputs::default(); table.entries().len()];
        let mut checks = vec![RowCheck::Unknown; table.entries().len()];
        for (id, rows) in rows {
            if let Some(position) = table.position(id) {
                inputs[position].uses.push(Input::Rows(rows));
                checks[position] = RowCheck::OfParts;
            }
        }
        *locked(&self.inputs) = Some(inputs);
        *locked(&self.rows) = Some(checks.into());
    }

    /// The rows `[rows, d_input]` that linear layers and convolutions were given for one member without noise, by the path of their
    /// weight. They are known once an evaluation has [observed](Self::observe_inputs) them. Layers that are used more than once are
    /// left out.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::SgdConfig;
    /// use burn::tensor::{Device, Tensor};
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::MlpConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// let device = Device::flex();
    /// let model = MlpConfig::new(vec![2, 8, 1]).init(&device);
    /// let population = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).init(&model).ask();
    /// population.observe_inputs();
    /// let x = Tensor::<2>::ones([5, 2], &device);
    /// population.evaluate(|members| members.mean(model.forward(members.repeat(x.clone()))));
    /// let inputs = population.layer_inputs();
    /// assert_eq!(inputs.len(), 2);
    /// assert_eq!(inputs[1].1.dims(), [5, 8]); // behind the first layer and its activation
    /// ```
    pub fn layer_inputs(&self) -> Vec<(String, Tensor<2>)> {
        let noted = locked(&self.inputs);
        let entries = self.perturbation.table.entries().iter().zip(noted.iter().flatten());
        let inputs = entries.filter_map(|(entry, inputs)| match inputs.uses.as_slice() {
            [Input::Rows(x)] => Some((entry.path.clone(), x.clone())),
            _ => None,
        });
        inputs.collect()
    }

    /// Paths of the weights of layers to which all members gave the same rows (`forward_shared`), once there was an
    /// evaluation.
    pub fn shared_layers(&self) -> Vec<String> {
        let uses = locked(&self.uses);
        let entries = self.perturbation.table.entries().iter().zip(uses.iter().flatten());
        let shared = entries.filter(|(_, used)| matches!(used, ParameterUse::Shared(_)));
        shared.map(|(entry, _)| entry.path.clone()).collect()
    }

    /// What every parameter learns from with this fitness: the score of each part, or the mean.
    pub fn credits(&self, fitness: &Fitness) -> Credits {
        Credits::new(self, fitness)
    }

    /// Scores two members without noise, if the inputs of layers are needed. If members have a state, or the closure asked which members they are, it
    /// scores others as well. Estimates are projected only onto rows that are the same for all. For unchecked rows it determines [whose](RowCheck)
    /// they are; `chunk` is one that fits into memory.
    #[track_caller]
    pub(super) fn note_inputs<R: Scores, E>(
        &self,
        shape: &[usize],
        chunk: MemberChunk,
        has_state: bool,
        mut score: impl FnMut(&MemberChunk) -> Result<R, E>,
    ) -> Result<(), E> {
        let parts = ScoreParts { count: shape.iter().product(), steps: if shape.len() == 2 { shape[1] } else { 1 } };
        let projects = self.credit.projects(parts.count);
        if !projects && !self.observes.load(Relaxed) {
            return Ok(());
        }
        let mut run = |first: usize| {
            let chunk = MemberChunk { first, count: 2 };
            let (scored, noted) = self.perturbation.run_unperturbed(chunk.pairs().first, || score(&chunk));
            scored.map(|_| noted)
        };
        let mut noted = run(self.first)?;
        let known = self.row_checks();
        if projects && self.members > 2 && (has_state || noted.depends_on_members) {
            // The second pair too: data may repeat itself. All of them as long as nothing is known.
            let (second, last) = (self.first + 2, self.first + self.members - 2);
            let step = if self.knows_rows { (last - second).max(2) } else { 2 };
            for first in (second..=last).step_by(step) {
                compare(&mut noted.inputs, &run(first)?.inputs);
            }
        }
        if projects {
            let mut checks = known.map_or_else(|| vec![RowCheck::Unknown; noted.inputs.len()], |known| known.to_vec());
            mark(&mut checks, &noted.inputs, RowCheck::ByMember);
            let mut unknown = self.unknown_rows(&checks, parts, &noted.inputs);
            if !unknown.is_empty() {
                let mut again = run(self.first)?.inputs;
                compare(&mut again, &noted.inputs);
                mark(&mut checks, &again, RowCheck::Redrawn);
                unknown.retain(|at| checks[*at].allows_parts());
            }
            if !unknown.is_empty() {
                self.look_at_rows(&mut checks, &unknown, parts, &noted.inputs, chunk, |chunk, moved| {
                    let scores = self.perturbation.run_moved(chunk.pairs(), moved, || score(&chunk))?;
                    Ok(R::read(vec![scores]))
                })?;
            }
            *locked(&self.rows) = Some(checks.into());
        }
        // Members that share rows have them in the forward with noise as well.
        let uses = locked(&self.uses);
        for (inputs, used) in noted.inputs.iter_mut().zip(uses.iter().flatten()) {
            if let (ParameterUse::Shared(shared), [Input::Rows(x)]) = (used, inputs.uses.as_slice()) {
                inputs.differ |= !are_same(shared, x);
            }
        }
        if let Some(checks) = locked(&self.rows).as_mut().filter(|_| projects) {
            mark(Arc::make_mut(checks), &noted.inputs, RowCheck::ByMember);
        }
        let mut all = locked(&self.inputs);
        // From an earlier evaluation: rows that differ between the two are not projected onto in this generation.
        if let Some(earlier) = &*all {
            compare(&mut noted.inputs, earlier);
        }
        *all = Some(noted.inputs);
        Ok(())
    }
}

/// Notes which parameters other members gave something else.
fn compare(inputs: &mut [Inputs], others: &[Inputs]) {
    for (inputs, other) in inputs.iter_mut().zip(others) {
        let same = |(a, b): (&Input, &Input)| a.is_same(b);
        let alike = inputs.uses.len() == other.uses.len() && inputs.uses.iter().zip(&other.uses).all(same);
        inputs.differ |= other.differ || !alike;
    }
}

/// Notes why the rows of parameters differ, where nothing else is noted already.
fn mark(checks: &mut [RowCheck], inputs: &[Inputs], why: RowCheck) {
    let of_parts = checks.iter_mut().zip(inputs).filter(|(check, _)| check.allows_parts());
    of_parts.filter(|(_, inputs)| inputs.differ).for_each(|(check, _)| *check = why);
}
