//! The log of a run: the scores of every generation, from which each node makes the same updates.

use crate::connection::Connection;
use crate::error::NatsError;
use crate::messages::{Logged, Record, decode};
use crate::run_id::RunId;

/// Reads the scores of one generation after the other.
#[derive(Debug)]
pub struct LogReader {
    /// Place of the next record.
    pub next: u64,
    /// Parts of the generation that is being read.
    parts: Option<(u32, Logged)>,
    /// The generation before which the run ends, according to the last record read.
    end: Option<u64>,
}

impl LogReader {
    /// Reads from the first record that the server has.
    pub fn new() -> Self {
        Self { next: 1, parts: None, end: None }
    }

    /// The scores of the generation that is due, if all their parts are there.
    ///
    /// # Errors
    ///
    /// [`NatsError::Gap`] if a later generation follows, which is read again the next time; [`NatsError::Damaged`].
    pub fn read(&mut self, link: &Connection, run: &RunId, due: u64) -> Result<Option<Logged>, NatsError> {
        while let Some(message) = link.next(self.next)? {
            let Some(record) = decode::<Record>(&message.payload, run) else {
                return Err(NatsError::Damaged { place: message.place });
            };
            self.end = None;
            match record {
                Record::End { generation } => self.end = Some(generation),
                Record::Scores { generation, .. } if generation < due => {}
                Record::Scores { generation: found, .. } if found > due => return Err(NatsError::Gap { due, found }),
                Record::Scores { part, parts, logged, .. } => {
                    self.next = message.place + 1;
                    match (&mut self.parts, part) {
                        // A generation begins anew if a coordinator died while it wrote.
                        (held, 0) => *held = Some((1, logged)),
                        (Some((count, held)), part) if part == *count => {
                            *count += 1;
                            held.scores.extend(logged.scores);
                        }
                        _ => return Err(NatsError::Damaged { place: message.place }),
                    }
                    if let Some((_, logged)) = self.parts.take_if(|(count, _)| *count == parts) {
                        return Ok(Some(logged));
                    }
                }
            }
            self.next = message.place + 1;
        }
        Ok(None)
    }

    /// Whether the last record says that the run is over before this generation.
    pub fn ends_before(&self, generation: u64) -> bool {
        self.end == Some(generation)
    }
}

/// The generation after the last whose scores are in the log.
///
/// # Errors
///
/// [`NatsError::Damaged`].
pub fn generations(link: &Connection, run: &RunId) -> Result<u64, NatsError> {
    let Some(message) = link.last()? else { return Ok(0) };
    match decode::<Record>(&message.payload, run) {
        Some(Record::Scores { generation, part, parts, .. }) => Ok(generation + u64::from(part + 1 == parts)),
        Some(Record::End { generation }) => Ok(generation),
        None => Err(NatsError::Damaged { place: message.place }),
    }
}
