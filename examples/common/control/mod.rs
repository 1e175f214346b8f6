//! What the examples of reinforcement learning share: command line, settings, training, tables and curves.

mod args;
#[path = "../backend.rs"]
#[expect(dead_code, reason = "one backend is chosen and opened, no more is asked of it")]
mod backend;
mod chart;
#[path = "../interrupt.rs"]
mod interrupt;
mod many;
mod one;
#[path = "../run_folder.rs"]
#[expect(dead_code, reason = "runs take seconds and are not continued")]
mod run_folder;
pub mod settings;
mod speed;
#[path = "../trace.rs"]
mod trace;
mod train;

pub use args::Args;
pub use run_folder::Folder;
pub use settings::Settings;

use args::Protocol;
use burn::module::Module;
use burn::tensor::Device;
use eggroll::nn::{Mlp, MlpConfig};
use eggroll::rl::Policy;
use eggroll::rl::TensorEnvironment;
use eggroll::run::Interrupter;
use interrupt::on_ctrl_c;
use serde_json::{Value, json};
use std::error::Error;
use std::process::ExitCode;
use train::Trainer;

pub type Failure = Box<dyn Error + Send + Sync>;

/// What differs between the examples.
pub trait Task {
    type Environment: TensorEnvironment + Clone;
    type Network: Module + Policy;

    fn environment(&self) -> Self::Environment;

    /// The network before training.
    fn network(&self, settings: &Settings, device: &Device) -> Self::Network;

    /// Shows what the trained network does.
    fn show(&self, _network: &Self::Network, _settings: &Settings, _folder: &Folder) -> Result<(), Failure> {
        Ok(())
    }
}

/// A perceptron of the environment's sizes.
pub fn perceptron(environment: &impl TensorEnvironment, settings: &Settings, device: &Device) -> Mlp {
    let (inputs, outputs) = (environment.observation_size(), environment.actions().outputs());
    let widths: Vec<usize> = [inputs].iter().chain(&settings.hidden).chain(&[outputs]).copied().collect();
    MlpConfig::new(widths).with_activation(settings.activation()).init(device)
}

/// What all runs of a program share.
pub struct Session {
    device: Device,
    protocol: Protocol,
    interrupter: Interrupter,
}

/// A task of whatever types: does what the command line asks for and returns what the `RESULT` line says of it.
pub trait Run {
    fn run(&self, args: &Args, session: &Session) -> Result<Value, Failure>;
}

impl<T: Task> Run for T {
    fn run(&self, args: &Args, session: &Session) -> Result<Value, Failure> {
        let name = self.environment().name();
        let settings = args.settings(name)?;
        // Refuses settings before an earlier run is moved aside.
        let trainer = Trainer::new(self, &settings, session)?;
        if args.throughput {
            return speed::measure(trainer, args.seconds, session);
        }
        let folder = Folder { path: args.out.join(name) };
        folder.begin(&settings)?;
        match (args.compare, args.seeds) {
            (false, None) => one::run(self, trainer, &folder, session),
            (compare, seeds) => many::run(self, &settings, compare, seeds.unwrap_or(1), &folder, session),
        }
    }
}

/// Runs the tasks one after the other and prints the result.
pub fn main(args: &Args, tasks: &[&dyn Run]) -> ExitCode {
    let interrupter = on_ctrl_c("a result", || trace::interrupted());
    match args.trace.around(|| run(args, tasks, interrupter)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
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
