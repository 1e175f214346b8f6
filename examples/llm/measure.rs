//! Tokens per second.

use crate::args::LlmArgs;
use crate::peer;
use crate::train::unknown;
use eggroll::core::transformer::Precision;
use eggroll::lm::load::{ModelConfig, Pretrained};
use eggroll::lm::{
    CausalModel, Decoder, Finetune, GenerateError, Item, Items, Llama, Rwkv7, SamplingConfig, generate_population,
    score, score_population,
};
use eggroll::run::print_line;
use eggroll_examples::interrupt::Signals;
use eggroll_examples::{Failure, median};
use serde_json::json;
use std::time::Instant;

/// Passes of scoring, kinds alternating, and of generation; medians are reported.
const PASSES: [usize; 2] = [5, 3];

/// What one run measured.
pub struct Speed {
    /// Tokens per second of plain scoring, for each of [`Precision::ALL`].
    pub plain: [f64; Precision::ALL.len()],
    pub population_ratio: f64,
    /// Tokens per second that 32 members write, two texts each.
    pub generation: f64,
}

impl Speed {
    fn of(&self, precision: Precision) -> f64 {
        let index = Precision::ALL.iter().position(|other| *other == precision);
        self.plain[index.expect("one of all")]
    }

    /// The faster one of float32 and int8.
    fn best(&self) -> f64 {
        self.of(Precision::F32).max(self.of(Precision::Int8))
    }

    pub fn speedup(&self, precision: Precision) -> f64 {
        self.of(precision) / self.of(Precision::F32)
    }
}

pub fn run(args: &LlmArgs, signals: &Signals) -> Result<(), Failure> {
    let settings = &args.settings;
    let peer = args.llama_cpp.then(|| peer::LlamaCpp::new(&args.python, settings)).transpose()?;
    let pretrained = settings.open()?;
    let speed = match pretrained.config.clone() {
        ModelConfig::Llama(_) => of_model::<Llama>(args, pretrained, signals)?,
        ModelConfig::Rwkv7(_) => of_model::<Rwkv7>(args, pretrained, signals)?,
        other => return Err(unknown(&other)),
    };
    let peer = peer.map(|peer| peer.measure()).transpose()?;
    if let Some(peer) = &peer {
        print_line!("llama.cpp: prefill {:.0} tokens/s, one stream {:.0} tokens/s", peer.prefill, peer.generation);
    }
    let result = json!({
        "tokens_per_second": speed.best(),
        "plain_f32": speed.of(Precision::F32),
        "plain_bf16": speed.of(Precision::Bf16),
        "plain_int8": speed.of(Precision::Int8),
        "population_ratio": speed.population_ratio,
        "bf16_speedup": speed.speedup(Precision::Bf16),
        "int8_speedup": speed.speedup(Precision::Int8),
        "generation": speed.generation,
        "llama_cpp_ratio": peer.as_ref().map(|peer| speed.best() / peer.prefill),
        "llama_cpp_ratio_f32": peer.as_ref().map(|peer| speed.of(Precision::F32) / peer.prefill),
        "llama_cpp_generation_ratio": peer.as_ref().map(|peer| speed.generation / peer.generation),
    });
    print_line!("RESULT {result}");
    Ok(())
}

fn of_model<M: CausalModel>(args: &LlmArgs, pretrained: Pretrained, signals: &Signals) -> Result<Speed, Failure> {
    speed(&args.settings.finetune().init::<M>(pretrained)?, signals)
}

/// Measures plain scoring in each number format; a population, and generation, in that of the run.
pub fn speed<M: CausalModel>(finetune: &Finetune<M>, signals: &Signals) -> Result<Speed, Failure> {
    let host = finetune.host();
    let hosts = Precision::ALL.map(|precision| finetune.model().to_host(precision));
    let vocabulary = host.vocab_size() as u32;
    let token = |index: u32| index.wrapping_mul(2_654_435_761u32.rotate_left(index % 13)) % vocabulary;
    let items = |count: u32, len: u32| -> Vec<Item> {
        let item = |item| (0..len).map(|k| token(item * 1000 + k)).collect::<Vec<u32>>();
        (0..count).map(item).map(|tokens| Item::new(&tokens[..tokens.len() - 1], &tokens[tokens.len() - 1..])).collect()
    };
    // 8 sequences of 64 tokens; a population of 32 with the rows of 8 words each.
    let plain = items(8, 64);
    let [words, all] = [items(8, 24), items(256, 24)];
    let population = finetune.strategy().ask();
    let prompts: Vec<Item> = items(2, 24).iter().map(|item| Item::prompt_only(item.prompt())).collect();
    let sampling = SamplingConfig::greedy(32);
    let mut of_plain = hosts.each_ref().map(|_| Vec::new());
    let [mut of_all, mut of_members, mut of_texts] = [(); 3].map(|()| Vec::new());
    for _ in 0..PASSES[0] {
        signals.check()?;
        for (host, seconds_of) in hosts.iter().zip(&mut of_plain) {
            seconds_of.push(seconds(|| score(host, &plain).map(drop))?);
        }
        of_all.push(seconds(|| score(host, &all).map(drop))?);
        of_members.push(seconds(|| score_population(host, &population, Items::Shared(&words)).map(drop))?);
    }
    for _ in 0..PASSES[1] {
        signals.check()?;
        let mut written = 0;
        let seconds = seconds(|| {
            let texts = generate_population(host, &population, Items::Shared(&prompts), &sampling)?;
            written = texts.iter().flatten().map(|text| text.tokens.len()).sum();
            Ok::<_, GenerateError>(())
        })?;
        of_texts.push(seconds / written as f64);
    }
    let [all, members, texts] = [of_all, of_members, of_texts].map(|seconds| median(&seconds));
    let speed = Speed {
        plain: of_plain.map(|seconds| 8.0 * 64.0 / median(&seconds)),
        population_ratio: all / members,
        generation: 1.0 / texts,
    };
    let plain: Vec<_> = Precision::ALL.iter().zip(speed.plain).map(|(p, speed)| format!("{speed:.0} in {p}")).collect();
    print_line!(
        "tokens/s: plain scoring {}; 32 members at {:.2} x plain scoring of as many rows; their texts {:.0}",
        plain.join(", "),
        speed.population_ratio,
        speed.generation
    );
    Ok(speed)
}

fn seconds<E>(work: impl FnOnce() -> Result<(), E>) -> Result<f64, E> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}
