//! One problem: drawn, asked and solved.

use super::CountdownConfig;
use crate::reward::Prompt;
use crate::task::random::{SplitMix64, hash};
use crate::task::{SftExample, Split};

/// Draws until an index is given up.
const TRIES: usize = 100;

/// What the prompt's worked example solves: sorted numbers and target. No problem of a split is this one.
const WORKED_EXAMPLE: ([u32; 3], i64) = ([3, 8, 9], 48);

/// How a problem is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CountdownStyle {
    /// Instructions with a worked example. The reply thinks first, then answers: `…</think>`, a newline and `<answer>…</answer>`.
    Thought,
    /// Numbers and target alone, for models that are too small to follow instructions. The reply is `…</answer>`.
    Answer,
}

/// A Countdown problem with a solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountdownProblem {
    numbers: Vec<u32>,
    target: i64,
    first: u32,
    steps: Vec<(char, u32)>,
}

impl CountdownProblem {
    /// Draws a problem; see [`Countdown`](super::Countdown).
    pub(super) fn draw(config: &CountdownConfig, seed: u64) -> Option<Self> {
        let mut random = SplitMix64::new(seed);
        let mut problem = (0..TRIES)
            .filter_map(|_| Self::fold(config, &mut random))
            .find(|problem| config.targets.contains(&problem.target))?;
        random.shuffle(&mut problem.numbers);
        Some(problem)
    }

    /// Draws numbers and folds them; `None` if a value does not fit in an `i64`.
    fn fold(config: &CountdownConfig, random: &mut SplitMix64) -> Option<Self> {
        let counts = (config.numbers.end() - config.numbers.start()) as u64 + 1;
        let count = config.numbers.start() + random.below(counts) as usize;
        let values = u64::from(config.values.end() - config.values.start()) + 1;
        let numbers: Vec<u32> = (0..count).map(|_| config.values.start() + random.below(values) as u32).collect();

        let (first, mut rest) = (numbers[0], numbers[1..].to_vec());
        let (mut value, mut steps) = (i64::from(first), Vec::new());
        while !rest.is_empty() {
            let (operator, place) = match random.below(4) {
                0 => ('+', 0),
                1 => ('-', 0),
                2 => ('*', 0),
                _ => rest
                    .iter()
                    .position(|number| value % i64::from(*number) == 0)
                    .map_or(('-', 0), |place| ('/', place)),
            };
            let number = rest.remove(place);
            value = apply(value, operator, number)?;
            steps.push((operator, number));
        }
        Some(Self { numbers, target: value, first, steps })
    }

    /// The numbers, in the order of the prompt.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// The target.
    pub fn target(&self) -> i64 {
        self.target
    }

    /// The sorted numbers and the target: the same for problems that differ in the order of their numbers.
    pub fn canonical(&self) -> (Vec<u32>, i64) {
        let mut numbers = self.numbers.clone();
        numbers.sort_unstable();
        (numbers, self.target)
    }

    /// The split that the problem belongs to, by its canonical form alone; see [`Countdown`](super::Countdown).
    pub fn split(&self) -> Split {
        let (numbers, target) = self.canonical();
        match hash(numbers.into_iter().map(u64::from).chain([target.cast_unsigned()])) % 8 {
            0 => Split::Dev,
            1 | 2 => Split::Test,
            _ => Split::Train,
        }
    }

    pub(super) fn is_worked_example(&self) -> bool {
        let (numbers, target) = WORKED_EXAMPLE;
        self.canonical() == (numbers.to_vec(), target)
    }

    /// An expression of all numbers with the target as its value, such as `(2 + 7) * 3`. There may be others.
    pub fn solution(&self) -> String {
        let mut text = self.first.to_string();
        let mut is_sum = false;
        for &(operator, number) in &self.steps {
            let adds = matches!(operator, '+' | '-');
            if is_sum && !adds {
                text = format!("({text})");
            }
            text = format!("{text} {operator} {number}");
            is_sum = adds;
        }
        text
    }

    /// The steps of the solution, such as `2 + 7 = 9, 9 * 3 = 27`.
    fn thought(&self) -> String {
        let mut value = i64::from(self.first);
        let steps = self.steps.iter().map(|&(operator, number)| {
            let before = value;
            value = apply(value, operator, number).expect("every step was computed when the problem was drawn");
            format!("{before} {operator} {number} = {value}")
        });
        steps.collect::<Vec<_>>().join(", ")
    }

    /// What the model is asked, with the facts that [`CountdownReward`](crate::reward::CountdownReward) needs. The prompt opens the
    /// block that the reply starts with, so the reply is to close it.
    pub fn prompt(&self, style: CountdownStyle) -> Prompt {
        let numbers = self.numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let target = self.target;
        let (question, opening) = match style {
            CountdownStyle::Thought => (instructions(&numbers, target), "<think>"),
            CountdownStyle::Answer => (format!("Numbers: {numbers}. Target: {target}.\n"), "<answer>"),
        };
        let prompt = Prompt::new(question).with_opening(opening);
        prompt.with_fact("numbers", self.numbers.as_slice()).with_fact("target", target)
    }

