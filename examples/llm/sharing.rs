//! Steps that several processes share: ranks of `mpirun`, or nodes of a run over NATS.

use eggroll::lm::Error;
use eggroll::run::distribution::{Communicator, Distribution, detect};
use eggroll_examples::Failure;
use eggroll_examples::interrupt::Signals;
#[cfg(feature = "nats")]
use eggroll_examples::nats::{NatsArgs, Role};

/// How the members of a step are shared with other processes. Ranks of `mpirun` share them without options.
#[derive(clap::Args, Clone, Debug)]
pub struct SharingArgs {
    /// Share the members of every step over a NATS server: the coordinator trains, workers evaluate. All are given the same settings, and --steps.
    #[cfg(feature = "nats")]
    #[arg(long, value_enum, default_value_t = Role::Alone)]
    role: Role,
    /// With --role: name of the run. An existing run on the server is continued.
    #[cfg(feature = "nats")]
    #[arg(long, default_value = "llm")]
    run: String,
    /// With --role: members of a slice.
    #[cfg(feature = "nats")]
    #[arg(long, default_value_t = 8)]
    slice: usize,
    #[cfg(feature = "nats")]
    #[command(flatten)]
    nats: NatsArgs,
}

/// This process's part of a run.
pub struct Part {
    pub distribution: Distribution,
    /// Whether others have parts too.
    pub is_shared: bool,
}

#[cfg(not(feature = "nats"))]
impl SharingArgs {
    /// The names of the options.
    pub fn names() -> Vec<&'static str> {
        Vec::new()
    }

    /// Whether this process only evaluates, for a coordinator.
    pub fn is_worker(&self) -> bool {
        false
    }

    /// Joins the others, if there are any.
    pub fn join(&self, _signals: &Signals) -> Result<Part, Failure> {
        ranks()
    }
}

#[cfg(feature = "nats")]
impl SharingArgs {
    /// The names of the options.
    pub fn names() -> Vec<&'static str> {
        [&["role", "run", "slice"][..], &NatsArgs::NAMES].concat()
    }

    /// Whether this process only evaluates, for a coordinator.
    pub fn is_worker(&self) -> bool {
        self.role == Role::Worker
    }

    /// Joins the others, if there are any.
    pub fn join(&self, signals: &Signals) -> Result<Part, Failure> {
        use eggroll::nats::{Coordinator, NatsConfig, Worker, remove_run};

        let config = self.nats.config(&self.run, String::new())?;
        let config = NatsConfig { slice_members: self.slice, stop: signals.flag().clone(), ..config };
        let distribution = match self.role {
            Role::Alone => return ranks(),
            Role::Coordinator => Distribution::of(Coordinator::connect(&config)?),
            Role::Worker => Distribution::of(Worker::connect(&config)?),
            Role::Remove => {
                remove_run(&config)?;
                return Err(format!("the run {:?} is removed from the server", self.run).into());
            }
        };
        Ok(Part { distribution, is_shared: true })
    }
}

/// Whether a worker was told to stop.
pub fn is_stop(error: &Error) -> bool {
    #[cfg(feature = "nats")]
    if let Error::Run(error) = error {
        use eggroll::nats::NatsError;
        return matches!(NatsError::in_run(error), Some(NatsError::Stopped { .. }));
    }
    let _ = error;
    false
}

/// A rank of the job that started this process, or the only one.
fn ranks() -> Result<Part, Failure> {
    let communicator = detect()?;
    let is_shared = communicator.size() > 1;
    Ok(Part { distribution: Distribution::new(communicator), is_shared })
}
