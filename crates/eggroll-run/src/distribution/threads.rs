//! Replicas that are threads of one process, one for each device.

use burn::tensor::Device;
use eggroll_train::{Communicator, DistributionError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// One of the replicas that are threads of this process. A replica that is dropped has left: whoever waits for it gets
/// [`DistributionError::Left`], also where a panic dropped it.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_run::distribution::{Communicator, on_devices};
///
/// let devices = [Device::flex(), Device::flex()];
/// let gathered = on_devices(&devices, |mut replica, _device| replica.all_gather(&[replica.rank() as f32]));
/// assert_eq!(gathered, [Ok(vec![0.0, 1.0]), Ok(vec![0.0, 1.0])]);
/// ```
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    size: usize,
    meeting: Arc<Meeting>,
}

#[derive(Debug, Default)]
struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// By rank.
    values: Vec<Vec<f32>>,
    arrived: usize,
    /// Exchanges that are complete.
    complete: u64,
    /// What the last one came to: stays until all have arrived again, so that the slowest finds it.
    gathered: Vec<f32>,
    left: Option<usize>,
}

impl Threads {
    /// Replicas for `size` threads.
    pub fn group(size: usize) -> Vec<Self> {
        let meeting = Arc::new(Meeting::default());
        meeting.lock().values.resize(size, Vec::new());
        (0..size).map(|rank| Self { rank, size, meeting: meeting.clone() }).collect()
    }
}

impl Meeting {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("never held across a panic")
    }
}

impl Communicator for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&mut self, values: &[f32]) -> Result<Vec<f32>, DistributionError> {
        let mut state = self.meeting.lock();
        if let Some(rank) = state.left {
            return Err(DistributionError::Left { rank });
        }
        state.values[self.rank] = values.to_vec();
        state.arrived += 1;
        if state.arrived == self.size {
            state.gathered = state.values.concat();
            state.arrived = 0;
            state.complete += 1;
            self.meeting.changed.notify_all();
            return Ok(state.gathered.clone());
        }
        let before = state.complete;
        let waits = |state: &mut State| state.complete == before && state.left.is_none();
        let state = self.meeting.changed.wait_while(state, waits).expect("never held across a panic");
        match state.left {
            Some(rank) if state.complete == before => Err(DistributionError::Left { rank }),
            _ => Ok(state.gathered.clone()),
        }
    }

    fn barrier(&mut self) -> Result<(), DistributionError> {
        self.all_gather(&[]).map(drop)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.meeting.lock().left.get_or_insert(self.rank);
        self.meeting.changed.notify_all();
    }
}

/// Runs `replica` once for every device, each on a thread of its own, and returns what they return, in the order of devices: synchronous
/// replicas of one run, each with a model on its device.
///
/// A replica gives its communicator to the trainer ([`TrainingLoop`](crate::TrainingLoop), [`EsTraining`](crate::EsTraining)), or calls
/// [`evaluate_sharded`](super::evaluate_sharded) itself. All have to begin with the same weights: of one model,
/// [`to_device`](burn::module::Module::to_device).
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
