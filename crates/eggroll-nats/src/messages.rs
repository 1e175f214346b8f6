//! Messages between nodes.

use crate::error::NatsError;
use crate::run_id::RunId;
use eggroll_train::{Fitness, RunningSettings};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A slice of a population, in the work queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    pub generation: u64,
    pub slice: u32,
    pub first: u32,
    pub members: u32,
    pub settings: Settings,
    /// Digest of the coordinator's parameters, if a comparison is due.
    pub digest: Option<String>,
    /// The node that has evaluated this slice already: another one must evaluate it again.
    pub not: Option<String>,
}

/// Settings of a running strategy, which must be the same on all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    sigma: Option<f64>,
    learning_rate: Option<f64>,
}

impl From<RunningSettings> for Settings {
    fn from(settings: RunningSettings) -> Self {
        Self { sigma: settings.sigma, learning_rate: settings.learning_rate }
    }
}

/// A worker's message to the coordinator, which answers with a [`Reply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// Are you there?
    Hello,
    /// The scores of a slice.
    Scores { generation: u64, slice: u32, scores: Scores },
    /// The score of a slice has failed.
    Failed { generation: u64, slice: u32, error: String },
}

/// A coordinator's answer: the message has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// When its log was made: a new log counts places from 1 again.
    pub log_made: i64,
    /// Place of the last record of the log that it knows.
    pub log_end: u64,
    /// The generation that it is at.
    pub generation: u64,
}

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// The scores of a generation, cut into parts that fit a message.
    Scores { generation: u64, part: u32, parts: u32, logged: Logged },
    /// The run is over before this generation, unless more follows.
    End { generation: u64 },
}

/// A generation in the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    pub settings: Settings,
    /// Digest of the coordinator's parameters before the generation, if a comparison is due.
    pub digest: Option<String>,
    pub scores: Scores,
}

/// Scores of some members, `[tasks, members]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    pub values: Values,
    pub tasks: u32,
    pub steps: u32,
    /// Digests of the rows of layers, by parameter: several if slices were given different rows.
    pub rows: Vec<Vec<u32>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Values {
    Floats(Vec<f32>),
    Integers(Vec<i32>),
}

/// Compares every bit, except in NaN.
impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Floats(a), Self::Floats(b)) => {
                let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                a.len() == b.len() && a.iter().zip(b).all(same)
            }
            (Self::Integers(a), Self::Integers(b)) => a == b,
            _ => false,
        }
    }
}

impl Values {
    pub fn len(&self) -> usize {
        match self {
            Self::Floats(values) => values.len(),
            Self::Integers(values) => values.len(),
        }
    }

    fn split(&self, count: usize) -> Vec<Self> {
        match self {
            Self::Floats(values) => values.chunks(count).map(|part| Self::Floats(part.to_vec())).collect(),
            Self::Integers(values) => values.chunks(count).map(|part| Self::Integers(part.to_vec())).collect(),
        }
    }
}

impl Scores {
    /// The scores of `fitness`, which must belong to `members` members.
    pub fn of(fitness: &Fitness, members: usize, rows: Vec<u32>) -> Result<Self, NatsError> {
        let (count, tasks) = (fitness.values().len(), fitness.tasks());
        if count != tasks * members {
            return Err(NatsError::Score {
                found: format!("{count} scores of {tasks} tasks"),
                expected: format!("one for each task (Fitness::with_tasks) and each of {members} members"),
            });
        }
        let values = match fitness.integers() {
            Some(scores) => Values::Integers(scores.to_vec()),
            None => Values::Floats(fitness.values().to_vec()),
        };
        let rows = if rows.is_empty() { Vec::new() } else { vec![rows] };
        Ok(Self { values, tasks: tasks as u32, steps: fitness.steps() as u32, rows })
    }

