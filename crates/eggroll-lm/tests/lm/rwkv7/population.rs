//! Members of a population against models of their own.

use super::*;
use burn::module::{ModuleMapper, Param};
use burn::optim::SgdConfig;
use eggroll_core::{EggrollConfig, ParameterTable, Role};
use eggroll_lm::{Item, Items, SamplingConfig, Scored, generate, generate_population, score, score_population};
use eggroll_train::{EvolutionStrategyConfig, Population};

const MEMBERS: usize = 8;

/// Low-rank noise of the blocks' matrices; of vectors too if they are trained.
fn roles(vectors: bool) -> Vec<(&'static str, Role)> {
    let others = if vectors { ("blocks.*", Role::Dense) } else { ("blocks.*", Role::Frozen) };
    vec![("blocks.*.weight", Role::LowRank { rank: 2 }), others, ("*", Role::Frozen)]
}

fn population(model: &Rwkv7, roles: Vec<(&'static str, Role)>) -> Population {
    let config = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(2), SgdConfig::new());
    config.with_population_size(MEMBERS).with_sigma(0.05).with_roles(roles).init(model).ask()
}

fn items() -> Vec<Item> {
    // The first two begin alike.
    let (shared, mut rest) = (tokens(1, 9), tokens(2, 20));
    let first = [shared.clone(), rest.split_off(14)].concat();
    let second = [shared, rest.split_off(10)].concat();
    vec![Item::new(&first, &tokens(5, 6)), Item::new(&second, &tokens(6, 1)), Item::new(&rest, &tokens(7, 12))]
}

#[track_caller]
fn assert_scores(found: &[Scored], expected: &[Scored]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found.log_probability() - expected.log_probability()).abs() < 1e-3, "{found:?} {expected:?}");
        assert_eq!(found.exact, expected.exact);
    }
}

#[test]
fn members_are_scored_as_models_of_their_own() {
    let model = model(&config());
    let population = population(&model, roles(false));
    let mut items = items();
    // Some that are exact: what member 3 writes itself.
    let writer = HostRwkv7::new(&population.member(&model, 3), Precision::F32);
    let prompt = Item::new(&tokens(9, 5), &[]);
    let written = generate(&writer, std::slice::from_ref(&prompt), &SamplingConfig::greedy(4)).expect("generated");
    items.push(Item::new(prompt.prompt(), &written[0].tokens));
    let host = HostRwkv7::new(&model, Precision::F32);
    assert!(host.can_perturb(population.perturbation()));
    let scores = score_population(&host, &population, Items::Shared(&items)).expect("scores");
    assert_eq!(scores.len(), MEMBERS);
    for (index, found) in scores.iter().enumerate() {
        let member = HostRwkv7::new(&population.member(&model, index), Precision::F32);
        assert_scores(found, &score(&member, &items).expect("scores"));
        let others = score(&host, &items).expect("scores");
        let off = found.iter().zip(&others).map(|(a, b)| (a.log_probability() - b.log_probability()).abs());
        assert!(off.fold(0.0, f32::max) > 1e-2, "canary: member {index} scores as the model without noise");
    }
    assert!(scores[3][3].exact && scores.iter().flatten().any(|score| !score.exact));
    // Alone, in whatever order.
    for item in items.iter().rev() {
        let again = score_population(&host, &population, Items::Shared(std::slice::from_ref(item))).expect("scores");
        let place = items.iter().position(|other| other == item).expect("an item");
        assert!(again.iter().zip(&scores).all(|(again, scores)| again[0] == scores[place]), "the same bits");
    }
}

#[test]
fn members_write_as_models_of_their_own() {
    let model = model(&config());
    let population = population(&model, roles(false));
    let prompts: Vec<Item> = (0..3).map(|seed| Item::new(&tokens(seed, 4 + seed as usize), &[])).collect();
    let sampling = SamplingConfig::greedy(12);
    let host = HostRwkv7::new(&model, Precision::F32);
    let texts = generate_population(&host, &population, Items::Shared(&prompts), &sampling).expect("texts");
    for (index, texts) in texts.iter().enumerate() {
        let member = HostRwkv7::new(&population.member(&model, index), Precision::F32);
        assert_eq!(*texts, generate(&member, &prompts, &sampling).expect("texts"), "member {index}");
    }
    assert!(texts.iter().any(|other| *other != texts[0]), "canary: members write alike");
}

/// The module inside `evaluate`, where vectors may have noise too.
#[test]
fn module_runs_all_members() {
    let model = model(&config());
    for vectors in [false, true] {
        let population = population(&model, roles(vectors));
        let tokens = tensor(&tokens(8, 2 * 7), 2);
        // A number that no logit's change leaves as it is.
        let number = |logits: Tensor<3>| {
            let [rows, length, vocabulary] = logits.dims();
            let n = length * vocabulary;
            let weights = Tensor::<1, Int>::arange(0..n as i64, &Device::flex()).float().sin();
            (logits.reshape([rows, n]) * weights.unsqueeze()).sum_dim(1)
        };
        let found = population.evaluate(|members| {
            let logits = model.forward(members.repeat(tokens.clone()));
            members.mean(number(logits))
        });
        for (index, found) in found.values().iter().enumerate() {
            let member = population.member(&model, index);
            let expected = values(number(member.forward(tokens.clone())).mean())[0];
            let plain = values(number(model.forward(tokens.clone())).mean())[0];
            assert!((*found - expected).abs() < 1e-3, "member {index}: {found} {expected}");
            assert!((*found - plain).abs() > 1e-2, "canary: member {index} is the model without noise");
        }
        let host = HostRwkv7::new(&model, Precision::F32);
        assert_eq!(host.can_perturb(population.perturbation()), !vectors);
    }
}

/// Adds a constant to all that is trained.
struct AddConstant<'a>(&'a ParameterTable);

impl ModuleMapper for AddConstant<'_> {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let position = self.0.position(parameter.id).expect("a parameter of the model");
        match self.0.entries()[position].role {
            Role::Frozen => parameter,
            _ => parameter.map(|tensor| tensor + 0.01),
        }
    }
}

#[test]
fn an_update_packs_what_was_trained() {
    use burn::module::Module;
    for (tied_head, roles) in [
        (false, roles(false)),
        (false, roles(true)),
        (true, vec![("*", Role::Dense)]),
        (false, vec![("*", Role::Dense)]),
    ] {
        let model = model(&Rwkv7Config { tied_head, ..config() });
        let population = population(&model, roles);
        let table = &population.perturbation().table;
        for precision in Precision::ALL {
            let mut host = HostRwkv7::new(&model, precision);
            let text = tokens(10, 12);
            let before = run(&host, &mut [(&text, &mut host.state(0))]);
            let stepped = model.clone().map(&mut AddConstant(table));
            let changed = host.update(&stepped, table);
            assert_eq!(changed.share().is_some(), precision != Precision::F32);
            let expected = HostRwkv7::new(&stepped, precision);
            let after = run(&host, &mut [(&text, &mut host.state(0))]);
            assert!(after == run(&expected, &mut [(&text, &mut expected.state(0))]));
            assert!(distance(&after, &before) > 1e-3, "canary: nothing has changed");
        }
    }
}
