//! Fitness shaping: known answers and the contract that every rule keeps.

use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::LinearConfig;
use eggroll_train::{EvolutionStrategyConfig, Fitness, FitnessShaping, fold_pairs};
use std::cmp::Ordering;

const RULES: [FitnessShaping; 11] = [
    FitnessShaping::Raw,
    FitnessShaping::Standardized,
    FitnessShaping::ZScore,
    FitnessShaping::SampleZScore,
    FitnessShaping::GroupZScore { size: 4 },
    FitnessShaping::GroupStandardized { size: 4 },
    FitnessShaping::CenteredRank,
    FitnessShaping::Utilities,
    FitnessShaping::TopPairs { pairs: 3 },
    FitnessShaping::PairSign,
    FitnessShaping::BaselineSubtraction { size: 4 },
];
const SCORES: [f64; 8] = [1.0, -2.0, 4.0, 4.0, 0.5, 7.0, -1.0, 1.0];

#[test]
fn known_answers() {
    let close = |rule: FitnessShaping, scores: &[f64], expected: &[f64]| {
        for (found, expected) in rule.shape(scores).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-4, "{rule:?}: {found} {expected}");
        }
    };
    close(FitnessShaping::Standardized, &[1.0, 3.0], &[-1.0, 1.0]);
    close(FitnessShaping::ZScore, &[1.0, 3.0], &[-1.0, 1.0]);
    close(FitnessShaping::SampleZScore, &[1.0, 3.0], &[-0.5f64.sqrt(), 0.5f64.sqrt()]);
    close(FitnessShaping::GroupZScore { size: 2 }, &[0.0, 2.0, 10.0, 12.0], &[-0.19612, 0.19612, -0.19612, 0.19612]);
    // Standard deviations of 1 and 5; a group of zeros has none.
    let groups = [0.0, 2.0, 0.0, 2.0, 10.0, 20.0, 20.0, 10.0, 0.0, 0.0, 0.0, 0.0];
    let signs = [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0];
    close(FitnessShaping::GroupStandardized { size: 4 }, &groups, &signs);
    close(FitnessShaping::CenteredRank, &[5.0, 1.0, 5.0, 9.0], &[0.0, -0.5, 0.0, 0.5]);
    // Mean 3, deviation √5; the second pair is 4 and 6 above the first score.
    close(FitnessShaping::BaselineSubtraction { size: 4 }, &[0.0, 2.0, 4.0, 6.0], &[0.0, 0.0, 1.78885, 2.68328]);
    // ln 3, ln 1.5, 0, 0 of a sum of 1.50408, less ¼; two that tie have the mean.
    close(FitnessShaping::Utilities, &[2.0, 9.0, 5.0, -3.0], &[-0.25, 0.480422, 0.019578, -0.25]);
    close(FitnessShaping::Utilities, &[2.0, 5.0, 5.0, -3.0], &[-0.25, 0.25, 0.25, -0.25]);
    // The best of the pairs are 3, 9, 3 and 4. Of 9, −1, 4, 0 the mean is 3 and the deviation √15.5.
    let scores = [3.0, 2.0, -1.0, 9.0, 3.0, -50.0, 4.0, 0.0];
    let four = [-1.016, 1.524, 0.254, -0.762];
    close(FitnessShaping::TopPairs { pairs: 2 }, &scores, &[0.0, 0.0, four[0], four[1], 0.0, 0.0, four[2], four[3]]);
    close(FitnessShaping::PairSign, &[5.0, 1.0, 2.0, 9.0, 3.0, 3.0], &[0.5, -0.5, -0.5, 0.5, 0.0, 0.0]);
}

#[test]
fn constant_scores_cancel_in_every_pair() {
    for rule in RULES {
        for constant in [0.0, 0.1, -1e6] {
            assert!(fold_pairs(&rule.shape(&[constant; 8])).iter().all(|weight| *weight == 0.0), "{rule:?}");
        }
    }
}