    pub fn into_fitness(self) -> Fitness {
        let fitness = match self.values {
            Values::Floats(values) => Fitness::from(values),
            Values::Integers(values) => Fitness::from(values),
        };
        fitness.with_tasks(self.tasks as usize).with_steps(self.steps as usize)
    }

    /// These scores of `members` members, if they fit a message with `limit` bytes for scores.
    ///
    /// # Errors
    ///
    /// [`NatsError::SliceBytes`].
    pub fn fitting(self, members: u32, limit: usize) -> Result<Self, NatsError> {
        let bytes = 5 * (self.values.len() + self.rows.iter().map(Vec::len).sum::<usize>());
        match bytes > limit {
            true => Err(NatsError::SliceBytes { members: members as usize, bytes, limit }),
            false => Ok(self),
        }
    }

    /// Joins the scores of a population's slices, in order, to the scores of all members.
    ///
    /// # Errors
    ///
    /// [`NatsError::Score`] if slices have scores of different kinds.
    pub fn join(slices: Vec<Self>) -> Result<Self, NatsError> {
        let kind = |scores: &Self| {
            let kind = if matches!(scores.values, Values::Floats(_)) { "float" } else { "integer" };
            format!("{} {kind} scores of each member, {} steps", scores.tasks, scores.steps)
        };
        let first = &slices[0];
        let (expected, tasks, steps) = (kind(first), first.tasks, first.steps);
        if let Some(other) = slices.iter().map(kind).find(|kind| *kind != expected) {
            return Err(NatsError::Score { found: other, expected });
        }
        let mut rows: Vec<Vec<u32>> = slices.iter().flat_map(|scores| scores.rows.clone()).collect();
        rows.sort();
        rows.dedup();
        let count = tasks as usize;
        let floats: Option<Vec<&[f32]>> = slices.iter().map(|scores| scores.values.floats()).collect();
        let values = match floats {
            Some(floats) => Values::Floats(by_task(&floats, count)),
            None => Values::Integers(by_task(
                &slices.iter().filter_map(|scores| scores.values.integers()).collect::<Vec<_>>(),
                count,
            )),
        };
        Ok(Self { values, tasks, steps, rows })
    }

    /// Parts of at most `bytes` bytes each; the first has the rows.
    pub fn split(&self, bytes: usize) -> Vec<Self> {
        let count = (bytes / 5).saturating_sub(self.rows.iter().map(Vec::len).sum()).max(1);
        let mut rows = self.rows.clone();
        let part = |values| Self { values, rows: std::mem::take(&mut rows), ..*self };
        self.values.split(count).into_iter().map(part).collect()
    }

    /// The first score that differs from `own`.
    pub fn difference(&self, own: &Self) -> String {
        let text = |scores: &Self, at: usize| match &scores.values {
            Values::Floats(values) => values.get(at).map_or_else(String::new, |value| format!("{value:?}")),
            Values::Integers(values) => values.get(at).map_or_else(String::new, |value| value.to_string()),
        };
        let at = (0..self.values.len().max(own.values.len())).find(|at| text(self, *at) != text(own, *at));
        match at {
            Some(at) => format!("score {at} is {}, and {} here", text(self, at), text(own, at)),
            None => "layers were given other rows than here".to_owned(),
        }
    }

    /// Appends the next part.
    pub fn extend(&mut self, part: Self) {
        match (&mut self.values, part.values) {
            (Values::Floats(all), Values::Floats(more)) => all.extend(more),
            (Values::Integers(all), Values::Integers(more)) => all.extend(more),
            // No coordinator writes this; the number of scores tells.
            _ => {}
        }
    }
}

impl Values {
    fn floats(&self) -> Option<&[f32]> {
        if let Self::Floats(values) = self { Some(values) } else { None }
    }

    fn integers(&self) -> Option<&[i32]> {
        if let Self::Integers(values) = self { Some(values) } else { None }
    }
}

