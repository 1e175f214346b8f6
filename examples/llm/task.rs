//! Tasks: what is learned from, and how it is judged.

use crate::args::{LlmSettings, TaskName};
use eggroll::lm::load::Tokenizer;
use eggroll::lm::reward::Prompt;
use eggroll::lm::{Episode, Error, Finetune, Item, Items, Lesson, SamplingConfig, Tunable};
use eggroll::run::data_digest;
use eggroll_examples::Failure;
use eggroll_examples::tasks::conciseness::{self, Conciseness};
use eggroll_examples::tasks::countdown::{self, CountdownReward, Problem};
use eggroll_examples::tasks::dialogue::{self, DialogueReward};
use eggroll_examples::tasks::{Example, Grade, GradedReward, Splits, sft, words};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The data of a task, in tokens where the task only scores.
pub enum LlmTask {
    /// Completions that are given.
    Likelihood(Splits<Item>),
    /// Completions that the model writes.
    Reward {
        splits: Splits<Prompt>,
        reward: Box<dyn GradedReward>,
        sampling: SamplingConfig,
        /// Completions that are given in the first steps.
        warm_up: Vec<Vec<Item>>,
    },
}

/// How good a model is.
#[derive(Clone, Copy, Debug)]
pub struct Score {
    /// Share of exact or correct answers.
    pub accuracy: f64,
    /// Mean log-probability of a token, or mean reward.
    pub mean: f64,
    /// Share of well-formed answers, where the reward tells.
    pub well_formed: Option<f64>,
    /// Answers that were judged.
    pub count: usize,
}

impl LlmTask {
    /// Reads or makes the data, all of which fits the model.
    pub fn new<M: Tunable>(settings: &LlmSettings, finetune: &Finetune<M>) -> Result<Self, Failure> {
        let data = settings.data.clone().unwrap_or_else(words_file);
        let likelihood = |examples: Splits<Example>| -> Result<Self, Failure> {
            let in_file = |error: Failure| format!("{}: {error}", data.display());
            Ok(Self::Likelihood(examples.try_map(|examples| items(finetune, examples)).map_err(in_file)?))
        };
        let sampling = settings.sampling();
        let task = match settings.task {
            TaskName::Words => likelihood(words::examples(&data)?)?,
            TaskName::Sft => likelihood(sft::examples(&data)?)?,
            TaskName::Conciseness => {
                let in_chat = |prompt: &Prompt| finetune.in_chat(prompt.clone());
                let splits = conciseness::prompts()
                    .try_map(|prompts| prompts.iter().map(in_chat).collect::<Result<_, Error>>())?;
                Self::Reward { splits, reward: reward(settings.task)?, sampling, warm_up: Vec::new() }
            }
            TaskName::Dialogue => {
                let reply = finetune.chat_reply(dialogue::REPLY)?;
                let splits = dialogue::prompts(&data, |question| finetune.chat(question), &reply)?;
                Self::Reward { splits, reward: reward(settings.task)?, sampling, warm_up: Vec::new() }
            }
            TaskName::Countdown => {
                let problems = countdown::problems(settings.seed);
                let prompt = |problem: &Problem| finetune.in_chat(problem.prompt());
                let solution = |problem: &Problem| -> Result<Item, Error> {
                    let item = finetune.item(&prompt(problem)?.text(), &problem.completion())?;
                    // With the end of the text, so that the model learns to stop.
                    let end = finetune.tokenizer().eos().first().map(std::slice::from_ref).unwrap_or_default();
                    Ok(Item::new(item.prompt(), &[item.completion(), end].concat()))
                };
                let warm_up: Vec<Item> = problems.train[0].iter().map(solution).collect::<Result<_, _>>()?;
                finetune.check_items(&warm_up)?;
                let splits = problems.try_map(|problems| problems.iter().map(prompt).collect::<Result<_, Error>>())?;
                Self::Reward { splits, reward: reward(settings.task)?, sampling, warm_up: vec![warm_up] }
            }
        };
        if let Self::Reward { splits: Splits { train, dev, test }, reward, sampling, .. } = &task {
            let mut all = train.iter().chain([dev, test]);
            all.try_for_each(|prompts| finetune.check_prompts(reward.as_ref(), prompts, sampling))?;
        }
        Ok(task)
    }

