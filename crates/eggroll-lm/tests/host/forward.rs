//! The host against tensors.

use crate::made::{VOCABULARY, configs, host_logits, items, largest_difference, model, tensor_logits, tokens};
use eggroll_core::transformer::Precision;
use eggroll_lm::host::Decoder;
use eggroll_lm::{HostLlama, Item, score};

const TOLERANCE: f32 = 1e-4;

#[test]
fn logits_are_those_of_tensors() {
    for config in configs() {
        let model = model(&config);
        let host = HostLlama::new(&model, Precision::F32);
        assert_eq!((host.vocab_size(), host.context_length(), host.hidden_size()), (VOCABULARY, 64, 48));
        for len in [1, 2, 13, 33, 64] {
            let tokens = tokens(len, len as u32);
            let (expected, found) = (tensor_logits(&model, &tokens), host_logits(&host, &tokens));
            let difference = largest_difference(&expected, &found);
            assert!(difference < TOLERANCE, "tied {}, {len} tokens: {difference}", config.tied_head);
            assert!(expected.iter().any(|logit| logit.abs() > 1.0), "logits are near zero");
            if len > 2 {
                // A canary: order matters.
                let mut other = tokens.clone();
                other.swap(0, 1);
                assert_ne!(other, tokens);
                let last = (len - 1) * VOCABULARY..;
                let found = host_logits(&host, &other);
                assert!(largest_difference(&expected[last.clone()], &found[last]) > 10.0 * TOLERANCE);
            }
        }
    }
}

#[test]
fn lower_precisions_are_near() {
    let formats = [(Precision::Bf16, 1e-4..0.01), (Precision::Int8, 1e-4..0.05)];
    for (config, (precision, range)) in configs().into_iter().flat_map(|c| formats.clone().map(|f| (c.clone(), f))) {
        let model = model(&config);
        let tokens = tokens(20, 3);
        let expected = tensor_logits(&model, &tokens);
        let found = host_logits(&HostLlama::new(&model, precision), &tokens);
        let square = |values: &[f32]| values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let error: Vec<f32> = expected.iter().zip(&found).map(|(a, b)| a - b).collect();
        let relative = square(&error) / square(&expected);
        assert!(range.contains(&relative), "{precision}: {relative}");
    }
}

/// `Σ ln p` of the completion, and whether all of it is most probable.
pub fn scored(logits: &[f32], item: &Item) -> (f64, bool) {
    let rows = logits.chunks_exact(VOCABULARY).skip(item.prompt().len() - 1).zip(item.completion());
    rows.fold((0.0, true), |(sum, exact), (row, target)| {
        let total: f64 = row.iter().map(|logit| f64::from(*logit).exp()).sum();
        let target = row[*target as usize];
        (sum + f64::from(target) - total.ln(), exact && row.iter().all(|logit| *logit <= target))
    })
}

#[test]
fn scores_are_those_of_tensors() {
    for config in configs() {
        let model = model(&config);
        let host = HostLlama::new(&model, Precision::F32);
        let mut items = items(11, 5);
        // The most probable token: some completions are exact.
        for prompt in [tokens(4, 8), tokens(9, 9)] {
            let logits = tensor_logits(&model, &prompt);
            let last = &logits[(prompt.len() - 1) * VOCABULARY..];
            let best = (0..VOCABULARY).max_by(|a, b| last[*a].total_cmp(&last[*b])).expect("a token");
            items.push(Item::new(&prompt, &[best as u32]));
        }
        let found = score(&host, &items).expect("scores");
        assert_eq!(found.len(), items.len());
        for (item, found) in items.iter().zip(&found) {
            let all = [item.prompt(), item.completion()].concat();
            let (log_probability, exact) = scored(&tensor_logits(&model, &all), item);
            assert!((f64::from(found.log_probability()) - log_probability).abs() < 2e-4, "{item:?}");
            assert_eq!((found.log_probabilities.len(), found.exact), (item.completion().len(), exact), "{item:?}");
        }
        assert!(found.iter().any(|scored| scored.exact) && found.iter().any(|scored| !scored.exact));
        // Each alone: the same bits.
        let alone: Vec<_> = items.iter().flat_map(|item| score(&host, std::slice::from_ref(item)).unwrap()).collect();
        assert_eq!(alone, found);
    }
}
