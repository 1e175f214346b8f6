//! HalfCheetah, Hopper, Walker2d and Humanoid by evolution strategies, in MuJoCo: `docs/mujoco.md` says how to build it.
//!
//! Every generation a population of perturbed policies plays one episode each, and the policy moves towards the perturbations that got
//! farther. `--compare` compares EGGROLL with OpenES on the same steps of the environment; `--resume` continues a run.

mod args;
mod chart;
mod task;
mod throughput;
mod train;

use eggroll_examples::interrupt::{checkpoints_in, on_signals};
use eggroll_examples::{main_of, options};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (args, given) = options::parse::<args::MujocoArgs>();
    let signals = on_signals("this generation", checkpoints_in(&args.out));
    main_of(|| {
        args.refuse_unused(&given)?;
        train::run(args, &signals)
    })
}