#[test]
fn swapping_a_pair_flips_its_weight() {
    for rule in RULES {
        let folded = fold_pairs(&rule.shape(&SCORES));
        let swapped: Vec<f64> = SCORES.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
        for (a, b) in folded.iter().zip(fold_pairs(&rule.shape(&swapped))) {
            assert!((a + b).abs() < 1e-12, "{rule:?}");
        }
    }
}

#[test]
fn order_of_scores_is_kept_in_a_pair() {
    for rule in RULES {
        for (q, (pair, weight)) in SCORES.chunks(2).zip(fold_pairs(&rule.shape(&SCORES))).enumerate() {
            let without = match rule {
                // The first of two pairs of a group is its baseline.
                FitnessShaping::BaselineSubtraction { .. } => q.is_multiple_of(2),
                // The last pair is as good as the first: one of them counts.
                FitnessShaping::TopPairs { .. } => q == 3,
                _ => false,
            };
            let expected = if without { Some(Ordering::Equal) } else { pair[0].partial_cmp(&pair[1]) };
            assert_eq!(weight.partial_cmp(&0.0), expected, "{rule:?}");
        }
    }
}

/// Weights of pairs are all that an estimate takes: a rule that changes none of them is not another rule. One does not, and says so.
#[test]
fn no_two_rules_agree_after_folding() {
    let scores: Vec<f64> = (0..32).map(|member| 0.01 * (f64::from(member) * 1.3).sin() + 0.2).collect();
    let folded: Vec<Vec<f64>> = RULES.iter().map(|rule| fold_pairs(&rule.shape(&scores))).collect();
    for (i, (a, of_a)) in RULES.iter().zip(&folded).enumerate() {
        for (b, of_b) in RULES.iter().zip(&folded).take(i) {
            let agree = of_a.iter().zip(of_b).all(|(a, b)| (a - b).abs() < 1e-9);
            let documented = (a, b) == (&FitnessShaping::GroupZScore { size: 4 }, &FitnessShaping::ZScore);
            assert_eq!(agree, documented, "{a:?}, {b:?}");
        }
    }
}

/// The algebra of "reproduction only": a baseline cancels, and the deviation of its group is left.
#[test]
fn a_baseline_cancels_in_every_pair() {
    let folded = fold_pairs(&FitnessShaping::BaselineSubtraction { size: 8 }.shape(&SCORES));
    let mean = SCORES.iter().sum::<f64>() / 8.0;
    let deviation = (SCORES.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / 8.0).sqrt();
    for (weight, pair) in folded.iter().zip(SCORES.chunks(2)).skip(1) {
        assert!((weight - (pair[0] - pair[1]) / deviation).abs() < 1e-7, "{weight} {pair:?}");
    }
    assert_eq!(folded[0], 0.0);
}

/// Fitness at a small σ differs by a thousandth; its weights are as large as any. Differences of roundings are not.
#[test]
fn the_default_has_no_scale_of_its_own() {
    let (rule, scores) = (FitnessShaping::default(), SCORES.map(|score| score + 2.0));
    let largest = |rule: &FitnessShaping, scores: &[f64]| {
        fold_pairs(&rule.shape(scores)).iter().fold(0.0f64, |most, weight| most.max(weight.abs()))
    };
    for scale in [1e-30, 1e-4, 1e6] {
        let scaled = scores.map(|score| score * scale);
        let close = rule.shape(&scores).iter().zip(rule.shape(&scaled)).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close, "{scale}: {:?} {:?}", rule.shape(&scores), rule.shape(&scaled));
    }
    let small = scores.map(|score| score * 1e-4);
    assert!(largest(&FitnessShaping::ZScore, &small) < 0.2 * largest(&rule, &small), "canary: 1e-5 is a scale");
    let apart =
        |roundings: f32| [0, 1, 1, 0, 0, 1, 0, 1].map(|one| f64::from(1.0 + one as f32 * roundings * f32::EPSILON));
    assert!(largest(&rule, &apart(1.0)) < 0.15 && largest(&rule, &apart(64.0)) > 1.9);
    assert!(largest(&FitnessShaping::SampleZScore, &apart(1.0)) > 1.0, "canary: roundings at full weight");
    assert_eq!((largest(&rule, &[0.0; 8]), largest(&rule, &[1e-200; 8])), (0.0, 0.0));
}

