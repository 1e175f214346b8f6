//! Countdown: make a number from others by arithmetic.

mod problem;

pub use problem::{CountdownProblem, CountdownStyle};

use super::{Split, TaskError};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// Indices without a new problem after which [`Countdown::problems`] gives up.
const PATIENCE: u64 = 20_000;

/// The most numbers of a problem.
const MOST_NUMBERS: usize = 16;

/// Which problems to generate.
///
/// # Example
///
/// ```
/// use eggroll_lm::task::CountdownConfig;
///
/// let config = CountdownConfig::tiny().with_numbers(3..=3).with_targets(1..=50).with_seed(7);
/// assert_eq!(config.init()?.config(), &config);
/// # Ok::<(), eggroll_lm::task::TaskError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountdownConfig {
    /// How many numbers a problem has.
    pub numbers: RangeInclusive<usize>,
    /// The numbers.
    pub values: RangeInclusive<u32>,
    /// The targets; they may be negative.
    pub targets: RangeInclusive<i64>,
    /// The seed: that of problem `index` is `seed + index`.
    pub seed: u64,
}

impl CountdownConfig {
    /// 3 or 4 numbers from 1 to 99, targets from 1 to 999: about as hard as the published experiments.
    pub fn new() -> Self {
        Self { numbers: 3..=4, values: 1..=99, targets: 1..=999, seed: 0 }
    }

    /// 2 or 3 numbers from 1 to 10, targets from 1 to 100: for models of about 100 million parameters. There are about 1,890 such problems
    /// to train on, 350 of the dev split and 710 of the test split.
    pub fn tiny() -> Self {
        Self { numbers: 2..=3, values: 1..=10, targets: 1..=100, seed: 0 }
    }

    /// Sets [`numbers`](Self::numbers).
    pub fn with_numbers(mut self, numbers: RangeInclusive<usize>) -> Self {
        self.numbers = numbers;
        self
    }

    /// Sets [`values`](Self::values).
    pub fn with_values(mut self, values: RangeInclusive<u32>) -> Self {
        self.values = values;
        self
    }

    /// Sets [`targets`](Self::targets).
    pub fn with_targets(mut self, targets: RangeInclusive<i64>) -> Self {
        self.targets = targets;
        self
    }

    /// Sets [`seed`](Self::seed).
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The generator.
    ///
    /// # Errors
    ///
    /// [`TaskError::Setting`] if a range is empty, if a problem could have fewer than 2 or more than 16 numbers, or if a number could
    /// be 0.
    pub fn init(&self) -> Result<Countdown, TaskError> {
        let refuse = |setting, found, expected| Err(TaskError::Setting { setting, found, expected });
        let Self { numbers, values, targets, .. } = self;
        if numbers.is_empty() || *numbers.start() < 2 || *numbers.end() > MOST_NUMBERS {
            return refuse("`numbers`", format!("{numbers:?}"), "a range within 2..=16, such as 3..=4");
        }
        if values.is_empty() || *values.start() == 0 {
            return refuse("`values`", format!("{values:?}"), "a range from 1 or more, such as 1..=99");
        }
        if targets.is_empty() {
            return refuse("`targets`", format!("{targets:?}"), "a range that is not empty, such as 1..=999");
        }
        Ok(Countdown { config: self.clone() })
    }
}

impl Default for CountdownConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// A generator of Countdown problems: numbers, and a target to make from all of them by `+ - * /`.
///
/// Problem `index` is drawn by SplitMix64, seeded by `seed + index`: a count of numbers, then the numbers, all uniform. They are folded
/// from left to right, each time by a random operator. A division takes the first remaining number that divides the value so far; if
/// none does, the next number is subtracted. So every value on the way is an integer. If the last one is not in the range of targets,
/// all is drawn again, at most 100 times; then the index has no problem. Last, the numbers are shuffled.
///
/// A problem's split is a hash of its sorted numbers and its target: for one in 8 [`Split::Dev`], for two in 8 [`Split::Test`], for
/// five in 8 [`Split::Train`]. It is the same for every seed and every configuration, so training never sees a problem that any test
/// holds, in any order of its numbers.
///
/// # References
///
/// The method is that of reasoning-gym's task `countdown` ([arXiv:2505.24760](https://arxiv.org/abs/2505.24760)); the problems are
/// others.
///
/// # Example
///
/// ```
/// use eggroll_lm::reward::{CountdownReward, Reward};
/// use eggroll_lm::task::{CountdownConfig, CountdownStyle, Split};
///
/// let countdown = CountdownConfig::tiny().init()?;
/// for problem in countdown.problems(Split::Train, 100)? {
///     let style = CountdownStyle::Answer;
///     let score = CountdownReward::default().score(&problem.prompt(style), &problem.completion(style));
///     assert_eq!(score, 1.1);
/// }
/// # Ok::<(), eggroll_lm::task::TaskError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Countdown {
    config: CountdownConfig,
}

