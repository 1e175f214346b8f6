//! Whether a log, a pretrained model and a reward belong together.

use crate::tune::{TuneArgs, Tuned};
use clap::Args;
use eggroll_lm::load::Pretrained;
use eggroll_lm::{CausalModel, Error, Llama, Rwkv7, Verification};
use eggroll_run::parameter_digest;
use std::hash::{BuildHasher, RandomState};

/// What is evaluated again.
#[derive(Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    tune: TuneArgs,
    /// Share of all members that are asked again, in pairs drawn at random.
    #[arg(long, default_value_t = 0.05, value_parser = share)]
    share: f64,
    /// Seed of the draws, to repeat them. Default: a new one.
    #[arg(long)]
    seed: Option<u64>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Verifies; returns a summary.
///
/// # Errors
///
/// Errors of loading, and of [`Finetune::verify`](eggroll_lm::Finetune::verify): the first step whose scores differ.
pub fn run(args: &VerifyArgs) -> Result<String, Error> {
    match args.tune.open()? {
        (pretrained, true) => verify::<Rwkv7>(args, pretrained),
        (pretrained, false) => verify::<Llama>(args, pretrained),
    }
}

fn verify<M: CausalModel>(args: &VerifyArgs, pretrained: Pretrained) -> Result<String, Error> {
    let seed = args.seed.unwrap_or_else(|| RandomState::new().hash_one(()));
    let Tuned { finetune, verification } = args.tune.verify::<M>(pretrained, args.share, seed)?;
    let Verification { steps, evaluated, members } = verification;
    let (log, digest) = (args.tune.log.display(), parameter_digest(finetune.model()));
    Ok(format!(
        "{log}: {steps} steps; {evaluated} of {members} members were asked again (seed {seed}), and all scores are as logged; parameter digest {digest}"
    ))
}
