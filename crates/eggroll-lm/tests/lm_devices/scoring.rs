//! Scores of members on a device, against those of the host.

use crate::devices::{on_each, on_each_gpu};
use crate::made::{config, items, model, strategy, strategy_config};
use burn::module::{Lora, Module, ModuleMapper, Param, QLora, Quantizer};
use burn::tensor::quantization::{Calibration, QuantValue};
use burn::tensor::{DType, Tensor};
use eggroll_core::transformer::Precision;
use eggroll_core::{Role, counters};
use eggroll_lm::{HostLlama, Item, Items, Llama, Scored, score, score_population};

/// The number.
const MEMBERS: usize = 32;
/// Largest difference of `ln p` of an item, both sides in f32. A logit is a sum of 48 products behind two layers of sums of up to 80: each side
/// is off by about `√(48 + 2·4·80)·2⁻²⁴·|x|`, 2e-6 of values near 1, which the layers' norms and a softmax of 97 logits of up to ±10
/// multiply by some tens. Found: 6e-6 on flex, ndarray and software Vulkan.
const TOLERANCE: f32 = 1e-4;

pub fn largest(a: &[Vec<Scored>], b: &[Vec<Scored>]) -> f32 {
    assert_eq!(a.len(), b.len());
    let items = |(a, b): (&Vec<Scored>, &Vec<Scored>)| {
        assert_eq!(a.len(), b.len());
        a.iter().cloned().zip(b.iter().cloned()).collect::<Vec<_>>()
    };
    let of_item = |(a, b): (Scored, Scored)| {
        assert_eq!(a.log_probabilities.len(), b.log_probabilities.len());
        let away = (a.log_probability() - b.log_probability()).abs();
        if away.is_nan() { f32::INFINITY } else { away }
    };
    a.iter().zip(b).flat_map(items).map(of_item).fold(0.0, f32::max)
}

#[test]
fn scores_are_those_of_the_host() {
    on_each(|device| {
        for config in [config(false, true), config(true, false)] {
            let on_host = model(&config);
            let host = HostLlama::new(&on_host, Precision::F32);
            let model = on_host.to_device(device);
            let mut strategy = strategy(&model, MEMBERS);
            let items = items(9, 4);
            let population = strategy.ask();
            let expected = score_population(&host, &population, Items::Shared(&items)).expect("scores");
            let before = counters::snapshot();
            let found = score_population(&model, &population, Items::Shared(&items)).expect("scores");
            assert_eq!((counters::snapshot() - before).host_reads, 1, "one read a batch");
            let away = largest(&found, &expected);
            println!("largest difference {away:.1e}");
            assert!(away < TOLERANCE, "{away}");
            let exact = |of: &[Vec<Scored>]| of.iter().flatten().map(|item| item.exact).collect::<Vec<_>>();
            assert_eq!(exact(&found), exact(&expected));
            // Canaries: opposite noise, and that of another generation.
            let swapped: Vec<Vec<Scored>> = (0..MEMBERS).map(|member| found[member ^ 1].clone()).collect();
            assert!(largest(&swapped, &expected) > 0.02, "a sign that is swapped");
            let fitness: Vec<f32> = (0..MEMBERS).map(|_| 1.0).collect();
            strategy.tell(&mut model.clone(), population, fitness.into()).expect("told");
            let next = score_population(&model, &strategy.ask(), Items::Shared(&items)).expect("scores");
            assert!(largest(&next, &expected) > 0.02, "other noise");
            let plain = score(&host, &items).expect("scores");
            assert!(largest(&[score(&model, &items).expect("scores")], std::slice::from_ref(&plain)) < TOLERANCE);
            assert!(largest(&[found[0].clone()], &[plain]) > 0.02, "noise");
        }
    });
}

