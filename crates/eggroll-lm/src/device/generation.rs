//! Texts: prompts padded in front of their tokens, and keys and values kept on the device.

use super::batches::{Batch, TOKENS, batches};
use crate::items::{Item, Items};
use crate::language_model::Generated;
use crate::llama::{KvCache, Llama};
use crate::sampling::SamplingConfig;
use crate::values::read;
use burn::tensor::{DType, Int, Tensor, TensorData};
use eggroll_core::{is_on_host, scope};
use eggroll_train::Population;
use rayon::prelude::*;

/// Bytes of keys and values that a batch may hold if the memory is unknown, and its share of a known memory.
const CACHE_BYTES: u64 = 1 << 30;
const CACHE_SHARE: u64 = 4;

#[track_caller]
pub(super) fn texts(
    model: &Llama,
    population: Option<&Population>,
    prompts: Items,
    sampling: &SamplingConfig,
) -> Vec<Vec<Generated>> {
    let lists = prompts.by_member(population);
    let longest = lists.iter().copied().flatten().map(|item| item.prompt().len()).max().unwrap_or(1);
    let row_bytes = KvCache::row_bytes(model.config(), model.dtype(), longest + sampling.max_tokens);
    let mut texts: Vec<Vec<Generated>> = lists.iter().map(|items| Vec::with_capacity(items.len())).collect();
    // That of a population whose model is the host's says nothing about a copy's device.
    let at_home =
        |population: &&Population| population.perturbation().table.is_on_host() == is_on_host(&model.device());
    let memory = population.filter(at_home).and_then(Population::memory_limit);
    let cache_rows = memory.map_or(CACHE_BYTES, |bytes| bytes / CACHE_SHARE) / row_bytes as u64;
    let most = usize::try_from(cache_rows).map_or(TOKENS, |rows| rows.min(TOKENS / longest));
    for batch in batches(&lists, most) {
        let mut written = write_batch(model, population, &batch, sampling).into_iter();
        for (member, items) in batch.members.clone().zip(&batch.items) {
            // Empty rows follow a member's items.
            let of_member = written.by_ref().take(batch.each).collect::<Vec<_>>();
            texts[member].extend(of_member.into_iter().take(items.len()));
        }
    }
    texts
}

/// A row that is being written.
struct Row {
    /// Number of the prompt's draws.
    item: u32,
    live: bool,
    text: Generated,
}

#[track_caller]
fn write_batch(
    model: &Llama,
    population: Option<&Population>,
    batch: &Batch,
    sampling: &SamplingConfig,
) -> Vec<Generated> {
    let (prompts, device) = (batch.rows(), model.device());
    let round = population.map_or(0, |population| population.generation() as u32);
    let longest = prompts.iter().flatten().map(|item| item.prompt().len()).max().unwrap_or(1);
    let row = |(number, prompt): (usize, &Option<&Item>)| Row {
        item: prompt.map_or(0, |prompt| prompt.draws(batch.first + number % batch.each)),
        live: prompt.is_some(),
        text: Generated { tokens: Vec::new(), stopped: false, finite: true },
    };
    let mut rows: Vec<Row> = prompts.iter().enumerate().map(row).collect();
    // An empty row has one token.
    let prompt = |item: &Option<&Item>| item.map_or(vec![0], |item| item.prompt().to_vec());
    let prompts: Vec<Vec<u32>> = prompts.iter().map(prompt).collect();
    let padding: Vec<usize> = prompts.iter().map(|prompt| longest - prompt.len()).collect();
    let padded = |(prompt, padding): (&Vec<u32>, &usize)| [vec![0; *padding], prompt.clone()].concat();
    let mut next: Vec<u32> = prompts.iter().zip(&padding).flat_map(padded).collect();
    let mut cache =
        KvCache::new(model.config(), (&model.device(), model.dtype()), &padding, longest + sampling.max_tokens - 1);
    for step in 0..sampling.max_tokens {
        let (length, count) = (next.len() / rows.len(), rows.len());
        let tokens: Vec<i32> = next.iter().map(|token| *token as i32).collect();
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [count, length]), &device);
        let logits = batch.run(population, || {
            let hidden = model.next_hidden_rows(tokens, &mut cache);
            let last = hidden.slice_dim(1, length - 1..length); // [rows, 1, hidden_size]
            model.head(last.reshape([count, model.config().hidden_size])).cast(DType::F32)
        });
        let chosen = next_tokens(logits, &rows, (round, step as u32), sampling);
        next = rows.iter_mut().zip(chosen).map(|(row, token)| row.take(token, sampling)).collect();
        if !rows.iter().any(|row| row.live) {
            break;
        }
    }
    rows.into_iter().map(|row| row.text).collect()
}

impl Row {
    /// Adds a token; returns the next token to read, an arbitrary one for a row that has ended.
    fn take(&mut self, token: Option<u32>, sampling: &SamplingConfig) -> u32 {
        if !self.live {
            return 0;
        }
        let Generated { tokens, stopped, finite } = &mut self.text;
        *finite = token.is_some();
        *stopped = token.is_some_and(|token| sampling.stop.contains(&token));
        if !*stopped {
            tokens.extend(token);
        }
        self.live = *finite && !*stopped && tokens.len() < sampling.max_tokens;
        token.unwrap_or(0)
    }
}

/// The next token of every row of logits, by the rule of [`SamplingConfig::next`].
fn next_tokens(
    logits: Tensor<2>,
    rows: &[Row],
    (round, step): (u32, u32),
    sampling: &SamplingConfig,
) -> Vec<Option<u32>> {
    let [_, vocabulary] = logits.dims();
    if sampling.temperature > 0.0 {
        let logits = read(logits);
        let draw = |(row, logits): (&Row, &[f32])| match row.live {
            true => sampling.next(logits, round, row.item, step),
            false => None,
        };
        return scope::suspended(|| rows.par_iter().zip(logits.par_chunks_exact(vocabulary)).map(draw).collect());
    }
    let best = logits.clone().argmax(1).float().cast(DType::F32); // exact below 2²⁴
    let largest = logits.clone().max_dim(1);
    let undefined = logits.is_nan().float().cast(DType::F32).sum_dim(1);
    let found = read(Tensor::cat(vec![best, largest, undefined], 1)); // [rows, 3]
    let of_row = |found: &[f32]| (found[1].is_finite() && found[2] == 0.0).then_some(found[0] as u32);
    found.chunks_exact(3).map(of_row).collect()
}
