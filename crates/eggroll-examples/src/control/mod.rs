//! What the examples of reinforcement learning share: command line, settings, training, tables and curves.

mod args;
mod curves;
mod many;
mod one;
mod settings;
mod speed;
mod task;
mod train;

pub use args::{Args, Protocol};
pub use settings::Settings;
pub use task::{Session, Task, perceptron};

use crate::interrupt::on_ctrl_c;
use crate::run_folder::begin;
use crate::{Failure, main_of, trace};
use eggroll_rl::TensorEnvironment;
use eggroll_run::{Interrupter, RunFolder};
use serde_json::{Value, json};
use std::process::ExitCode;
use train::Trainer;

/// A task of whatever types: does what the command line asks for and returns what the `RESULT` line says of it.
pub trait Run {
    /// Runs the task.
    ///
    /// # Errors
    ///
    /// Settings that cannot be used, and what the file system says.
    fn run(&self, args: &Args, session: &Session) -> Result<Value, Failure>;
}

impl<T: Task> Run for T {
    fn run(&self, args: &Args, session: &Session) -> Result<Value, Failure> {
        let name = self.environment().name();
        let settings = args.settings(name)?;
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

/// Runs the tasks one after the other and prints the result.
pub fn main(args: &Args, tasks: &[&dyn Run]) -> ExitCode {
    let interrupter = on_ctrl_c("a result", || trace::interrupted());
    main_of(|| args.trace.around(|| run(args, tasks, interrupter)))
}

fn run(args: &Args, tasks: &[&dyn Run], interrupter: Interrupter) -> Result<(), Failure> {
    let session = Session { device: args.backend.device()?, protocol: args.protocol, interrupter };
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.run(args, &session)?);
        if session.interrupter.should_stop() {
            break;
        }
    }
    let result = if results.len() == 1 { results.remove(0) } else { json!({ "environments": results }) };
    println!("RESULT {result}");
    Ok(())
}
