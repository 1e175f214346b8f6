//! Decisions from sampled worlds: the domino game Texas 42 by expected values. `cargo run --release --example
//! expected_q`
//!
//! A player does not see the other hands. For every decision, worlds that agree with what was seen are sampled; an
//! oracle, a small transformer, values every domino in each; the domino with the highest mean is played. With a
//! temperature worlds are weighed by the likelihood of the moves seen so far. The engine is
//! `eggroll::rl::ExpectedValues`; the game, its rules and its solver are `eggroll_examples::texas42`.

mod args;
mod deals;
mod hands;
mod matches;
mod oracle;
mod picture;
mod players;
mod report;
mod shown;
mod speed;
mod train;

use eggroll_examples::interrupt::{nothing, on_signals};
use eggroll_examples::{main_of, options};
use std::process::ExitCode;

/// Tensors come and go with every pass: an allocator that gives their pages back each time costs a part of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (args, given) = options::parse::<args::ExpectedQArgs>();
    let signals = on_signals("this step", nothing);
    main_of(|| {
        args.refuse_unused(&given)?;
        report::run(&args, &signals)
    })
}
