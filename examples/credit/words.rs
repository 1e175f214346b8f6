//! Words: SmolLM2-135M-Instruct says of a word whether it is positive or negative. Members' products are in int8, as in the example llm; backpropagation is
//! in floats, by AdamW. Output noise would need a hook in every layer of the model and is not tried.

use crate::course::Course;
use crate::learn::Method;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::rng::philox::philox4x32;
use eggroll::core::transformer::Precision;
use eggroll::lm::load::{ModelConfig, Pretrained, smollm2_path};
use eggroll::lm::{CausalModel, Finetune, FinetuneConfig, Item, Items, Lesson, Llama};
use eggroll::prelude::Credit;
use eggroll_examples::Failure;
use eggroll_examples::tasks::{Example, Splits, words};
use std::path::Path;

/// The share of a run in which the learning rate falls to 0.
const COOLDOWN: f64 = 0.3;

/// Words of a step of backpropagation, and its learning rate.
const WORDS: usize = 16;
const RATE: f64 = 2e-5;

/// The words in tokens, and what is judged by.
struct Words {
    train: Vec<Vec<Item>>,
    judged: Vec<Item>,
    seed: u64,
}

impl Words {
    fn new<M: CausalModel>(finetune: &Finetune<M>, seed: u64, dev: bool) -> Result<Self, Failure> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/words/sentiment.tsv");
        let items = |examples: &[Example]| {
            let item = |example: &Example| finetune.item(&example.prompt, &example.completion);
            examples.iter().map(item).collect::<Result<Vec<_>, _>>()
        };
        let Splits { train, dev: held, test } = words::examples(&path)?.try_map(items)?;
        Ok(Self { train, judged: if dev { held } else { test }, seed })
    }

    /// Positive and negative words in turn, drawn anew in every step.
    fn batch(&self, step: u64, count: usize) -> Vec<Item> {
        let draw = |index: usize| {
            let kind = &self.train[index % self.train.len()];
            let word = philox4x32([index as u32, step as u32, 0, 0], [self.seed as u32, 1])[0];
            kind[word as usize % kind.len()].clone()
        };
        (0..count).map(draw).collect()
    }

    /// Words that are answered rightly, in percent.
    fn judge<M: CausalModel>(&self, finetune: &Finetune<M>) -> Result<f64, Failure> {
        let scored = finetune.score(&self.judged)?;
        Ok(100.0 * scored.iter().filter(|scored| scored.exact).count() as f64 / scored.len() as f64)
    }
}

/// Whether there is a model.
pub fn check() -> Result<(), Failure> {
    let path = smollm2_path().filter(|path| path.exists());
    path.map(drop).ok_or_else(|| "no model: run scripts/smollm2, which fetches SmolLM2-135M-Instruct once".into())
}

fn open() -> Result<Pretrained, Failure> {
    check()?;
    Ok(Pretrained::open(smollm2_path().expect("checked"))?)
}

/// Fine-tunes until the time is up.
pub fn learn(method: Method, seed: u64, dev: bool, rate: Option<f64>, course: &mut Course) -> Result<(), Failure> {
    match method {
        Method::Backpropagation => backpropagate(seed, dev, rate.unwrap_or(RATE), course),
        // Members, words of a step, and the learning rate: the best of several by dev words.
        Method::Parts => evolve((8, 16), Credit::Auto, (seed, dev), rate.unwrap_or(1.0), course),
        Method::Means | Method::OutputNoise => evolve((32, 4), Credit::Mean, (seed, dev), rate.unwrap_or(0.05), course),
    }
}

/// The learning rate now.
fn now(rate: f64, course: &Course) -> f64 {
    rate * ((1.0 - course.done()) / COOLDOWN).min(1.0)
}

fn evolve(
    (members, count): (usize, usize),
    credit: Credit,
    (seed, dev): (u64, bool),
    rate: f64,
    course: &mut Course,
) -> Result<(), Failure> {
    let config = FinetuneConfig::new().with_population_size(members).with_seed(seed).with_credit(credit);
    let mut finetune: Finetune<Llama> = config.init(open()?)?;
    let words = Words::new(&finetune, seed, dev)?;
    course.judge(0, words.judge(&finetune)?)?;
    let (mut step, mut tokens) = (0, 0);
    while !course.is_over() {
        let batch = words.batch(step, count);
        finetune.strategy_mut().set_learning_rate(now(rate, course))?;
        tokens += course.train(|| finetune.step(&Lesson::Completions(Items::Shared(&batch))))?.tokens as u64;
        step += 1;
        if course.is_due() {
            course.judge(tokens, words.judge(&finetune)?)?;
        }
    }
    Ok(())
}

/// In floats, of all weights.
fn backpropagate(seed: u64, dev: bool, rate: f64, course: &mut Course) -> Result<(), Failure> {
    let Pretrained { config, weights, tokenizer, chat_template } = open()?;
    let ModelConfig::Llama(_) = config else { return Err("not a Llama model".into()) };
    let mut model = Llama::load(&config, &weights, &Device::flex().autodiff())?;
    drop(weights);
    let judged = |model: &Llama| {
        let config = FinetuneConfig { precision: Precision::F32, ..FinetuneConfig::new() };
        config.init_with(model.valid(), tokenizer.clone(), chat_template.clone())
    };
    let words = Words::new(&judged(&model)?, seed, dev)?;
    course.judge(0, words.judge(&judged(&model)?)?)?;
    let mut optimizer = AdamWConfig::new().init();
    let (mut step, mut tokens) = (0, 0);
    while !course.is_over() {
        let (batch, rate) = (words.batch(step, WORDS), now(rate, course));
        model = course.train(|| {
            let gradients = GradientsParams::from_grads(loss(&model, &batch).backward(), &model);
            optimizer.step(rate, model, gradients)
        });
        tokens += batch.iter().map(Item::tokens).sum::<usize>() as u64;
        step += 1;
        if course.is_due() {
            course.judge(tokens, words.judge(&judged(&model)?)?)?;
        }
    }
    Ok(())
}

/// The mean loss of the answers' tokens. Shorter items are padded behind: causal attention does not see it.
fn loss(model: &Llama, batch: &[Item]) -> Tensor<1> {
    let device = Device::flex().autodiff();
    let length = batch.iter().map(Item::tokens).max().unwrap_or(1) - 1;
    let (mut inputs, mut places, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    for (row, item) in batch.iter().enumerate() {
        let all = [item.prompt(), item.completion()].concat();
        inputs.extend((0..length).map(|k| all[..all.len() - 1].get(k).map_or(0, |token| *token as i32)));
        places.extend((0..item.completion().len()).map(|k| (row * length + item.prompt().len() - 1 + k) as i32));
        targets.extend(item.completion().iter().map(|token| *token as i32));
    }
    let ints = |values: &[i32]| Tensor::<1, Int>::from_ints(values, &device);
    let logits = model.forward(ints(&inputs).reshape([batch.len(), length])).flatten::<2>(0, 1);
    let logits = logits.select(0, ints(&places)); // [targets, vocab_size]
    CrossEntropyLossConfig::new().init(&device).forward(logits, ints(&targets))
}