    /// The digest of all data, as tokens where the task only scores, by which a run notices others.
    pub fn digest(&self) -> String {
        let bytes = |tokens: &[u32]| tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        let parts: Vec<Vec<u8>> = match self {
            Self::Likelihood(Splits { train, dev, test }) => {
                let items = train.iter().chain([dev, test]).flatten();
                items.flat_map(|item| [item.prompt(), item.completion()]).map(bytes).collect()
            }
            Self::Reward { splits: Splits { train, dev, test }, .. } => {
                let prompts = train.iter().chain([dev, test]).flatten();
                prompts.map(|prompt| serde_json::to_vec(prompt).expect("texts are JSON")).collect()
            }
        };
        data_digest(parts.iter().map(Vec::as_slice))
    }

    /// The next of the training data, in an order that depends on the seed.
    pub fn batch(&self, step: u64, settings: &LlmSettings) -> LlmBatch {
        match self {
            Self::Likelihood(splits) => LlmBatch::Completions(batch(&splits.train, step, settings)),
            Self::Reward { warm_up, .. } if step < settings.warm_up => {
                LlmBatch::Completions(batch(warm_up, step, settings))
            }
            Self::Reward { splits, .. } => LlmBatch::Prompts(batch(&splits.train, step, settings)),
        }
    }

    /// What members are asked of a batch.
    pub fn lesson<'a>(&'a self, batch: &'a LlmBatch) -> Lesson<'a> {
        match (batch, self) {
            (LlmBatch::Completions(items), _) => Lesson::Completions(Items::Shared(items)),
            (LlmBatch::Prompts(prompts), Self::Reward { reward, sampling, .. }) => {
                Lesson::Prompts { prompts, reward: reward.as_ref(), sampling }
            }
            (LlmBatch::Prompts(_), Self::Likelihood(_)) => unreachable!("prompts are those of a reward"),
        }
    }

    /// The items that the model is tested on, if completions are given.
    pub fn test_items(&self) -> &[Item] {
        match self {
            Self::Likelihood(splits) => &splits.test,
            Self::Reward { .. } => &[],
        }
    }

    pub fn dev<M: Tunable>(&self, finetune: &Finetune<M>) -> Result<Score, Failure> {
        self.judge(finetune, |likelihood| &likelihood.dev, |reward| &reward.dev)
    }

    pub fn test<M: Tunable>(&self, finetune: &Finetune<M>) -> Result<Score, Failure> {
        self.judge(finetune, |likelihood| &likelihood.test, |reward| &reward.test)
    }

    fn judge<M: Tunable>(
        &self,
        finetune: &Finetune<M>,
        items: impl Fn(&Splits<Item>) -> &Vec<Item>,
        prompts: impl Fn(&Splits<Prompt>) -> &Vec<Prompt>,
    ) -> Result<Score, Failure> {
        Ok(match self {
            Self::Likelihood(splits) => {
                let scored = finetune.score(items(splits))?;
                let count = scored.len();
                let mean = scored.iter().map(|scored| f64::from(scored.mean_log_probability())).sum::<f64>();
                let exact = scored.iter().filter(|scored| scored.exact).count();
                Score { accuracy: exact as f64 / count as f64, mean: mean / count as f64, well_formed: None, count }
            }
            Self::Reward { splits, reward, sampling, .. } => {
                let prompts = prompts(splits);
                let played = finetune.play(reward.as_ref(), prompts, &sampling.clone().with_answers(1, 1))?;
                let grade = |(prompt, played): (&Prompt, &Vec<Episode>)| reward.grade_episode(prompt, &played[0].turns);
                let grades: Vec<Grade> = prompts.iter().zip(&played).map(grade).collect();
                let (count, correct) = (grades.len(), grades.iter().filter(|grade| grade.correct).count());
                let total = grades.iter().map(|grade| f64::from(grade.score)).sum::<f64>();
                let well_formed = grades.iter().map(|grade| grade.well_formed.map(f64::from)).sum::<Option<f64>>();
                Score {
                    accuracy: correct as f64 / count as f64,
                    mean: total / count as f64,
                    well_formed: well_formed.map(|formed| formed / count as f64),
                    count,
                }
            }
        })
    }

