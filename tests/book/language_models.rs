//! Fine-tuning of a pretrained language model. The test is skipped where the model is not: `scripts/smollm2` fetches
//! it.

use crate::fetched;
use eggroll::prelude::*;

mod program {
    // ANCHOR: program
    use eggroll::lm::load::{Pretrained, SavedDtype};
    use eggroll::lm::reward::{Prompt, PromptError, Reward};
    use eggroll::lm::{Finetune, FinetuneConfig, Llama, SamplingConfig};
    use std::path::Path;

    /// A point for the reference, less two hundredths for each word.
    struct ShortAnswer;

    impl Reward for ShortAnswer {
        fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
            f32::from(is_correct(prompt, completion)) - 0.02 * completion.split_whitespace().count() as f32
        }

        fn check(&self, prompt: &Prompt) -> Result<(), PromptError> {
            prompt.expect_reference().map(|_| ()) // asked of every prompt before a step
        }
    }

    fn is_correct(prompt: &Prompt, completion: &str) -> bool {
        prompt.reference.as_ref().is_some_and(|reference| completion.contains(reference))
    }

    type Questions<'a> = &'a [(&'a str, &'a str)];

    fn prompts(finetune: &Finetune<Llama>, questions: Questions) -> Result<Vec<Prompt>, eggroll::lm::Error> {
        let prompt = |(question, answer): &(&str, &str)| Ok(finetune.chat(*question)?.with_reference(*answer));
        questions.iter().map(prompt).collect()
    }

    pub fn run(model: &Path, folder: &Path, steps: u64, [train, test]: [Questions; 2]) -> Result<(), eggroll::Error> {
        let config = FinetuneConfig::new().with_population_size(32).with_sigma(0.03).with_learning_rate(0.05);
        let finetune = config.init::<Llama>(Pretrained::open(model)?)?;
        let mut finetune = finetune.with_replay_log(folder.join("replay.log"))?; // continues a run that is there
        let [train, test] = [prompts(&finetune, train)?, prompts(&finetune, test)?];
        let sampling = SamplingConfig::greedy(24);
        while finetune.steps() < steps {
            println!("{}", finetune.learn_from(&ShortAnswer, &train, &sampling)?);
        }
        let written = finetune.complete(&test, &sampling)?;
        let correct = test.iter().zip(&written).filter(|(prompt, written)| is_correct(prompt, &written.text)).count();
        println!("test: {correct} of {} correct", test.len());
        finetune.save(folder.join("model"), SavedDtype::BF16)?;
        Ok(())
    }
    // ANCHOR_END: program
}

#[test]
fn a_reward_of_the_user() -> Result<(), eggroll::Error> {
    use eggroll::lm::load::Pretrained;
    use eggroll::lm::{FinetuneConfig, Llama};
    let Some(path) = fetched::model() else { return Ok(()) };
    let temporary = tempfile::tempdir().expect("a folder");
    let questions: [&[_]; 2] = [&[("What is the capital of France?", "Paris")], &[("What is 2 + 2?", "4")]];
    let saved = temporary.path().join("model");
    let run = || {
        program::run(&path, temporary.path(), 1, questions)?;
        Ok::<_, eggroll::Error>(std::fs::read(saved.join("model.safetensors")).expect("saved"))
    };
    assert!(run()? == run()?, "the log makes another model");
    FinetuneConfig::new().init::<Llama>(Pretrained::open(saved)?)?;
    Ok(())
}

mod on_replicas {
    // ANCHOR: replicas
    use eggroll::lm::load::Pretrained;
    use eggroll::lm::reward::{Prompt, Reward};
    use eggroll::lm::{FinetuneConfig, Lesson, Lessons, Llama, SamplingConfig, StepReport};
    use eggroll::run::distribution::Distribution;
    use eggroll::run::{EsTraining, UserError, parameter_digest, print_line};
    use std::path::Path;

    struct LetterE;

    impl Reward for LetterE {
        fn score(&self, _prompt: &Prompt, completion: &str) -> f32 {
            completion.matches('e').count() as f32
        }
    }

    struct Questions(Vec<Prompt>, SamplingConfig);

    impl Lessons<Llama> for Questions {
        fn lesson(&mut self, _generation: u64) -> Result<Lesson<'_>, UserError> {
            Ok(Lesson::Prompts { reward: &LetterE, prompts: &self.0, sampling: &self.1 })
        }

