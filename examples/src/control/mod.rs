//! What the examples of reinforcement learning share: command line, settings, training, tables and curves.

mod args;
mod curves;
mod many;
mod one;
mod settings;
mod speed;
mod task;
mod train;

pub use args::{ControlArgs, Protocol};
pub use settings::ControlSettings;
pub use task::{ControlSession, ControlTask, perceptron};

use crate::device::{Opened, open};
use crate::interrupt::{Signals, nothing, on_signals};
use crate::options::Given;
use crate::run_folder::begin;
use crate::{Ending, Failure, main_of};
use eggroll::rl::{ActionSpace, TensorEnvironment};
use eggroll::run::RunFolder;
use eggroll::run::print_line;
use serde_json::{Value, json};
use std::process::ExitCode;
use train::Trainer;

/// A task of whatever types: does what the command line asks for and returns what the `RESULT` line says of it, and how it ended.
pub trait AnyTask {
    /// Runs the task.
    ///
    /// # Errors
    ///
    /// Settings that cannot be used, and what the file system says.
    fn run(&self, args: &ControlArgs, session: &ControlSession) -> Result<(Value, Ending), Failure>;
}

impl<T: ControlTask> AnyTask for T {
    fn run(&self, args: &ControlArgs, session: &ControlSession) -> Result<(Value, Ending), Failure> {
        let name = self.environment().name();
        let settings = args.settings(name)?;
        if settings.sampled && !matches!(self.environment().actions(), ActionSpace::Discrete(_)) {
            return Err(format!("--sampled is for discrete actions, and the actions of {name} are continuous").into());
        }
        let folder = RunFolder::new(args.out.join(name));
        if !args.throughput {
            folder.check()?;
        }
        // Refuses settings before an earlier run is moved aside.
        let trainer = Trainer::new(self, &settings, session)?;
        if args.throughput {
            return speed::measure(trainer, args.seconds, session);
        }
        begin(&folder, &settings)?;
        match (args.compare, args.seeds) {
            (false, None) => one::run(self, trainer, &folder, session),
            (compare, seeds) => many::run(self, &settings, compare, seeds.unwrap_or(1), &folder, session),
        }
    }
}

/// Runs the tasks one after the other and prints the result. Options that nothing would use are refused.
pub fn main(args: &ControlArgs, given: &Given, tasks: &[&dyn AnyTask]) -> ExitCode {
    let signals = on_signals("this generation", nothing);
    main_of(|| {
        args.refuse_unused(given)?;
        args.trace.around(|| run(args, tasks, signals))
    })
}

fn run(args: &ControlArgs, tasks: &[&dyn AnyTask], signals: Signals) -> Result<Ending, Failure> {
    let Opened { device, hardware } = open(args.backend)?;
    let session = ControlSession { device, protocol: args.protocol, signals };
    let (mut results, mut ending) = (Vec::new(), Ending::Finished);
    for task in tasks {
        if session.signals.came() {
            ending = Ending::Stopped;
            break;
        }
        let (result, ended) = task.run(args, &session)?;
        results.push(result);
        ending = ended;
    }
    let mut result = if results.len() == 1 { results.remove(0) } else { json!({ "environments": results }) };
    result["hardware"] = json!(hardware);
    result["stopped"] = json!(ending.is_stopped());
    print_line!("RESULT {result}");
    Ok(ending)
}
