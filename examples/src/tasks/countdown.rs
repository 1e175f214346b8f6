//! Countdown: an expression of given numbers by `+ - * /` whose value is the target.

use super::arithmetic::evaluate;
use super::random::{SplitMix64, hash};
use super::{Grade, GradedReward, Splits};
use eggroll::lm::reward::{Prompt, PromptError, Reward};
use std::collections::HashSet;

/// Problems to train on, of dev and of the test; there are about 1,890, 350 and 710.
const COUNTS: [usize; 3] = [1024, 128, 256];
/// Draws until an index is given up.
const TRIES: usize = 100;
/// Sorted numbers and target of a problem that is in no split: it stands in the prompts of published experiments.
const LEFT_OUT: ([i64; 3], i64) = ([3, 8, 9], 48);

const ANSWER: [&str; 2] = ["<answer>", "</answer>"];
/// Tags that an answer does not have inside.
const TAGS: [&str; 4] = ["<think>", "</think>", ANSWER[0], ANSWER[1]];
/// The score of a well-formed reply that is wrong.
const FORM: f32 = 0.1;

/// A problem with a solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// In the order of the prompt.
    numbers: Vec<i64>,
    target: i64,
    solution: String,
}

/// Problems of 2 or 3 numbers from 1 to 10 with targets from 1 to 100, for models of about 100 million parameters.
///
/// Problem `index` is drawn by SplitMix64, seeded by `seed + index`: a count of numbers, then the numbers, all uniform.
/// They are folded from left to right, each time by a random operator. A division takes the first remaining number that
/// divides the value so far; if none does, the next number is subtracted. If the value is not a target, all is drawn
/// again, at most 100 times; then the index has no problem. Last, the numbers are shuffled.
///
/// A problem's split is a hash of its sorted numbers and its target: for one in 8 dev, for two in 8 test, for five in 8
/// training. It is the same for every seed, so training never sees a problem of any test, in any order of its numbers.
///
/// # References
///
/// The method is that of reasoning-gym's task `countdown` ([arXiv:2505.24760](https://arxiv.org/abs/2505.24760)); the
/// problems are others.
pub fn problems(seed: u64) -> Splits<Problem> {
    let mut seen = HashSet::new();
    let mut splits = [const { Vec::new() }; 3];
    let mut index = 0;
    while splits.iter().zip(COUNTS).any(|(problems, count)| problems.len() < count) {
        let problem = Problem::draw(seed.wrapping_add(index));
        index += 1;
        let Some(problem) = problem.filter(|problem| problem.canonical() != (LEFT_OUT.0.to_vec(), LEFT_OUT.1)) else {
            continue;
        };
        let split = problem.split();
        if splits[split].len() < COUNTS[split] && seen.insert(problem.canonical()) {
            splits[split].push(problem);
        }
    }
    let [train, dev, test] = splits;
    Splits { train: vec![train], dev, test }
}

impl Problem {
    fn draw(seed: u64) -> Option<Self> {
        let mut random = SplitMix64::new(seed);
        let mut drawn = (0..TRIES).map(|_| Self::fold(&mut random));
        let mut problem = drawn.find(|problem| (1..=100).contains(&problem.target))?;
        random.shuffle(&mut problem.numbers);
        Some(problem)
    }

    /// Draws numbers and folds them to a target.
    fn fold(random: &mut SplitMix64) -> Self {
        let count = 2 + random.below(2);
        let numbers: Vec<i64> = (0..count).map(|_| 1 + random.below(10) as i64).collect();
        let mut rest = numbers.clone();
        let mut target = rest.remove(0);
        let (mut solution, mut is_sum) = (target.to_string(), false);
        while !rest.is_empty() {
            let (operator, place) = match random.below(4) {
                0 => ('+', 0),
                1 => ('-', 0),
                2 => ('*', 0),
                _ => match rest.iter().position(|number| target % number == 0) {
                    Some(place) => ('/', place),
                    None => ('-', 0),
                },
            };
            let number = rest.remove(place);
            let adds = matches!(operator, '+' | '-');
            if is_sum && !adds {
                solution = format!("({solution})");
            }
            solution = format!("{solution} {operator} {number}");
            is_sum = adds;
            target = match operator {
                '+' => target + number,
                '-' => target - number,
                '*' => target * number,
                _ => target / number,
            };
        }
        Self { numbers, target, solution }
    }

