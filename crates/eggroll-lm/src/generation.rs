//! Text generation by the members of a population.

use crate::host::{Decoder, MemberTask, ROWS, Sequence, fitting, run_parts, run_tasks};
use crate::items::{Item, Items, ItemsError};
use crate::language_model::{Generated, LanguageModel};
use crate::run::DecoderRun;
use crate::sampling::{SamplingConfig, SamplingError};
use eggroll_core::transformer::MemberRow;
use eggroll_train::Population;

/// Bytes of states that a task may hold.
const STATE_BYTES: usize = 384 << 20;

/// Why nothing can be generated.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A prompt does not fit the model.
    #[error(transparent)]
    Items(#[from] ItemsError),
    /// An invalid setting.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
}

eggroll_core::debug_is_message!(GenerateError);

/// Continues prompts with a model without noise, with the draws of round 0.
///
/// Sequences that have ended leave the batch, and the next prompts take their place.
///
/// # Errors
///
/// [`GenerateError`] for an invalid setting, a prompt without tokens, or a prompt that does not fit the context together with the
/// tokens to generate.
pub fn generate<M: LanguageModel + ?Sized>(
    model: &M,
    prompts: &[Item],
    sampling: &SamplingConfig,
) -> Result<Vec<Generated>, GenerateError> {
    sampling.validate()?;
    let prompts = Items::Shared(prompts);
    prompts.check_prompts(model.limits(), 2, sampling.max_tokens)?;
    Ok(model.texts(None, prompts, sampling).into_iter().flatten().collect())
}

/// [`generate`] on the host.
pub(crate) fn without_noise<D: Decoder>(decoder: &D, prompts: &[Item], sampling: &SamplingConfig) -> Vec<Generated> {
    let plain = MemberTask::plain();
    let numbered: Vec<(u32, &Item)> =
        prompts.iter().enumerate().map(|(place, item)| (item.draws(place), item)).collect();
    // Every part generates the same number of sequences; rows of the prompts do not count.
    let results = run_parts(
        &numbered,
        |_| 1,
        |part| {
            let jobs = part.iter().map(|(number, item)| Job { member: 0, item: *number, prompt: item }).collect();
            let items: Vec<Item> = part.iter().map(|(_, item)| (*item).clone()).collect();
            generate_jobs(&mut DecoderRun::new(decoder, &plain), &[(0, &items)], jobs, 0, sampling)
        },
    );
    results.into_iter().flatten().collect()
}

/// Continues prompts with every member of a population: `[members][prompts]`, in the order of members and prompts, with the draws of the
/// population's generation. On the host, results depend neither on how members are batched nor on the number of cores.
///
/// On a device ([`Llama`](crate::Llama)) each batch keeps its keys and values there. Greedy decoding reads a few numbers for each row and token; with a
/// temperature the logits are read, to draw tokens by the same rule.
///
/// # Errors
///
/// As [`generate`], and for lists that do not fit the population.
///
/// # Panics
///
/// As [`score_population`](crate::score_population).
#[track_caller]
pub fn generate_population<M: LanguageModel + ?Sized>(
    model: &M,
    population: &Population,
    prompts: Items,
    sampling: &SamplingConfig,
) -> Result<Vec<Vec<Generated>>, GenerateError> {
    sampling.validate()?;
    prompts.check_whole(population)?;
    prompts.check_prompts(model.limits(), population.count(), sampling.max_tokens)?;
    Ok(model.texts(Some(population), prompts, sampling))
}

/// [`generate_population`] on the host.
#[track_caller]
pub(crate) fn of_members<D: Decoder>(
    decoder: &D,
    population: &Population,
    prompts: Items,
    sampling: &SamplingConfig,
) -> Vec<Vec<Generated>> {
    let round = population.generation() as u32;
    let results = run_tasks(decoder, population, prompts.count(), |task| {
        let members = prompts.of_members(&task.members, population);
        let jobs = members.iter().enumerate().flat_map(|(member, (_, items))| {
            let job = move |(place, prompt): (usize, _)| Job { member, item: Item::draws(prompt, place), prompt };
            items.iter().enumerate().map(job)
        });
        let mut texts =
            generate_jobs(&mut DecoderRun::new(decoder, task), &members, jobs.collect(), round, sampling).into_iter();
        members.iter().map(|(_, items)| texts.by_ref().take(items.len()).collect()).collect::<Vec<Vec<_>>>()
    });
    results.into_iter().flatten().collect()
}

