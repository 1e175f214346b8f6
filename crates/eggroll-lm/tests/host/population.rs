//! Members of a population against models of their own.

use crate::made::{config, configs, items, model, strategy, strategy_config, tokens};
use eggroll_core::Role;
use eggroll_core::transformer::Precision;
use eggroll_lm::{
    Decoder, Generated, HostLlama, Item, Items, SamplingConfig, Scored, generate, generate_population, score,
    score_population,
};

const MEMBERS: usize = 10;

#[test]
fn scores_are_those_of_separate_models() {
    for config in configs() {
        let model = model(&config);
        let host = HostLlama::new(&model, Precision::F32);
        let population = strategy(&model, MEMBERS).ask();
        let items = items(9, 4);
        let found = score_population(&host, &population, Items::Shared(&items)).expect("scores");
        assert_eq!(found.len(), MEMBERS);
        let own = |member: usize| {
            score(&HostLlama::new(&population.member(&model, member), Precision::F32), &items).expect("scores")
        };
        let away = |a: &[Scored], b: &[Scored]| {
            let pairs = a.iter().zip(b);
            pairs.map(|(a, b)| (a.log_probability() - b.log_probability()).abs()).fold(0.0, f32::max)
        };
        for (member, found) in found.iter().enumerate() {
            let distance = away(found, &own(member));
            assert!(distance < 2e-4, "member {member}: {distance}");
            // A canary: the pair's other member, whose sign is wrong.
            let other = away(found, &own(member ^ 1));
            assert!(other > 0.02, "member {member}: {other}");
        }
    }
}

fn greedy_of(host: &HostLlama, prompts: &[Item]) -> Vec<Generated> {
    generate(host, prompts, &SamplingConfig::greedy(8).with_stop([3])).expect("texts")
}

#[test]
fn texts_are_those_of_separate_models() {
    let model = model(&config(false, true));
    let host = HostLlama::new(&model, Precision::F32);
    let population = strategy(&model, MEMBERS).ask();
    let prompts = items(5, 4);
    let sampling = SamplingConfig::greedy(8).with_stop([3]);
    let found = generate_population(&host, &population, Items::Shared(&prompts), &sampling).expect("texts");
    for (member, found) in found.iter().enumerate() {
        let own = HostLlama::new(&population.member(&model, member), Precision::F32);
        assert_eq!(*found, greedy_of(&own, &prompts), "member {member}");
    }
    assert!(found.iter().any(|texts| *texts != greedy_of(&host, &prompts)), "noise changes no text");
}

#[test]
fn slices_and_other_items_give_the_same_bits() {
    for precision in Precision::ALL {
        let model = model(&config(false, false));
        let host = HostLlama::new(&model, precision);
        let population = strategy(&model, MEMBERS).ask();
        let items = items(40, 4);
        let sampling = SamplingConfig::greedy(5).with_temperature(1.0);
        let all = score_population(&host, &population, Items::Shared(&items)).expect("scores");
        let texts = generate_population(&host, &population, Items::Shared(&items), &sampling).expect("texts");
        let (mut sliced, mut sliced_texts) = (Vec::new(), Vec::new());
        for members in [0..2, 2..8, 8..10] {
            let slice = population.slice(members);
            sliced.extend(score_population(&host, &slice, Items::Shared(&items)).expect("scores"));
            sliced_texts.extend(generate_population(&host, &slice, Items::Shared(&items), &sampling).expect("texts"));
        }
        assert_eq!(sliced, all, "{precision}");
        assert_eq!(sliced_texts, texts, "{precision}");
        for count in [1, 7, 23] {
            let fewer = score_population(&host, &population, Items::Shared(&items[..count])).expect("scores");
            assert!(fewer.iter().zip(&all).all(|(fewer, all)| *fewer == all[..count]), "{count} items");
            let fewer = generate_population(&host, &population, Items::Shared(&items[..count]), &sampling);
            let fewer = fewer.expect("texts");
            assert!(fewer.iter().zip(&texts).all(|(fewer, all)| *fewer == all[..count]), "{count} items");
        }
    }
}

