//! Measurements.

use super::columns::Column;
use super::network::Size;
use serde::{Deserialize, Serialize};

/// A place of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridPlace {
    /// Of the network.
    pub size: Size,
    /// Members.
    pub population: usize,
    /// Of the noise, where it has one.
    pub rank: Option<usize>,
    /// What is timed.
    pub column: Column,
}

/// One measurement, ours or a peer's.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Whether it is a peer's.
    pub peer: bool,
    /// What was measured.
    #[serde(flatten)]
    pub place: GridPlace,
    /// Milliseconds of a pass.
    pub median_ms: f64,
    /// First quartile.
    pub q1_ms: f64,
    /// Third quartile.
    pub q3_ms: f64,
    /// Times the inference of the same library, size and population.
    pub ratio: Option<f64>,
    /// Milliseconds that products and draws take alone, by [`Rates`](super::Rates).
    pub modelled_ms: Option<f64>,
    /// Bytes of noise kept between passes.
    pub materialized_bytes: Option<u64>,
    /// Passes that the median is of.
    pub passes: Option<usize>,
}

impl Cell {
    /// Members evaluated in a second.
    pub fn samples_per_second(&self) -> f64 {
        1000.0 * self.place.population as f64 / self.median_ms
    }
}