        fn after_generation(&mut self, report: &StepReport) -> Result<(), UserError> {
            print_line!("{report}"); // of rank 0
            Ok(())
        }
    }

    pub fn tune(model: &Path, folder: &Path, replica: Distribution) -> Result<String, eggroll::Error> {
        let mut finetune = FinetuneConfig::new().with_population_size(8).init::<Llama>(Pretrained::open(model)?)?;
        let prompts = vec![finetune.chat("Who are you?")?, finetune.chat("What is 2 + 2?")?];
        let training = EsTraining::new(folder, finetune.training_config(2)).with_distribution(replica);
        finetune.train(training, &mut Questions(prompts, SamplingConfig::greedy(8)))?;
        Ok(parameter_digest(finetune.model()))
    }
    // ANCHOR_END: replicas
}

#[test]
fn replicas_of_a_language_model() -> Result<(), eggroll::Error> {
    use eggroll::run::distribution::{Distribution, detect, on_devices};
    let Some(path) = fetched::model() else { return Ok(()) };
    let folder = tempfile::tempdir().expect("a folder");
    let alone = on_replicas::tune(&path, &folder.path().join("alone"), Distribution::new(detect()?))?;
    let shared = folder.path().join("shared");
    let devices = [Device::flex(), Device::flex()];
    for found in on_devices(&devices, |replica, _| on_replicas::tune(&path, &shared, Distribution::new(replica))) {
        assert_eq!(found?, alone);
    }
    Ok(())
}

#[test]
fn completions_that_are_given() -> Result<(), eggroll::Error> {
    use eggroll::lm::load::Pretrained;
    use eggroll::lm::{FinetuneConfig, Items, Llama, Scored};
    let Some(path) = fetched::model() else { return Ok(()) };
    // ANCHOR: strategy
    let config = FinetuneConfig::new().with_population_size(16);
    let strategy = config
        .strategy::<Llama>()
        .with_roles([("layers.*.self_attn.*_proj.weight", Role::LowRank { rank: 2 }), ("*", Role::Frozen)])
        .with_shaping(FitnessShaping::CenteredRank);
    let mut finetune = config.init::<Llama>(Pretrained::open(path)?)?.with_strategy(strategy)?;
    // ANCHOR_END: strategy
    // ANCHOR: given
    let answers = [("kind", "positive"), ("cruel", "negative"), ("lucky", "positive"), ("broken", "negative")];
    let item = |(word, answer): (&str, &str)| {
        let prompt = finetune.chat(format!("Is the word \"{word}\" positive or negative?"))?;
        finetune.item(&prompt.text(), answer)
    };
    let items = answers.into_iter().map(item).collect::<Result<Vec<_>, _>>()?;
    finetune.check_items(&items)?; // against context and vocabulary: worth it before the first of many steps
    println!("{}", finetune.learn(Items::Shared(&items))?);
    // ANCHOR_END: given
    let probe = finetune.strategy().probe_sigma(finetune.model(), [0.01, 0.03, 0.1], |population| {
        let scored = finetune.score_members(population, Items::Shared(&items)).expect("the items fit the model");
        let sum = |items: &Vec<Scored>| items.iter().map(Scored::mean_log_probability).sum::<f32>();
        Fitness::from(scored.iter().map(sum).collect::<Vec<f32>>())
    })?;
    println!("{probe}");
    assert_eq!(finetune.steps(), 1);
    assert_eq!(probe.sigmas.len(), 3);
    Ok(())
}

#[test]
fn a_gguf_file_in_its_own_quantization() -> Result<(), eggroll::Error> {
    use eggroll::lm::Item;
    let Some(path) = fetched::model() else { return Ok(()) };
    let folder = tempfile::tempdir().expect("a folder");
    let (tuned, steps) = (folder.path().join("tuned.gguf"), 1);
    // ANCHOR: quantized
    use eggroll::lm::load::Pretrained;
    use eggroll::lm::{FinetuneConfig, Items, QuantizedLlama};

    let config = FinetuneConfig::new().with_population_size(8);
    let finetune = config.init::<QuantizedLlama>(Pretrained::open(&path)?)?;
    let mut finetune = finetune.with_replay_log(folder.path().join("run.replay"))?;
    let answer = finetune.item(&finetune.chat("Is the word \"kind\" positive or negative?")?.text(), "positive")?;
    while finetune.steps() < steps {
        println!("{}", finetune.learn(Items::Shared(std::slice::from_ref(&answer)))?);
    }
    finetune.save_gguf(&tuned)?; // llama.cpp reads it
    // ANCHOR_END: quantized
    let score = |item: &Item| -> Result<f32, eggroll::Error> {
        let again = FinetuneConfig::new().init::<QuantizedLlama>(Pretrained::open(&tuned)?)?;
        Ok(again.score(std::slice::from_ref(item))?[0].log_probability())
    };
    assert_eq!(score(&answer)?, finetune.score(std::slice::from_ref(&answer))?[0].log_probability());
    Ok(())
}
