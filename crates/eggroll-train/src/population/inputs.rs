//! Rows that layers are given by members without noise: to project estimates onto, or to look at.

use super::Population;
use crate::config::InputProjection;
use burn::tensor::Tensor;
use eggroll_core::scope::Use;
use eggroll_core::sync::locked;

impl Population {
    /// Asks the next [`evaluate`](Self::evaluate) to note what layers are given, for [`layer_inputs`](Self::layer_inputs): it calls its
    /// closure once more, for two members without noise, whose fitness is dropped.
    pub fn observe_inputs(&self) {
        locked(&self.observed_rows).get_or_insert_default();
    }

    /// The rows `[rows, d_input]` that linear layers and convolutions were given for one member without noise, by the path of their
    /// weight, once an evaluation has [observed](Self::observe_inputs) them. Without layers that are used more than once.
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
        let observed = locked(&self.observed_rows);
        let entries = self.perturbation.table.entries().iter().zip(observed.iter().flatten());
        let inputs = entries.filter_map(|(entry, used)| match used {
            Use::Shared(x) => Some((entry.path.clone(), (**x).clone())),
            _ => None,
        });
        inputs.collect()
    }

    /// Paths of the weights of layers that all members gave the same rows (`forward_shared`), once there was an evaluation.
    pub fn shared_layers(&self) -> Vec<String> {
        let uses = locked(&self.uses);
        let entries = self.perturbation.table.entries().iter().zip(uses.iter().flatten());
        let shared = entries.filter(|(_, used)| matches!(used, Use::Shared(_)));
        shared.map(|(entry, _)| entry.path.clone()).collect()
    }

    /// Scores two members without noise, if their rows are asked for.
    #[track_caller]
    pub(super) fn note_inputs<E>(&self, score: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let projects = self.input_projection == InputProjection::Unperturbed;
        let observes = locked(&self.observed_rows).is_some();
        if !projects && !observes {
            return Ok(());
        }
        let mut scored = Ok(());
        let score = || scored = score();
        let rows = match projects {
            true => self.perturbation.unperturbed_rows(score),
            false => self.perturbation.observed_rows(score),
        };
        scored?;
        if observes {
            *locked(&self.observed_rows) = Some(rows.clone());
        }
        if projects {
            *locked(&self.unperturbed_rows) = rows;
        }
        Ok(())
    }
}
