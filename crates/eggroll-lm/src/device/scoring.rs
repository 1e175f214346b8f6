//! Scores of items: rows padded after their tokens, and logits only where a completion is predicted.

use super::batches::{Batch, TOKENS, batches};
use crate::items::{Item, Items};
use crate::language_model::Scored;
use crate::llama::Llama;
use crate::values::read;
use burn::tensor::{DType, Int, Tensor, TensorData};
use eggroll_core::ops::row_cross_entropy;
use eggroll_train::Population;

/// Bytes of logits at a time.
const LOGIT_BYTES: usize = 256 << 20;

#[track_caller]
pub(super) fn scores(model: &Llama, population: Option<&Population>, items: Items) -> Vec<Vec<Scored>> {
    let lists = items.by_member(population);
    let longest = lists.iter().copied().flatten().map(Item::tokens).max().unwrap_or(1);
    let mut scored: Vec<Vec<Scored>> = lists.iter().map(|items| Vec::with_capacity(items.len())).collect();
    for batch in batches(&lists, TOKENS / longest) {
        for (member, items) in batch.members.clone().zip(score_batch(model, population, &batch)) {
            scored[member].extend(items);
        }
    }
    scored
}

/// Predictions of some rows: their positions and targets.
struct Predictions {
    /// Rows of the layers' output.
    places: Vec<i32>,
    targets: Vec<i32>,
}

#[track_caller]
fn score_batch(model: &Llama, population: Option<&Population>, batch: &Batch) -> Vec<Vec<Scored>> {
    let (rows, device) = (batch.rows(), model.device());
    // The last token is only predicted.
    let length = rows.iter().flatten().map(|item| item.tokens() - 1).max().unwrap_or(0);
    let padded = |item: &Option<&Item>| {
        let tokens = item.map_or(&[][..], |item| &item.all()[..item.tokens() - 1]);
        (0..length).map(|slot| tokens.get(slot).map_or(0, |token| *token as i32)).collect::<Vec<_>>()
    };
    let tokens: Vec<i32> = rows.iter().flat_map(padded).collect();
    let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [rows.len(), length]), &device);
    let members = batch.members.len();
    let of_members: Vec<Predictions> = (0..members).map(|member| predictions(batch, member, length)).collect();
    let most = of_members.iter().map(|of| of.targets.len()).max().unwrap_or(0);
    let vocabulary = model.config().vocab_size;
    let width = (LOGIT_BYTES / (4 * vocabulary * members)).clamp(1, most);
    let judged = batch.run(population, || {
        let [hidden_size, rows] = [model.config().hidden_size, rows.len() * length];
        let hidden = model.hidden_rows(tokens).reshape([rows, hidden_size]);
        let part = |first: usize| {
            let numbers = |of: &dyn Fn(&Predictions) -> &Vec<i32>, empty: &dyn Fn(usize) -> i32| {
                let place = |member: usize, place: usize| {
                    of(&of_members[member]).get(place).copied().unwrap_or_else(|| empty(member))
                };
                let of_member = |member| (first..most.min(first + width)).map(move |number| place(member, number));
                let numbers: Vec<i32> = (0..members).flat_map(of_member).collect();
                let shape = [numbers.len()];
                Tensor::<1, Int>::from_data(TensorData::new(numbers, shape), &device)
            };
            // Members with fewer predictions are padded with others of their rows.
            let places = numbers(&|of| &of.places, &|member| (member * batch.each * length) as i32);
            let targets = numbers(&|of| &of.targets, &|_| 0);
            judge(model.head(hidden.clone().select(0, places)), targets)
        };
        Tensor::cat((0..most).step_by(width).map(part).collect(), 1) // [2, members · most]
    });
    let judged = read(judged);
    let (log_probabilities, exact) = judged.split_at(members * most);
    let place = |member: usize, number: usize| {
        let first = number / width * width;
        first * members + member * width.min(most - first) + number - first
    };
    let of_member = |(member, items): (usize, &&[Item])| {
        let mut next = 0;
        let of_item = |item: &Item| {
            let places: Vec<usize> =
                (next..next + item.completion().len()).map(|number| place(member, number)).collect();
            next += places.len();
            Scored {
                log_probabilities: places.iter().map(|place| log_probabilities[*place]).collect(),
                exact: places.iter().all(|place| exact[*place] == 1.0),
            }
        };
        items.iter().map(of_item).collect()
    };
    batch.items.iter().enumerate().map(of_member).collect()
}

/// The predictions of a member's completions.
fn predictions(batch: &Batch, member: usize, length: usize) -> Predictions {
    let mut found = Predictions { places: Vec::new(), targets: Vec::new() };
    for (row, item) in batch.items[member].iter().enumerate() {
        let begin = (member * batch.each + row) * length;
        found.places.extend((item.prompt().len() - 1..item.tokens() - 1).map(|token| (begin + token) as i32));
        found.targets.extend(item.completion().iter().map(|token| *token as i32));
    }
    found
}

/// `ln p` of the target of every row of logits, and whether it is the most probable token: `[2, rows]`.
fn judge(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<2> {
    let logits = logits.cast(DType::F32);
    let best = logits.clone().argmax(1).flatten::<1>(0, 1);
    let exact = targets.clone().cast(best.dtype()).equal(best).float().cast(DType::F32);
    let log_probabilities = row_cross_entropy(logits, targets, 1).neg(); // [1, rows]
    Tensor::cat(vec![log_probabilities, exact.unsqueeze()], 0)
}
