//! Fitness shaping: known answers and the contract that every rule keeps.

use eggroll_train::{Fitness, FitnessShaping, fold_pairs};

const RULES: [FitnessShaping; 6] = [
    FitnessShaping::Raw,
    FitnessShaping::ZScore,
    FitnessShaping::SampleZScore,
    FitnessShaping::GroupZScore { size: 4 },
    FitnessShaping::CenteredRank,
    FitnessShaping::PairSign,
];
const SCORES: [f64; 8] = [1.0, -2.0, 4.0, 4.0, 0.5, 7.0, -1.0, 1.0];

#[test]
fn known_answers() {
    let close = |rule: FitnessShaping, scores: &[f64], expected: &[f64]| {
        for (found, expected) in rule.shape(scores).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-4, "{rule:?}: {found} {expected}");
        }
    };
    close(FitnessShaping::ZScore, &[1.0, 3.0], &[-1.0, 1.0]);
    close(FitnessShaping::SampleZScore, &[1.0, 3.0], &[-0.5f64.sqrt(), 0.5f64.sqrt()]);
    close(FitnessShaping::GroupZScore { size: 2 }, &[0.0, 2.0, 10.0, 12.0], &[-0.19612, 0.19612, -0.19612, 0.19612]);
    close(FitnessShaping::CenteredRank, &[5.0, 1.0, 5.0, 9.0], &[0.0, -0.5, 0.0, 0.5]);
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
        for (pair, weight) in SCORES.chunks(2).zip(fold_pairs(&rule.shape(&SCORES))) {
            assert_eq!(weight.partial_cmp(&0.0), pair[0].partial_cmp(&pair[1]), "{rule:?}");
        }
    }
}

#[test]
fn values_that_are_not_finite() {
    let finite = |values: &[f32]| Fitness::from(values.to_vec()).finite();
    assert_eq!(finite(&[1.0, f32::NAN, 2.0, f32::NEG_INFINITY]), (vec![1.0, 1.0, 2.0, 1.0], 2));
    assert_eq!(finite(&[1.0, f32::INFINITY]), (vec![1.0, 1.0], 1));
    assert_eq!(finite(&[f32::NAN, f32::NAN]), (vec![0.0, 0.0], 2));
}

#[test]
fn groups_must_divide() {
    assert!(FitnessShaping::GroupZScore { size: 4 }.validate(8).is_ok());
    assert!(FitnessShaping::GroupZScore { size: 0 }.validate(8).is_err());
    assert!(FitnessShaping::GroupZScore { size: 3 }.validate(8).is_err());
}
