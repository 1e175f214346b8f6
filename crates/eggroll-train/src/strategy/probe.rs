//! The effect of different noise scales on a model, measured.

use super::EvolutionStrategy;
use crate::config::RunningSettings;
use crate::error::{ConfigError, Error, TellError};
use crate::fitness::Fitness;
use crate::population::Population;
use crate::report::or_nan;
use burn::module::Module;
use eggroll_core::ParameterKind;
use eggroll_core::messages::shown;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A noise scale so small that members equal the model.
const NONE: f64 = 1e-30;
/// Least signal-to-noise ratio of a recommended sigma, if any sigma reaches it.
const ENOUGH: f64 = 1.0;

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
    #[serde(deserialize_with = "or_nan")]
    pub mean: f64,
    /// Standard deviation of these scores.
    #[serde(deserialize_with = "or_nan")]
    pub deviation: f64,
    /// Members whose score is NaN or infinite; the following fields leave out their pairs.
    pub non_finite: usize,
    /// Share of pairs whose two members have different scores, from 0 to 1; the others carry no information.
    pub differing_pairs: f64,
    /// Signal-to-noise ratio of the scores, `Σ_q o_q² / Σ_q e_q²` over pairs. `o_q = (f₊ − f₋)/2` is the odd part of a pair's scores, `σ⟨E_q, ∇f⟩`
    /// up to terms of third order; an estimate uses nothing else. `e_q = (f₊ + f₋)/2 − f(θ)` is the even part: curvature, steps of a score of few
    /// values, and the noise of a random score. 0 if no pair differs, NaN if `f(θ)` is not finite.
    #[serde(deserialize_with = "or_nan")]
    pub signal_to_noise: f64,
}

impl SigmaProbe {
    /// The noise scale to begin with: the largest with a signal-to-noise ratio of at least 1, or the one with the highest ratio if none has.
    /// `None` if no pair of finite scores differs, or the model's own score is not finite; printed, the probe says which.
    ///
    /// A larger sigma is less sensitive to the steps of a score, and to rounding. Above the recommended one, the scores of a pair
    /// reflect curvature more than the slope at the model.
    pub fn recommended(&self) -> Option<f64> {
        let signals = || self.sigmas.iter().filter(|probed| probed.signal_to_noise > 0.0);
        let enough = signals().rfind(|probed| probed.signal_to_noise >= ENOUGH);
        let highest = || signals().max_by(|a, b| a.signal_to_noise.total_cmp(&b.signal_to_noise));
        enough.or_else(highest).map(|probed| probed.sigma)
    }
}

impl ProbedSigma {
    /// `score` is that of the model without noise.
    fn new(sigma: f64, fitness: &Fitness, score: f64) -> Self {
        let members = fitness.values().len() / fitness.tasks();
        let scores: Vec<f64> = (0..members).map(|member| fitness.score(member)).collect();
        let finite = |pair: &&[f64]| pair.iter().all(|score| score.is_finite());
        let (mut odd, mut even, mut differing) = (0.0, 0.0, 0);
        for pair in scores.chunks_exact(2).filter(finite) {
            let [plus, minus] = [pair[0], pair[1]];
            odd += ((plus - minus) / 2.0).powi(2);
            even += ((plus + minus) / 2.0 - score).powi(2);
            differing += usize::from(plus != minus);
        }
        let signal_to_noise = match odd > 0.0 {
            _ if !score.is_finite() => f64::NAN,
            true => odd / even.max(f64::MIN_POSITIVE),
            false => 0.0,
        };
        Self {
            sigma,
            mean: fitness.mean(),
            deviation: fitness.deviation(),
            non_finite: scores.iter().filter(|score| !score.is_finite()).count(),
            differing_pairs: differing as f64 / (members / 2) as f64,
            signal_to_noise,
        }
    }
}

impl fmt::Display for SigmaProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "     sigma    mean score     deviation   not finite   differing pairs   signal to noise")?;
        let recommended = self.recommended();
        for probed in &self.sigmas {
            let ProbedSigma { sigma, mean, deviation, non_finite, differing_pairs, signal_to_noise } = probed;
            let mark = if recommended == Some(*sigma) { "  <- recommended" } else { "" };
            let (mean, pairs) = (shown(*mean, 5), 100.0 * differing_pairs);
            writeln!(
                f,
                "{sigma:>10.3e} {mean:>13.5} {deviation:>13.5} {non_finite:>12} {pairs:>15.1} % {signal_to_noise:>17.3e}{mark}"
            )?;
        }
        let any = |found: fn(&ProbedSigma) -> bool| self.sigmas.iter().any(found);
        match recommended {
            Some(_) => Ok(()),
            None if any(|probed| probed.signal_to_noise.is_nan()) => {
                writeln!(
                    f,
                    "the score of the model without noise is NaN or infinite, so nothing can be compared with it: \
                     fix the score or the model"
                )
            }
            None if any(|probed| probed.non_finite > 0) => {
                writeln!(
                    f,
                    "no pair of finite scores differs, and some scores are NaN or infinite: use smaller sigmas, or \
                     fix the score"
                )
            }
            None => {
                writeln!(f, "no pair differs: use larger sigmas, more members, or a score with more distinct values")
            }
        }
    }
}

impl EvolutionStrategy {
    /// Evaluates the population of the coming generation under each noise scale, with the same noise. For each it measures mean and
    /// spread of the scores, the share of pairs that differ, and the share of slope in the scores. Changes neither the strategy nor the
    /// model; costs one evaluation for each sigma, and one of the first pair.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if there is no sigma, one is not positive, or no float parameter is trained;
    /// [`TellError::FitnessLength`](crate::TellError::FitnessLength) if `evaluate` returns the fitness of another population.
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
        if self.table.trained(ParameterKind::Float).next().is_none() {
            return Err(ConfigError::Probe("this strategy trains none").into());
        }
        self.check_model(model)?;
        let mut probe = self.clone();
        let mut fitness = |sigma: f64, members: usize| -> Result<Fitness, Error> {
            probe.set_settings(RunningSettings { sigma: Some(sigma), ..self.settings })?;
            let fitness = evaluate(&probe.ask().slice(0..members));
            let (found, tasks) = (fitness.values().len(), fitness.tasks());
            match found == members * tasks {
                true => Ok(fitness),
                false => Err(TellError::FitnessLength { found, tasks, population: members }.into()),
            }
        };
        let score = fitness(NONE, 2)?.score(0);
        let probed = |sigma: f64| Ok(ProbedSigma::new(sigma, &fitness(sigma, self.config.population_size)?, score));
        let sigmas = sigmas.into_iter().map(probed).collect::<Result<_, Error>>()?;
        Ok(SigmaProbe { sigmas })
    }
}
