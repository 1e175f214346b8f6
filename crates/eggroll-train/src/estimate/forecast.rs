//! The expected quality of an estimate, before anything is trained.

use crate::population::ParameterCredit;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use eggroll_core::{ParameterTable, Role};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The expected cosine between estimate and gradient, for every parameter: with its credit, and from mean scores.
///
/// Two independent halves of the pairs, `ĝ₁` and `ĝ₂`, separate signal from noise. `E⟨ĝ₁, ĝ₂⟩` is the squared length of the signal,
/// `|ĝ₁ + ĝ₂|²/4` that of the estimate; the cosine is the root of their ratio (see [`SplitHalf`](crate::SplitHalf)). The halves of an estimate by part
/// also give the signal of mean scores, whose own halves are mostly noise. With a cosine `c` from `N` members,
///
/// `c = 1/√(1 + d/N)`,
///
/// so four times the members about double a small cosine, and improve a large one less.
///
/// It does not account for other data, nor for uncredited effects of a layer's rows on other parts. Where scores of later steps count, the signal is that
/// of the discounted estimate. Its [`Display`](fmt::Display) is a table.
///
/// Made by [`EvolutionStrategy::forecast`](crate::EvolutionStrategy::forecast).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// Members that were evaluated.
    pub population: usize,
    /// Of every parameter that is trained, in the order of the model.
    pub parameters: Vec<ParameterForecast>,
    /// Of all together.
    pub all: ExpectedCosine,
}

/// The expected quality of a parameter's estimate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParameterForecast {
    /// The parameter.
    pub path: String,
    /// What it learns from, in words.
    pub credit: String,
    /// Its cosines.
    pub expected: ExpectedCosine,
}

/// Cosines of an estimate with the gradient: 0 where halves have nothing in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpectedCosine {
    /// Of the estimate as it is made.
    pub cosine: f64,
    /// Of the estimate from the same members' mean scores.
    pub by_mean: f64,
}

impl ExpectedCosine {
    /// Members that would double the cosine of the estimate as it is made; `None` for a cosine above ½, which cannot
    /// double.
    pub fn members_to_double(&self, population: usize) -> Option<usize> {
        let noise = |cosine: f64| 1.0 / (cosine * cosine) - 1.0;
        let factor = noise(self.cosine) / noise(2.0 * self.cosine);
        (self.cosine > 0.0 && 2.0 * self.cosine < 1.0).then(|| (population as f64 * factor).ceil() as usize)
    }
}

impl Forecast {
    /// From the halves of an estimate, and the halves of the estimate from mean scores.
    pub(crate) fn new<M: Module>(
        model: &M,
        (table, population): (&ParameterTable, usize),
        credits: &[ParameterCredit],
        halves: &[GradientsParams; 2],
        of_means: &[GradientsParams; 2],
    ) -> Self {
        let entries = table.entries();
        let mut sums = ForecastSums { table, halves, of_means, sums: vec![None; entries.len()] };
        model.visit(&mut sums);
        let mut all = Lengths::default();
        let parameter = |(position, lengths): (usize, Option<Lengths>)| {
            let lengths = lengths.filter(|_| entries[position].role != Role::Frozen)?;
            all.add(lengths);
            let (path, credit) = (entries[position].path.clone(), credits[position].to_string());
            Some(ParameterForecast { path, credit, expected: lengths.expected() })
        };
        let parameters = sums.sums.into_iter().enumerate().filter_map(parameter).collect();
        Self { population, parameters, all: all.expected() }
    }
}

/// Squared lengths of a parameter's estimates.
#[derive(Clone, Copy, Default)]
struct Lengths {
    /// The signal of the halves, times 4.
    signal: f64,
    estimate: f64,
    of_means: f64,
}

impl Lengths {
    fn add(&mut self, other: Self) {
        self.signal += other.signal;
        self.estimate += other.estimate;
        self.of_means += other.of_means;
    }

    fn expected(self) -> ExpectedCosine {
        let cosine = |squares: f64| {
            let ratio = self.signal / squares;
            if ratio > 0.0 { ratio.sqrt().min(1.0) } else { 0.0 }
        };
        ExpectedCosine { cosine: cosine(self.estimate), by_mean: cosine(self.of_means) }
    }
}

struct ForecastSums<'a> {
    table: &'a ParameterTable,
    halves: &'a [GradientsParams; 2],
    of_means: &'a [GradientsParams; 2],
    sums: Vec<Option<Lengths>>,
}

impl ModuleVisitor for ForecastSums<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(position) = self.table.position(param.id).filter(|at| self.sums[*at].is_none()) else {
            return;
        };
        let pair = |halves: &[GradientsParams; 2]| {
            let read =
                |half: &GradientsParams| Some(half.get::<D>(param.id)?.into_data().iter::<f64>().collect::<Vec<f64>>());
            Some((read(&halves[0])?, read(&halves[1])?))
        };
        let (Some((a, b)), Some((c, d))) = (pair(self.halves), pair(self.of_means)) else {
            return;
        };
        let squares = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a + b) * (a + b)).sum();
        let signal = 4.0 * a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>();
        self.sums[position] = Some(Lengths { signal, estimate: squares(&a, &b), of_means: squares(&c, &d) });
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.parameters.iter().map(|parameter| parameter.path.chars().count()).max().unwrap_or(0).max(9);
        writeln!(f, "{:<width$}  {:>8}  {:>8}  {:>13}  learns", "parameter", "cosine", "by mean", "for twice it")?;
        let line = |f: &mut fmt::Formatter<'_>, path: &str, expected: &ExpectedCosine, credit: &str| {
            let members = expected.members_to_double(self.population);
            let members = members.map_or_else(|| "-".to_owned(), |members| format!("{members} members"));
            let ExpectedCosine { cosine, by_mean } = expected;
            write!(f, "{path:<width$}  {cosine:>8.3}  {by_mean:>8.3}  {members:>13}  {credit}")
        };
        for parameter in &self.parameters {
            line(f, &parameter.path, &parameter.expected, &parameter.credit)?;
            writeln!(f)?;
        }
        line(f, "all", &self.all, &format!("from {} members", self.population))
    }
}
