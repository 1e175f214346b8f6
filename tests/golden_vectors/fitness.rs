//! Fitness shaping: `convert_fitnesses.npz`.

use crate::compare::{ROUNDING, assert_close, assert_differs};
use crate::loader::Golden;
use eggroll::train::FitnessShaping;

#[test]
fn shaping() {
    let golden = Golden::open("convert_fitnesses.npz");
    for name in ["scores", "scores_binary", "scores_const"] {
        let scores = golden.values(name);
        for size in [0, 2, 4, 8, 24] {
            let rule = match size {
                0 => FitnessShaping::ZScore,
                _ => FitnessShaping::GroupZScore { size },
            };
            rule.validate(scores.len()).expect("groups divide the population");
            let what = format!("{name}, groups of {size}");
            assert_close(&what, &rule.shape(scores), golden.values(&format!("{name}_g{size}")), ROUNDING);
        }
    }
}

/// Scores of several tasks for each member of a group: the mean over tasks.
#[test]
fn baseline_subtraction() {
    let golden = Golden::open("convert_fitnesses.npz");
    for name in ["scores", "scores_binary", "scores_const"] {
        for group in [4, 8] {
            let shape = |rule: FitnessShaping| rule.shape_tasks(golden.values(name), group);
            let rule = FitnessShaping::BaselineSubtraction { size: group };
            rule.validate(group).expect("one group");
            let (what, expected) =
                (format!("{name}, groups of {group}"), golden.values(&format!("{name}_bs_g{group}")));
            assert_close(&what, &shape(rule), expected, ROUNDING);
            if name != "scores_const" {
                assert_differs(&what, &shape(FitnessShaping::GroupZScore { size: group }), expected, ROUNDING);
            }
        }
    }
}

#[test]
fn canary_other_rules_differ() {
    let golden = Golden::open("convert_fitnesses.npz");
    for name in ["scores", "scores_binary"] {
        let scores = golden.values(name);
        let expected = golden.values(&format!("{name}_g0"));
        for rule in [
            FitnessShaping::Raw,
            FitnessShaping::SampleZScore,
            FitnessShaping::GroupZScore { size: 4 },
            FitnessShaping::BaselineSubtraction { size: 4 },
            FitnessShaping::CenteredRank,
            FitnessShaping::PairSign,
        ] {
            assert_differs(&format!("{name}, {rule:?}"), &rule.shape(scores), expected, ROUNDING);
        }
        let mut swapped = scores.to_vec();
        let other = swapped.iter().position(|score| *score != swapped[0]).expect("another score");
        swapped.swap(0, other);
        let found = FitnessShaping::ZScore.shape(&swapped);
        assert_differs(&format!("{name}, members swapped"), &found, expected, ROUNDING);
    }
}

/// Equal scores are the one case in which a wrong scale does not show: they must come out as exactly nothing.
#[test]
fn equal_scores_have_no_weight() {
    let golden = Golden::open("convert_fitnesses.npz");
    let shaped = FitnessShaping::ZScore.shape(golden.values("scores_const"));
    assert!(shaped.iter().all(|weight| *weight == 0.0), "{shaped:?}");
}
