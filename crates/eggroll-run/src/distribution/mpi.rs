//! Replicas that are processes of one MPI job.

use eggroll_train::{Communicator, DistributionError};
use mpi::Threading;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives};

/// This process in a job of `mpirun` or `srun`; the fitness of a generation is one `MPI_Allgatherv`.
///
/// Ranks do not come and go: a process that dies or panics ends the job. The job continues from the last checkpoint when it is started
/// again. MPI ends when this is dropped, which waits for all ranks; a rank that is dropped before the others are done has failed.
///
/// # Example
///
/// ```no_run
/// use eggroll_run::distribution::{Communicator, Distribution, Mpi};
///
/// # fn main() -> Result<(), eggroll_run::distribution::DistributionError> {
/// let mpi = Mpi::initialize()?;
/// println!("rank {} of {}", mpi.rank(), mpi.size());
/// let distribution = Distribution::new(mpi);
/// # let _ = distribution;
/// # Ok(())
/// # }
/// ```
pub struct Mpi {
    world: World,
    /// Whether no other rank waits for this one.
    over: bool,
    /// MPI ends with it.
    _universe: Universe,
}

/// All processes of the job, without state.
struct World {
    rank: usize,
    size: usize,
}

impl Mpi {
    /// Joins the job, once in a process.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Transport`] if MPI runs already in this process, or cannot be called from another thread than this.
    pub fn initialize() -> Result<Self, DistributionError> {
        let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)
            .ok_or_else(|| error("it has been initialized in this process before".to_owned()))?;
        if threading < Threading::Serialized {
            return Err(error(format!("it has {threading:?} threads only, and Serialized is needed")));
        }
        let world = universe.world();
        let world = World { rank: world.rank() as usize, size: world.size() as usize };
        Ok(Self { world, over: false, _universe: universe })
    }
}

fn error(reason: String) -> DistributionError {
    DistributionError::Transport { engine: "MPI", reason }
}

/// A number of words as MPI counts them.
fn count(words: usize) -> Result<i32, DistributionError> {
    i32::try_from(words).map_err(|_| error(format!("{words} words are more than a message can have")))
}

impl Communicator for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&mut self, words: &[u32]) -> Result<Vec<u32>, DistributionError> {
        let world = SimpleCommunicator::world();
        let own = count(words.len())?;
        let mut counts = vec![0; self.size];
        world.all_gather_into(&own, &mut counts[..]);
        let mut starts = Vec::with_capacity(self.size);
        let mut end = 0;
        for len in &counts {
            starts.push(count(end)?);
            end += *len as usize;
        }
        count(end)?;
        let mut gathered = vec![0u32; end];
        world.all_gather_varcount_into(words, &mut PartitionMut::new(&mut gathered[..], counts, starts));
        Ok(gathered)
    }

    fn barrier(&mut self) -> Result<(), DistributionError> {
        SimpleCommunicator::world().barrier();
        Ok(())
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.world.rank()
    }

    fn size(&self) -> usize {
        self.world.size()
    }

    fn all_gather(&mut self, words: &[u32]) -> Result<Vec<u32>, DistributionError> {
        self.world.all_gather(words)
    }

    fn barrier(&mut self) -> Result<(), DistributionError> {
        self.world.barrier()
    }

    fn all_gather_words(&mut self, words: &[u32]) -> Result<Vec<Vec<u32>>, DistributionError> {
        let all = self.world.all_gather_words(words);
        self.over = all.is_err();
        all
    }

    fn fail(&mut self) {
        // Others are told once: a second time would wait for ranks that have gone.
        if !std::mem::replace(&mut self.over, true) {
            self.world.fail();
        }
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // The others would wait for this rank for ever.
        if std::thread::panicking() {
            SimpleCommunicator::world().abort(1);
        }
        self.fail();
    }
}
