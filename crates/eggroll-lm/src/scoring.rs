//! Probabilities of texts under the members of a population.

use crate::host::{Decoder, MemberTask, ROWS, Sequence, fitting, run_parts, run_tasks};
use crate::items::{Item, Items, ItemsError};
use crate::language_model::{LanguageModel, Scored};
use crate::run::DecoderRun;
use eggroll_core::transformer::{MemberRow, argmax, log_sum_exp};
use eggroll_train::Population;

/// Scores items with a model without noise: `[items]`.
///
/// # Errors
///
/// [`ItemsError`] for an item without tokens, or an item longer than the context.
pub fn score<M: LanguageModel + ?Sized>(model: &M, items: &[Item]) -> Result<Vec<Scored>, ItemsError> {
    let items = Items::Shared(items);
    items.check_completions(model.limits(), 2)?;
    Ok(model.scores(None, items).into_iter().flatten().collect())
}

/// [`score`] on the host.
pub(crate) fn without_noise<D: Decoder>(decoder: &D, items: &[Item]) -> Vec<Scored> {
    let plain = MemberTask::plain();
    let scored =
        run_parts(items, Item::tokens, |part| score_members(&mut DecoderRun::new(decoder, &plain), &[(0, part)]));
    scored.into_iter().flatten().flatten().collect()
}

/// Scores items with every member of a population: `[members][items]`, in the order of members and items.
///
/// On the host, results depend neither on how members are batched nor on the number of cores. The common beginning of a member's items is computed once for the
/// member. On a device ([`Llama`](crate::Llama)) members run in batches over one copy of the weights, with one read to the host for each batch.
///
/// # Errors
///
/// [`ItemsError`] for items without tokens, items longer than the context, or lists that do not fit the population.
///
/// # Panics
///
/// Panics on the host if the noise is not of low rank on the model's matrices, or from a table ([`Decoder::can_perturb`]): such members are
/// separate models.
#[track_caller]
pub fn score_population<M: LanguageModel + ?Sized>(
    model: &M,
    population: &Population,
    items: Items,
) -> Result<Vec<Vec<Scored>>, ItemsError> {
    items.check_whole(population)?;
    items.check_completions(model.limits(), population.count())?;
    Ok(model.scores(Some(population), items))
}

/// [`score_population`] on the host.
#[track_caller]
pub(crate) fn of_members<D: Decoder>(decoder: &D, population: &Population, items: Items) -> Vec<Vec<Scored>> {
    let scored = run_tasks(decoder, population, items.rows(), |task| {
        score_members(&mut DecoderRun::new(decoder, task), &items.of_members(&task.members, population))
    });
    scored.into_iter().flatten().collect()
}

/// The scores of every member's items.
fn score_members<D: Decoder>(run: &mut DecoderRun<D>, members: &[(usize, &[Item])]) -> Vec<Vec<Scored>> {
    let prefixes = run.prefixes(members);
    let mut scored: Vec<Vec<Scored>> = members.iter().map(|(_, items)| Vec::with_capacity(items.len())).collect();
    let jobs = members.iter().enumerate().flat_map(|(m, (_, items))| items.iter().map(move |item| (m, item)));
    let jobs: Vec<(usize, &Item)> = jobs.collect();
    let mut rest = jobs.as_slice();
    while !rest.is_empty() {
        let count = fitting(rest.iter().map(|(m, item)| item.tokens() - prefixes[*m].len), ROWS);
        let (jobs, later) = rest.split_at(count);
        rest = later;
        // The last token is only predicted.
        let fork = |(m, item): &(usize, &Item)| run.decoder.fork(&prefixes[*m].state, item.tokens() - 1);
        let mut states: Vec<D::State> = jobs.iter().map(fork).collect();
        let mut sequences: Vec<_> = jobs
            .iter()
            .zip(&mut states)
            .map(|((m, item), state)| {
                let (start, member) = (prefixes[*m].len, run.task.row(members[*m].0));
                let tokens = &item.all()[start..item.tokens() - 1];
                Sequence { member, tokens, wanted: item.prompt().len() - 1 - start..tokens.len(), state }
            })
            .collect();
        run.forward(&mut sequences);
        let row = |(m, item): &(usize, &Item)| vec![run.task.row(members[*m].0); item.completion().len()];
        let rows: Vec<MemberRow> = jobs.iter().flat_map(row).collect();
        let targets: Vec<u32> = jobs.iter().flat_map(|(_, item)| item.completion()).copied().collect();
        let mut judged = Vec::with_capacity(rows.len());
        run.logits(&rows, |row, logits| {
            let target = targets[row] as usize;
            judged.push((logits[target] - log_sum_exp(logits), argmax(logits) == Some(target)));
        });
        let mut judged = judged.into_iter();
        for (m, item) in jobs {
            let tokens = judged.by_ref().take(item.completion().len());
            let (log_probabilities, exact): (Vec<f32>, Vec<bool>) = tokens.unzip();
            scored[*m].push(Scored { log_probabilities, exact: exact.into_iter().all(|exact| exact) });
        }
    }
    scored
}
