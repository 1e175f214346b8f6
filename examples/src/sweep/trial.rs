//! One run of the program.

use super::space::Value;
use super::template::Template;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Digits of a key: 64 bits.
const KEY_DIGITS: usize = 16;

/// A configuration with a seed.
#[derive(Clone, Debug)]
pub struct Trial {
    /// A hash of everything that the program sees of the trial.
    pub key: String,
    pub settings: BTreeMap<String, Value>,
    pub seed: Option<u64>,
    /// The command, in which the trial's folder is still a place.
    pub words: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With a result.
    Finished,
    /// Without: it crashed, could not be started, or printed no objective.
    Failed,
    /// By us, when its time was up.
    TimedOut,
}

/// What is kept of a trial that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    pub key: String,
    pub command: Vec<String>,
    pub settings: BTreeMap<String, Value>,
    pub seed: Option<u64>,
    pub outcome: Outcome,
    /// The exit status, or why there is none.
    pub status: String,
    pub seconds: f64,
    pub objective: Option<f64>,
    /// The whole of the `RESULT` line.
    pub result: Option<serde_json::Value>,
    /// The end of what a trial without a result wrote to standard error.
    pub stderr: String,
}

impl Record {
    /// Judged by the number of this name in its result: the sweep may have been about another when it ended.
    pub fn judged_by(mut self, objective: &str) -> Self {
        if self.outcome == Outcome::Finished {
            self.objective = self.result.as_ref().and_then(|result| number(result, objective));
        }
        self
    }
}

/// A number of a result; keys of nested objects are joined by `/`.
pub fn number(result: &serde_json::Value, name: &str) -> Option<f64> {
    result.pointer(&format!("/{name}"))?.as_f64()
}

impl Trial {
    /// The trial of some settings.
    pub fn new(template: &Template, settings: &BTreeMap<String, Value>, seed: Option<u64>) -> Self {
        let (words, environment) = template.fill(settings, seed);
        let text = serde_json::to_string(&(&words, &environment)).expect("texts are JSON");
        let mut key: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        key.truncate(KEY_DIGITS);
        Self { key, settings: settings.clone(), seed, words, environment }
    }

    /// The settings as text, without the seed.
    pub fn configuration(&self) -> String {
        let settings: Vec<String> = self.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        settings.join(" ")
    }

    /// The settings as text.
    pub fn label(&self) -> String {
        let seed = self.seed.map_or(String::new(), |seed| format!(" seed={seed}"));
        self.configuration() + &seed
    }
}
