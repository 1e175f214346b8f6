//! The command line.

use clap::{Parser, ValueEnum};
use eggroll::run::distribution::nats::{NatsAuth, NatsConfig, NatsConnection};
use std::path::PathBuf;

/// What a process does.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Role {
    /// Trains, with the fitness that workers send.
    Coordinator,
    /// Evaluates slices.
    Worker,
    /// The same run in one process.
    Alone,
    /// Removes what the server has of the run.
    Remove,
}

/// Trains a classifier of spirals on any number of machines, over a NATS server with JetStream.
#[derive(Parser, Debug)]
pub struct Args {
    #[arg(value_enum)]
    pub role: Role,
    /// The server: nats://host:port, or tls://host:port.
    #[arg(long, default_value = "nats://127.0.0.1:4222")]
    nats: String,
    /// Name of the run. A name that is there already goes on.
    #[arg(long, default_value = "spirals")]
    pub run: String,
    /// Name of this node, from its process unless given.
    #[arg(long)]
    node: Option<String>,
    /// User and password.
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with_all = ["token", "credentials"])]
    user: Option<String>,
    /// Token.
    #[arg(long, conflicts_with = "credentials")]
    token: Option<String>,
    /// File of credentials.
    #[arg(long)]
    credentials: Option<PathBuf>,
    /// Certificates of authorities, PEM.
    #[arg(long)]
    ca: Option<PathBuf>,
    /// This node's certificate, PEM.
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// Its key, PEM.
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
    /// Members of a slice.
    #[arg(long, default_value_t = 64)]
    slice: usize,
    /// Share of slices that the coordinator checks.
    #[arg(long, default_value_t = 0.0)]
    verify: f64,
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
    pub out: PathBuf,
    /// Generations between two checkpoints.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
}

impl Args {
    /// The settings of the run.
    pub fn config(&self) -> NatsConfig {
        let auth = match (&self.user, &self.token, &self.credentials) {
            (Some(user), ..) => {
                let (user, password) = user.split_once(':').unwrap_or((user, ""));
                NatsAuth::UserPassword { user: user.to_owned(), password: password.to_owned() }
            }
            (_, Some(token), _) => NatsAuth::Token(token.clone()),
            (.., Some(path)) => NatsAuth::Credentials(path.clone()),
            _ => NatsAuth::None,
        };
        let connection = NatsConnection {
            servers: self.nats.clone(),
            auth,
            require_tls: self.nats.starts_with("tls://"),
            root_certificates: self.ca.clone(),
            client_certificate: self.cert.clone().zip(self.key.clone()),
        };
        let config = NatsConfig::new(self.nats.clone(), self.run.clone());
        let node = self.node.clone().unwrap_or_else(|| config.node.clone());
        NatsConfig { connection, node, slice_members: self.slice, verify_share: self.verify, ..config }
    }
}
