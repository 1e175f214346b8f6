//! The report of a step.

use crate::host::Changed;
use eggroll_core::messages::shown;
use eggroll_train::GenerationReport;
use std::fmt;

/// A model's continuation of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The text.
    pub text: String,
    /// Its tokens.
    pub tokens: usize,
    /// Whether the model ended it, rather than the limit.
    pub stopped: bool,
}

/// A step of fine-tuning.
#[derive(Clone, Copy, Debug)]
pub struct StepReport {
    /// The generation of the strategy.
    pub generation: GenerationReport,
    /// Seconds of the step.
    pub seconds: f64,
    /// Tokens that members read and wrote; a prompt counts for each member. With several replicas, this number and the shares of items, pairs
    /// and completions cover only the members asked by this one. They are 0 if others asked all.
    pub tokens: usize,
    /// Share of items with equal scores of all members, from which nothing is learned.
    pub tied_items: f64,
    /// Share of pairs of opposite members and items whose two scores differ.
    pub disagreement: f64,
    /// Share of completions that the limit of tokens cut off; `None` where nothing was generated.
    pub truncated: Option<f64>,
    /// Weights whose packed value the step has changed.
    pub changed: Changed,
}

impl StepReport {
    /// Tokens per second of the whole step.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.seconds
    }
}

/// In one line.
impl fmt::Display for StepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GenerationReport { generation, fitness_mean, fitness_best, stepped, non_finite, .. } = self.generation;
        let [mean, best] = [fitness_mean, fitness_best].map(|score| shown(score, 4));
        write!(f, "step {}: score {mean:.4}, best {best:.4}", generation + 1)?;
        write!(f, ", {:.1} s, {:.0} tokens/s", self.seconds, self.tokens_per_second())?;
        if non_finite > 0 {
            write!(f, ", {non_finite} members not finite")?;
        }
        if let Some(truncated) = self.truncated.filter(|share| *share > 0.0) {
            write!(f, ", {:.0} % cut off", 100.0 * truncated)?;
        }
        if self.tied_items > 0.0 {
            write!(f, ", {:.0} % of prompts tied", 100.0 * self.tied_items)?;
        }
        match self.changed.share() {
            _ if !stepped => write!(f, ", no step: all scores are equal"),
            Some(share) => write!(f, ", {:.1} % of weights changed", 100.0 * share),
            None => Ok(()),
        }
    }
}
