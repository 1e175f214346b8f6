//! Replicas that are threads of one process, one for each device.

use burn::tensor::Device;
use eggroll_core::sync::locked;
use eggroll_train::{Communicator, DistributionError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// One of several replicas on threads of this process. A replica that is dropped, also by a panic, has left: replicas
/// that wait for it get [`DistributionError::Left`].
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_run::distribution::{Communicator, on_devices};
///
/// let devices = [Device::flex(), Device::flex()];
/// let gathered = on_devices(&devices, |mut replica, _device| replica.all_gather_floats(&[replica.rank() as f32]));
/// assert_eq!(gathered, [Ok(vec![vec![0.0], vec![1.0]]), Ok(vec![vec![0.0], vec![1.0]])]);
/// ```
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    size: usize,
    meeting: Arc<Meeting>,
}

#[derive(Debug, Default)]
struct Meeting {
    state: Mutex<ExchangeState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ExchangeState {
    /// By rank.
    words: Vec<Vec<u32>>,
    arrived: usize,
    /// Exchanges that are complete.
    complete: u64,
    /// The result of the last exchange, kept for the slowest until all have arrived again.
    gathered: Vec<u32>,
    left: Option<usize>,
}

impl Threads {
    /// Replicas for `size` threads.
    pub fn group(size: usize) -> Vec<Self> {
        let meeting = Arc::new(Meeting::default());
        locked(&meeting.state).words.resize(size, Vec::new());
        (0..size).map(|rank| Self { rank, size, meeting: meeting.clone() }).collect()
    }
}

impl Communicator for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&mut self, words: &[u32]) -> Result<Vec<u32>, DistributionError> {
        let mut state = locked(&self.meeting.state);
        if let Some(rank) = state.left {
            return Err(DistributionError::Left { rank });
        }
        state.words[self.rank] = words.to_vec();
        state.arrived += 1;
        if state.arrived == self.size {
            state.gathered = state.words.concat();
            state.arrived = 0;
            state.complete += 1;
            self.meeting.changed.notify_all();
            return Ok(state.gathered.clone());
        }
        let before = state.complete;
        let waits = |state: &mut ExchangeState| state.complete == before && state.left.is_none();
        let state = self.meeting.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        match state.left {
            Some(rank) if state.complete == before => Err(DistributionError::Left { rank }),
            _ => Ok(state.gathered.clone()),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        locked(&self.meeting.state).left.get_or_insert(self.rank);
        self.meeting.changed.notify_all();
    }
}

/// Runs `replica` once for every device, each on a separate thread, and returns the results in the order of devices. They are
/// synchronous replicas of one run, each with a model on its device.
///
/// A replica gives its communicator to the trainer ([`TrainingLoop`](crate::TrainingLoop), [`EsTraining`](crate::EsTraining)), or calls
/// [`evaluate_sharded`](super::evaluate_sharded) itself. All must begin with the same weights, for example by
/// [`to_device`](burn::module::Module::to_device) of one model.
///
/// # Panics
///
/// A panic of a replica is passed on, once the others have noticed that it has left.
pub fn on_devices<R: Send>(devices: &[Device], replica: impl Fn(Threads, &Device) -> R + Sync) -> Vec<R> {
    let run = &replica;
    std::thread::scope(|scope| {
        let group = Threads::group(devices.len()).into_iter().zip(devices);
        let threads: Vec<_> = group.map(|(threads, device)| scope.spawn(move || run(threads, device))).collect();
        // All are waited for before a panic is passed on.
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let passed_on = |result| match result {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        results.into_iter().map(passed_on).collect()
    })
}