/// Weights are the same for scores at any scale and level; those of ranks, to the bit, for any increasing function.
#[test]
fn utilities_and_top_pairs_have_no_scale() {
    let (utilities, top) = (FitnessShaping::Utilities, FitnessShaping::TopPairs { pairs: 3 });
    assert_eq!(utilities.shape(&SCORES), utilities.shape(&SCORES.map(|score| 1e-9 * score.exp() - 7.0)));
    assert_ne!(utilities.shape(&SCORES), utilities.shape(&SCORES.map(|score| -score)), "canary: an order");
    assert!(utilities.shape(&SCORES).iter().sum::<f64>().abs() < 1e-15);
    for scale in [1e-30, 1e-4, 1e6] {
        let scaled = top.shape(&SCORES.map(|score| scale * (score + 2.0)));
        let level = top.shape(&SCORES.map(|score| score + 2.0));
        assert!(scaled.iter().zip(level).all(|(a, b)| (a - b).abs() < 1e-12), "{scale}: {scaled:?}");
    }
}

/// Only the best of a pair chooses it; at the border the lower number does.
#[test]
fn top_pairs_are_chosen_by_their_best() {
    let counting = |scores: &[f64], pairs: usize| -> Vec<usize> {
        let folded = fold_pairs(&FitnessShaping::TopPairs { pairs }.shape(scores));
        (0..folded.len()).filter(|q| folded[*q] != 0.0).collect()
    };
    let scores = [1.0, -9.0, 5.0, 4.0, -9.0, 1.0, 2.0, 0.0, 1.0, 0.5];
    assert_eq!(
        [1, 2, 3, 4, 5].map(|pairs| counting(&scores, pairs)),
        [vec![1], vec![1, 3], vec![0, 1, 3], vec![0, 1, 2, 3], vec![0, 1, 2, 3, 4]]
    );
    assert_eq!(counting(&[-0.0, -1.0, 0.0, -1.0], 1), [0], "both are 0");
    // All pairs: what the default makes of them.
    assert_eq!(FitnessShaping::TopPairs { pairs: 4 }.validate(8).map_err(|error| error.to_string()), Ok(()));
    let all = fold_pairs(&FitnessShaping::TopPairs { pairs: 4 }.shape(&SCORES));
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(close(&all, &fold_pairs(&FitnessShaping::Standardized.shape(&SCORES))));
    for pairs in [0, 5, usize::MAX] {
        let error = FitnessShaping::TopPairs { pairs }.validate(8).expect_err("refused").to_string();
        assert_eq!(error, format!("top_pairs must be from 1 to the 4 pairs of a population of 8, not {pairs}"));
    }
    assert_eq!(FitnessShaping::TopPairs { pairs: 0 }.shape(&SCORES), [0.0; 8]);
    // As all rules: what is no number counts as the worst, +∞ as the best.
    let (finite, _) = Fitness::from(vec![f32::NAN, 1.0, f32::INFINITY, 0.0, 2.0, f32::NEG_INFINITY]).finite();
    assert_eq!(finite, [0.0, 1.0, 2.0, 0.0, 2.0, 0.0]);
    assert_eq!(counting(&finite, 1), [1]);
}