    /// A correct and well-formed completion of the prompt in the same style.
    pub fn completion(&self, style: CountdownStyle) -> String {
        let solution = self.solution();
        match style {
            CountdownStyle::Thought => format!("{}</think>\n<answer>{solution}</answer>", self.thought()),
            CountdownStyle::Answer => format!("{solution}</answer>"),
        }
    }

    /// The prompt and its completion, for likelihood training.
    pub fn example(&self, style: CountdownStyle) -> SftExample {
        SftExample { prompt: self.prompt(style).text(), completion: self.completion(style), line: 0 }
    }
}

fn instructions(numbers: &str, target: i64) -> String {
    format!(
        "Write an arithmetic expression whose value is the target. Use each of the given numbers exactly once, and no other number. \
         You may use + - * / and parentheses.\n\
         First work it out between <think> and </think>. Then write the expression alone between <answer> and </answer>.\n\n\
         Numbers: 8 3 9. Target: 48.\n\
         <think>9 - 3 = 6, 6 * 8 = 48</think>\n\
         <answer>(9 - 3) * 8</answer>\n\n\
         Numbers: {numbers}. Target: {target}.\n"
    )
}

/// A step of the fold; `None` if the value does not fit in an `i64`.
fn apply(value: i64, operator: char, number: u32) -> Option<i64> {
    let number = i64::from(number);
    match operator {
        '+' => value.checked_add(number),
        '-' => value.checked_sub(number),
        '*' => value.checked_mul(number),
        _ => value.checked_div(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reward::{CountdownReward, Reward};

    fn problem(first: u32, steps: &[(char, u32)]) -> CountdownProblem {
        let target =
            steps.iter().fold(i64::from(first), |value, (operator, number)| apply(value, *operator, *number).unwrap());
        let numbers = [first].into_iter().chain(steps.iter().map(|step| step.1)).collect();
        CountdownProblem { numbers, target, first, steps: steps.to_vec() }
    }

    #[test]
    fn solutions_have_the_parentheses_that_they_need() {
        for (steps, solution, target) in [
            (&[('+', 7), ('*', 3)][..], "(2 + 7) * 3", 27),
            (&[('*', 7), ('+', 3)], "2 * 7 + 3", 17),
            (&[('-', 7), ('-', 3)], "2 - 7 - 3", -8),
            (&[('*', 6), ('/', 3), ('*', 2)], "2 * 6 / 3 * 2", 8),
            (&[('+', 4), ('/', 3), ('-', 1), ('*', 5)], "((2 + 4) / 3 - 1) * 5", 5),
        ] {
            let problem = problem(2, steps);
            assert_eq!((problem.solution().as_str(), problem.target()), (solution, target));
        }
    }

    #[test]
    fn prompts_and_completions_of_both_styles() {
        let problem = problem(2, &[('+', 7), ('*', 3)]);
        let example = problem.example(CountdownStyle::Answer);
        assert_eq!(example.prompt, "Numbers: 2 7 3. Target: 27.\n<answer>");
        assert_eq!(example.completion, "(2 + 7) * 3</answer>");
        let example = problem.example(CountdownStyle::Thought);
        assert!(example.prompt.ends_with("\n\nNumbers: 2 7 3. Target: 27.\n<think>"), "{}", example.prompt);
        assert_eq!(example.completion, "2 + 7 = 9, 9 * 3 = 27</think>\n<answer>(2 + 7) * 3</answer>");
    }

    /// The worked example of the instructions is right, and it is the problem that the splits leave out.
    #[test]
    fn the_worked_example_is_correct() {
        let example = problem(9, &[('-', 3), ('*', 8)]);
        assert!(example.is_worked_example());
        let shown = format!("<think>{}\n\n", example.completion(CountdownStyle::Thought));
        assert!(instructions("1 2", 3).contains(&shown), "{shown}");
        let prompt = example.prompt(CountdownStyle::Thought);
        assert_eq!(CountdownReward::default().score(&prompt, &example.completion(CountdownStyle::Thought)), 1.1);
    }

    /// Problems are part of published results: a change of these values is value-breaking.
    #[test]
    fn values_are_stable() {
        let draw = |config: CountdownConfig, seed| CountdownProblem::draw(&config, seed).unwrap();
        let found: Vec<String> = (0..4)
            .flat_map(|seed| [CountdownConfig::tiny(), CountdownConfig::new()].map(|config| draw(config, seed)))
            .map(|problem| {
                format!("{:?} {} = {} {:?}", problem.numbers, problem.solution(), problem.target, problem.split())
            })
            .collect();
        let expected = [
            "[3, 8] 8 - 3 = 5 Train",
            "[3, 11, 97, 43] 43 - 3 + 97 - 11 = 126 Train",
            "[6, 8, 3] (6 - 3) * 8 = 24 Train",
            "[71, 99, 60, 5] 71 * 5 - 99 - 60 = 196 Dev",
            "[3, 4, 10] 4 + 10 - 3 = 11 Train",
            "[90, 28, 2, 35] 35 + 28 - 2 + 90 = 151 Train",
            "[7, 8] 8 + 7 = 15 Test",
            "[80, 72, 34] 34 - 72 + 80 = 42 Train",
        ];
        assert_eq!(found, expected);
    }
}
