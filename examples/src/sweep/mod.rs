//! Hyper-parameter sweeps: what the example of that name does.

mod chart;
mod page;
mod plan;
mod ranking;
mod runner;
mod space;
mod store;
mod summary;
mod template;
mod trial;

use crate::interrupt::on_signals;
use crate::{Ending, Failure, status_of};
use clap::Parser;
use eggroll::run::print_line;
use plan::Plan;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use store::Store;

/// Runs a program under many settings and compares what comes out.
#[derive(Parser, Debug)]
pub struct Args {
    /// The sweep: a TOML file.
    pub file: PathBuf,
    /// Folder for the trials, the table and the chart [default: runs/sweep/ and the file's name].
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Trials side by side, instead of what the file says.
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Run trials again that failed or took too long.
    #[arg(long)]
    pub retry_failed: bool,
    /// Print the commands and run nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs a sweep until it is done or stopped by a signal; returns the process's exit status.
pub fn execute(args: &Args) -> u8 {
    let signals = on_signals("ending the trials", || "trials that have ended keep their records".to_owned());
    status_of(|| run(args, signals.flag()))
}

/// Runs a sweep until all trials have a record, its time is spent or `stop` is set, and writes its summary. It is stopped if `stop` was
/// set or somebody else stopped a trial: called again, it continues.
///
/// # Errors
///
/// What is wrong with the file or the folder. A trial that fails is no error.
pub fn run(args: &Args, stop: &AtomicBool) -> Result<Ending, Failure> {
    let plan = Plan::read(&args.file)?;
    let jobs = args.jobs.unwrap_or(plan.budget.jobs);
    if jobs == 0 {
        return Err("jobs must be at least 1, not 0".into());
    }
    let trials = plan.trials()?;
    if args.dry_run {
        trials.iter().for_each(|trial| print_line!("{} {}", trial.key, trial.words.join(" ")));
        return Ok(Ending::Finished);
    }
    let program = template::find_program(&plan.command[0])?;
    let folder = args.out.clone().unwrap_or_else(|| default_folder(&args.file));
    let store = Store::open(&folder, &args.file)?;
    let begun = Instant::now();
    let runner = runner::Runner { plan: &plan, program: &program, store: &store, jobs, begun, stop };
    let ending = runner.run(&trials, args.retry_failed)?;
    summary::write(&plan, &trials, &store, begun.elapsed().as_secs_f64(), ending)?;
    Ok(ending)
}

fn default_folder(file: &Path) -> PathBuf {
    Path::new("runs/sweep").join(file.file_stem().unwrap_or_default())
}
