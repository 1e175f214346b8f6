//! What a layer launches for members, against a plain forward of as many rows.

use crate::devices::on_each_gpu;
use crate::made::{config, model, strategy, tokens};
use burn::module::Module;
use burn::tensor::Device;
use eggroll_core::{LaunchCount, counters};
use eggroll_lm::load::LlamaConfig;
use eggroll_lm::{Item, Items, SamplingConfig, generate, generate_population, score, score_population};

/// All kernels of a piece of work, and eggroll's among them, once what is tried out has been.
fn kernels(work: impl Fn()) -> [f64; 2] {
    (0..3).for_each(|_| work());
    let (count, own) = (LaunchCount::start(), counters::kernels());
    work();
    [count.kernels() as f64, (counters::kernels() - own) as f64]
}

/// Kernels of a layer, with eggroll's: plain scores and those of members, plain tokens and those of members.
fn of_a_layer(device: &Device) -> [[f64; 2]; 4] {
    const TOKENS: usize = 5;
    let [few, many] = [2, 6].map(|layers| {
        let model = model(&LlamaConfig { layers, ..config(true, false) }).to_device(device);
        let population = strategy(&model, 8).ask();
        let items = |count: u32| -> Vec<Item> {
            (0..count).map(|item| Item::new(&tokens(6, item), &tokens(4, 100 + item))).collect()
        };
        let (own, all) = (items(4), items(32));
        let greedy = SamplingConfig::greedy(TOKENS);
        [
            kernels(|| drop(score(&model, &all).expect("scores"))),
            kernels(|| drop(score_population(&model, &population, Items::Shared(&own)).expect("scores"))),
            kernels(|| drop(generate(&model, &all, &greedy).expect("texts"))),
            kernels(|| drop(generate_population(&model, &population, Items::Shared(&own), &greedy).expect("texts"))),
        ]
    });
    let passes = [1, 1, TOKENS, TOKENS];
    [0, 1, 2, 3].map(|work| [0, 1].map(|of| (many[work][of] - few[work][of]) / (4 * passes[work]) as f64))
}

/// A kernel of ours for each of a layer's seven matrices, which draws its factors and projects the rows on them: the product adds them as it
/// writes. The others are Burn's: on software Vulkan its Fusion joins fewer of the operations between perturbed products than between its own,
/// 12 of a layer in a pass of many tokens, 8 in one of a token. As planned were 2 in all.
#[test]
fn launches_of_a_layer() {
    on_each_gpu(|device| {
        let [scores, scores_of_members, token, token_of_members] = of_a_layer(device);
        println!(
            "kernels of a layer, and eggroll's: scores {scores:?}, of members {scores_of_members:?}; a token {token:?}, of members {token_of_members:?}"
        );
        assert_eq!([scores, scores_of_members, token, token_of_members].map(|[_, own]| own), [0.0, 7.0, 0.0, 7.0]);
        for (plain, members) in [(scores, scores_of_members), (token, token_of_members)] {
            assert!(members[0] > plain[0], "a canary: noise is not free");
            assert!(members[0] <= plain[0] + 20.0, "{members:?} against {plain:?}");
        }
    });
}
