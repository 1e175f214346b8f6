//! Lessons in a file.

use super::Lesson;
use crate::items::{Item, Items};
use crate::reward::{Prompt, Reward};
use crate::sampling::SamplingConfig;
use serde::{Deserialize, Serialize};

/// The lesson of a generation as a line of JSON. Together with the replay log, the pretrained model and the reward, lessons suffice to rebuild and verify a
/// run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrittenLesson {
    /// The generation.
    pub generation: u64,
    /// The questions.
    #[serde(flatten)]
    pub asked: Questions,
}

/// A [`Lesson`] without its reward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Questions {
    /// Completions that all members were given.
    Completions(Vec<Item>),
    /// Completions for each group of members.
    Groups(Vec<Vec<Item>>),
    /// Completions for each member.
    Each(Vec<Vec<Item>>),
    /// Prompts that all members continued.
    Answers {
        /// The prompts.
        prompts: Vec<Prompt>,
        /// How answers were written.
        sampling: SamplingConfig,
    },
}

impl WrittenLesson {
    /// The usual name of their file, next to the replay log.
    pub const FILE: &str = "lessons.jsonl";

    /// From a generation's lesson.
    pub fn new(generation: u64, lesson: &Lesson) -> Self {
        let asked = match *lesson {
            Lesson::Completions(Items::Shared(items)) => Questions::Completions(items.to_vec()),
            Lesson::Completions(Items::Groups(groups)) => Questions::Groups(groups.to_vec()),
            Lesson::Completions(Items::Each(lists)) => Questions::Each(lists.to_vec()),
            Lesson::Prompts { prompts, sampling, .. } => {
                Questions::Answers { prompts: prompts.to_vec(), sampling: sampling.clone() }
            }
        };
        Self { generation, asked }
    }

    /// The lesson, with the reward of its answers.
    pub fn lesson<'a>(&'a self, reward: &'a dyn Reward) -> Lesson<'a> {
        match &self.asked {
            Questions::Completions(items) => Lesson::Completions(Items::Shared(items)),
            Questions::Groups(groups) => Lesson::Completions(Items::Groups(groups)),
            Questions::Each(lists) => Lesson::Completions(Items::Each(lists)),
            Questions::Answers { prompts, sampling } => Lesson::Prompts { prompts, reward, sampling },
        }
    }
}
