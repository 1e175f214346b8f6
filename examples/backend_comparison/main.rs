//! The same work on every backend that is compiled in and present: forward, estimate, a short training on MNIST, and
//! the distance from the f64 oracle. The results are one table, one JSON file, one bar chart, one page.
//!
//! An Apple laptop against a CUDA box is one command on each and one merge step on either:
//!
//! ```sh
//! cargo run --release --example backend_comparison --no-default-features --features flex,metal -- --label laptop --out a
//! cargo run --release --example backend_comparison --no-default-features --features flex,cuda -- --label box --out b
//! cargo run --release --example backend_comparison -- --merge a/comparison.json b/comparison.json --out both
//! ```
//!
//! What the columns mean:
//!
//! - Ratios are to plain inference of as many rows on the same backend, timed in turn with it; each backend has its own.
//!   Noise is drawn on the fly. Times are medians.
//! - The training starts from the same weights and sees the same batches everywhere, so its final fitness should agree
//!   between backends. CPU backends evaluate chunks of members side by side, devices one after the other, as users do.
//! - Launches, kernels, host reads and noise are of one generation of that training, evaluated on one thread because
//!   launches are counted by thread. Kernels are eggroll's own on a device; Burn's are not counted.
//! - RSS is the peak of the backend's process. Device memory is what Burn's memory pool has reserved after the work, pages for
//!   reuse included.
//! - Under `--trace out.json` each backend writes a separate trace, `out.flex.json`, of two parts: forward and estimate, and training.
//!   The first rounds and generations, which are traced, take longer then.
//!
//! Every backend runs in a separate process. A backend fails if it is compiled in but has no device, panics, computes wrong values,
//! takes longer than `--limit`, or its driver crashes its process. It is a line of the table then, with the reason below it; the
//! others continue.

mod args;
mod chart;
mod measure;
mod oracle;
mod report;
mod rows;
mod timing;
mod training;

use args::ComparisonArgs;
use eggroll::run::report::FILE;
use eggroll_examples::chart::Picture;
use eggroll_examples::interrupt::{Signals, nothing, on_signals};
use eggroll_examples::{Ending, Failure, main_of, options};
use rows::Comparison;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Large tensors come and go with every pass: an allocator that gives their pages back each time costs a third of it.
#[cfg(not(feature = "gpu-pack"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub(crate) fn main() -> ExitCode {
    let (args, given) = options::parse::<ComparisonArgs>();
    main_of(|| match (args.only, &args.row) {
        // A signal ends it at once: it is another process that knows what to do then.
        (Some(backend), Some(path)) => args.trace.around(|| measure::write_row(&args, backend, path)),
        _ => {
            args.refuse_unused(&given)?;
            run(&args, &on_signals("this round", nothing))
        }
    })
}

fn run(args: &ComparisonArgs, signals: &Signals) -> Result<Ending, Failure> {
    args.validate()?;
    let merging = !args.merge.is_empty();
    let merged = merging.then(|| Comparison::merged(&args.merge)).transpose()?;
    // Before the work, so that no result is lost for want of a place.
    fs::create_dir_all(&args.out).map_err(|error| format!("{}: {error}", args.out.display()))?;
    let (comparison, ending) = match merged {
        Some(merged) => (merged, Ending::Finished),
        None => measure::measure(args, signals)?,
    };
    let files = write(args, &comparison)?;
    report::print(&comparison, &files, ending);
    let failed: Vec<String> = comparison.failed().map(|(name, _)| name).collect();
    match failed.is_empty() || merging {
        true => Ok(ending),
        false => Err(format!("failed: {}", failed.join(", ")).into()),
    }
}

/// Writes the JSON file, the chart and the page.
fn write(args: &ComparisonArgs, comparison: &Comparison) -> Result<[PathBuf; 3], Failure> {
    let files = ["comparison.json", "comparison.svg", FILE].map(|name| args.out.join(name));
    comparison.write(&files[0])?;
    chart::chart(comparison).write(&files[1])?;
    report::page(comparison).write(&files[2])?;
    Ok(files)
}
