//! How far a step has moved a model.

use burn::module::{Module, Param};
use burn::tensor::{DType, Tensor, TensorData};
use eggroll_core::ParameterKind;
use eggroll_core::paths::{ModulePath, PathVisitor, visit_with_paths};
use eggroll_train::EvolutionStrategy;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Values that one task sums up, fixed so that sums do not depend on the number of threads.
const PART: usize = 1 << 16;

/// How far a step has moved the trained float parameters of a model, as [`step_statistics`] measures it. Prints as a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepStatistics {
    /// By parameter, in traversal order.
    pub parameters: Vec<StepSize>,
    /// All parameters together.
    pub total: StepSize,
}

/// How far a step has moved one parameter, or all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepSize {
    /// Path of the parameter; `all` for all of them.
    pub path: String,
    /// Number of values.
    pub count: usize,
    /// Share of values whose bits have changed, from 0 to 1. If it is far below 1, steps are lost to rounding, as in half precision.
    pub changed: f64,
    /// Root mean square of the change, `√(Σ(θ′ − θ)²/n)`.
    pub step: f64,
    /// The same in units of the noise, `√(Σ((θ′ − θ)/σ_p)²/n)`. `σ_p` is the noise scale of parameter `p`: `σ`, or σ times [the parameter's
    /// spread](eggroll_train::NoiseScale). With SGD, the default scale of the estimate and a fitness without information, it equals the
    /// learning rate.
    pub to_noise: f64,
    /// The step relative to the root mean square of the values before it, `√(Σ(θ′ − θ)²/Σθ²)`; 0 without a step.
    pub to_weights: f64,
}

/// How far the last step of `strategy` has moved a model from `before` to `after`. Reads both models to the host, one parameter at a time,
/// in one pass.
///
/// # Panics
///
/// Panics if a model does not have the parameters of the strategy, with the path.
///
/// # Example
///
/// ```
/// use burn::optim::SgdConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_run::diagnostics::step_statistics;
/// use eggroll_train::EvolutionStrategyConfig;
///
/// # fn main() -> Result<(), eggroll_train::Error> {
/// let mut model = LinearConfig::new(64, 32).init(&Device::flex());
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_learning_rate(0.1);
/// let mut strategy = config.try_init(&model)?;
///
/// let before = model.clone(); // tensors are shared
/// let population = strategy.ask();
/// let nothing_to_learn: Vec<f32> = (0..256).map(|member| (member as f32 * 1.6).sin()).collect();
/// strategy.tell(&mut model, population, nothing_to_learn.into())?;
///
/// let step = step_statistics(&strategy, &before, &model);
/// println!("{step}");
/// assert!(step.total.changed > 0.99);
/// assert!((step.total.to_noise / 0.1 - 1.0).abs() < 0.2); // the learning rate
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn step_statistics<M: Module>(strategy: &EvolutionStrategy, before: &M, after: &M) -> StepStatistics {
    let table = strategy.parameters();
    let sigma = strategy.report().map_or_else(|| strategy.sigma(), |report| report.sigma);
    let [before, after] = [before, after].map(|model| {
        let mut collector = TrainedCollector { strategy, found: vec![None; table.entries().len()] };
        visit_with_paths(model, &mut collector);
        collector.found
    });
    let mut parameters = Vec::new();
    let mut total = Total::default();
    for (position, (entry, (before, after))) in table.entries().iter().zip(before.into_iter().zip(after)).enumerate() {
        if !entry.is_trained_as(ParameterKind::Float) {
            continue;
        }
        let (Some(before), Some(after)) = (before, after) else {
            panic!("statistics of a step: a model has no \"{}\" of shape {:?}", entry.path, entry.shape);
        };
        let sums = StepSums::of(before.into_data(), after.into_data(), &entry.path);
        let noise = table.sigma_of(position, sigma);
        total.add(sums, noise);
        parameters.push(sums.size(entry.path.clone(), sums.steps / (noise * noise)));
    }
    StepStatistics { parameters, total: total.sums.size("all".to_owned(), total.to_noise) }
}

/// The trained float parameters of a model, flat, by position.
struct TrainedCollector<'a> {
    strategy: &'a EvolutionStrategy,
    found: Vec<Option<Tensor<1>>>,
}

