//! Steps that several processes share: ranks of `mpirun`, or nodes of a run over NATS.

use eggroll::lm::Error;
#[cfg(feature = "nats")]
use eggroll::nats::{Coordinator, NatsConfig, Worker, remove_run};
use eggroll::run::distribution::{Communicator, Distribution, detect};
use eggroll_examples::Failure;
use eggroll_examples::interrupt::Signals;
#[cfg(feature = "nats")]
use eggroll_examples::nats::{NatsArgs, Role, was_stopped};

/// How the members of a step are shared with other processes. Ranks of `mpirun` share them without options.
#[derive(clap::Args, Clone, Debug)]
pub struct SharingArgs {
    /// Share steps over NATS: coordinator, worker, alone or remove (its data).
    #[cfg(feature = "nats")]
    #[arg(long, value_enum, default_value_t = Role::Alone, hide_possible_values = true)]
    role: Role,
    /// With --role: name of the run; an existing one is continued.
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
    pub fn join(&self, has_steps: bool, _signals: &Signals) -> Result<Option<Distribution>, Failure> {
        ranks(has_steps).map(Some)
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

    /// Joins the others, if there are any; `None` once the run is removed from the server.
    pub fn join(&self, has_steps: bool, signals: &Signals) -> Result<Option<Distribution>, Failure> {
        let config = self.nats.config(&self.run, String::new())?;
        let config = NatsConfig { slice_members: self.slice, stop: signals.flag().clone(), ..config };
        Ok(Some(match self.role {
            Role::Alone => ranks(has_steps)?,
            Role::Remove => {
                remove_run(&config)?;
                return Ok(None);
            }
            _ if !has_steps => return Err(WITHOUT_STEPS.into()),
            Role::Coordinator => Distribution::of(Coordinator::connect(&config)?),
            Role::Worker => Distribution::of(Worker::connect(&config)?),
        }))
    }
}

/// Whether a worker was told to stop.
pub fn is_stop(error: &Error) -> bool {
    match error {
        #[cfg(feature = "nats")]
        Error::Run(error) => was_stopped(error),
        _ => false,
    }
}

const WITHOUT_STEPS: &str =
    "processes that share a run need --steps: learning rates that follow the clock would differ between them";

/// A rank of the job that started this process, or the only one.
fn ranks(has_steps: bool) -> Result<Distribution, Failure> {
    let communicator = detect()?;
    if communicator.size() > 1 && !has_steps {
        return Err(WITHOUT_STEPS.into());
    }
    Ok(Distribution::new(communicator))
}
