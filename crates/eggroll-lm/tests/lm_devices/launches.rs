//! What a layer launches for members, against a plain forward of as many rows.

use crate::devices::on_each_gpu;
use crate::made::{config, model, strategy, tokens};
use burn::module::Module;
use burn::tensor::Device;
use eggroll_core::LaunchCount;
use eggroll_lm::load::LlamaConfig;
use eggroll_lm::{Item, Items, SamplingConfig, generate, generate_population, score, score_population};

/// Kernels of a piece of work, once what is tried out has been.
fn kernels(work: impl Fn()) -> u64 {
    (0..2).for_each(|_| work());
    let count = LaunchCount::start();
    work();
    count.kernels()
}

/// Kernels of a layer: plain scores and those of members, plain tokens and those of members.
fn of_a_layer(device: &Device) -> [f64; 4] {
    let [few, many] = [2, 6].map(|layers| {
        let model = model(&LlamaConfig { layers, ..config(true, false) }).to_device(device);
        let population = strategy(&model, 8).ask();
        let items = |count: usize| -> Vec<Item> {
            (0..count).map(|item| Item::new(&tokens(6, item as u32), &tokens(4, 100 + item as u32))).collect()
        };
        let (own, all) = (items(4), items(32));
        let greedy = SamplingConfig::greedy(5);
        [
            kernels(|| drop(score(&model, &all).expect("scores"))),
            kernels(|| drop(score_population(&model, &population, Items::Shared(&own)).expect("scores"))),
            kernels(|| drop(generate(&model, &all, &greedy).expect("texts"))),
            kernels(|| drop(generate_population(&model, &population, Items::Shared(&own), &greedy).expect("texts"))),
        ]
    });
    let mut each = [0.0; 4];
    for (each, (few, many)) in each.iter_mut().zip(few.into_iter().zip(many)) {
        *each = (many - few) as f64 / 4.0;
    }
    [each[0], each[1], each[2] / 5.0, each[3] / 5.0]
}

#[test]
fn launches_of_a_layer() {
    on_each_gpu(|device| {
        let [scores, scores_of_members, tokens, tokens_of_members] = of_a_layer(device);
        println!(
            "scores: plain {scores}, members {scores_of_members}; a token: plain {tokens}, members {tokens_of_members}"
        );
        assert!(scores_of_members <= scores + 2.0);
        assert!(tokens_of_members <= tokens + 2.0);
    });
}
