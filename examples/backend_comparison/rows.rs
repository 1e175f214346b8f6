//! What is written to JSON and read back to be merged: one row for each backend, and the machines they ran on.

use super::args::ComparisonArgs;
use eggroll_examples::Failure;
use serde::{Deserialize, Serialize};
use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    pub machines: Vec<Machine>,
    pub rows: Vec<BackendRow>,
}

/// A machine and the build that ran there. Not its host name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub label: String,
    pub os: String,
    pub arch: String,
    pub cpus: usize,
    pub eggroll: String,
    /// `release` or `dev`, whose times mean less.
    pub profile: String,
}

/// One backend on one machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackendRow {
    pub label: String,
    pub backend: String,
    pub size: String,
    pub population: usize,
    pub rank: usize,
    pub generations: u64,
    /// Burn's name of the device.
    pub device: Option<String>,
    /// The driver's name of the hardware, or the CPU's instruction set.
    pub hardware: Option<String>,
    #[serde(flatten)]
    pub outcome: BackendOutcome,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum BackendOutcome {
    Ran(Box<Figures>),
    /// Compiled in, but without a device.
    Absent {
        reason: String,
    },
    /// Began its work and panicked, or computed wrong values.
    Failed {
        reason: String,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Largest absolute distance from the f64 oracle.
    pub max_error: f64,
    pub times: OperationTimes,
    pub training: Training,
    /// Of one generation of the training.
    pub work: WorkCounts,
    pub memory: Memory,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationTimes {
    pub inference_ms: f64,
    pub forward_ms: f64,
    pub estimate_ms: f64,
    pub forward_ratio: f64,
    pub estimate_ratio: f64,
    pub rounds: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Training {
    /// Mean fitness of the last generation.
    pub final_fitness: f64,
    pub generations_per_second: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkCounts {
    pub launches: u64,
    pub kernels: u64,
    pub host_reads: u64,
    /// Noise written to tensors.
    pub noise_bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// Noise kept between passes.
    pub noise_materialized_bytes: u64,
    pub peak_rss_bytes: Option<u64>,
    pub device_reserved_bytes: Option<u64>,
}

impl Machine {
    pub fn this(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            os: OS.to_owned(),
            arch: ARCH.to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            eggroll: env!("CARGO_PKG_VERSION").to_owned(),
            profile: if cfg!(debug_assertions) { "dev" } else { "release" }.to_owned(),
        }
    }
}

impl BackendRow {
    pub fn new(args: &ComparisonArgs, backend: String, outcome: BackendOutcome) -> Self {
        Self {
            label: args.label.clone(),
            backend,
            size: args.size.to_string(),
            population: args.population,
            rank: args.rank,
            generations: args.generations,
            device: None,
            hardware: None,
            outcome,
        }
    }
}

impl Comparison {
    /// All rows of files that were written earlier.
    pub fn merged(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut all = Self { machines: Vec::new(), rows: Vec::new() };
        for path in paths {
            let read = Self::read(path).map_err(|reason| format!("{}: {reason}", path.display()))?;
            for machine in read.machines {
                if !all.machines.contains(&machine) {
                    all.machines.push(machine);
                }
            }
            all.rows.extend(read.rows);
        }
        Ok(all)
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let read: Self =
            serde_json::from_slice(&fs::read(path)?).map_err(|error| format!("not a comparison: {error}"))?;
        if read.rows.is_empty() { Err("it has no rows".into()) } else { Ok(read) }
    }

    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(self)?;
        Ok(fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?)
    }

    /// Rows with names that tell them apart: the backend, with the machine's label where there is more than one, numbered
    /// where even that is not enough.
    pub fn named(&self) -> impl Iterator<Item = (String, &BackendRow)> {
        let labelled = self.rows.iter().any(|row| row.label != self.rows[0].label);
        let plain = move |row: &BackendRow| match labelled {
            true => format!("{}/{}", row.label, row.backend),
            false => row.backend.clone(),
        };
        self.rows.iter().enumerate().map(move |(index, row)| {
            let name = plain(row);
            match self.rows[..index].iter().filter(|before| plain(before) == name).count() {
                0 => (name, row),
                before => (format!("{name}#{}", before + 1), row),
            }
        })
    }

    pub fn ran(&self) -> impl Iterator<Item = (String, &BackendRow, &Figures)> {
        self.named().filter_map(|(name, row)| match &row.outcome {
            BackendOutcome::Ran(figures) => Some((name, row, figures.as_ref())),
            _ => None,
        })
    }

    pub fn absent(&self) -> impl Iterator<Item = (String, &str)> {
        self.named().filter_map(|(name, row)| match &row.outcome {
            BackendOutcome::Absent { reason } => Some((name, reason.as_str())),
            _ => None,
        })
    }

    pub fn failed(&self) -> impl Iterator<Item = (String, &str)> {
        self.named().filter_map(|(name, row)| match &row.outcome {
            BackendOutcome::Failed { reason } => Some((name, reason.as_str())),
            _ => None,
        })
    }
}
