//! The effect of different noise scales on a model, measured.

use super::EvolutionStrategy;
use crate::config::RunningSettings;
use crate::error::{ConfigError, Error};
use crate::estimate::SplitHalf;
use crate::fitness::Fitness;
use crate::population::Population;
use burn::module::Module;
use eggroll_core::{ParameterKind, Role};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A recommended sigma has at least this share of the largest signal-to-noise ratio.
const ENOUGH: f64 = 0.8;

/// The populations of one model under several noise scales, as [`probe_sigma`](EvolutionStrategy::probe_sigma) measures them. Printed, it
/// is a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SigmaProbe {
    /// One entry for each noise scale, in ascending order.
    pub sigmas: Vec<ProbedSigma>,
}

/// One population of a [`SigmaProbe`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbedSigma {
    /// The noise scale.
    pub sigma: f64,
    /// Mean of the members' finite scores; NaN if there is none.
    pub mean: f64,
    /// Standard deviation of these scores.
    pub deviation: f64,
    /// Share of pairs whose two members have different scores, from 0 to 1: the others say nothing.
    pub differing_pairs: f64,
    /// Signal-to-noise ratio of the estimated gradient ([`SplitHalf::signal_to_noise`]); 0 if there is none.
    pub signal_to_noise: f64,
}

impl SigmaProbe {
    /// The noise scale to begin with: the smallest whose signal-to-noise ratio is at least 80 % of the largest. `None` if no gradient
    /// has any signal.
    ///
    /// A larger sigma smooths the score more, and so lets a score of few values (an accuracy, a return of 0 or 1) differ between the
    /// members of a pair; a smaller one biases the gradient less. The ratio has a relative error of about `1/√n` for `n`
    /// parameters: compare probes of several seeds or batches where it decides.
    pub fn recommended(&self) -> Option<f64> {
        let largest = self.sigmas.iter().map(|probed| probed.signal_to_noise).fold(0.0, f64::max);
        let enough = self.sigmas.iter().find(|probed| probed.signal_to_noise >= ENOUGH * largest);
        enough.filter(|_| largest > 0.0).map(|probed| probed.sigma)
    }
}

impl fmt::Display for SigmaProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "     sigma    mean score     deviation   differing pairs   signal to noise")?;
        let recommended = self.recommended();
        for probed in &self.sigmas {
            let ProbedSigma { sigma, mean, deviation, differing_pairs, signal_to_noise } = probed;
            let mark = if recommended == Some(*sigma) { "  <- recommended" } else { "" };
            let pairs = 100.0 * differing_pairs;
            writeln!(f, "{sigma:>10.3e} {mean:>13.5} {deviation:>13.5} {pairs:>15.1} % {signal_to_noise:>17.4}{mark}")?;
        }
        match recommended {
            Some(_) => Ok(()),
            None => writeln!(f, "no sigma gives a signal: use more members, a score of more values, or other sigmas"),
        }
    }
}

impl EvolutionStrategy {
    /// Evaluates the population of the coming generation under each noise scale, with the same noise, and measures the information for
    /// an update: mean and spread of the scores, share of pairs that differ, signal-to-noise ratio of the gradient. Changes neither
    /// the strategy nor the model; costs one evaluation and one estimate for each sigma.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if there is no sigma, one is not positive, or no float parameter is trained; otherwise as
    /// [`gradient`](Self::gradient).
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::SgdConfig;
    /// use burn::tensor::{Device, Tensor};
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// # fn main() -> Result<(), eggroll_train::Error> {
    /// let device = Device::flex();
    /// let model = LinearConfig::new(4, 2).init(&device);
    /// let x = Tensor::<2>::ones([8, 4], &device);
    /// let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).try_init(&model)?;
    /// let probe = strategy.probe_sigma(&model, [0.001, 0.01, 0.1, 1.0], |population| {
    ///     population.evaluate(|members| -members.mean((model.forward_shared(x.clone()) - 1.0).square()))
    /// })?;
    /// println!("{probe}");
    /// assert!(probe.recommended().is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn probe_sigma<M: Module>(
        &self,
        model: &M,
        sigmas: impl IntoIterator<Item = f64>,
        mut evaluate: impl FnMut(&Population) -> Fitness,
    ) -> Result<SigmaProbe, Error> {
        let mut sigmas: Vec<f64> = sigmas.into_iter().collect();
        sigmas.sort_by(f64::total_cmp);
        if sigmas.is_empty() {
            return Err(ConfigError::Probe("no sigma was given").into());
        }
        let acts =
            |entry: &eggroll_core::ParameterEntry| entry.kind == ParameterKind::Float && entry.role != Role::Frozen;
        if !self.table.entries().iter().any(acts) {
            return Err(ConfigError::Probe("this strategy trains none").into());
        }
        let mut probe = self.clone();
        let mut probed = |sigma: f64| {
            probe.set_settings(RunningSettings { sigma: Some(sigma), ..self.settings })?;
            let population = probe.ask();
            let fitness = evaluate(&population);
            let halves = probe.gradient_halves(model, &population, &fitness)?;
            let split = halves.and_then(|halves| SplitHalf::new(model, &halves));
            Ok(ProbedSigma {
                sigma,
                mean: fitness.mean(),
                deviation: fitness.deviation(),
                differing_pairs: 1.0 - fitness.tied_pairs(),
                signal_to_noise: split.map_or(0.0, |split| split.signal_to_noise()),
            })
        };
        let sigmas = sigmas.into_iter().map(&mut probed).collect::<Result<_, Error>>()?;
        Ok(SigmaProbe { sigmas })
    }
}
