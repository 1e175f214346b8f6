//! SmolLM2-135M-Instruct, members on a device against the host. Skipped where `scripts/smollm2` has not fetched the file.

use crate::devices::on_each_gpu;
use crate::fetched;
use burn::module::Module;
use burn::tensor::Device;
use eggroll_core::transformer::Precision;
use eggroll_lm::load::Pretrained;
use eggroll_lm::{
    CausalModel, FinetuneConfig, Item, Items, Llama, SamplingConfig, Scored, generate_population, score_population,
};

/// Largest difference of `ln p` of a token. Thirty layers; logits of the host and of another implementation in f32 differ by less than
/// 2e-3, and two of them make a `ln p`. Found: 4e-5 on software Vulkan.
const TOLERANCE: f32 = 4e-3;

#[test]
fn members_are_those_of_the_host() {
    let Some(path) = fetched::model() else { return };
    on_each_gpu(|device| {
        let Pretrained { config, weights, tokenizer, .. } = Pretrained::open(&path).expect("a model");
        let on_host = Llama::load(&config, &weights, &Device::flex()).expect("weights");
        let host = on_host.to_host(Precision::F32);
        let model = on_host.to_device(device);
        let strategy = FinetuneConfig::new().with_population_size(4).strategy::<Llama>().try_init(&model);
        let population = strategy.expect("a strategy").ask();
        let item = |prompt: &str, completion: &str| {
            Item::new(&tokenizer.encode(prompt).expect("tokens"), &tokenizer.encode(completion).expect("tokens"))
        };
        let items = [item("The capital of France is", " Paris."), item("Two and two", " is four")];
        let expected = score_population(&host, &population, Items::Shared(&items)).expect("scores");
        let found = score_population(&model, &population, Items::Shared(&items)).expect("scores");
        let largest = |other: &dyn Fn(usize) -> usize| {
            let tokens = |of: &[Scored]| -> Vec<f32> {
                of.iter().flat_map(|item| item.log_probabilities.iter().copied()).collect()
            };
            let of_member = |member: usize| {
                let (found, expected) = (tokens(&found[member]), tokens(&expected[other(member)]));
                assert_eq!(found.len(), expected.len());
                found.into_iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
            };
            (0..4).map(of_member).fold(0.0, f32::max)
        };
        let away = largest(&|member| member);
        println!("largest difference {away:.1e}");
        assert!(away < TOLERANCE, "{away}");
        assert!(largest(&|member| member ^ 1) > 10.0 * TOLERANCE, "a canary: opposite noise");
        let prompts = [Item::prompt_only(items[0].prompt()), Item::prompt_only(items[1].prompt())];
        let greedy = SamplingConfig::greedy(4);
        let expected = generate_population(&host, &population, Items::Shared(&prompts), &greedy).expect("texts");
        let found = generate_population(&model, &population, Items::Shared(&prompts), &greedy).expect("texts");
        assert_eq!(found, expected);
    });
}
