//! HalfCheetah by evolution strategies, in MuJoCo: `docs/mujoco.md` says how to build it.
//!
//! Every generation a population of perturbed policies runs one episode each, and the policy moves towards the perturbations that ran
//! farther. `--compare` sets EGGROLL beside OpenES with the same steps of the environment; `--resume` continues a run.

mod args;
#[path = "../common/backend.rs"]
#[expect(dead_code, reason = "one backend is chosen and opened, no more is asked of it")]
mod backend;
mod chart;
#[path = "../common/run_folder.rs"]
mod run_folder;
mod task;
mod train;

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match train::run(args::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
