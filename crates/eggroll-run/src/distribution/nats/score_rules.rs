//! What scores of a run are like.

use super::config::NatsConfig;
use super::error::NatsError;
use crate::replay::Recorded;
use eggroll_core::ParameterKind;
use eggroll_train::{EvolutionStrategy, Fitness};

/// Integers up to this size are what they are in f32 too.
const EXACT: u32 = 1 << 24;

/// What scores of a run are like: which of them a result may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoreRules {
    pub tasks: usize,
    integers: bool,
    /// Whether signs of pairs make the same update.
    signs: bool,
}

impl ScoreRules {
    pub fn of(config: &NatsConfig, strategy: &EvolutionStrategy) -> Self {
        let of_signs =
            strategy.parameters().trained(ParameterKind::Float).next().is_none() && strategy.votes_are_signs();
        let signs = config.pair_signs && config.integers && config.tasks == 1 && of_signs;
        Self { tasks: config.tasks, integers: config.integers, signs }
    }

    /// The scores of `members` as they are sent: as signs if those make the same update. Scores that f32 would round are sent as they are, because
    /// whether all are equal is asked in f32.
    pub fn pack(&self, fitness: &Fitness, members: usize) -> Result<Recorded, NatsError> {
        let found = (fitness.integers().is_some(), fitness.values().len());
        let expected = (self.integers, members * self.tasks);
        if found != expected {
            let text = |(integers, count)| format!("{count} {} scores", if integers { "integer" } else { "float" });
            return Err(NatsError::Score { found: text(found), expected: text(expected) });
        }
        Ok(match fitness.integers() {
            Some(scores) if self.signs && scores.iter().all(|score| score.unsigned_abs() <= EXACT) => {
                Recorded::Signs(fitness.pair_signs(members))
            }
            _ => Recorded::all(fitness),
        })
    }

    /// Whether a result may have scores of this kind.
    pub fn allows(&self, scores: &Recorded) -> bool {
        match scores {
            Recorded::Floats(_) => !self.integers,
            Recorded::Integers(_) => self.integers,
            Recorded::Signs(_) => self.signs,
        }
    }

    /// Whether these are scores of so many members.
    pub fn fits(&self, scores: &Recorded, members: usize) -> bool {
        match scores {
            Recorded::Signs(signs) => signs.len() == members / 2,
            other => other.len() == members * self.tasks,
        }
    }
}