    /// Prompts whose answers are shown before and after.
    pub fn samples(&self, tokenizer: &Tokenizer) -> Result<Vec<Prompt>, Failure> {
        Ok(match self {
            Self::Likelihood(splits) => {
                let text = |item: &Item| tokenizer.decode(item.prompt(), false).map(Prompt::new);
                splits.test.iter().take(3).map(text).collect::<Result<_, _>>()?
            }
            Self::Reward { splits, .. } => splits.test.iter().take(3).cloned().collect(),
        })
    }
}

/// The reward of a task.
pub fn reward(task: TaskName) -> Result<Box<dyn GradedReward>, Failure> {
    match task {
        TaskName::Conciseness => Ok(Box::new(Conciseness)),
        TaskName::Countdown => Ok(Box::new(CountdownReward)),
        TaskName::Dialogue => Ok(Box::new(DialogueReward)),
        TaskName::Words | TaskName::Sft => {
            Err("the tasks words and sft have no reward: their scores are likelihoods".into())
        }
    }
}

/// What a step learns from.
pub enum LlmBatch {
    /// Completions that are given.
    Completions(Vec<Item>),
    /// Prompts of the task's reward.
    Prompts(Vec<Prompt>),
}

impl LlmBatch {
    /// The completions, if they are given.
    pub fn completions(self) -> Option<Vec<Item>> {
        match self {
            Self::Completions(items) => Some(items),
            Self::Prompts(_) => None,
        }
    }
}

/// The items of examples, all checked: steps take a few at a time, and would find the first that does not fit after
/// hours.
fn items<M: Tunable>(finetune: &Finetune<M>, examples: &[Example]) -> Result<Vec<Item>, Failure> {
    let made = examples.iter().map(|example| finetune.item(&example.prompt, &example.completion));
    let items = made.collect::<Result<Vec<_>, _>>()?;
    finetune.check_items(&items).map_err(|error| match error.item() {
        Some(item) => format!("line {}: {error}", examples[item].line),
        None => error.to_string(),
    })?;
    Ok(items)
}

/// The training data of a step, of one kind after the other: a pass over all of a kind in an order of the pass, then
/// the next one.
fn batch<T: Clone>(kinds: &[Vec<T>], step: u64, settings: &LlmSettings) -> Vec<T> {
    let all = kinds.iter().map(Vec::len).sum::<usize>() as u64;
    let (count, turns) = ((settings.prompts as u64).min(all), kinds.len() as u64);
    let mut orders = HashMap::new();
    let mut place = |index: u64| {
        let kind = &kinds[(index % turns) as usize];
        let (turn, len) = (index / turns, kind.len() as u64);
        let order = orders.entry((len, turn / len)).or_insert_with(|| order(settings.seed, turn / len, len));
        kind[order[(turn % len) as usize]].clone()
    };
    (step * count..(step + 1) * count).map(&mut place).collect()
}

/// A permutation of the data, by seed and pass: places sorted by words that are drawn for them.
fn order(seed: u64, pass: u64, len: u64) -> Vec<usize> {
    use eggroll::core::rng::philox::philox4x32;
    /// Keeps these draws apart from the draws of noise.
    const DOMAIN: u32 = 0x7e48_0000;
    let word = |index: usize| philox4x32([index as u32, 0, pass as u32, DOMAIN], [seed as u32, (seed >> 32) as u32])[0];
    let mut order: Vec<usize> = (0..len as usize).collect();
    order.sort_by_cached_key(|index| (word(*index), *index));
    order
}

fn words_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/words/sentiment.tsv")
}
