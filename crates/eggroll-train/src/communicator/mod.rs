//! Communication between replicas.

mod sharding;

pub use sharding::{evaluate_sharded, gather_fitness, own_members, shard};

use crate::error::DistributionError;
use eggroll_core::sync::locked;
use std::cmp::Reverse;
use std::sync::{Arc, Mutex};

/// The length of a message that says that its rank has failed.
const FAILED: u32 = u32::MAX;

/// Replicas of one run that exchange a few numbers: each has a rank from 0, and all make the same calls in the same order.
///
/// An engine implements three methods: [`rank`](Self::rank), [`size`](Self::size) and [`all_gather`](Self::all_gather). The others are made
/// of these. They send messages, each with its length in front, so that a rank that cannot continue can [say so](Self::fail) wherever the
/// others are. An engine that has a barrier overrides [`barrier`](Self::barrier). An engine that has to know when the ranks have parted, as
/// MPI does, overrides [`all_gather_words`](Self::all_gather_words) and [`fail`](Self::fail) too.
///
/// # Example
///
/// ```
/// use eggroll_train::{Alone, Communicator};
///
/// assert_eq!(Alone.all_gather(&[1, 2]).unwrap(), [1, 2]);
/// assert_eq!(Alone.all_gather_floats(&[0.5, -0.0]).unwrap(), [[0.5, -0.0]]);
/// assert_eq!(Alone.all_gather_text("digest").unwrap(), ["digest"]);
/// ```
pub trait Communicator: Send {
    /// Which replica this is, from 0.
    fn rank(&self) -> usize;

    /// How many replicas there are.
    fn size(&self) -> usize;

    /// Concatenates the words of all ranks in rank order; ranks may send different numbers of words. An engine implements this. Programs
    /// call [`all_gather_words`](Self::all_gather_words), which notices a rank that has failed.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Left`], [`DistributionError::Transport`].
    fn all_gather(&mut self, words: &[u32]) -> Result<Vec<u32>, DistributionError>;

    /// Waits for all ranks.
    ///
    /// # Errors
    ///
    /// As [`all_gather`](Self::all_gather).
    fn barrier(&mut self) -> Result<(), DistributionError> {
        self.all_gather(&[]).map(drop)
    }

    /// The words of every rank, in the order of ranks.
    ///
    /// # Errors
    ///
    /// As [`all_gather`](Self::all_gather), [`DistributionError::Failed`] if a rank has [failed](Self::fail), and
    /// [`DistributionError::Length`] if ranks make different calls.
    fn all_gather_words(&mut self, words: &[u32]) -> Result<Vec<Vec<u32>>, DistributionError> {
        exchange(self, words)
    }

    /// The floats of every rank, in the order of ranks. Every bit is kept, also in NaN.
    ///
    /// # Errors
    ///
    /// As [`all_gather_words`](Self::all_gather_words).
    fn all_gather_floats(&mut self, values: &[f32]) -> Result<Vec<Vec<f32>>, DistributionError> {
        let words: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
        let all = self.all_gather_words(&words)?.into_iter();
        Ok(all.map(|words| words.into_iter().map(f32::from_bits).collect()).collect())
    }

    /// The text of every rank, in the order of ranks.
    ///
    /// # Errors
    ///
    /// As [`all_gather_words`](Self::all_gather_words).
    fn all_gather_text(&mut self, text: &str) -> Result<Vec<String>, DistributionError> {
        let words: Vec<u32> = text.chars().map(u32::from).collect();
        let texts = self.all_gather_words(&words)?.into_iter();
        let character = |word| char::from_u32(word).unwrap_or(char::REPLACEMENT_CHARACTER);
        Ok(texts.map(|words| words.into_iter().map(character).collect()).collect())
    }

    /// Compares the digests of all parameters (as `eggroll_run::portable_digest` makes them) after `generation` generations.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Diverged`] on all ranks if one differs; it names the first rank that differs from most.
    /// Otherwise as [`all_gather_words`](Self::all_gather_words).
    fn check_digest(&mut self, generation: u64, digest: &str) -> Result<(), DistributionError> {
        let digests = self.all_gather_text(digest)?;
        let votes = |digest: &String| digests.iter().filter(|other| *other == digest).count();
        let Some(expected) = digests.iter().min_by_key(|digest| Reverse(votes(digest))) else {
            return Ok(());
        };
        match digests.iter().enumerate().find(|(_, found)| *found != expected) {
            None => Ok(()),
            Some((rank, found)) => {
                let (found, expected) = (found.clone(), expected.clone());
                Err(DistributionError::Diverged { rank, generation, found, expected })
            }
        }
    }

    /// Tells the others, in their next exchange of messages, that this rank cannot continue: they get [`DistributionError::Failed`]. Nothing
    /// may be called afterwards.
    fn fail(&mut self) {
        // Whoever cannot be told is gone.
        let _ = self.all_gather(&[FAILED]);
    }
}

/// The words of every rank.
fn exchange<C: Communicator + ?Sized>(communicator: &mut C, words: &[u32]) -> Result<Vec<Vec<u32>>, DistributionError> {
    let message = [&[words.len() as u32], words].concat();
    let all = communicator.all_gather(&message)?;
    let mut rest = all.as_slice();
    let messages = (0..communicator.size()).map(|rank| {
        let (len, after) = match rest.split_first() {
            Some((&FAILED, _)) => return Err(DistributionError::Failed { rank }),
            Some((len, after)) => (*len as usize, after),
            None => return Err(DistributionError::Length { rank, found: 0, expected: 1 }),
        };
        let found = after.len();
        let (words, after) =
            after.split_at_checked(len).ok_or(DistributionError::Length { rank, found, expected: len })?;
        rest = after;
        Ok(words.to_vec())
    });
    messages.collect()
}

impl<C: Communicator + ?Sized> Communicator for Box<C> {
    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn all_gather(&mut self, words: &[u32]) -> Result<Vec<u32>, DistributionError> {
        (**self).all_gather(words)
    }

    fn barrier(&mut self) -> Result<(), DistributionError> {
        (**self).barrier()
    }

    fn all_gather_words(&mut self, words: &[u32]) -> Result<Vec<Vec<u32>>, DistributionError> {
        (**self).all_gather_words(words)
    }

    fn fail(&mut self) {
        (**self).fail();
    }
}

/// One process that is the whole run: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alone;

impl Communicator for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_gather(&mut self, words: &[u32]) -> Result<Vec<u32>, DistributionError> {
        Ok(words.to_vec())
    }
}

/// A communicator shared by a program and its trainer. The program may add its own exchanges, in the same order on all
/// ranks.
impl<C: Communicator> Communicator for Arc<Mutex<C>> {
    fn rank(&self) -> usize {
        locked(self).rank()
    }

    fn size(&self) -> usize {
        locked(self).size()
    }

    fn all_gather(&mut self, words: &[u32]) -> Result<Vec<u32>, DistributionError> {
        locked(self).all_gather(words)
    }

    fn barrier(&mut self) -> Result<(), DistributionError> {
        locked(self).barrier()
    }

    fn all_gather_words(&mut self, words: &[u32]) -> Result<Vec<Vec<u32>>, DistributionError> {
        locked(self).all_gather_words(words)
    }

    fn fail(&mut self) {
        locked(self).fail();
    }
}
