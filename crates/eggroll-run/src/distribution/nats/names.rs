//! Names of a run's streams and subjects on the server.

use super::config::NatsConfig;
use super::protocol::Manifest;

/// Names of streams and subjects.
#[derive(Clone, Debug)]
pub(super) struct StreamNames {
    pub results: String,
    pub fitness: String,
    pub checkpoints: String,
    run: String,
}

impl StreamNames {
    pub fn of(config: &NatsConfig) -> Self {
        let run = &config.run;
        let [results, fitness, checkpoints] =
            ["results", "fitness", "checkpoints"].map(|what| format!("eggroll-{run}-{what}"));
        Self { results, fitness, checkpoints, run: run.clone() }
    }

    pub fn work_subject(&self, node: &str) -> String {
        format!("eggroll.{}.work.{node}", self.run)
    }

    pub fn fitness_subject(&self) -> String {
        format!("eggroll.{}.fitness", self.run)
    }

    /// The subject of a node's results: a server's permissions can hold every node to its own.
    pub fn result_subject(&self, node: &str) -> String {
        format!("eggroll.{}.result.{node}", self.run)
    }

    /// The subject of a node's signs of life.
    pub fn status_subject(&self, node: &str) -> String {
        format!("eggroll.{}.status.{node}", self.run)
    }

    pub fn manifest_subject(&self) -> String {
        format!("eggroll.{}.checkpoint.latest", self.run)
    }

    /// Which run this is.
    pub fn label_subject(&self) -> String {
        format!("eggroll.{}.checkpoint.label", self.run)
    }

    pub fn part_subject(&self, manifest: &Manifest, part: u32) -> String {
        format!("eggroll.{}.checkpoint.{}.{:016x}.{part}", self.run, manifest.generation, manifest.draft)
    }

    /// All that belongs to checkpoints.
    pub fn checkpoint_subjects(&self) -> String {
        format!("eggroll.{}.checkpoint.>", self.run)
    }
}
