//! What cannot be asked.

use crate::made::{config, items, model, strategy, tokens};
use eggroll_core::transformer::Precision;
use eggroll_lm::{
    GenerateError, HostLlama, Item, Items, ItemsError, SamplingConfig, SamplingError, generate, generate_population,
    score, score_population,
};

fn host() -> HostLlama {
    HostLlama::new(&model(&config(false, false)), Precision::F32)
}

#[test]
fn items_that_cannot_be_scored() {
    let host = host();
    let good = Item::new(&[1, 2], &[3]);
    let error = |item: Item| score(&host, &[good.clone(), item]).unwrap_err();
    assert_eq!(score(&host, &[]).unwrap_err(), ItemsError::Empty);
    assert_eq!(error(Item::new(&[], &[1])), ItemsError::NoTokens { group: None, item: 1, part: "prompt" });
    assert_eq!(error(Item::new(&[1], &[])), ItemsError::NoTokens { group: None, item: 1, part: "completion" });
    let long = |len| Item::new(&tokens(len, 1), &[1]);
    assert_eq!(error(long(64)), ItemsError::TooLong { group: None, item: 1, tokens: 65, context: 64 });
    assert!(score(&host, &[good.clone(), long(63)]).is_ok());
    let unknown = ItemsError::Token { group: None, item: 1, token: 97, vocabulary: 97 };
    assert_eq!(error(Item::new(&[97], &[1])), unknown);
    assert_eq!(error(Item::new(&[1], &[97])), unknown);
    assert!(score(&host, &[Item::new(&[96], &[96])]).is_ok());
    let text = unknown.to_string();
    assert!(text.contains("item 1") && text.contains("token 97") && text.contains("97 tokens"), "{text}");
}

#[test]
fn prompts_that_cannot_be_continued() {
    let host = host();
    let of = |item: Item, tokens| generate(&host, &[item], &SamplingConfig::greedy(tokens));
    let items = |error: ItemsError| GenerateError::Items(error);
    assert_eq!(
        of(Item::prompt_only(&[]), 1).unwrap_err(),
        items(ItemsError::NoTokens { group: None, item: 0, part: "prompt" })
    );
    let long = Item::prompt_only(&tokens(60, 1));
    assert_eq!(
        of(long.clone(), 5).unwrap_err(),
        items(ItemsError::TooLong { group: None, item: 0, tokens: 65, context: 64 })
    );
    assert_eq!(
        of(long.clone(), usize::MAX).unwrap_err(),
        items(ItemsError::TooLong { group: None, item: 0, tokens: usize::MAX, context: 64 })
    );
    assert_eq!(of(long, 4).unwrap()[0].tokens.len(), 4);
    let unknown = ItemsError::Token { group: None, item: 0, token: 200, vocabulary: 97 };
    assert_eq!(of(Item::prompt_only(&[200]), 1).unwrap_err(), items(unknown));
    assert_eq!(generate(&host, &[], &SamplingConfig::greedy(1)).unwrap_err(), items(ItemsError::Empty));
}

#[test]
fn settings_that_cannot_be() {
    let host = host();
    let error = |sampling: SamplingConfig| {
        let GenerateError::Sampling(error) = generate(&host, &items(1, 1), &sampling).unwrap_err() else {
            panic!("an error of the sampling")
        };
        assert_eq!(sampling.validate().unwrap_err().to_string(), error.to_string());
        error
    };
    let greedy = SamplingConfig::greedy(2);
    assert_eq!(error(SamplingConfig::greedy(0)), SamplingError::MaxTokens);
    assert_eq!(error(greedy.clone().with_temperature(-1.0)), SamplingError::Temperature(-1.0));
    assert!(matches!(error(greedy.clone().with_temperature(f32::NAN)), SamplingError::Temperature(t) if t.is_nan()));
    let infinite = greedy.clone().with_temperature(f32::INFINITY);
    assert_eq!(error(infinite), SamplingError::Temperature(f32::INFINITY));
    assert_eq!(error(greedy.clone().with_min_p(1.5)), SamplingError::MinP(1.5));
    assert!(matches!(error(greedy.with_min_p(f32::NAN)), SamplingError::MinP(p) if p.is_nan()));
}

#[test]
fn groups_that_do_not_fit() {
    let model = model(&config(false, false));
    let host = HostLlama::new(&model, Precision::F32);
    let population = strategy(&model, 12).ask();
    let groups = |count: usize| vec![items(2, 1); count];
    for count in [0, 4, 5, 12] {
        let error = ItemsError::Groups { groups: count, members: 12 };
        let found = score_population(&host, &population, Items::Groups(&groups(count)));
        assert_eq!(found.unwrap_err(), error);
        let found = generate_population(&host, &population, Items::Groups(&groups(count)), &SamplingConfig::greedy(1));
        assert_eq!(found.unwrap_err(), GenerateError::Items(error));
    }
    for count in [1, 2, 3, 6] {
        assert!(score_population(&host, &population, Items::Groups(&groups(count))).is_ok());
    }
    let mut one_empty = groups(3);
    one_empty[1].clear();
    assert_eq!(score_population(&host, &population, Items::Groups(&one_empty)).unwrap_err(), ItemsError::Empty);
    assert_eq!(score_population(&host, &population, Items::Shared(&[])).unwrap_err(), ItemsError::Empty);
}
