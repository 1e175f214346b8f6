//! Three ways to learn the same task in the same seconds: low-rank noise, noise of full rank, and backpropagation.

use crate::args::{LlmArgs, LlmSettings};
use crate::task::{LlmTask, Score};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamWConfig, GradientsParams};
use eggroll::core::transformer::Precision;
use eggroll::lm::load::{ModelConfig, Pretrained};
use eggroll::lm::{CausalModel, Finetune, FinetuneConfig, Item, Llama};
use eggroll::prelude::*;
use eggroll::run::print_line;
use eggroll::train::NoiseScale;
use eggroll_examples::Failure;
use eggroll_examples::interrupt::Signals;
use serde_json::{Value, json};
use std::time::Instant;

/// Members of full-rank noise: as in Qiu et al., "Evolution Strategies at Scale", arXiv 2509.24372.
const MEMBERS: usize = 30;
/// Learning rate of AdamW.
const RATE: f64 = 2e-5;

pub fn run(args: &LlmArgs, signals: &Signals) -> Result<(), Failure> {
    let (settings, seconds) = (&args.settings, args.limits.seconds());
    settings.validate()?;
    args.limits.validate()?;
    if seconds.is_infinite() {
        return Err("--compare needs --seconds: each method is given as many".into());
    }
    let open = || -> Result<Finetune<Llama>, Failure> {
        let pretrained = settings.open()?;
        if !matches!(pretrained.config, ModelConfig::Llama(_)) {
            return Err(format!("--compare needs a Llama model, but {} is none", settings.model()?.display()).into());
        }
        Ok(settings.finetune().init(pretrained)?)
    };
    let finetune = open()?;
    let task = LlmTask::new(settings, &finetune)?;
    task.batch(0, settings)
        .completions()
        .ok_or("--compare is for the tasks words and sft, which backpropagation can learn too")?;
    print_line!("before: test {}", task.test(&finetune)?);

    let arm = Arm { task: &task, settings, seconds, signals };
    let low_rank = arm.evolution(finetune, "low-rank noise")?;
    let roles = Llama::PERTURBED.iter().map(|pattern| (*pattern, Role::Dense));
    let dense = EvolutionStrategyConfig::new(OpenEsConfig::new(), SgdConfig::new())
        .with_population_size(MEMBERS)
        .with_noise_scale(NoiseScale::RelativeToSpread)
        .with_sigma(settings.sigma)
        .with_learning_rate(settings.learning_rate)
        .with_seed(settings.seed)
        .with_roles(roles.chain([("*", Role::Frozen)]));
    let full_rank = arm.evolution(open()?.with_strategy(dense)?, "full-rank noise")?;
    let gradient = arm.backpropagation(settings.open()?)?;
    let all = json!({ "seconds": seconds, "low_rank": low_rank, "full_rank": full_rank, "backpropagation": gradient });
    print_line!("RESULT {all}");
    Ok(())
}

/// What all methods are given.
struct Arm<'a> {
    task: &'a LlmTask,
    settings: &'a LlmSettings,
    seconds: f64,
    signals: &'a Signals,
}

impl Arm<'_> {
    fn evolution(&self, mut finetune: Finetune<Llama>, name: &str) -> Result<Value, Failure> {
        let Self { task, settings, seconds, signals } = *self;
        let (start, mut tokens) = (Instant::now(), 0);
        while start.elapsed().as_secs_f64() < seconds {
            signals.check()?;
            let rate = settings.learning_rate(start.elapsed().as_secs_f64() / seconds);
            finetune.strategy_mut().set_learning_rate(rate)?;
            let batch = task.batch(finetune.steps(), settings);
            tokens += finetune.step(&task.lesson(&batch))?.tokens;
        }
        let trained = start.elapsed().as_secs_f64();
        Ok(result(name, task.test(&finetune)?, finetune.steps(), tokens, trained))
    }

    /// Supervised fine-tuning by AdamW, on as many examples a step.
    fn backpropagation(&self, pretrained: Pretrained) -> Result<Value, Failure> {
        let Self { task, settings, seconds, signals } = *self;
        let device = Device::flex().autodiff();
        let Pretrained { config, weights, tokenizer, chat_template } = pretrained;
        let mut model = Llama::load(&config, &weights, &device)?;
        let (mut optimizer, loss) = (AdamWConfig::new().init(), CrossEntropyLossConfig::new().init(&device));
        let (start, mut steps, mut tokens) = (Instant::now(), 0u64, 0);
        while start.elapsed().as_secs_f64() < seconds {
            signals.check()?;
            let batch = task.batch(steps, settings).completions().expect("a task whose completions are given");
            let length = batch.iter().map(|item| item.tokens()).max().unwrap_or(0) - 1;
            tokens += batch.iter().map(|item| item.tokens()).sum::<usize>();
            // Shorter items are padded behind: causal attention does not see it.
            let row = |item: &Item| {
                let all = [item.prompt(), item.completion()].concat();
                (0..length).map(|k| *all[..all.len() - 1].get(k).unwrap_or(&0) as i32).collect::<Vec<i32>>()
            };
            let inputs: Vec<i32> = batch.iter().flat_map(row).collect();
            let place = |(row, item): (usize, &Item)| {
                (0..item.completion().len())
                    .map(move |k| (row * length + item.prompt().len() - 1 + k) as i32)
                    .collect::<Vec<i32>>()
            };
            let places: Vec<i32> = batch.iter().enumerate().flat_map(place).collect();
            let targets: Vec<i32> =
                batch.iter().flat_map(|item| item.completion()).map(|token| *token as i32).collect();
            let inputs = Tensor::<1, Int>::from_ints(inputs.as_slice(), &device).reshape([batch.len(), length]);
            let logits = model.forward(inputs).flatten::<2>(0, 1); // [rows · length, vocab_size]
            let logits = logits.select(0, Tensor::from_ints(places.as_slice(), &device)); // [targets, vocab_size]
            let loss = loss.forward(logits, Tensor::from_ints(targets.as_slice(), &device));
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(RATE, model, gradients);
            steps += 1;
        }
        let trained = start.elapsed().as_secs_f64();
        let finetune = FinetuneConfig { precision: Precision::F32, ..settings.finetune() }.init_with(
            model.valid(),
            tokenizer,
            chat_template,
        )?;
        Ok(result("backpropagation", task.test(&finetune)?, steps, tokens, trained))
    }
}

fn result(name: &str, score: Score, steps: u64, tokens: usize, seconds: f64) -> Value {
    print_line!("{name}: test {score}, {steps} steps, {tokens} tokens in {seconds:.0} s");
    json!({ "test_accuracy": score.accuracy, "steps": steps, "tokens": tokens, "seconds": seconds })
}