impl Countdown {
    /// Its configuration.
    pub fn config(&self) -> &CountdownConfig {
        &self.config
    }

    /// The problem `index`, of whatever split; `None` if 100 tries gave no target in the range.
    pub fn problem(&self, index: u64) -> Option<CountdownProblem> {
        CountdownProblem::draw(&self.config, self.config.seed.wrapping_add(index))
    }

    /// The first `count` different problems of a split, by index from 0. More of them start with the same ones. That of the prompt's
    /// worked example is left out.
    ///
    /// # Errors
    ///
    /// [`TaskError::Problems`] if there are not that many, that is if 20,000 indices in a row gave no new one.
    pub fn problems(&self, split: Split, count: usize) -> Result<Vec<CountdownProblem>, TaskError> {
        let mut seen = HashSet::new();
        let mut problems: Vec<CountdownProblem> = Vec::new();
        let mut tries = 0;
        for index in 0.. {
            if problems.len() == count {
                break;
            }
            let problem =
                self.problem(index).filter(|problem| problem.split() == split && !problem.is_worked_example());
            match problem.filter(|problem| seen.insert(problem.canonical())) {
                Some(problem) => {
                    problems.push(problem);
                    tries = 0;
                }
                None => tries += 1,
            }
            if tries == PATIENCE {
                return Err(TaskError::Problems { found: problems.len(), wanted: count, tries });
            }
        }
        Ok(problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reward::{CountdownReward, Reward};
    use proptest::prelude::*;

    const SPLITS: [Split; 3] = [Split::Train, Split::Dev, Split::Test];

    fn canonical(countdown: &Countdown, split: Split, count: usize) -> HashSet<(Vec<u32>, i64)> {
        let problems = countdown.problems(split, count).unwrap();
        let canonical: HashSet<_> = problems.iter().map(CountdownProblem::canonical).collect();
        assert_eq!(canonical.len(), count, "a problem is there twice");
        canonical
    }

    #[test]
    fn no_problem_is_in_two_splits_whatever_the_seed() {
        let one = CountdownConfig::tiny().init().unwrap();
        let other = CountdownConfig::tiny().with_seed(99).init().unwrap();
        let [train, dev, test] = SPLITS.map(|split| canonical(&one, split, 150));
        let [train_too, dev_too, test_too] = SPLITS.map(|split| canonical(&other, split, 150));
        for (a, b) in
            [(&train, &test_too), (&train, &dev_too), (&dev, &test_too), (&train, &test), (&train, &dev), (&dev, &test)]
        {
            assert!(a.is_disjoint(b));
        }
        // The canary: splits of the same kind do meet.
        assert!(!train.is_disjoint(&train_too) && !dev.is_disjoint(&dev_too) && !test.is_disjoint(&test_too));
    }

    #[test]
    fn splits_have_their_shares() {
        let countdown = CountdownConfig::new().init().unwrap();
        let problems: Vec<_> = (0..8000).filter_map(|index| countdown.problem(index)).collect();
        let shares = SPLITS.map(|split| problems.iter().filter(|problem| problem.split() == split).count() as f64);
        for (share, expected) in shares.into_iter().zip([5.0, 1.0, 2.0]) {
            assert!((share / problems.len() as f64 - expected / 8.0).abs() < 0.03, "{shares:?}");
        }
    }

    #[test]
    fn the_worked_example_is_in_no_split() {
        let config = CountdownConfig::tiny().with_numbers(3..=3).with_values(3..=9).with_targets(48..=48);
        let countdown = config.init().unwrap();
        let drawn = |index| countdown.problem(index).is_some_and(|problem| problem.is_worked_example());
        assert!((0..1000).any(drawn), "the case does not occur");
        for split in SPLITS {
            let problems = (1..).map_while(|count| countdown.problems(split, count).ok()).last().unwrap_or_default();
            assert!(!problems.iter().any(CountdownProblem::is_worked_example));
        }
    }

    #[test]
    fn more_problems_start_with_the_same_ones() {
        let countdown = CountdownConfig::new().init().unwrap();
        let [few, many] = [200, 2000].map(|count| countdown.problems(Split::Test, count).unwrap());
        assert_eq!(few, many[..200]);
        assert!(countdown.problems(Split::Test, 0).unwrap().is_empty());
    }

    #[test]
    fn impossible_settings_are_refused() {
        let message = |config: CountdownConfig| config.init().unwrap_err().to_string();
        let tiny = CountdownConfig::tiny;
        assert_eq!(
            message(tiny().with_numbers(1..=3)),
            "`numbers` is 1..=3, expected a range within 2..=16, such as 3..=4"
        );
        assert!(message(tiny().with_numbers(2..=17)).contains("2..=17"));
        #[expect(clippy::reversed_empty_ranges, reason = "an empty range is the case")]
        let empty = (tiny().with_numbers(4..=3), tiny().with_values(5..=2), tiny().with_targets(9..=1));
        assert!(message(empty.0).contains("4..=3"));
        assert!(message(empty.1).contains("5..=2"));
        assert!(message(empty.2).contains("9..=1"));
        assert!(message(tiny().with_values(0..=9)).contains("0..=9"));

        let few = tiny().with_numbers(2..=2).init().unwrap().problems(Split::Train, 100_000).unwrap_err();
        assert!(matches!(few, TaskError::Problems { found: 50..200, wanted: 100_000, tries: 20_000 }), "{few}");
        let none = tiny().with_targets(-9_000..=-8_000).init().unwrap().problems(Split::Train, 1).unwrap_err();
        assert!(none.to_string().starts_with("found 0 different problems, 1 are wanted"), "{none}");
    }

    proptest! {
        #[test]
        fn every_problem_has_its_own_solution_accepted(
            (fewest, more, least, range) in (2_usize..5, 0_usize..3, 1_u32..20, 0_u32..2000),
            (low, span, seed, index) in (-100_i64..100, 50_i64..1000, any::<u64>(), 0_u64..1000),
        ) {
            let config = CountdownConfig::new()
                .with_numbers(fewest..=fewest + more)
                .with_values(least..=least + range)
                .with_targets(low..=low + span)
                .with_seed(seed);
            if let Some(problem) = config.init().unwrap().problem(index) {
                prop_assert!(config.numbers.contains(&problem.numbers().len()));
                prop_assert!(problem.numbers().iter().all(|number| config.values.contains(number)));
                prop_assert!(config.targets.contains(&problem.target()));
                for style in [CountdownStyle::Thought, CountdownStyle::Answer] {
                    let prompt = problem.prompt(style);
                    prop_assert_eq!(CountdownReward::default().check(&prompt), Ok(()));
                    let grade = CountdownReward::default().grade(&prompt, &problem.completion(style));
                    prop_assert_eq!((grade.correct, grade.well_formed), (Some(true), Some(true)), "{:?}", problem);
                    let other = prompt.with_fact("target", problem.target() + 1);
                    let grade = CountdownReward::default().grade(&other, &problem.completion(style));
                    prop_assert_eq!(grade.correct, Some(false));
                }
            }
        }

        #[test]
        fn values_of_32_bits_do_not_panic(seed: u64, target: i64) {
            let config = CountdownConfig::new().with_numbers(2..=16).with_values(1..=u32::MAX).with_seed(seed);
            let _ = config.clone().with_targets(target..=i64::MAX).init().unwrap().problem(0);
            let _ = config.with_targets(i64::MIN..=target).init().unwrap().problem(u64::MAX);
        }
    }
}
