//! A run over NATS: where the server is, who this node is there, and what it does.

use crate::Failure;
use clap::{Args, ValueEnum};
use eggroll::nats::{ConnectOptions, NatsConfig, NatsError};
use eggroll::run::Error;
use std::path::PathBuf;
use std::{env, fs};

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Trains on the scores that workers send.
    Coordinator,
    /// Evaluates slices.
    Worker,
    /// The same run in one process.
    Alone,
    /// Removes the data of the run from the server.
    Remove,
}

/// A server with JetStream, and this node.
///
/// A token or a password comes from the environment, never from arguments, which other users of the machine can read:
/// EGGROLL_NATS_TOKEN, or EGGROLL_NATS_USER and EGGROLL_NATS_PASSWORD.
#[derive(Args, Clone, Debug)]
pub struct NatsArgs {
    /// The server: nats://host:port or tls://host:port.
    #[arg(long, default_value = "nats://127.0.0.1:4222")]
    nats: String,
    /// Name of this node. Default: derived from its process.
    #[arg(long)]
    node: Option<String>,
    /// Credentials file. Or else EGGROLL_NATS_TOKEN, or EGGROLL_NATS_USER and EGGROLL_NATS_PASSWORD.
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
    /// Share of slices that two workers evaluate, to find wrong scores.
    #[arg(long, default_value_t = 0.0)]
    audit: f64,
}

impl NatsArgs {
    /// The names of the options.
    pub const NAMES: [&str; 7] = ["nats", "node", "credentials", "ca", "cert", "cert-key", "audit"];

    /// The settings of a node in a run of this name; `version` says what the nodes have in common.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or a user without a password.
    pub fn config(&self, run: &str, version: String) -> Result<NatsConfig, Failure> {
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
        let config = NatsConfig::new(self.nats.clone(), run).with_audit(self.audit);
        let node = self.node.clone().unwrap_or_else(|| config.node.clone());
        Ok(NatsConfig { options, node, version, ..config })
    }
}

/// Whether a node ends because it was told to.
pub fn was_stopped(error: &Error) -> bool {
    matches!(NatsError::in_run(error), Some(NatsError::Stopped { .. }))
}
