//! The cost of a population against plain inference: forward and estimate of a small network, over sizes, populations, ranks
//! and noise sources. If asked for, the same arithmetic in JAX is measured too.

mod args;
mod cells;
mod report;

use args::ThroughputArgs;
use eggroll_examples::device::open;
use eggroll_examples::interrupt::{Signals, nothing, on_signals};
use eggroll_examples::throughput::Rates;
use eggroll_examples::{Ending, Failure, main_of, options};
use std::process::ExitCode;

/// Large tensors come and go with every pass: an allocator that gives their pages back each time costs a third of it.
#[cfg(not(feature = "gpu-pack"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub(crate) fn main() -> ExitCode {
    let (args, _) = options::parse::<ThroughputArgs>();
    let signals = on_signals("this round", nothing);
    main_of(|| args.trace.around(|| run(&args, &signals)))
}

fn run(args: &ThroughputArgs, signals: &Signals) -> Result<Ending, Failure> {
    args.validate()?;
    let peer = args.peer();
    // Before the minutes of our own cells.
    peer.iter().try_for_each(|peer| peer.check())?;
    let opened = open(args.backend)?;
    println!("device: {}", opened.hardware);
    let rates = Rates::measure(&opened.device);
    println!("alone: {:.3e} multiplications/s, {:.3e} normals/s: the model", rates.products, rates.draws);
    let mut cells = cells::measure(args, &opened.device, &rates, signals)?;
    let ending = signals.ending();
    let peer = peer.filter(|_| !ending.is_stopped());
    let measured = peer.map(|peer| peer.measure()).transpose()?.unwrap_or_default();
    if args.jax && !ending.is_stopped() {
        println!("peer: {}", measured.header);
    }
    cells.extend(measured.cells);
    report::print(args, &opened.hardware, &cells, &measured.out_of_memory, ending);
    Ok(ending)
}
