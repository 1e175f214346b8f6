//! A step of the strategy, and the model packed again.

use crate::made::{VOCABULARY, config, configs, filled, host_logits, items, model, strategy_config, tokens};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::transformer::Precision;
use eggroll_core::{OpenEsConfig, Role};
use eggroll_lm::host::Changed;
use eggroll_lm::load::Rwkv7Config;
use eggroll_lm::{CausalModel, Decoder, HostLlama, Items, Llama, Rwkv7, score, score_population};
use eggroll_train::{EvolutionStrategyConfig, Fitness};

/// The values of all parameters.
#[derive(Default)]
struct ModelValues(Vec<Vec<f32>>);

impl ModuleVisitor for ModelValues {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(param.val().into_data().try_to_vec().expect("f32"));
    }
}

fn values(model: &Llama) -> Vec<Vec<f32>> {
    let mut values = ModelValues::default();
    model.visit(&mut values);
    values.0
}

/// A generation: the model after it, the host before it and updated, and what changed.
fn step(config: EvolutionStrategyConfig, before: &Llama, precision: Precision) -> (Llama, HostLlama, Changed) {
    let mut strategy = config.try_init(before).expect("a strategy");
    let (mut model, mut host) = (before.clone(), HostLlama::new(before, precision));
    let population = strategy.ask();
    let scored = score_population(&host, &population, Items::Shared(&items(4, 2))).expect("scores");
    let fitness: Vec<f32> =
        scored.iter().map(|member| member.iter().map(|item| item.log_probability()).sum()).collect();
    strategy.tell(&mut model, population, Fitness::from(fitness)).expect("no parameter was left out");
    let changed = host.update(&model, strategy.parameters());
    (model, host, changed)
}

#[test]
fn a_step_changes_what_is_trained() {
    for config in configs() {
        let before = model(&config);
        let strategy = strategy_config(8).with_roles([("layers.1.*", Role::Frozen)]);
        let trained = strategy.try_init(&before).expect("a strategy");
        let trained: Vec<bool> =
            trained.parameters().entries().iter().map(|entry| entry.role != Role::Frozen).collect();
        let (after, ..) = step(strategy, &before, Precision::F32);
        let (before, after) = (values(&before), values(&after));
        assert_eq!(trained.len(), before.len());
        for ((before, after), trained) in before.iter().zip(&after).zip(&trained) {
            assert_eq!(before != after, *trained);
        }
        // Seven layers of the first block, and the head.
        assert_eq!(trained.iter().filter(|trained| **trained).count(), 7 + usize::from(!config.tied_head));
    }
}

#[test]
fn an_update_is_the_same_as_packing_anew() {
    let tokens = tokens(20, 1);
    for (config, precision) in configs().into_iter().flat_map(|c| Precision::ALL.map(|p| (c.clone(), p))) {
        let before = model(&config);
        let (after, host, changed) = step(strategy_config(8), &before, precision);
        let bits = |host: &HostLlama| host_logits(host, &tokens).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&host), bits(&HostLlama::new(&after, precision)), "{precision}");
        assert_ne!(bits(&host), bits(&HostLlama::new(&before, precision)), "{precision}");
        match precision {
            Precision::F32 => assert_eq!(changed.share(), None),
            _ => {
                let layer = 2 * 48 * 48 + 2 * 48 * 16 + 3 * 48 * 80;
                let head = if config.tied_head { 0 } else { 48 * 97 };
                assert_eq!(changed.weights, 2 * layer + head);
                assert!((0.01..1.0).contains(&changed.share().expect("weights")), "{changed:?}");
            }
        }
    }
}

#[test]
fn weights_that_are_frozen_are_not_counted() {
    let before = model(&config(false, true));
    let roles = [("layers.*.mlp.*", Role::Frozen), ("lm_head.*", Role::Frozen)];
    let (_, _, changed) = step(strategy_config(8).with_roles(roles), &before, Precision::Int8);
    assert_eq!(changed.weights, 2 * (2 * 48 * 48 + 2 * 48 * 16));
    // The same model again: nothing has changed.
    let strategy = strategy_config(8).try_init(&before).expect("a strategy");
    let changed = HostLlama::new(&before, Precision::Int8).update(&before, strategy.parameters());
    assert!(changed.changed == 0 && changed.weights > 0 && changed.share() == Some(0.0), "{changed:?}");
}

/// Whichever parameter is trained alone, the updated host is the model packed anew, bit for bit, and not the one before.
fn each_parameter_is_packed<M: CausalModel>(before: &M, precision: Precision) {
    let packed = |model: &M| bits(&model.to_host(precision));
    let strategy = |roles: &[(&str, Role)]| {
        let strategy = EvolutionStrategyConfig::new(OpenEsConfig::new(), SgdConfig::new()).with_sigma(0.3);
        strategy.with_roles(roles.iter().copied()).try_init(before).expect("a strategy")
    };
    let all = strategy(&[]);
    for path in all.parameters().entries().iter().map(|entry| entry.path.as_str()) {
        let strategy = strategy(&[(path, Role::Dense), ("*", Role::Frozen)]);
        let after = strategy.ask().member(before, 3);
        let mut host = before.to_host(precision);
        after.update_host(&mut host, strategy.parameters());
        assert_eq!(bits(&host), packed(&after), "{path}, {precision}");
        assert_ne!(bits(&host), packed(before), "{path}, {precision}: nothing has changed");
    }
}

fn bits<D: Decoder>(host: &D) -> Vec<u32> {
    let scored = score(host, &items(6, 2)).expect("scores");
    scored.iter().map(|scored| scored.log_probability().to_bits()).collect()
}

#[test]
fn whatever_is_trained_is_packed() {
    for precision in Precision::ALL {
        configs().iter().for_each(|config| each_parameter_is_packed(&model(config), precision));
        for tied_head in [false, true] {
            let (vocab_size, hidden_size, intermediate_size, layers, head_dim) = (VOCABULARY, 32, 48, 2, 16);
            let (decay_rank, a_rank, v_rank, gate_rank, norm_eps) = (4, 4, 4, 4, 1e-5);
            let config = Rwkv7Config {
                vocab_size,
                hidden_size,
                intermediate_size,
                layers,
                head_dim,
                decay_rank,
                a_rank,
                v_rank,
                gate_rank,
                norm_eps,
                tied_head,
            };
            each_parameter_is_packed(&filled(Rwkv7::new(&config, &Device::flex())), precision);
        }
    }
}
