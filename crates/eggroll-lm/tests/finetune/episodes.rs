//! Episodes of several turns, and several answers to a prompt.

use crate::{finetune, settings};
use eggroll_lm::reward::{Prompt, Reward};
use eggroll_lm::{Error, Finetune, Items, ItemsError, Lesson, Llama, SamplingConfig};
use eggroll_run::VerifyConfig;
use eggroll_train::Credit;

/// Asks twice: the reply begins with what was answered first. Letters before n are worth something, in both answers.
struct Twice;

impl Reward for Twice {
    fn score(&self, _: &Prompt, completion: &str) -> f32 {
        completion.chars().filter(|letter| *letter < 'n').count() as f32 / 4.0
    }

    fn reply(&self, _: &Prompt, turns: &[String]) -> Option<String> {
        (turns.len() == 1).then(|| turns[0].chars().take(1).chain(['q']).collect())
    }

    fn score_episode(&self, prompt: &Prompt, turns: &[String]) -> f32 {
        turns.iter().step_by(2).map(|answer| self.score(prompt, answer)).sum::<f32>() / 2.0
    }
}

/// From means and by prompt, one answer and the best of several; what was learned is in both turns, and its log is verified.
#[test]
fn episodes_of_two_turns_are_learned_from() {
    let prompts = ["abc", "hello", "zq"].map(Prompt::new);
    let greedy = SamplingConfig::greedy(4);
    // The logits of so small a model are near to each other.
    let best_of_two = greedy.clone().with_temperature(0.05).with_answers(8, 2);
    let mean = |finetune: &Finetune<Llama>, sampling: &SamplingConfig, turn: usize| {
        let played = finetune.play(&Twice, &prompts, sampling).unwrap();
        let answers = played.iter().flatten().map(|episode| {
            assert_eq!(episode.turns.len(), 3);
            let first = episode.turns[0].chars().take(1).chain(['q']);
            assert_eq!(episode.turns[1], first.collect::<String>());
            Twice.score(&prompts[0], &episode.turns[turn])
        });
        let scores: Vec<f32> = answers.collect();
        scores.iter().sum::<f32>() / scores.len() as f32
    };
    for (credit, rate, steps, sampling) in
        [(Credit::Mean, 0.5, 40, greedy.clone()), (Credit::Auto, 1.0, 80, best_of_two)]
    {
        let settings = settings().with_population_size(32).with_learning_rate(rate).with_credit(credit);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let lesson = |_| Lesson::Prompts { prompts: &prompts, reward: &Twice, sampling: &sampling };
        let mut finetune = finetune(settings.clone()).with_replay_log_of(&path, lesson).unwrap();
        let before = [0, 2].map(|turn| mean(&finetune, &sampling, turn));
        for _ in 0..steps {
            finetune.step(&lesson(0)).unwrap();
        }
        let after = [0, 2].map(|turn| mean(&finetune, &sampling, turn));
        println!("{credit}: {before:?} before, {after:?} after");
        assert!((0..2).all(|turn| after[turn] > before[turn] + 0.15), "{credit}: {before:?} before, {after:?} after");
        let sample = VerifyConfig { share: 0.2, seed: 0, until: None };
        let verified = crate::finetune(settings).verify(&path, &sample, |step| Ok(lesson(step))).unwrap();
        assert!(verified.evaluated > 0 && verified.evaluated < verified.members);
    }
}

/// Episodes that would not fit into the context end, and answers that are all the same are refused.
#[test]
fn limits_of_episodes() {
    struct Endless;
    impl Reward for Endless {
        fn score(&self, _: &Prompt, completion: &str) -> f32 {
            completion.len() as f32
        }

        fn reply(&self, _: &Prompt, _: &[String]) -> Option<String> {
            Some("more".to_owned())
        }
    }
    let finetune = finetune(settings());
    let prompts = [Prompt::new("abc")];
    let played = finetune.play(&Endless, &prompts, &SamplingConfig::greedy(8)).unwrap();
    // 32 tokens of context: 3 of the prompt, 8 of each answer, 4 of each reply.
    assert_eq!((played[0].len(), played[0][0].turns.len()), (1, 5), "{played:?}");
    let none = finetune.play(&Endless, &[], &SamplingConfig::greedy(8)).unwrap_err();
    assert!(matches!(none, Error::Items(ItemsError::Empty)), "{none}");
    let mut other = crate::finetune(settings());
    let none = other.learn_from(&Endless, &[], &SamplingConfig::greedy(8)).unwrap_err();
    assert!(matches!(none, Error::Items(ItemsError::Empty)) && other.steps() == 0, "{none}");
    let population = finetune.strategy().ask();
    let error = |sampling: &SamplingConfig| finetune.play(&Endless, &prompts, sampling).unwrap_err().to_string();
    assert!(error(&SamplingConfig::greedy(8).with_answers(2, 1)).contains("2 answers at temperature 0"));
    let warm = SamplingConfig::greedy(8).with_temperature(1.0);
    for (answers, best_of) in [(2, 3), (2, 0), (0, 0)] {
        let expected = format!("best_of is {best_of} of {answers} answers");
        assert!(error(&warm.clone().with_answers(answers, best_of)).contains(&expected));
    }
    // A list for each member is as one for all, where they are the same; and some may be asked nothing.
    let items = vec![finetune.item("abc", "").unwrap(), finetune.item("hello", "").unwrap()];
    let mut lists = vec![items.clone(); population.count()];
    let shared = finetune.generate_members(&population, Items::Shared(&items), &warm).unwrap();
    assert_eq!(finetune.generate_members(&population, Items::Each(&lists), &warm).unwrap(), shared);
    lists[2].clear();
    let some = finetune.generate_members(&population, Items::Each(&lists), &warm).unwrap();
    assert!(some[2].is_empty() && some[3] == shared[3]);
    lists.pop();
    let error = finetune.generate_members(&population, Items::Each(&lists), &warm).unwrap_err().to_string();
    assert!(error.contains("7 lists of items for 8 members"), "{error}");
}

/// The draws of an episode do not depend on which others are still open.
#[test]
fn an_episode_has_its_own_draws() {
    struct RepliesTo(&'static [&'static str]);
    impl Reward for RepliesTo {
        fn score(&self, _: &Prompt, completion: &str) -> f32 {
            completion.len() as f32
        }

        fn reply(&self, prompt: &Prompt, turns: &[String]) -> Option<String> {
            (turns.len() == 1 && self.0.contains(&prompt.question.as_str())).then(|| "more".to_owned())
        }
    }
    let (finetune, prompts) = (finetune(settings()), ["abc", "hello"].map(Prompt::new));
    let sampling = SamplingConfig::greedy(8).with_temperature(1.0).with_answers(3, 1);
    let play = |reward: &RepliesTo| finetune.play(reward, &prompts, &sampling).unwrap();
    let (both, one) = (play(&RepliesTo(&["abc", "hello"])), play(&RepliesTo(&["hello"])));
    assert!(one[0].iter().all(|episode| episode.turns.len() == 1));
    assert_eq!(one[1], both[1]);
    assert!(both[0] != both[1], "canary: other prompts have other answers");
}