    /// The sorted numbers and the target: the same for problems that differ in the order of their numbers.
    fn canonical(&self) -> (Vec<i64>, i64) {
        let mut numbers = self.numbers.clone();
        numbers.sort_unstable();
        (numbers, self.target)
    }

    /// The place of the split in [`COUNTS`].
    fn split(&self) -> usize {
        let (numbers, target) = self.canonical();
        match hash(numbers.into_iter().chain([target]).map(i64::cast_unsigned)) % 8 {
            0 => 1,
            1 | 2 => 2,
            _ => 0,
        }
    }

    /// What the model is asked, with the facts that [`CountdownReward`] needs. The prompt opens the answer, and the
    /// reply is to close it.
    pub fn prompt(&self) -> Prompt {
        let numbers = self.numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
        let prompt = Prompt::new(format!("Numbers: {numbers}. Target: {}.\n", self.target)).with_opening(ANSWER[0]);
        prompt.with_fact("numbers", self.numbers.as_slice()).with_fact("target", self.target)
    }

    /// A correct and well-formed completion of the prompt.
    pub fn completion(&self) -> String {
        format!("{}{}", self.solution, ANSWER[1])
    }
}

/// The reward `0.1·F + A`, of a prompt with the facts `numbers` and `target`.
///
/// `A` (correct) is 1 if all of these hold for the **last** closed `<answer>` block of the reply, else 0:
///
/// - It holds only digits, `+ - * / ( )` and spaces.
/// - Its integers are the given numbers, each as often as it is given.
/// - Its value, an exact fraction, is the target.
///
/// `F` (form) is 1 (well-formed) if the reply is one answer block and nothing more, but for a newline; else 0.5 if it
/// has an answer block.
///
/// # References
///
/// After Qiu et al., *Evolution Strategies at Scale: LLM Fine-Tuning Beyond Reinforcement Learning* (2025),
/// [arXiv:2509.24372](https://arxiv.org/abs/2509.24372), whose models also think before they answer.
#[derive(Clone, Copy, Debug)]
pub struct CountdownReward;

impl Reward for CountdownReward {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        self.grade(prompt, completion).score
    }

    fn check(&self, prompt: &Prompt) -> Result<(), PromptError> {
        given(prompt).map(|_| ())
    }
}

impl GradedReward for CountdownReward {
    fn grade(&self, prompt: &Prompt, completion: &str) -> Grade {
        let (numbers, target) = given(prompt).unwrap_or_else(|error| panic!("{error}"));
        let reply = prompt.reply(completion);
        let correct = last_answer(&reply).and_then(evaluate).is_some_and(|mut found| {
            found.integers.sort_unstable();
            found.integers == numbers && found.equals(target)
        });
        let form = form(&reply);
        Grade { score: FORM * form + f32::from(correct), correct, well_formed: Some(form == 1.0) }
    }
}

/// The sorted numbers and the target.
fn given(prompt: &Prompt) -> Result<(Vec<u32>, i64), PromptError> {
    let mut numbers: Vec<u32> = prompt.fact("numbers", "a list of integers, none negative")?;
    numbers.sort_unstable();
    Ok((numbers, prompt.fact("target", "an integer")?))
}

/// What the last closed answer block holds.
fn last_answer(reply: &str) -> Option<&str> {
    let [open, close] = ANSWER;
    let last = reply.rfind(close)?;
    let start = reply[..last].rfind(open)? + open.len();
    reply[start..].split(close).next()
}

