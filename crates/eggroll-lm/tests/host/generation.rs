//! Texts of a model without noise.

use crate::made::{VOCABULARY, config, configs, model, tensor_logits, tokens};
use eggroll_core::transformer::Precision;
use eggroll_lm::{HostLlama, Item, Llama, SamplingConfig, generate};

fn host() -> HostLlama {
    HostLlama::new(&model(&config(false, true)), Precision::F32)
}

fn prompts(count: usize) -> Vec<Item> {
    (0..count).map(|index| Item::prompt_only(&tokens(1 + index * 5 % 17, index as u32))).collect()
}

/// Greedy tokens, each of a forward pass over all tokens before.
pub fn uncached(model: &Llama, prompt: &[u32], count: usize) -> Vec<u32> {
    let mut all = prompt.to_vec();
    for _ in 0..count {
        let logits = tensor_logits(model, &all);
        let last = &logits[(all.len() - 1) * VOCABULARY..];
        let best = (1..VOCABULARY).fold(0, |best, token| if last[token] > last[best] { token } else { best });
        all.push(best as u32);
    }
    all.split_off(prompt.len())
}

#[test]
fn greedy_tokens_are_those_of_the_uncached_model() {
    for config in configs() {
        let model = model(&config);
        let host = HostLlama::new(&model, Precision::F32);
        let prompts = prompts(9);
        let found = generate(&host, &prompts, &SamplingConfig::greedy(12)).expect("texts");
        for (prompt, found) in prompts.iter().zip(&found) {
            assert_eq!(found.tokens, uncached(&model, prompt.prompt(), 12), "{prompt:?}");
            assert!(!found.stopped);
        }
        assert!(found.iter().any(|text| text.tokens != found[0].tokens), "all prompts give one text");
    }
}

#[test]
fn prompts_that_begin_alike_give_the_same_texts_as_alone() {
    let host = host();
    let mut prompts = crate::made::items(7, 3);
    prompts.push(Item::prompt_only(&[5, 6, 7]));
    prompts.push(Item::prompt_only(&[5]));
    let together = generate(&host, &prompts, &SamplingConfig::greedy(8)).expect("texts");
    for (prompt, text) in prompts.iter().zip(&together) {
        let alone = generate(&host, std::slice::from_ref(prompt), &SamplingConfig::greedy(8)).expect("a text");
        assert_eq!(&alone[0], text);
    }
}

#[test]
fn stop_tokens_end_a_text_and_are_not_part_of_it() {
    let (host, prompts) = (host(), prompts(9));
    let all = generate(&host, &prompts, &SamplingConfig::greedy(12)).expect("texts");
    // The third token of the first text, and one that ends another at once.
    let stop = [all[0].tokens[2], all[4].tokens[0]];
    let found = generate(&host, &prompts, &SamplingConfig::greedy(12).with_stop(stop)).expect("texts");
    for (all, found) in all.iter().zip(&found) {
        let end = all.tokens.iter().position(|token| stop.contains(token));
        assert_eq!(found.stopped, end.is_some());
        assert_eq!(found.tokens, all.tokens[..end.unwrap_or(12)]);
    }
    assert!(found[0].tokens.len() <= 2 && found[4].tokens.is_empty());
    for count in [1, 5] {
        let short = generate(&host, &prompts, &SamplingConfig::greedy(count)).expect("texts");
        assert!(short.iter().zip(&all).all(|(short, all)| short.tokens == all.tokens[..count] && !short.stopped));
    }
}

#[test]
fn draws_are_those_of_the_seed() {
    let (host, prompts) = (host(), prompts(6));
    let of = |seed| {
        let sampling = SamplingConfig::greedy(10).with_temperature(1.5).with_seed(seed);
        generate(&host, &prompts, &sampling).expect("texts")
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
    assert_ne!(of(1), of(1 + (1 << 32)), "the high half of the seed counts");
    assert_ne!(of(1), generate(&host, &prompts, &SamplingConfig::greedy(10)).expect("texts"));
    // A temperature near 0 is greedy, and so is the largest share only.
    let greedy = generate(&host, &prompts, &SamplingConfig::greedy(10)).expect("texts");
    let cold = SamplingConfig::greedy(10).with_temperature(1e-4);
    assert_eq!(generate(&host, &prompts, &cold).expect("texts"), greedy);
    let strict = SamplingConfig::greedy(10).with_temperature(1.0).with_min_p(1.0);
    assert_eq!(generate(&host, &prompts, &strict).expect("texts"), greedy);
}

/// One token of many items: counts of tokens near the softmax, and none below `min_p`.
#[test]
fn draws_have_the_probabilities_of_the_softmax() {
    const DRAWS: usize = 20_000;
    let model = model(&config(false, false));
    let host = HostLlama::new(&model, Precision::F32);
    let prompt = tokens(3, 4);
    let items = vec![Item::prompt_only(&prompt); DRAWS];
    let logits = tensor_logits(&model, &prompt);
    let last = &logits[2 * VOCABULARY..];
    for (temperature, min_p) in [(1.0, 0.0), (0.5, 0.0), (1.0, 0.3)] {
        let sampling = SamplingConfig::greedy(1).with_temperature(temperature).with_min_p(min_p).with_seed(3);
        let mut counts = vec![0usize; VOCABULARY];
        for text in generate(&host, &items, &sampling).expect("texts") {
            counts[text.tokens[0] as usize] += 1;
        }
        let chi_square = |temperature: f32| {
            let largest = last.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weight = |logit: &f32| f64::from((logit - largest) / temperature).exp();
            let weights: Vec<f64> =
                last.iter().map(weight).map(|w| if w < f64::from(min_p) { 0.0 } else { w }).collect();
            let total: f64 = weights.iter().sum();
            let (mut sum, mut kinds, mut few) = (0.0, 0, (0.0, 0.0));
            for (count, weight) in counts.iter().zip(&weights) {
                assert!(*weight > 0.0 || *count == 0, "a token below min_p");
                let (expected, count) = (weight / total * DRAWS as f64, *count as f64);
                if expected < 10.0 {
                    few = (few.0 + expected, few.1 + count);
                } else {
                    sum += (count - expected).powi(2) / expected;
                    kinds += 1;
                }
            }
            if few.0 > 1.0 {
                sum += (few.1 - few.0).powi(2) / few.0;
                kinds += 1;
            }
            // Mean and standard deviation of chi-square: k − 1, √(2(k − 1)).
            let freedom = f64::from(kinds - 1).max(1.0);
            (sum - freedom) / (2.0 * freedom).sqrt()
        };
        assert!(chi_square(temperature).abs() < 4.5, "{temperature}, {min_p}: {}", chi_square(temperature));
        assert!(chi_square(temperature * 1.1) > 6.0, "a canary: {}", chi_square(temperature * 1.1));
    }
}
