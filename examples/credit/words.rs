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

/// Members, words of a step, and the learning rate at the beginning: the best of several by the words that are held out as dev.
fn settings(method: Method) -> (usize, usize, f64) {
    match method {
        Method::Backpropagation | Method::OutputNoise => (1, 16, 2e-5),
        Method::Means => (32, 4, 0.05),
        Method::Parts => (8, 16, 1.0),
    }
}

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

fn open() -> Result<Pretrained, Failure> {
    let path = smollm2_path().filter(|path| path.exists());
    Ok(Pretrained::open(path.ok_or("no model: run scripts/smollm2, which fetches SmolLM2-135M-Instruct once")?)?)
}

/// Fine-tunes until the time is up.
pub fn learn(method: Method, seed: u64, dev: bool, given: Option<f64>, course: &mut Course) -> Result<(), Failure> {
    let (members, count, rate) = settings(method);
    let rate = given.unwrap_or(rate);
    let credit = if method == Method::Parts { Credit::Auto } else { Credit::Mean };
    let config = FinetuneConfig::new().with_population_size(members.max(2)).with_learning_rate(rate);
    let mut finetune: Finetune<Llama> = config.with_seed(seed).with_credit(credit).init(open()?)?;
    let words = Words::new(&finetune, seed, dev)?;
    course.judge(0, words.judge(&finetune)?);
    let now = |course: &Course| rate * ((1.0 - course.done()) / COOLDOWN).min(1.0);
    let mut tokens = 0;
    if method == Method::Backpropagation {
        let Pretrained { config, weights, tokenizer, chat_template } = open()?;
        let ModelConfig::Llama(_) = config else { return Err("not a Llama model".into()) };
        let mut model = Llama::load(&config, &weights, &Device::flex().autodiff())?;
        let mut optimizer = AdamWConfig::new().init();
        for step in 0.. {
            let (batch, rate) = (words.batch(step, count), now(course));
            tokens += batch.iter().map(Item::tokens).sum::<usize>() as u64;
            model = course.train(|| {
                let gradients = GradientsParams::from_grads(loss(&model, &batch).backward(), &model);
                optimizer.step(rate, model, gradients)
            });
            if course.is_due() {
                let config = FinetuneConfig { precision: Precision::F32, ..FinetuneConfig::new() };
                let finetune = config.init_with(model.valid(), tokenizer.clone(), chat_template.clone())?;
                course.judge(tokens, words.judge(&finetune)?);
            }
            if course.is_over() {
                return Ok(());
            }
        }
    }
    for step in 0.. {
        let batch = words.batch(step, count);
        finetune.strategy_mut().set_learning_rate(now(course))?;
        tokens += course.train(|| finetune.step(&Lesson::Completions(Items::Shared(&batch))))?.tokens as u64;
        if course.is_due() {
            course.judge(tokens, words.judge(&finetune)?);
        }
        if course.is_over() {
            return Ok(());
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
