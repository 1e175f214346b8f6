//! The command line.

use clap::{Parser, ValueEnum};
use eggroll::nats::{ConnectOptions, NatsConfig};
use eggroll_examples::Failure;
use eggroll_examples::interrupt::HELP;
use std::path::PathBuf;
use std::{env, fs};

/// What a process does.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Role {
    /// Trains on the fitness that workers send.
    Coordinator,
    /// Evaluates slices.
    Worker,
    /// The same run in one process.
    Alone,
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
    /// Credentials file.
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
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
    /// Share of slices that two workers evaluate, to find one whose scores are wrong.
    #[arg(long, default_value_t = 0.0)]
    audit: f64,
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

impl DistributedArgs {
    /// Folder of the coordinator's checkpoints.
    pub fn folder(&self) -> PathBuf {
        self.out.join(&self.run)
    }

    /// The settings of the run.
    pub fn config(&self) -> Result<NatsConfig, Failure> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let mut options = match (&self.credentials, variable("EGGROLL_NATS_TOKEN"), variable("EGGROLL_NATS_USER")) {
            (Some(path), ..) => {
                let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
                ConnectOptions::with_credentials(&text).map_err(|error| format!("{}: {error}", path.display()))?
            }
            (None, Some(token), None) => ConnectOptions::with_token(token),
            (None, None, Some(user)) => {
                let password = variable("EGGROLL_NATS_PASSWORD")
                    .ok_or("EGGROLL_NATS_USER is set, and EGGROLL_NATS_PASSWORD is not")?;
                ConnectOptions::with_user_and_password(user, password)
            }
            (None, None, None) => ConnectOptions::new(),
            (None, Some(_), Some(_)) => {
                return Err("EGGROLL_NATS_TOKEN and EGGROLL_NATS_USER are set: unset one".into());
            }
        };
        options = options.require_tls(self.nats.starts_with("tls://"));
        if let Some(path) = &self.ca {
            options = options.add_root_certificates(path.clone());
        }
        if let Some((certificate, key)) = self.cert.clone().zip(self.cert_key.clone()) {
            options = options.add_client_certificate(certificate, key);
        }
        let config = NatsConfig::new(self.nats.clone(), self.run.clone()).with_audit(self.audit);
        Ok(NatsConfig {
            options,
            node: self.node.clone().unwrap_or_else(|| config.node.clone()),
            // The data are a function of their number.
            version: format!("spirals 1, {} points", self.points),
            slice_members: self.slice,
            ..config
        })
    }
}