/// A prompt of a member.
#[derive(Clone, Copy)]
struct Job<'a> {
    /// The member, by its position in the task.
    member: usize,
    /// Number of the prompt's draws.
    item: u32,
    prompt: &'a Item,
}

/// A sequence that is being written.
struct Live<'a, S> {
    job: Job<'a>,
    /// Position of the result.
    place: usize,
    row: MemberRow,
    state: S,
    /// Tokens of the prompt still to read, or the last token.
    next: Vec<u32>,
    text: Vec<u32>,
}

fn generate_jobs<D: Decoder>(
    run: &mut DecoderRun<D>,
    members: &[(usize, &[Item])],
    jobs: Vec<Job>,
    round: u32,
    sampling: &SamplingConfig,
) -> Vec<Generated> {
    let prefixes = run.prefixes(members);
    let mut results: Vec<Option<Generated>> = vec![None; jobs.len()];
    let mut waiting = jobs.iter().enumerate().peekable();
    let mut live: Vec<Live<D::State>> = Vec::new();
    let mut bytes = 0;
    let capacity = |job: &Job| job.prompt.prompt().len().saturating_add(sampling.max_tokens);
    loop {
        // Waiting sequences take the places of ended ones.
        while let Some((_, job)) = waiting.peek() {
            let more = run.decoder.state_bytes(capacity(job));
            if !live.is_empty() && (bytes + more > STATE_BYTES || live.len() >= ROWS) {
                break;
            }
            let (place, job) = waiting.next().expect("it was seen");
            let prefix = &prefixes[job.member];
            bytes += more;
            live.push(Live {
                job: *job,
                place,
                row: run.task.row(members[job.member].0),
                state: run.decoder.fork(&prefix.state, capacity(job)),
                next: job.prompt.prompt()[prefix.len..].to_vec(),
                text: Vec::new(),
            });
        }
        if live.is_empty() {
            break;
        }
        let mut rest = live.as_mut_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at_mut(fitting(rest.iter().map(|live| live.next.len()), ROWS));
            rest = later;
            step(run, batch, round, sampling, &mut results);
        }
        live.retain(|live| {
            let ended = results[live.place].is_some();
            if ended {
                bytes -= run.decoder.state_bytes(capacity(&live.job));
            }
            !ended
        });
    }
    results.into_iter().map(|result| result.expect("all have ended")).collect()
}

/// One more token of every sequence.
fn step<D: Decoder>(
    run: &mut DecoderRun<D>,
    batch: &mut [Live<D::State>],
    round: u32,
    sampling: &SamplingConfig,
    results: &mut [Option<Generated>],
) {
    let mut sequences: Vec<_> = batch
        .iter_mut()
        .map(|live| Sequence {
            member: live.row,
            tokens: &live.next,
            wanted: live.next.len() - 1..live.next.len(),
            state: &mut live.state,
        })
        .collect();
    run.forward(&mut sequences);
    let rows: Vec<MemberRow> = batch.iter().map(|live| live.row).collect();
    run.logits(&rows, |row, logits| {
        let live = &mut batch[row];
        let token = sampling.next(logits, round, live.job.item, live.text.len() as u32);
        let stopped = token.is_some_and(|token| sampling.stop.contains(&token));
        if let (Some(token), false) = (token, stopped) {
            live.text.push(token);
            live.next = vec![token];
        }
        let finite = token.is_some();
        if stopped || !finite || live.text.len() == sampling.max_tokens {
            results[live.place] = Some(Generated { tokens: std::mem::take(&mut live.text), stopped, finite });
        }
    });
}