/// A group's own deviation counts: its weights do not depend on its scale, its level, or other groups.
#[test]
fn groups_have_their_own_scale() {
    let rule = FitnessShaping::GroupStandardized { size: 4 };
    let scaled: Vec<f64> = SCORES.iter().enumerate().map(|(m, f)| if m < 4 { *f } else { 1e4 * f + 7.0 }).collect();
    let close = rule.shape(&SCORES).iter().zip(rule.shape(&scaled)).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(close, "{:?} {:?}", rule.shape(&SCORES), rule.shape(&scaled));
    let global = FitnessShaping::GroupZScore { size: 4 };
    let canary: Vec<f64> = SCORES.iter().enumerate().map(|(m, f)| if m < 4 { *f } else { 1e4 * f }).collect();
    assert!(global.shape(&canary)[0].abs() < 1e-2, "canary: one scale for all groups");
}

#[test]
fn values_that_are_not_finite() {
    let finite = |values: &[f32]| Fitness::from(values.to_vec()).finite();
    assert_eq!(finite(&[1.0, f32::NAN, 2.0, f32::NEG_INFINITY]), (vec![1.0, 1.0, 2.0, 1.0], 2));
    assert_eq!(finite(&[1.0, f32::INFINITY]), (vec![1.0, 1.0], 1));
    assert_eq!(finite(&[f32::NAN, f32::NAN]), (vec![0.0, 0.0], 2));
}

/// What is not finite counts as the worst or the best of its task, or of its group, whatever the scale of others.
#[test]
fn values_that_are_not_finite_by_task_and_group() {
    let (nan, best, worst) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
    let weights = |rule: &FitnessShaping, scores: &[f32]| {
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(8);
        config.with_shaping(rule.clone()).pair_weights(&Fitness::from(scores.to_vec()).with_tasks(2), 0.1)
    };
    let far = [-1000.0, -1400.0, -2000.0, -1100.0, -1700.0, -1300.0, -1900.0, -1600.0];
    let both = |task: [f32; 8]| [task, far].concat();
    for rule in RULES {
        let found = weights(&rule, &both([0.5, 0.9, nan, 0.6, 0.2, 0.8, worst, best]));
        let expected = match rule.group() {
            Some(_) => weights(&rule, &both([0.5, 0.9, 0.5, 0.6, 0.2, 0.8, 0.2, 0.8])),
            None => weights(&rule, &both([0.5, 0.9, 0.2, 0.6, 0.2, 0.8, 0.2, 0.9])),
        };
        assert_eq!(found, expected, "{rule:?}");
        // In a group of equal numbers that has a scale of its own, NaN is the worst of its task: it would be a tie.
        let found = weights(&rule, &both([0.5, nan, 0.5, 0.5, 0.2, 0.8, 0.3, 0.4]));
        let ties = matches!(rule, FitnessShaping::GroupZScore { .. } | FitnessShaping::BaselineSubtraction { .. });
        let counted = if ties { 0.5 } else { 0.2 };
        assert_eq!(found, weights(&rule, &both([0.5, counted, 0.5, 0.5, 0.2, 0.8, 0.3, 0.4])), "{rule:?}");
        // A group without numbers counts as the worst of its task, a task without numbers not at all.
        let found = weights(&rule, &both([0.5, 0.9, 0.3, 0.6, nan, nan, worst, nan]));
        assert_eq!(found, weights(&rule, &both([0.5, 0.9, 0.3, 0.6, 0.3, 0.3, 0.3, 0.3])), "{rule:?}");
        assert_eq!(weights(&rule, &both([nan; 8])), weights(&rule, &both([0.0; 8])), "{rule:?}");
    }
    let fitness = Fitness::from(vec![nan, 0.5, 0.4, 0.3, -1000.0, -1002.0, -1001.0, -1001.0]).with_tasks(2);
    assert_eq!((fitness.pair_signs(4), fitness.finite().0[0]), (vec![1, 1], f64::from(0.3f32)));
}

