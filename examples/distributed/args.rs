//! The command line.

use clap::{Parser, ValueEnum};
use eggroll::run::distribution::nats::{NatsAuth, NatsConfig, NatsConnection, NatsError, Trust};
use eggroll_examples::interrupt::HELP;
use std::path::PathBuf;

/// What a process does.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Role {
    /// Trains on the fitness that workers send.
    Coordinator,
    /// Evaluates slices.
    Worker,
    /// The same run in one process.
    Alone,
    /// Creates the keys of the run, and exits.
    Keys,
    /// Removes the data of the run from the server.
    Remove,
}

/// Trains a classifier of spirals on any number of machines, over a NATS server with JetStream.
///
/// A token or a password comes from the environment, never from arguments, which other users of the machine can read:
/// EGGROLL_NATS_TOKEN, or EGGROLL_NATS_USER and EGGROLL_NATS_PASSWORD.
#[derive(Parser, Debug)]
#[command(after_help = HELP)]
pub struct DistributedArgs {
    #[arg(value_enum)]
    pub role: Role,
    /// The server: nats://host:port, or tls://host:port.
    #[arg(long, default_value = "nats://127.0.0.1:4222")]
    nats: String,
    /// Name of the run. An existing run on the server is continued.
    #[arg(long, default_value = "spirals")]
    pub run: String,
    /// Name of this node. Default: derived from its process.
    #[arg(long)]
    node: Option<String>,
    /// Folder with the run's keys, which the coordinator creates. On another machine: the key file of the worker.
    #[arg(long, default_value = "runs/distributed/keys")]
    keys: PathBuf,
    /// Workers that get separate keys: RUN.NODE.key in the folder of keys.
    #[arg(long, value_name = "NODE,NODE", value_delimiter = ',')]
    nodes: Vec<String>,
    /// Do not trust workers: each of --nodes has its own key, the coordinator checks a share of slices, and fitness is shaped by ranks. Use it on
    /// all nodes.
    #[arg(long)]
    untrusted: bool,
    /// File that contains a token.
    #[arg(long, value_name = "FILE", conflicts_with = "credentials")]
    token_file: Option<PathBuf>,
    /// Credentials file.
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Allow sending a token or password to another host without encryption.
    #[arg(long)]
    allow_plain: bool,
    /// Certificates of the certificate authorities, PEM.
    #[arg(long)]
    ca: Option<PathBuf>,
    /// This node's certificate, PEM.
    #[arg(long, requires = "cert_key")]
    cert: Option<PathBuf>,
    /// Its key, PEM.
    #[arg(long, requires = "cert")]
    cert_key: Option<PathBuf>,
    /// Members of a slice.
    #[arg(long, default_value_t = 64)]
    slice: usize,
    /// Share of slices that the coordinator checks. Default: 0, or 0.05 with --untrusted.
    #[arg(long)]
    verify: Option<f64>,
    /// Members of a generation.
    #[arg(long, default_value_t = 1024)]
    pub population: usize,
    #[arg(long, default_value_t = 300)]
    pub generations: u64,
    /// Points of the data.
    #[arg(long, default_value_t = 384)]
    pub points: usize,
    /// Hidden units.
    #[arg(long, default_value_t = 32)]
    pub width: usize,
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Folder of the coordinator's checkpoints.
    #[arg(long, default_value = "runs/distributed")]
    out: PathBuf,
    /// Generations between two checkpoints.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
}

/// What the log-likelihood of a label can be.
const SCORES: std::ops::RangeInclusive<f64> = -1e6..=0.0;

impl DistributedArgs {
    /// Folder of the coordinator's checkpoints.
    pub fn folder(&self) -> PathBuf {
        self.out.join(&self.run)
    }

    /// Whether one score has to be bounded in what it can do.
    pub fn shapes_by_rank(&self) -> bool {
        self.untrusted
    }

    /// The settings of the run.
    pub fn config(&self) -> Result<NatsConfig, NatsError> {
        let auth = match (&self.token_file, &self.credentials) {
            (Some(path), _) => NatsAuth::token_file(path)?,
            (_, Some(path)) => NatsAuth::Credentials(path.clone()),
            _ => NatsAuth::from_environment()?,
        };
        let connection = NatsConnection {
            servers: self.nats.clone(),
            auth,
            require_tls: self.nats.starts_with("tls://"),
            allow_plain: self.allow_plain,
            root_certificates: self.ca.clone(),
            client_certificate: self.cert.clone().zip(self.cert_key.clone()),
        };
        let config = NatsConfig::new(self.nats.clone(), self.run.clone());
        let node = self.node.clone().unwrap_or_else(|| config.node.clone());
        let trust = if self.untrusted { Trust::Untrusted { scores: SCORES } } else { Trust::Trusted };
        Ok(NatsConfig {
            connection,
            node,
            trust,
            keys: self.keys.clone(),
            nodes: self.nodes.clone(),
            // The data are a function of their number.
            version: format!("spirals 1, {} points", self.points),
            slice_members: self.slice,
            verify_share: self.verify,
            ..config
        })
    }
}