/// `[tasks, members]` of slices of the members.
fn by_task<T: Copy>(slices: &[&[T]], tasks: usize) -> Vec<T> {
    let row = |task: usize| {
        slices.iter().flat_map(move |slice| {
            let members = slice.len() / tasks;
            slice[task * members..(task + 1) * members].iter().copied()
        })
    };
    (0..tasks).flat_map(row).collect()
}

/// The bytes of a message, and a check of them and the run.
pub fn encode(message: &impl Serialize, run: &RunId) -> Vec<u8> {
    let mut bytes = postcard::to_stdvec(message).expect("memory takes what these types are");
    let check = run.check(&bytes);
    bytes.extend(check);
    bytes
}

/// The message that bytes are; `None` if they are damaged, or of another run.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], run: &RunId) -> Option<T> {
    let (message, check) = bytes.split_last_chunk::<8>()?;
    let (read, rest) = postcard::take_from_bytes(message).ok().filter(|_| *check == run.check(message))?;
    rest.is_empty().then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;

    fn values() -> impl Strategy<Value = Values> {
        prop_oneof![
            proptest::collection::vec(any::<u32>().prop_map(f32::from_bits), 0..40).prop_map(Values::Floats),
            proptest::collection::vec(any::<i32>(), 0..40).prop_map(Values::Integers),
        ]
    }

    fn records() -> impl Strategy<Value = Record> {
        let rows = proptest::collection::vec(proptest::collection::vec(any::<u32>(), 0..4), 0..3);
        (values(), any::<[u32; 4]>(), any::<u64>(), rows).prop_map(
            |(values, [part, parts, tasks, steps], generation, rows)| {
                let scores = Scores { values, tasks, steps, rows };
                let logged = Logged { settings: Settings::default(), digest: Some(tasks.to_string()), scores };
                Record::Scores { generation, part, parts, logged }
            },
        )
    }

    proptest! {
        #[test]
        fn messages_come_back_and_damage_is_noticed(record in records(), at: Index, bit in 0..8u8, cut: Index) {
            let (run, other) = (RunId::of_text("run"), RunId::of_text("other"));
            let bytes = encode(&record, &run);
            prop_assert_eq!(decode::<Record>(&bytes, &run), Some(record));
            prop_assert_eq!(decode::<Record>(&bytes, &other), None);
            let mut flipped = bytes.clone();
            flipped[at.index(bytes.len())] ^= 1 << bit;
            prop_assert_eq!(decode::<Record>(&flipped, &run), None);
            prop_assert_eq!(decode::<Record>(&bytes[..cut.index(bytes.len())], &run), None);
        }

        #[test]
        fn any_bytes_are_refused(bytes: Vec<u8>) {
            prop_assert_eq!(decode::<Record>(&bytes, &RunId::of_text("run")), None);
        }

        #[test]
        fn parts_are_the_whole(values in values(), bytes in 1usize..100) {
            prop_assume!(values.len() > 0);
            let all = Scores { values, tasks: 1, steps: 1, rows: vec![vec![7]] };
            let mut parts = all.split(bytes).into_iter();
            let mut again = parts.next().expect("one at least");
            parts.for_each(|part| again.extend(part));
            prop_assert_eq!(again, all);
        }
    }

    #[test]
    fn slices_are_joined_by_task() {
        let slice = |values: &[f32]| Scores {
            values: Values::Floats(values.to_vec()),
            tasks: 2,
            steps: 1,
            rows: vec![vec![1]],
        };
        let joined = Scores::join(vec![slice(&[0.0, 1.0, 10.0, 11.0]), slice(&[2.0, 3.0, 12.0, 13.0])]).expect("alike");
        assert_eq!(joined, slice(&[0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]));
        let other = Scores { values: Values::Integers(vec![1, 2, 3, 4]), tasks: 2, steps: 1, rows: vec![] };
        assert!(matches!(Scores::join(vec![slice(&[0.0; 4]), other]), Err(NatsError::Score { .. })));
    }
}
