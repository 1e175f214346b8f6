//! A fine-tuned model of its pretrained one and a log.

use crate::tune::TuneArgs;
use burn::tensor::Device;
use clap::{Args, ValueEnum};
use eggroll_lm::load::{Pretrained, SavedDtype, save_model};
use eggroll_lm::{CausalModel, Error, Llama, Rwkv7};
use eggroll_run::{SavedError, parameter_digest, replay};
use std::path::PathBuf;

/// The sources and the result.
#[derive(Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    tune: TuneArgs,
    /// The folder of the fine-tuned model, as Hugging Face's transformers reads it.
    #[arg(long)]
    out: PathBuf,
    /// Number format of the saved weights. The run itself has float32, which the others round.
    #[arg(long, value_enum, default_value_t = Dtype::Bf16)]
    dtype: Dtype,
}

#[derive(Clone, Copy, ValueEnum)]
enum Dtype {
    F32,
    F16,
    Bf16,
}

impl From<Dtype> for SavedDtype {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Self::F32,
            Dtype::F16 => Self::F16,
            Dtype::Bf16 => Self::BF16,
        }
    }
}

/// Makes the model and saves it; returns a summary.
///
/// # Errors
///
/// Errors of loading, of [`replay`] and of saving.
pub fn run(args: &ApplyArgs) -> Result<String, Error> {
    match args.tune.open()? {
        (pretrained, true) => apply::<Rwkv7>(args, pretrained),
        (pretrained, false) => apply::<Llama>(args, pretrained),
    }
}

fn apply<M: CausalModel>(args: &ApplyArgs, pretrained: Pretrained) -> Result<String, Error> {
    let Pretrained { config, weights, tokenizer, chat_template } = pretrained;
    let first = M::load(&config, &weights, &Device::flex())?;
    drop(weights);
    let (strategy, model) = match replay(&args.tune.log, first, args.tune.until) {
        Err(eggroll_run::Error::Saved(SavedError::ReplayCredit { .. })) => {
            let tuned = args.tune.verify::<M>(args.tune.open()?.0, 0.0, 0)?.finetune;
            (tuned.strategy().clone(), tuned.model().clone())
        }
        replayed => replayed?,
    };
    save_model(&args.out, &config, &tokenizer, chat_template.as_ref(), model.tensors(), args.dtype.into())?;
    let (steps, out) = (strategy.generation(), args.out.display());
    Ok(format!("{out}: the model after step {steps}, parameter digest {}", parameter_digest(&model)))
}