#[test]
fn groups_are_asked_their_own_items() {
    let model = model(&config(true, false));
    let host = HostLlama::new(&model, Precision::F32);
    let population = strategy(&model, 12).ask();
    let groups: Vec<Vec<Item>> = [4, 1, 7].into_iter().map(|count| items(count, 100 * count as u32)).collect();
    let found = score_population(&host, &population, Items::Groups(&groups)).expect("scores");
    let sampling = SamplingConfig::greedy(4);
    let texts = generate_population(&host, &population, Items::Groups(&groups), &sampling).expect("texts");
    for (group, items) in groups.iter().enumerate() {
        let members = 4 * group..4 * (group + 1);
        let shared = score_population(&host, &population, Items::Shared(items)).expect("scores");
        assert_eq!(found[members.clone()], shared[members.clone()], "group {group}");
        let shared = generate_population(&host, &population, Items::Shared(items), &sampling).expect("texts");
        assert_eq!(texts[members.clone()], shared[members], "group {group}");
    }
    // Members of a slice are not compared with the others of their group.
    let error = score_population(&host, &population.slice(4..12), Items::Groups(&groups[1..])).expect_err("a slice");
    assert!(error.to_string().starts_with("2 groups of items were given for members 4..12 of a population"), "{error}");
}

/// Members of one generation draw alike for the same item, and other generations draw otherwise.
#[test]
fn draws_are_common_to_members() {
    let model = model(&config(false, false));
    let host = HostLlama::new(&model, Precision::F32);
    // So little noise that members are the same model.
    let mut strategy = strategy_config(4).with_sigma(1e-7).try_init(&model).expect("a strategy");
    let prompts = vec![Item::prompt_only(&tokens(3, 1)); 5];
    let sampling = SamplingConfig::greedy(6).with_temperature(1.5);
    let of =
        |population: &_| generate_population(&host, population, Items::Shared(&prompts), &sampling).expect("texts");
    let population = strategy.ask();
    let first = of(&population);
    assert!(first.iter().all(|texts| *texts == first[0]), "members draw alike");
    assert!(first[0].iter().any(|text| *text != first[0][0]), "items draw otherwise");
    let fitness = vec![0.0f32, 1.0, 2.0, 3.0];
    strategy.tell(&mut model.clone(), population, fitness.into()).expect("told");
    assert_ne!(of(&strategy.ask()), first, "generations draw otherwise");
}

#[test]
fn roles_that_are_not_drawn_on_the_host_are_refused() {
    let model = model(&config(false, true));
    let host = HostLlama::new(&model, Precision::F32);
    let can = |config: eggroll_train::EvolutionStrategyConfig| {
        host.can_perturb(config.try_init(&model).expect("a strategy").ask().perturbation())
    };
    assert!(can(strategy_config(4)));
    assert!(can(strategy_config(4).with_roles([("*.mlp.*", Role::Frozen)])));
    assert!(!can(strategy_config(4).with_roles([("*.mlp.*", Role::Dense)])), "dense noise of a matrix");
    assert!(!can(strategy_config(4).with_roles([("norm.gamma", Role::Dense)])), "dense noise of a norm");
    assert!(!can(strategy_config(4).with_frozen(["norm"])), "low-rank noise of embeddings");
}

#[test]
#[should_panic(expected = "which is not drawn on the host")]
fn dense_noise_panics_with_the_parameter() {
    let model = model(&config(false, false));
    let host = HostLlama::new(&model, Precision::F32);
    let config = strategy_config(4).with_roles([("*.mlp.up_proj.weight", Role::Dense)]);
    let population = config.try_init(&model).expect("a strategy").ask();
    drop(score_population(&host, &population, Items::Shared(&items(2, 1))));
}

/// The host would score all members without noise.
#[test]
#[should_panic(expected = "is no matrix of this model on the host: pack the model that the population is of")]
fn noise_of_another_model_is_refused() {
    let host = HostLlama::new(&model(&config(false, true)), Precision::F32);
    let population = strategy(&model(&config(false, true)), MEMBERS).ask();
    drop(score_population(&host, &population, Items::Shared(&items(2, 1))));
}
