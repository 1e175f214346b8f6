//! A row of a log.

use crate::error::RunError;
use eggroll_train::GenerationReport;
use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};

/// Column of a row's generation.
pub(super) const GENERATION: &str = "generation";
/// Column that tells training from validation.
pub(super) const SPLIT: &str = "split";

/// Named numbers of one generation, for [`JsonLines`](crate::JsonLines) and the other logs of this crate.
///
/// # Example
///
/// ```
/// use eggroll_run::LogRow;
///
/// let row = LogRow::training(7).with("loss", 0.25);
/// assert_eq!(serde_json::to_string(&row).unwrap(), r#"{"generation":7,"split":"train","loss":0.25}"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LogRow {
    pub(super) generation: u64,
    pub(super) split: &'static str,
    pub(super) numbers: Vec<(String, f64)>,
}

impl LogRow {
    /// A row of training without numbers.
    pub fn training(generation: u64) -> Self {
        Self { generation, split: "train", numbers: Vec::new() }
    }

    /// A row of the validation after a generation, without numbers.
    pub fn validation(generation: u64) -> Self {
        Self { split: "valid", ..Self::training(generation) }
    }

    /// Adds a number. In a table the name is a column, in TensorBoard a tag.
    pub fn with(mut self, name: impl Into<String>, number: f64) -> Self {
        self.numbers.push((name.into(), number));
        self
    }

    /// Refuses a name that is in the row twice, or is reserved for its generation or split.
    pub(super) fn check(&self) -> Result<(), RunError> {
        let mut taken = vec![GENERATION, SPLIT];
        for (name, _) in &self.numbers {
            if taken.contains(&name.as_str()) {
                return Err(RunError::LogColumn(name.clone()));
            }
            taken.push(name);
        }
        Ok(())
    }
}

/// The numbers of a report, by the names that the learner gives them too.
impl From<&GenerationReport> for LogRow {
    fn from(report: &GenerationReport) -> Self {
        Self::training(report.generation)
            .with("fitness_mean", report.fitness_mean)
            .with("fitness_best", report.fitness_best)
            .with("fitness_worst", report.fitness_worst)
            .with("non_finite_fitness", report.non_finite as f64)
            .with("sigma", report.sigma)
            .with("learning_rate", report.learning_rate)
    }
}

impl Serialize for LogRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.check().map_err(S::Error::custom)?;
        let mut map = serializer.serialize_map(Some(2 + self.numbers.len()))?;
        map.serialize_entry(GENERATION, &self.generation)?;
        map.serialize_entry(SPLIT, self.split)?;
        self.numbers.iter().try_for_each(|(name, number)| map.serialize_entry(name, number))?;
        map.end()
    }
}
