//! The command line, and the backends of this build.

use clap::Parser;
use eggroll::core::DeviceName;
use eggroll_examples::bounds::{MEMBERS, RANK, at_most};
use eggroll_examples::options::Given;
use eggroll_examples::throughput::Size;
use eggroll_examples::trace::TraceArgs;
use std::env::consts::{ARCH, OS};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs the same workload on every available backend and prints one table.
#[derive(Parser, Debug)]
pub struct ComparisonArgs {
    /// Folder for comparison.json, comparison.svg and report.html.
    #[arg(long, default_value = "runs/backend_comparison")]
    pub out: PathBuf,
    /// Backends to run. Default: all that are compiled in.
    #[arg(long, value_delimiter = ',')]
    pub backends: Vec<DeviceName>,
    /// Network of passes: small 4-256-2, medium 64-512-64, large 256-2048-256, or three widths.
    #[arg(long, default_value_t = Size::MEDIUM)]
    pub size: Size,
    /// Population size of the forward pass and the estimate, even.
    #[arg(long, default_value_t = 512, value_parser = at_most(MEMBERS))]
    pub population: usize,
    /// Rank of EGGROLL's noise.
    #[arg(long, default_value_t = 1, value_parser = at_most(RANK))]
    pub rank: usize,
    /// Generations of training.
    #[arg(long, default_value_t = 20)]
    pub generations: u64,
    /// Seconds of forward passes and estimates on each backend.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Seconds after which a backend is given up.
    #[arg(long, default_value_t = 600.0)]
    pub limit: f64,
    /// Folder of MNIST's files. Default: data/mnist.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/mnist"), hide_default_value = true)]
    pub data: PathBuf,
    /// Name of this machine, to tell rows apart after a merge.
    #[arg(long, default_value_t = format!("{OS}-{ARCH}"))]
    pub label: String,
    /// Merge these JSON files into one comparison instead of computing.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub merge: Vec<PathBuf>,
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Run this backend in this process: what the program starts for each.
    #[arg(long, hide = true, requires = "row")]
    pub only: Option<DeviceName>,
    /// Where its row is written.
    #[arg(long, hide = true, requires = "only")]
    pub row: Option<PathBuf>,
}

impl ComparisonArgs {
    /// Refuses settings of a measurement where files are merged.
    pub fn refuse_unused(&self, given: &Given) -> Result<(), String> {
        match self.merge.is_empty() {
            true => Ok(()),
            false => {
                given.refuse(&["trace"], "with --merge, which measures nothing")?;
                given.refuse_all_but(&["merge", "out"], "with --merge, which measures nothing")
            }
        }
    }

    pub fn validate(&self) -> Result<(), String> {
        if self.population < 2 || !self.population.is_multiple_of(2) {
            return Err(format!("the population must be even and at least 2, not {}", self.population));
        }
        if self.rank == 0 || self.generations == 0 {
            let (rank, generations) = (self.rank, self.generations);
            return Err(format!("rank and generations must be at least 1, not {rank} and {generations}"));
        }
        if self.seconds <= 0.0 || Duration::try_from_secs_f64(self.seconds).is_err() {
            return Err(format!("seconds must be positive, not {}", self.seconds));
        }
        if Duration::try_from_secs_f64(self.limit).map_or(true, |limit| limit.is_zero()) {
            return Err(format!("the limit must be positive, not {} s", self.limit));
        }
        if self.label.trim().is_empty() {
            return Err("the label is empty".into());
        }
        Ok(())
    }

    /// The arguments of the process that runs one backend and writes its row. Every backend has a separate trace.
    pub fn of_child(&self, backend: DeviceName, row: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = [
            ("--only", backend.to_string()),
            ("--size", self.size.to_string()),
            ("--population", self.population.to_string()),
            ("--rank", self.rank.to_string()),
            ("--generations", self.generations.to_string()),
            ("--seconds", self.seconds.to_string()),
            ("--label", self.label.clone()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.into(), value.into()])
        .collect();
        words.extend(["--data".into(), self.data.clone().into(), "--row".into(), row.into()]);
        if let Some(trace) = &self.trace.trace {
            let extension = trace.extension().unwrap_or_default().to_string_lossy();
            let separate = trace.with_extension(format!("{}.{extension}", backend.to_string().replace(':', "-")));
            // What is no file, /dev/null for one, takes all of them.
            let trace = if trace.is_file() || !trace.exists() { separate } else { trace.clone() };
            let generations = self.trace.trace_generations.to_string();
            words.extend(["--trace".into(), trace.into(), "--trace-generations".into(), generations.into()]);
            words.extend(self.trace.trace_synchronize.then(|| "--trace-synchronize".into()));
        }
        words
    }

    /// The backends to run.
    pub fn chosen(&self) -> Result<Vec<DeviceName>, String> {
        let compiled: Vec<DeviceName> = DeviceName::compiled().collect();
        let mut chosen = Vec::new();
        for backend in if self.backends.is_empty() { &compiled } else { &self.backends } {
            if !backend.is_compiled() {
                let names: Vec<String> = compiled.iter().map(DeviceName::to_string).collect();
                let names = names.join(", ");
                return Err(format!(
                    "this build has no backend {backend}: build with --features {backend} (it has: {names})"
                ));
            }
            if !chosen.contains(backend) {
                chosen.push(*backend);
            }
        }
        if chosen.is_empty() { Err("no backend is compiled in: build with --features flex".into()) } else { Ok(chosen) }
    }
}