impl PathVisitor for TrainedCollector<'_> {
    fn visit_float<const D: usize>(&mut self, _path: &ModulePath, param: &Param<Tensor<D>>) {
        let table = self.strategy.parameters();
        let Some(position) = table.position(param.id) else {
            return;
        };
        let (entry, shape) = (&table.entries()[position], param.lazy_shape());
        if entry.is_trained_as(ParameterKind::Float) && *entry.shape == *shape {
            self.found[position] = Some(param.val().reshape([shape.num_elements()]));
        }
    }
}

/// Sums over values.
#[derive(Clone, Copy, Debug, Default)]
struct StepSums {
    count: usize,
    changed: usize,
    /// Sum of squares of steps.
    steps: f64,
    /// Sum of squares of values.
    squares: f64,
}

#[derive(Default)]
struct Total {
    sums: StepSums,
    /// Sum of squares of steps in units of the noise.
    to_noise: f64,
}

impl StepSums {
    fn of(before: TensorData, after: TensorData, path: &str) -> Self {
        let (found, expected) = (after.dtype(), before.dtype());
        assert!(
            found == expected,
            "statistics of a step: \"{path}\" is of type {found:?} after it, {expected:?} before"
        );
        match expected {
            DType::F32 => {
                let [before, after] = [&before, &after].map(|data| data.as_slice::<f32>().expect("f32"));
                Self::of_slices(before, after, |a, b| a.to_bits() != b.to_bits(), |value| f64::from(*value))
            }
            // Exact: half precision fits.
            _ => {
                let [before, after] = [before, after].map(TensorData::convert::<f64>);
                let [before, after] = [&before, &after].map(|data| data.as_slice::<f64>().expect("f64"));
                Self::of_slices(before, after, |a, b| a.to_bits() != b.to_bits(), |value| *value)
            }
        }
    }

    fn of_slices<T: Sync>(
        before: &[T],
        after: &[T],
        differ: impl Fn(&T, &T) -> bool + Sync,
        number: impl Fn(&T) -> f64 + Sync,
    ) -> Self {
        let parts = before.par_chunks(PART).zip(after.par_chunks(PART)).map(|(before, after)| {
            let mut sums = Self { count: before.len(), ..Self::default() };
            for (before, after) in before.iter().zip(after) {
                let (from, to) = (number(before), number(after));
                sums.changed += usize::from(differ(before, after));
                sums.steps += (to - from) * (to - from);
                sums.squares += from * from;
            }
            sums
        });
        let parts: Vec<Self> = parts.collect();
        parts.into_iter().fold(Self::default(), Self::plus)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            changed: self.changed + other.changed,
            steps: self.steps + other.steps,
            squares: self.squares + other.squares,
        }
    }

    /// `to_noise` is the sum of squares of steps in units of the noise.
    fn size(self, path: String, to_noise: f64) -> StepSize {
        let Self { count, changed, steps, squares } = self;
        let of_count = |sum: f64| sum / count.max(1) as f64;
        StepSize {
            path,
            count,
            changed: of_count(changed as f64),
            step: of_count(steps).sqrt(),
            to_noise: of_count(to_noise).sqrt(),
            to_weights: if steps == 0.0 { 0.0 } else { (steps / squares).sqrt() },
        }
    }
}

impl Total {
    fn add(&mut self, sums: StepSums, noise: f64) {
        self.sums = self.sums.plus(sums);
        self.to_noise += sums.steps / (noise * noise);
    }
}

/// One line of a table.
impl fmt::Display for StepSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, count, step, to_noise, to_weights, .. } = self;
        let changed = 100.0 * self.changed;
        write!(f, "{path:<28} {count:>10} {changed:>6.2} % {step:>9.2e} {to_noise:>9.2e} {to_weights:>10.2e}")
    }
}

impl fmt::Display for StepStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [path, count, changed] = ["parameter", "values", "changed"];
        let [step, noise, weights] = ["step RMS", "/ noise", "/ weights"];
        writeln!(f, "{path:<28} {count:>10} {changed:>8} {step:>9} {noise:>9} {weights:>10}")?;
        self.parameters.iter().chain([&self.total]).try_for_each(|size| writeln!(f, "{size}"))
    }
}
