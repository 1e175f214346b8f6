//! Whether the members of a generation carry information, and all of them.

use eggroll_train::{Fitness, FitnessShaping};
use serde::{Deserialize, Serialize};

/// Share of dead members beyond which there is a warning.
const MOST_DEAD: f64 = 0.5;
/// Share of an estimate that one group may have.
const MOST_OF_ONE: f64 = 0.5;
/// With fewer groups, one has a large share in any case.
const FEWEST_GROUPS: usize = 8;

/// The share of failing members of a generation, and the balance of the others in its estimate.
///
/// # Example
///
/// ```
/// use eggroll_run::diagnostics::MemberStatistics;
/// use eggroll_train::FitnessShaping;
///
/// // 16 members; one pair is far apart, and the first eight members have the lowest score.
/// let mut scores = vec![0.0; 16];
/// scores[8..].copy_from_slice(&[1.0, 2.0, 1.0, 3.0, 90.0, 1.0, 2.0, 1.0]);
/// let fitness = scores.into();
/// let members = MemberStatistics::new(&fitness, Some(&FitnessShaping::Standardized));
/// assert_eq!((members.dead, members.heaviest), (0.5, 6));
/// assert_eq!(members.warnings().len(), 1); // one pair decides
/// let ranked = MemberStatistics::new(&fitness, Some(&FitnessShaping::CenteredRank));
/// assert!(ranked.warnings().is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberStatistics {
    /// Share of members that tie for the lowest score, mean over tasks; 0 if all scores are equal. Scores that are not finite count as
    /// in [`Fitness::finite`].
    pub dead: f64,
    /// Members of a group of the fitness shaping, or the two of a pair.
    pub group: usize,
    /// Number of groups; 0 without weights.
    pub groups: usize,
    /// The group with the largest share of the squared weights of pairs, `Σ_q (w₊ − w₋)²`, from 0.
    pub heaviest: usize,
    /// Share of the heaviest group, from 0 to 1; 0 if all weights are 0.
    pub share: f64,
}

impl MemberStatistics {
    /// The statistics of a generation's fitness and of its weights under `shaping`; `None` if pairs have votes instead.
    pub fn new(fitness: &Fitness, shaping: Option<&FitnessShaping>) -> Self {
        let (scores, _) = fitness.finite();
        let members = scores.len() / fitness.tasks().max(1);
        let dead = scores.chunks(members.max(1)).map(dead).sum::<f64>() / fitness.tasks().max(1) as f64;
        let group = shaping.and_then(FitnessShaping::group).unwrap_or(2);
        let weights = shaping
            .filter(|_| members > 0)
            .map(|shaping| shaping.shape_tasks(&shaping.scores(fitness, members), members));
        let squares = |group: &[f64]| group.chunks_exact(2).map(|pair| (pair[0] - pair[1]).powi(2)).sum::<f64>();
        let shares: Vec<f64> = weights.iter().flat_map(|weights| weights.chunks(group)).map(squares).collect();
        let (heaviest, largest) =
            shares.iter().copied().enumerate().fold((0, 0.0), |most, next| if next.1 > most.1 { next } else { most });
        let share = if largest > 0.0 { largest / shares.iter().sum::<f64>() } else { 0.0 };
        Self { dead, group, groups: shares.len(), heaviest, share }
    }

    /// What is wrong, and what to do: more than half of the members dead. With eight groups or more, also one group with more than half
    /// of the squared weights.
    pub fn warnings(&self) -> Vec<String> {
        let Self { group, groups, heaviest, .. } = self;
        let (dead, share) = (100.0 * self.dead, 100.0 * self.share);
        let (one, remedy) = match group {
            2 => ("pair", "Shape the fitness by ranks, as centered_rank does"),
            _ => ("group", "Take a scale for each group, as group_standardized does"),
        };
        let decides = format!(
            "one {one} decides: {one} {heaviest} of {groups} has {share:.1} % of the squared weights of the estimate. {remedy}"
        );
        let checks = [
            (
                self.dead > MOST_DEAD,
                format!(
                    "members may be dead: {dead:.1} % have the lowest score. Look for scores that are not finite, \
                     lower sigma, or take a score or task that grades failures"
                ),
            ),
            (*groups >= FEWEST_GROUPS && self.share > MOST_OF_ONE, decides),
        ];
        checks.into_iter().filter(|(found, _)| *found).map(|(_, warning)| warning).collect()
    }
}

/// Share of the scores that equal the lowest; 0 if only one does, or all.
fn dead(scores: &[f64]) -> f64 {
    let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
    match scores.iter().filter(|score| **score == lowest).count() {
        1 => 0.0,
        count if count == scores.len() => 0.0,
        count => count as f64 / scores.len() as f64,
    }
}
