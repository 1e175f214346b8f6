//! Whether activations carry information: units that are always 0, and values at the ends of a bounded activation.

use burn::tensor::Tensor;
use eggroll_train::Population;
use serde::{Deserialize, Serialize};

/// With fewer rows, nothing is known about a unit.
const FEWEST_ROWS: usize = 8;
/// Share of units or values beyond which there is a warning.
const MOST: f32 = 0.5;
/// Values of at least this magnitude, if none is beyond 1, are at the end of an activation such as tanh.
const END: f32 = 0.99;

/// Statistics of one layer's inputs in the model without noise: after the first layer, the activations of earlier layers.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_run::diagnostics::InputStatistics;
///
/// let x = Tensor::<2>::ones([16, 4], &Device::flex()) * 30.0;
/// let saturated = InputStatistics::new("second.weight", x.clone().tanh());
/// assert_eq!(saturated.saturated, 1.0);
/// assert!(saturated.warnings()[0].starts_with("activations may be saturated"));
/// let dead = InputStatistics::new("second.weight", burn::tensor::activation::relu(-x));
/// assert!(dead.warnings()[0].starts_with("units may be dead"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputStatistics {
    /// Path of the layer's weight.
    pub path: String,
    /// Rows that were looked at.
    pub rows: usize,
    /// Share of units that are 0 in every row.
    pub dead: f32,
    /// Share of values of magnitude 0.99 or more, if no value is beyond 1; 0 otherwise.
    pub saturated: f32,
}

impl InputStatistics {
    /// The statistics of rows `[rows, d_input]`, read to the host.
    pub fn new(path: impl Into<String>, rows: Tensor<2>) -> Self {
        let ([rows, units], magnitudes) = (rows.dims(), rows.abs());
        let largest = magnitudes.clone().max_dim(0).into_data().iter::<f32>().collect::<Vec<_>>();
        let at_end: f32 = magnitudes.greater_equal_elem(END).float().sum().into_scalar();
        let bounded = largest.iter().all(|largest| *largest <= 1.0);
        let dead = largest.iter().filter(|largest| **largest == 0.0).count() as f32 / units.max(1) as f32;
        let saturated = if bounded { at_end / (rows * units).max(1) as f32 } else { 0.0 };
        Self { path: path.into(), rows, dead, saturated }
    }

    /// Statistics of all layers that an evaluation has [observed](Population::observe_inputs), without layers on rows that all members
    /// share, which are data.
    pub fn of_layers(population: &Population) -> Vec<Self> {
        let shared = population.shared_layers();
        let inputs = population.layer_inputs().into_iter().filter(|(path, _)| !shared.contains(path));
        inputs.map(|(path, rows)| Self::new(path, rows)).collect()
    }

    /// What is wrong, and what to do: more than half of the units dead, or of the values saturated, in eight rows or more.
    pub fn warnings(&self) -> Vec<String> {
        let Self { path, rows, dead, saturated } = self;
        let (of_units, of_values) = (100.0 * dead, 100.0 * saturated);
        let dead_units = format!(
            "units may be dead: {of_units:.1} % of the inputs of \"{path}\" are 0 in all {rows} rows. Unless they are data, lower the \
             learning rate, raise sigma, or use an activation with a slope below 0"
        );
        let at_end = format!(
            "activations may be saturated: {of_values:.1} % of the inputs of \"{path}\" are within 1 % of -1 or 1, where noise changes \
             little. Unless they are data, scale down the weights before them, use weight decay (adam_w), normalize inputs, or raise sigma"
        );
        let enough = *rows >= FEWEST_ROWS;
        let checks = [(enough && *dead > MOST, dead_units), (enough && *saturated > MOST, at_end)];
        checks.into_iter().filter(|(found, _)| *found).map(|(_, warning)| warning).collect()
    }
}
