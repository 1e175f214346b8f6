//! Texts of members on a device, against those of the host.

use crate::devices::on_each;
use crate::made::{config, items, model, strategy, tokens};
use burn::module::Module;
use eggroll_core::counters;
use eggroll_core::transformer::Precision;
use eggroll_lm::load::{AttentionWindow, GemmaConfig, LayerAttention, LlamaConfig};
use eggroll_lm::{Generated, HostLlama, Item, Items, SamplingConfig, generate, generate_population};

/// With windows, caps, norms of heads and gains of Gemma-3.
fn gemma() -> LlamaConfig {
    LlamaConfig {
        qk_norm: true,
        window: Some(AttentionWindow { positions: 3, rope_theta: Some(1000.0) }),
        attention: vec![LayerAttention { windowed: true, rotary: true }, LayerAttention::FULL],
        gemma: Some(GemmaConfig { query_pre_attn_scalar: 12, attention_cap: Some(5.0), logit_cap: Some(3.0) }),
        ..config(true, false)
    }
}

#[test]
fn texts_are_those_of_the_host() {
    texts_of(&config(false, true));
}

#[test]
fn texts_of_a_relative_are_those_of_the_host() {
    texts_of(&gemma());
}

fn texts_of(config: &LlamaConfig) {
    on_each(|device| {
        let on_host = model(config);
        let host = HostLlama::new(&on_host, Precision::F32);
        let model = on_host.to_device(device);
        let population = strategy(&model, 8).ask();
        let prompts = items(5, 4);
        let each: Vec<Vec<Item>> = (0..8).map(|member| items([3, 0, 1, 5][member % 4], 10 * member as u32)).collect();
        let greedy = SamplingConfig::greedy(8).with_stop([3]);
        for sampling in [greedy.clone(), greedy.clone().with_temperature(1.0).with_min_p(0.02).with_seed(5)] {
            for prompts in [Items::Shared(&prompts), Items::Each(&each)] {
                let expected = generate_population(&host, &population, prompts, &sampling).expect("texts");
                let before = counters::snapshot();
                let found = generate_population(&model, &population, prompts, &sampling).expect("texts");
                assert_eq!(found, expected);
                assert!((counters::snapshot() - before).host_reads <= 8, "one read a token");
            }
        }
        let found = generate_population(&model, &population, Items::Shared(&prompts), &greedy).expect("texts");
        let plain = generate(&model, &prompts, &greedy).expect("texts");
        assert_eq!(plain, generate(&host, &prompts, &greedy).expect("texts"));
        assert!(found.iter().any(|texts| *texts != plain), "a canary: noise changes no text");
        let all: Vec<&Generated> = found.iter().flatten().collect();
        assert!(all.iter().any(|text| text.stopped) || all.iter().all(|text| text.tokens.len() == 8));
    });
}

/// Padding in front of a prompt changes nothing: a long prompt next to a short one.
#[test]
fn prompts_of_other_lengths_do_not_matter() {
    on_each(|device| {
        let model = model(&config(true, false)).to_device(device);
        let prompts = [Item::prompt_only(&tokens(2, 1)), Item::prompt_only(&tokens(40, 2))];
        let greedy = SamplingConfig::greedy(6);
        let together = generate(&model, &prompts, &greedy).expect("texts");
        let alone =
            prompts.iter().flat_map(|prompt| generate(&model, std::slice::from_ref(prompt), &greedy).expect("texts"));
        assert_eq!(together, alone.collect::<Vec<_>>());
        let other = generate(&model, &[Item::prompt_only(&tokens(2, 3))], &greedy).expect("texts");
        assert_ne!(together[0], other[0], "a canary: the prompt does not matter");
    });
}

#[test]
fn logits_that_are_no_numbers_end_a_text() {
    on_each(|device| {
        let mut model = model(&config(false, false)).to_device(device);
        model.norm.gamma = model.norm.gamma.map(|gamma| gamma * f32::NAN);
        for sampling in [SamplingConfig::greedy(4), SamplingConfig::greedy(4).with_temperature(1.0)] {
            let found = generate(&model, &items(2, 1), &sampling).expect("texts");
            assert!(found.iter().all(|text| !text.finite && text.tokens.is_empty()), "{found:?}");
        }
    });
}
