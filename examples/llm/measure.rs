//! Tokens per second.

use crate::args::Args;
use crate::peer;
use crate::train::unknown;
use eggroll::core::transformer::Precision;
use eggroll::lm::load::{ModelConfig, Pretrained};
use eggroll::lm::{
    CausalModel, Decoder, Finetune, Item, Items, Llama, Rwkv7, SamplingConfig, generate, score, score_population,
};
use eggroll::run::print_line;
use eggroll_examples::Failure;
use serde_json::json;
use std::time::Instant;

/// Passes of each kind, alternating; medians are reported.
const PASSES: usize = 5;

/// Ratios within one run.
pub struct Speed {
    pub plain_f32: f64,
    pub plain_int8: f64,
    pub population_ratio: f64,
    pub int8_speedup: f64,
    /// Tokens per second of 64 sequences.
    pub generation: f64,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let settings = &args.settings;
    let peer = args.llama_cpp.then(|| peer::LlamaCpp::new(&args.python, settings)).transpose()?;
    let pretrained = settings.open()?;
    let speed = match pretrained.config.clone() {
        ModelConfig::Llama(_) => of_model::<Llama>(args, pretrained)?,
        ModelConfig::Rwkv7(_) => of_model::<Rwkv7>(args, pretrained)?,
        other => return Err(unknown(&other)),
    };
    let peer = peer.map(|peer| peer.measure()).transpose()?;
    let best = speed.plain_f32.max(speed.plain_int8);
    if let Some(peer) = &peer {
        print_line!("llama.cpp: prefill {:.0} tokens/s, one stream {:.0} tokens/s", peer.prefill, peer.generation);
    }
    let result = json!({
        "tokens_per_second": best,
        "plain_f32": speed.plain_f32,
        "plain_int8": speed.plain_int8,
        "population_ratio": speed.population_ratio,
        "int8_speedup": speed.int8_speedup,
        "generation": speed.generation,
        "llama_cpp_ratio": peer.as_ref().map(|peer| best / peer.prefill),
        "llama_cpp_ratio_f32": peer.as_ref().map(|peer| speed.plain_f32 / peer.prefill),
        "llama_cpp_generation_ratio": peer.as_ref().map(|peer| speed.generation / peer.generation),
    });
    print_line!("RESULT {result}");
    Ok(())
}

fn of_model<M: CausalModel>(args: &Args, pretrained: Pretrained) -> Result<Speed, Failure> {
    speed(&args.settings.finetune().init::<M>(pretrained)?)
}

/// Measures plain scoring, a population, and generation.
pub fn speed<M: CausalModel>(finetune: &Finetune<M>) -> Result<Speed, Failure> {
    let int8 = finetune.host();
    let f32 = finetune.model().to_host(Precision::F32);
    let vocabulary = int8.vocab_size() as u32;
    let token = |index: u32| (index * 2_654_435_761u32.rotate_left(index % 13)) % vocabulary;
    let items = |count: u32, len: u32| -> Vec<Item> {
        let item = |item| (0..len).map(|k| token(item * 1000 + k)).collect::<Vec<u32>>();
        (0..count).map(item).map(|tokens| Item::new(&tokens[..tokens.len() - 1], &tokens[tokens.len() - 1..])).collect()
    };
    // 8 sequences of 64 tokens; a population of 32 with the rows of 8 words each.
    let plain = items(8, 64);
    let [words, all] = [items(8, 24), items(256, 24)];
    let population = finetune.strategy().ask();
    let prompts: Vec<Item> = items(64, 24).iter().map(|item| Item::prompt_only(item.prompt())).collect();
    let sampling = SamplingConfig::greedy(32);
    let [mut of_f32, mut of_int8, mut of_all, mut of_members, mut of_texts] = [(); 5].map(|()| Vec::new());
    for _ in 0..PASSES {
        of_f32.push(seconds(|| score(&f32, &plain).map(drop))?);
        of_int8.push(seconds(|| score(int8, &plain).map(drop))?);
        of_all.push(seconds(|| score(int8, &all).map(drop))?);
        of_members.push(seconds(|| score_population(int8, &population, Items::Shared(&words)).map(drop))?);
    }
    for _ in 0..2 {
        of_texts.push(seconds(|| generate(int8, &prompts, &sampling).map(drop))?);
    }
    let [f32, int8, all, members, texts] = [of_f32, of_int8, of_all, of_members, of_texts].map(median);
    let tokens = 8.0 * 64.0;
    let speed = Speed {
        plain_f32: tokens / f32,
        plain_int8: tokens / int8,
        population_ratio: all / members,
        int8_speedup: f32 / int8,
        generation: 64.0 * 32.0 / texts,
    };
    print_line!(
        "tokens/s: plain scoring {:.0} in f32, {:.0} in int8; 32 members at {:.2} x plain scoring of as many rows; 64 texts {:.0}",
        speed.plain_f32,
        speed.plain_int8,
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