#[test]
fn groups_must_divide() {
    let of_groups: [fn(usize) -> FitnessShaping; 2] =
        [|size| FitnessShaping::GroupZScore { size }, |size| FitnessShaping::GroupStandardized { size }];
    for rule in of_groups {
        assert!([2, 4, 12].iter().all(|size| rule(*size).validate(12).is_ok()));
        // 1 and 3 divide the population, and split pairs.
        for size in [0, 1, 3, 5] {
            let error = rule(size).validate(12).expect_err("refused").to_string();
            assert!(error.contains("an even number of members") && error.contains(&format!("not {size}:")), "{error}");
        }
        let error = rule(8).validate(12).expect_err("refused").to_string();
        assert_eq!(error, "a population of 12 cannot be divided into groups of 8 members");
    }
    assert!(FitnessShaping::BaselineSubtraction { size: 4 }.validate(8).is_ok());
    for size in [0, 2, 3, 5, 6] {
        let error = FitnessShaping::BaselineSubtraction { size }.validate(8).expect_err("refused").to_string();
        assert!(error.contains(&size.to_string()), "{error}");
    }
}

/// Every task alone, then the mean; one task is no task.
#[test]
fn tasks() {
    let other: Vec<f64> = SCORES.iter().rev().map(|score| 1000.0 * score).collect();
    for rule in RULES {
        assert_eq!(rule.shape_tasks(&SCORES, 8), rule.shape(&SCORES));
        let both = rule.shape_tasks(&[&SCORES[..], &other].concat(), 8);
        let mean = rule.shape(&SCORES).into_iter().zip(rule.shape(&other)).map(|(a, b)| (a + b) / 2.0);
        assert!(both.iter().zip(mean).all(|(a, b)| (a - b).abs() < 1e-12), "{rule:?}");
        assert_ne!(both, rule.shape(&SCORES), "canary: {rule:?}");
    }
}

#[test]
#[should_panic(expected = "7 scores do not fit whole tasks of 8 members")]
fn tasks_are_whole() {
    FitnessShaping::Raw.shape_tasks(&SCORES[..7], 8);
}

/// A generation of three tasks: one read, task after task, whatever the chunks; the update is that of the mean of the
/// shaped scores.
#[test]
fn a_generation_of_tasks() {
    let layer = LinearConfig::new(3, 3).with_bias(false).init(&Device::flex());
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
        .with_population_size(8)
        .with_shaping(FitnessShaping::CenteredRank);
    let evaluated = |chunk: usize| {
        let population = config.clone().with_chunk_size(chunk).init(&layer).ask();
        population.evaluate(|_| layer.forward_shared(Tensor::<2>::ones([1, 3], &Device::flex())))
    };
    let fitness = evaluated(8);
    assert_eq!(fitness.values().len(), 24);
    assert_eq!(evaluated(2), fitness);
    let answers = |task: usize| fitness.values()[8 * task..8 * (task + 1)].to_vec();
    let single = config.init(&layer).ask().evaluate(|_| {
        let y = layer.forward_shared(Tensor::<2>::ones([1, 3], &Device::flex()));
        y.slice_dim(1, 1..2).reshape([8])
    });
    assert_eq!(answers(1), single.values());

    let updated = |config: &EvolutionStrategyConfig, fitness: Fitness| {
        let mut strategy = config.init(&layer);
        let population = strategy.ask();
        let mut layer = layer.clone();
        strategy.tell(&mut layer, population, fitness).expect("a generation");
        layer.weight.val().into_data().try_to_vec::<f32>().expect("f32")
    };
    let scores: Vec<f64> = fitness.values().iter().copied().map(f64::from).collect();
    let mean = config.shaping.shape_tasks(&scores, 8).into_iter().map(|weight| weight as f32).collect::<Vec<_>>();
    let found = updated(&config, fitness.clone());
    let expected = updated(&config.clone().with_shaping(FitnessShaping::Raw), mean.into());
    let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(close(&found, &expected), "{found:?} {expected:?}");
    let canary = updated(&config.clone().with_learning_rate(0.5), fitness);
    assert!(!close(&canary, &found), "canary");
}