#[test]
fn lists_of_members_are_their_own() {
    on_each(|device| {
        let on_host = model(&config(false, false));
        let host = HostLlama::new(&on_host, Precision::F32);
        let model = on_host.to_device(device);
        let population = strategy(&model, 8).ask();
        let groups = [items(3, 1), items(1, 50)];
        // As in episodes: some members have been asked all.
        let each: Vec<Vec<Item>> = (0..8).map(|member| items([3, 0, 1, 5][member % 4], 10 * member as u32)).collect();
        let slice = population.slice(2..6);
        for (population, items) in [
            (&population, Items::Groups(&groups)),
            (&population, Items::Each(&each)),
            (&slice, Items::Each(&each[..4])),
            (&slice, Items::Shared(&groups[0])),
        ] {
            let expected = score_population(&host, population, items).expect("scores");
            let found = score_population(&model, population, items).expect("scores");
            assert!(largest(&found, &expected) < TOLERANCE);
        }
    });
}

/// Noise that the host has no kernels for: dense in a norm, low rank in tied embeddings, against members that are separate models.
#[test]
fn any_noise_is_that_of_separate_models() {
    on_each(|device| {
        let model = model(&config(true, true)).to_device(device);
        let roles = [("norm.gamma", Role::Dense), ("embed_tokens.weight", Role::LowRank { rank: 1 })];
        let strategy = strategy_config(4).with_frozen(Vec::<&str>::new()).with_roles(roles).try_init(&model);
        let population = strategy.expect("a strategy").ask();
        let items = items(3, 1);
        let found = score_population(&model, &population, Items::Shared(&items)).expect("scores");
        let own = |member: usize| score(&population.member(&model, member), &items).expect("scores");
        let expected: Vec<Vec<Scored>> = (0..4).map(own).collect();
        assert!(largest(&found, &expected) < TOLERANCE, "{}", largest(&found, &expected));
    });
}

struct Cast(DType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|values| values.cast(self.0))
    }
}

/// One copy of the weights, in half of the bytes. A number of f16 has 11 bits: layers are off by about 2⁻¹¹ of their values, which 2e-4 in f32
/// becomes 2¹³ times; less, because sums and norms stay in f32. Found: 8e-3 on software Vulkan.
#[test]
fn half_precision_is_near() {
    on_each_gpu(|device| {
        let on_host = model(&config(false, true));
        let host = HostLlama::new(&on_host, Precision::F32);
        let model: Llama = on_host.to_device(device).map(&mut Cast(DType::F16));
        let population = strategy(&model, MEMBERS).ask();
        let items = items(9, 4);
        let expected = score_population(&host, &population, Items::Shared(&items)).expect("scores");
        let found = score_population(&model, &population, Items::Shared(&items)).expect("scores");
        let away = largest(&found, &expected);
        println!("largest difference {away:.1e}");
        assert!(away < 0.05, "{away}");
        assert!(away > TOLERANCE, "a canary: f16 is not f32");
    });
}

/// Members over one copy of the weights in int8, whose adapters have the noise, against members that are separate models.
#[test]
fn quantized_weights_are_shared_by_adapters() {
    on_each(|device| {
        // Rows of multiples of four, which devices pack into words: no separate output layer.
        let model = model(&config(true, true)).to_device(device);
        let eight_bits = device.settings().quantization.scheme.with_value(QuantValue::Q8S);
        let quantizer = Quantizer::new(Calibration::MinMax, eight_bits);
        let model = model.apply_qlora(QLora::new(Lora::new(2, 4.0), quantizer));
        let population = strategy_config(8).with_frozen(Vec::<&str>::new()).try_init(&model).expect("a strategy").ask();
        let items = items(5, 2);
        let found = score_population(&model, &population, Items::Shared(&items)).expect("scores");
        let own = |member: usize| score(&population.member(&model, member), &items).expect("scores");
        let expected: Vec<Vec<Scored>> = (0..8).map(own).collect();
        assert!(largest(&found, &expected) < TOLERANCE, "{}", largest(&found, &expected));
        let plain = score(&model, &items).expect("scores");
        assert!(largest(&[found[0].clone()], &[plain]) > 100.0 * TOLERANCE, "noise");
    });
}
