//! What is timed: plain inference, forwards of a population by noise, and estimates.

use super::network::{Network, Population, Size};
use burn::tensor::{Device, Distribution, Tensor};
use eggroll::core::{EggrollConfig, NoiseDistribution, NoiseSourceConfig, NoiserConfig, NoiserError, OpenEsConfig};
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// Elements of the noise table: 64 MiB.
const TABLE: usize = 1 << 24;
/// Bytes of cached noise at most.
const MOST_HELD: usize = 1 << 30;

/// One forward or estimate.
pub type Pass = Box<dyn FnMut()>;

/// A kind of pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// The network without noise.
    Inference,
    /// EGGROLL's forward, noise drawn in every pass.
    Fly,
    /// The same with Rademacher noise.
    FlyRademacher,
    /// EGGROLL's forward, noise kept.
    Cached,
    /// EGGROLL's forward, noise out of a table.
    Table,
    /// EGGROLL's gradient estimate, noise drawn in every pass.
    Estimate,
    /// OpenES's forward, noise drawn in every pass.
    OpenEsFly,
    /// The same with Rademacher noise.
    OpenEsRademacher,
}

/// A column with the rank of its noise, where it has one.
pub type Ranked = (Column, Option<usize>);

/// All columns for some ranks, plain inference first.
pub fn columns(ranks: &[usize], open_es: bool) -> Vec<Ranked> {
    let of_rank = [Column::Fly, Column::FlyRademacher, Column::Cached, Column::Table, Column::Estimate];
    let mut all = vec![(Column::Inference, None)];
    all.extend(ranks.iter().flat_map(|rank| of_rank.map(|column| (column, Some(*rank)))));
    if open_es {
        all.extend([(Column::OpenEsFly, None), (Column::OpenEsRademacher, None)]);
    }
    all
}

impl Column {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inference => "inference",
            Self::Fly => "fly",
            Self::FlyRademacher => "fly_rademacher",
            Self::Cached => "cached",
            Self::Table => "table",
            Self::Estimate => "estimate",
            Self::OpenEsFly => "open_es_fly",
            Self::OpenEsRademacher => "open_es_rademacher",
        }
    }

    /// Why the column is left out of this place of the grid, if it is.
    pub fn refusal(self, size: Size, members: usize, rank: Option<usize>) -> Option<String> {
        let [inputs, hidden, outputs] = size.widths();
        let held = 4 * (members / 2) * rank.unwrap_or(0) * (inputs + 2 * hidden + outputs);
        (self == Self::Cached && held > MOST_HELD)
            .then(|| format!("{} MiB of noise to hold, more than {}", held >> 20, MOST_HELD >> 20))
    }

    /// The pass for so many members, and the bytes of noise that are kept between passes.
    ///
    /// # Errors
    ///
    /// [`NoiserError`] for a rank of 0.
    pub fn pass(
        self,
        network: &Network,
        members: usize,
        rank: Option<usize>,
        device: &Device,
    ) -> Result<(Pass, u64), NoiserError> {
        let mut population = Population::new(network, members, &self.noiser(rank), self.source(), device)?;
        let held = population.materialized_bytes();
        let weights = Tensor::<1>::random([members / 2], Distribution::Default, device);
        let device = device.clone();
        let pass = move || {
            match self {
                Self::Inference => drop(black_box(population.inference())),
                Self::Estimate => drop(black_box(population.estimate(&weights))),
                _ => drop(black_box(population.forward())),
            }
            device.sync().expect("the device finishes its work");
        };
        Ok((Box::new(pass), held))
    }

    fn noiser(self, rank: Option<usize>) -> NoiserConfig {
        let distribution = match self {
            Self::FlyRademacher | Self::OpenEsRademacher => NoiseDistribution::Rademacher,
            _ => NoiseDistribution::Normal,
        };
        match self {
            Self::OpenEsFly | Self::OpenEsRademacher => OpenEsConfig::new().with_distribution(distribution).into(),
            _ => EggrollConfig::new().with_rank(rank.unwrap_or(1)).with_distribution(distribution).into(),
        }
    }

    fn source(self) -> NoiseSourceConfig {
        match self {
            Self::Cached => NoiseSourceConfig::Cached,
            Self::Table => NoiseSourceConfig::Table { len: TABLE },
            _ => NoiseSourceConfig::OnTheFly,
        }
    }
}
