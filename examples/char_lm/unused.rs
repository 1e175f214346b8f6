//! Options and settings that the model or other options make useless.

use super::args::{CharLmArgs, ModelName, ModelSettings};
use eggroll_examples::observers::ObserverArgs;
use eggroll_examples::options::Given;

/// Options next to --resume.
const WITH_RESUME: [&str; 11] = [
    "resume",
    "out",
    "backend",
    "seconds",
    "generations",
    "samples",
    "sample-bytes",
    "temperature",
    "min-p",
    "presence-penalty",
    "prompt",
];
/// Settings of the integer models alone.
const OF_INTEGERS: [&str; 7] = ["sigma-shift", "alpha", "votes", "levels", "optimizer", "integer-rate", "group-size"];
/// Settings of the float models alone.
const OF_FLOATS: [&str; 3] = ["sigma", "learning-rate", "forecast"];
/// Options of a run of several generations.
const OF_RUNS: [&str; 4] = ["out", "seconds", "generations", "samples"];
/// How a sample is drawn.
const OF_SAMPLES: [&str; 5] = ["sample-bytes", "temperature", "min-p", "presence-penalty", "prompt"];

impl CharLmArgs {
    /// Refuses options that the model or other options make useless.
    pub fn refuse_unused(&self, given: &Given) -> Result<(), String> {
        if self.resume {
            let used = [&WITH_RESUME[..], &ObserverArgs::NAMES].concat();
            given.refuse_all_but(&used, "with --resume, which keeps the settings of the run")?;
        }
        if self.samples == 0 && !self.resume {
            given.refuse(&OF_SAMPLES, "with --samples 0")?;
        }
        if self.forecast {
            let unused = [&OF_RUNS[..], &OF_SAMPLES, &ObserverArgs::NAMES].concat();
            given.refuse(&unused, "with --forecast, which ends after one generation")?;
        }
        match self.model.by_token() {
            _ if self.resume => {}
            true => given.refuse(&["group-size"], "without --credit mean: all members read the same sequences")?,
            false => given.refuse(&["sequences"], "with --credit mean: each pair reads separate bytes")?,
        }
        match self.model.model {
            _ if self.resume => Ok(()),
            ModelName::Gru => {
                given.refuse(&OF_INTEGERS, "with a float model")?;
                given.refuse(&["heads", "context"], "with a recurrent model")
            }
            ModelName::FloatTransformer => given.refuse(&OF_INTEGERS, "with a float model"),
            ModelName::Integer => {
                given.refuse(&OF_FLOATS, "with an integer model")?;
                given.refuse(&["heads", "context"], "with a recurrent model")
            }
            ModelName::Transformer => given.refuse(&OF_FLOATS, "with an integer model"),
        }
    }
}

impl ModelSettings {
    /// Fields that the model has no use for.
    pub fn unused(&self) -> Vec<&'static str> {
        let of_model: &[&str] = match self.model {
            ModelName::Integer => &["heads", "context", "sigma", "learning_rate"],
            ModelName::Transformer => &["sigma", "learning_rate"],
            ModelName::Gru => {
                &["heads", "context", "levels", "optimizer", "integer_rate", "sigma_shift", "alpha", "votes"]
            }
            ModelName::FloatTransformer => &["levels", "optimizer", "integer_rate", "sigma_shift", "alpha", "votes"],
        };
        let of_credit = if self.by_token() { "group_size" } else { "sequences" };
        [of_model, &[of_credit]].concat()
    }
}
