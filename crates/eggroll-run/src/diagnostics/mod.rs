//! Diagnostics of a run:
//!
//! - [`diagnose`]: whether a model's values are sound;
//! - [`PairStatistics`]: whether σ fits the fitness of a generation;
//! - [`MemberStatistics`]: whether all members carry information;
//! - [`InputStatistics`]: whether activations do;
//! - [`SplitHalf`]: how much of an estimate is signal;
//! - [`gradient_cosine`]: how close it is to a true gradient;
//! - [`step_statistics`]: how far a step moves the model.
//!
//! The learner ([`EsTraining`](crate::EsTraining)) watches all but the last two if its configuration asks for diagnostics.

#[cfg(feature = "text")]
mod activations;
mod float;
mod inputs;
mod integer;
mod members;
mod report;
mod step;
mod values;

#[cfg(feature = "text")]
pub use activations::{ActivationStatistics, AttentionStatistics};
pub use eggroll_train::{PairStatistics, SplitHalf, gradient_cosine};
pub use float::FloatStatistics;
pub use inputs::InputStatistics;
#[cfg(feature = "text")]
pub(crate) use integer::entropy;
pub use integer::{IntegerStatistics, changed_share, integer_statistics};
pub use members::MemberStatistics;
pub use report::{Diagnosis, ParameterStatistics, diagnose};
pub use step::{StepSize, StepStatistics, step_statistics};
