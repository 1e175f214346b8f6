//! The command line.

use clap::Parser;
use eggroll::core::DeviceName;
use eggroll_examples::bounds::{self, MEMBERS, RANK, at_most};
use eggroll_examples::throughput::{Peer, Size};
use eggroll_examples::trace::TraceArgs;
use std::path::{Path, PathBuf};

/// Times the forward pass and the estimate of populations against plain inference.
#[derive(Parser, Debug)]
pub struct ThroughputArgs {
    /// Networks: small 4-256-2, medium 64-512-64, large 256-2048-256, or three widths such as 64-1024-64.
    #[arg(long, value_delimiter = ',', default_value = "small,medium,large")]
    pub sizes: Vec<Size>,
    /// Population size, even.
    #[arg(long, value_delimiter = ',', default_value = "512,2048", value_parser = at_most(MEMBERS))]
    pub populations: Vec<usize>,
    /// Ranks of EGGROLL's noise.
    #[arg(long, value_delimiter = ',', default_value = "1,4", value_parser = at_most(RANK))]
    pub ranks: Vec<usize>,
    /// Seconds for each size and population; slow columns run three times.
    #[arg(long, default_value_t = 4.0)]
    pub seconds: f64,
    /// Backend: flex, ndarray, cuda, rocm, vulkan, metal or wgpu, if compiled in; cuda:1 is the second card.
    #[arg(long, default_value_t)]
    pub backend: DeviceName,
    /// Leave out OpenES, which is slow for large networks.
    #[arg(long)]
    pub no_open_es: bool,
    /// Also run the JAX peer script: see benches/peers/README.md.
    #[arg(long)]
    pub jax: bool,
    /// Let the peer use a faster generator and smaller batches.
    #[arg(long, requires = "jax")]
    pub jax_tuned: bool,
    /// Python with the packages of benches/peers/requirements.txt.
    #[arg(long, default_value = "python3", requires = "jax")]
    pub python: PathBuf,
    #[command(flatten)]
    pub trace: TraceArgs,
}

impl ThroughputArgs {
    pub fn validate(&self) -> Result<(), String> {
        if let Some(odd) = self.populations.iter().find(|n| **n < 2 || !n.is_multiple_of(2)) {
            return Err(format!("a population must be even and at least 2, not {odd}"));
        }
        if self.ranks.contains(&0) {
            return Err("a rank must be at least 1, not 0".into());
        }
        if !(self.seconds > 0.0 && self.seconds.is_finite()) {
            return Err(format!("seconds must be positive, not {}", self.seconds));
        }
        bounds::seconds(self.seconds)?;
        if self.sizes.is_empty() || self.populations.is_empty() || self.ranks.is_empty() {
            return Err("sizes, populations and ranks need at least one value each".into());
        }
        Ok(())
    }

    /// The JAX peer with the same cells, if it is to be run.
    pub fn peer(&self) -> Option<Peer> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/peers/jax_forward.py");
        let list = |values: &[usize]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let sizes: Vec<_> = self.sizes.iter().map(ToString::to_string).collect();
        let mut options = vec!["--sizes".to_owned(), sizes.join(",")];
        options.extend(["--populations".into(), list(&self.populations), "--ranks".into(), list(&self.ranks)]);
        if !self.jax_tuned {
            options.push("--untuned".into());
        }
        if self.no_open_es {
            options.extend(["--columns".into(), "inference,fly,cached,estimate".into()]);
        }
        self.jax.then(|| Peer::new(&self.python, &script, options))
    }
}