/// `F`.
fn form(reply: &str) -> f32 {
    let [open, close] = ANSWER;
    let whole = reply.strip_suffix('\n').unwrap_or(reply);
    let answer = whole.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if answer.is_some_and(|answer| !TAGS.iter().any(|tag| answer.contains(tag))) {
        return 1.0;
    }
    let is_closed = reply.split_once(open).is_some_and(|(_, rest)| rest.contains(close));
    0.5 * f32::from(is_closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn puzzle(numbers: &[u32], target: i64) -> Prompt {
        Prompt::new("?").with_opening(ANSWER[0]).with_fact("numbers", numbers).with_fact("target", target)
    }

    fn correct(prompt: &Prompt, answer: &str) -> bool {
        let grade = CountdownReward.grade(prompt, &format!("{answer}</answer>"));
        assert_eq!(grade.well_formed, Some(true));
        assert_eq!(grade.score, 0.1 + f32::from(grade.correct));
        grade.correct
    }

    /// Problems are part of published results: a change of these values is value-breaking.
    #[test]
    fn values_are_stable() {
        let found: Vec<String> = (0..4)
            .map(|seed| Problem::draw(seed).expect("a problem"))
            .map(|problem| {
                format!("{:?} {} = {} {}", problem.numbers, problem.solution, problem.target, problem.split())
            })
            .collect();
        assert_eq!(
            found,
            [
                "[3, 8] 8 - 3 = 5 0",
                "[6, 8, 3] (6 - 3) * 8 = 24 0",
                "[3, 4, 10] 4 + 10 - 3 = 11 0",
                "[7, 8] 8 + 7 = 15 2"
            ]
        );
    }

    #[test]
    fn every_problem_is_in_one_split_and_has_its_solution_accepted() {
        let canonical = |splits: &Splits<Problem>| {
            [&splits.train[0], &splits.dev, &splits.test]
                .map(|problems| problems.iter().map(Problem::canonical).collect::<HashSet<_>>())
        };
        let [one, other] = [0, 99].map(problems);
        for problem in one.train[0].iter().chain(&one.dev).chain(&one.test) {
            let (prompt, completion) = (problem.prompt(), problem.completion());
            assert_eq!(CountdownReward.check(&prompt), Ok(()));
            assert_eq!(CountdownReward.score(&prompt, &completion), 1.1, "{problem:?}");
            let wrong = prompt.with_fact("target", problem.target + 1);
            assert_eq!(CountdownReward.score(&wrong, &completion), 0.1, "{problem:?}");
        }
        let [one, other] = [one, other].map(|splits| canonical(&splits));
        assert_eq!(one.each_ref().map(HashSet::len), COUNTS);
        for (place, problems) in one.iter().enumerate() {
            for (other_place, others) in other.iter().enumerate() {
                assert_eq!(problems.is_disjoint(others), place != other_place);
            }
        }
    }

    #[test]
    fn every_number_is_used_as_often_as_given() {
        let repeat = puzzle(&[4, 4, 6], 14);
        assert!(correct(&repeat, "4 + 4 + 6"));
        assert!(!correct(&repeat, "4 + 10")); // a number that is not given
        assert!(!correct(&repeat, "14"));
        assert!(!correct(&puzzle(&[4, 4, 6], 10), "4 + 6")); // as sets, {4, 6} would do
        assert!(!correct(&puzzle(&[4, 6], 14), "4 + 4 + 6"));
        assert!(!correct(&puzzle(&[1, 2], 12), "12")); // digits are not numbers
        assert!(correct(&puzzle(&[2, 5], -3), "-5 + 2"));
        assert!(!correct(&puzzle(&[37, 10], 3), "37 / 10")); // 3.7
        assert!(correct(&puzzle(&[3, 8, 8, 3], 24), "8 / (3 - 8 / 3)"));
    }

    #[test]
    fn the_last_closed_answer_counts() {
        let is_correct = |reply: &str| CountdownReward.grade(&puzzle(&[2, 3], 6), reply).correct;
        assert!(is_correct("2+3</answer><answer>2*3</answer>"));
        assert!(!is_correct("2*3</answer><answer>2+3</answer>"));
        assert!(is_correct("2*3</answer><answer>2+"));
        assert!(is_correct("2+<answer>2*3</answer>"));
        assert!(!is_correct("2*3"));
        let shown = puzzle(&[2, 3], 6).with_question(|_| "<answer>2*3</answer>\n".into());
        assert!(!CountdownReward.grade(&shown, "2*3").correct); // the prompt is not graded
    }

    #[test]
    fn forms_score_apart_from_correctness() {
        let prompt = puzzle(&[2, 3], 6);
        for (completion, score) in [
            ("2*3</answer>", 1.1),
            ("2*3</answer>\n", 1.1),
            ("2*3</answer> and", 1.05),
            ("2+3</answer>", 0.1),
            ("<think>2+3</answer>", 0.05),
            ("2*3", 0.0),
        ] {
            assert_eq!(CountdownReward.score(&prompt, completion), score, "{completion:?}");
        }
    }

    #[test]
    fn prompts_that_cannot_be_graded_are_refused() {
        let check = |prompt: Prompt| CountdownReward.check(&prompt).unwrap_err().to_string();
        assert!(check(Prompt::new("?")).contains("no fact `numbers`"));
        assert!(check(puzzle(&[1, 2], 3).with_fact("target", 2.5)).contains("is 2.5: expected an integer"));
    }
}
