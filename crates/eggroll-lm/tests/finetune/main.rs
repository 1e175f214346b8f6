//! Fine-tuning of a made model: steps, replay logs, saved models, bad rewards.

mod episodes;
#[cfg(feature = "learner")]
mod in_the_learner;
#[path = "../shared/small.rs"]
mod small;

use burn::tensor::Device;
use eggroll_core::{CustomNoiser, EggrollConfig, NoiseSourceConfig, OpenEsConfig, Role};
use eggroll_lm::load::{LlamaConfig, Pretrained, SavedDtype};
use eggroll_lm::reward::{Prompt, PromptError, Reward};
use eggroll_lm::{
    Error, Finetune, FinetuneConfig, Item, Items, ItemsError, Lesson, Llama, SamplingConfig, Scored, Verification,
    WrittenLesson,
};
use eggroll_run::{VerifyConfig, parameter_digest};
use eggroll_train::{Credit, CustomShaping, CustomSigma, EvolutionStrategyConfig, FitnessShaping, NoiseScale};
use small::{config, tokenizer};
use std::path::Path;

fn settings() -> FinetuneConfig {
    FinetuneConfig::new().with_population_size(8).with_sigma(0.1)
}

/// A model with the same weights every time.
fn finetune(settings: FinetuneConfig) -> Finetune<Llama> {
    finetune_of(&config(), settings)
}

fn finetune_of(config: &LlamaConfig, settings: FinetuneConfig) -> Finetune<Llama> {
    let folder = tempfile::tempdir().unwrap();
    let device = Device::flex();
    device.seed(7);
    let model = Llama::new(config, &device);
    let fixed = burn::module::Module::map(model, &mut Fixed(0));
    settings.init_with(fixed, tokenizer(folder.path(), false), None).unwrap()
}

/// Of these weights, packed anew.
#[cfg(feature = "learner")]
fn finetune_with(model: &Llama, settings: FinetuneConfig) -> Finetune<Llama> {
    let folder = tempfile::tempdir().unwrap();
    settings.init_with(model.clone(), tokenizer(folder.path(), false), None).unwrap()
}

/// Weights that depend on nothing but their place.
struct Fixed(u64);

impl burn::module::ModuleMapper for Fixed {
    fn map_float<const D: usize>(
        &mut self,
        parameter: burn::module::Param<burn::tensor::Tensor<D>>,
    ) -> burn::module::Param<burn::tensor::Tensor<D>> {
        self.0 += 1;
        let seed = self.0 as f64;
        if D == 1 {
            return parameter;
        }
        parameter.map(|tensor| {
            let shape = tensor.shape();
            let values: Vec<f32> =
                (0..shape.num_elements()).map(|k| ((k as f64 * 12.9898 + seed * 78.233).sin() * 0.4) as f32).collect();
            burn::tensor::Tensor::from_data(burn::tensor::TensorData::new(values, shape), &tensor.device())
        })
    }
}

fn items(finetune: &Finetune<Llama>) -> Vec<Item> {
    [("abc", "x"), ("hello", "yz"), ("q", "a")]
        .map(|(prompt, completion)| finetune.item(prompt, completion).unwrap())
        .into()
}

#[test]
fn a_log_gives_the_same_model_and_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, parts] = ["whole.log", "parts.log"].map(|name| folder.path().join(name));
    let by_token = || settings().with_credit(Credit::Auto);
    let asked = items(&finetune(by_token()));
    let lesson = |_| Lesson::Completions(Items::Shared(&asked));
    let logged = |path: &Path| finetune(by_token()).with_replay_log_of(path, lesson);
    let mut undisturbed = logged(&whole).unwrap();
    for _ in 0..6 {
        assert!(undisturbed.step(&lesson(0)).unwrap().generation.stepped);
    }
    for end in [2, 3, 6] {
        let mut part = logged(&parts).unwrap();
        while part.steps() < end {
            part.step(&lesson(0)).unwrap();
        }
    }
    let again = logged(&parts).unwrap();
    assert_eq!(again.steps(), 6);
    assert_eq!(parameter_digest(again.model()), parameter_digest(undisturbed.model()));
    assert_eq!(again.score(&asked).unwrap(), undisturbed.score(&asked).unwrap());
    assert_eq!(std::fs::read(whole).unwrap(), std::fs::read(&parts).unwrap());
    // Not the model of before, and not that of other settings.
    assert_ne!(parameter_digest(again.model()), parameter_digest(finetune(settings()).model()));
    drop((undisturbed, again));
    let other = finetune(by_token().with_sigma(0.2)).with_replay_log_of(&parts, lesson).err().unwrap();
    assert!(matches!(&other, Error::OtherSettings { field, .. } if field.starts_with("sigma")), "{other}");
    assert!(other.to_string().contains("0.2") && other.to_string().contains("0.1"), "{other}");
    // Scores of tokens alone make no step, and those of others are not theirs.
    let error = finetune(by_token()).with_replay_log(&parts).err().unwrap().to_string();
    assert!(error.contains("with_replay_log_of"), "{error}");
    let others = [asked[1].clone(), asked[0].clone(), asked[2].clone()];
    let error = finetune(by_token()).with_replay_log_of(&parts, |_| Lesson::Completions(Items::Shared(&others)));
    let error = error.err().unwrap().to_string();
    assert!(error.contains("generation 0 does not give the logged fitness"), "{error}");
}

/// Scores `[members]` are logged without what they are of.
#[test]
fn a_log_of_means_needs_no_lessons() {
    let folder = tempfile::tempdir().unwrap();
    let means = || finetune(settings()).with_replay_log(folder.path().join("log")).unwrap();
    let mut first = means();
    let asked = items(&first);
    (0..2).for_each(|_| assert!(first.learn(Items::Shared(&asked)).unwrap().generation.stepped));
    let digest = parameter_digest(first.model());
    drop(first);
    assert_eq!(parameter_digest(means().model()), digest);
}

/// Members of groups are compared with each other, so all are asked. A log that is refused leaves the model as it was.
#[test]
fn a_log_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut run = finetune(settings()).with_replay_log(&path).unwrap();
    let groups = items(&run).into_iter().take(2).map(|item| vec![item]).collect::<Vec<_>>();
    let written = |generation| WrittenLesson::new(generation, &Lesson::Completions(Items::Groups(&groups)));
    let none = |_: &Prompt, _: &str| 0.0;
    for generation in 0..4 {
        let line = serde_json::to_string(&written(generation)).unwrap();
        let read: WrittenLesson = serde_json::from_str(&line).unwrap();
        assert_eq!(read, written(generation), "{line}");
        run.step(&read.lesson(&none)).unwrap();
    }
    let members = settings().population_size as u64;
    let sample = VerifyConfig { share: 0.2, seed: 1, until: None };
    let mut again = finetune(settings());
    let first = parameter_digest(again.model());
    let error = again.verify(&path, &sample, |_| Err("no lessons".into())).unwrap_err();
    assert_eq!(error.to_string(), "no lessons");
    assert_eq!(
        (parameter_digest(again.model()), again.score(&groups[0]).unwrap()),
        (first, finetune(settings()).score(&groups[0]).unwrap())
    );
    let [one, other] = [written(0), WrittenLesson::new(0, &Lesson::Completions(Items::Shared(&groups[0])))];
    let error = again.verify(&path, &VerifyConfig { share: 1.0, ..sample }, |_| Ok(other.lesson(&none))).unwrap_err();
    assert!(error.to_string().contains("generation 0 does not give the logged fitness"), "{error}");
    let Verification { steps, evaluated, members: all } =
        again.verify(&path, &sample, |_| Ok(one.lesson(&none))).unwrap();
    assert_eq!((steps, all), (4, 4 * members));
    assert!(evaluated > 0 && evaluated < all && evaluated.is_multiple_of(members), "{evaluated} of {all}");
    assert_eq!(parameter_digest(again.model()), parameter_digest(run.model()));
    assert_eq!(again.score(&groups[0]).unwrap(), run.score(&groups[0]).unwrap());
    let late = again.verify(&path, &sample, |_| Ok(one.lesson(&none))).unwrap_err();
    assert!(matches!(late, Error::TooLate { call: "verify", steps: 4, .. }), "{late}");
}

#[test]
fn likelihood_rises_and_a_saved_model_is_the_same() {
    let mut finetune = finetune(settings().with_population_size(32).with_learning_rate(0.5));
    let items = items(&finetune);
    let mean = |finetune: &Finetune<Llama>| {
        finetune.score(&items).unwrap().iter().map(|scored| scored.mean_log_probability()).sum::<f32>() / 3.0
    };
    let before = mean(&finetune);
    for _ in 0..40 {
        finetune.learn(Items::Shared(&items)).unwrap();
    }
    let after = mean(&finetune);
    assert!(after > before + 1.0, "{before} {after}");
    let folder = tempfile::tempdir().unwrap();
    finetune.save(folder.path(), SavedDtype::F32).unwrap();
    let saved = settings().init::<Llama>(Pretrained::open(folder.path()).unwrap()).unwrap();
    assert_eq!(saved.score(&items).unwrap(), finetune.score(&items).unwrap());
}

/// From the members' means, and from the reward of every prompt.
#[test]
fn a_reward_is_learned_from_and_grows() {
    let prompts = ["abc", "hello", "zq"].map(Prompt::new);
    let vowels =
        |_: &Prompt, completion: &str| completion.chars().filter(|letter| "aeiou".contains(*letter)).count() as f32;
    let sampling = SamplingConfig::greedy(6);
    let mean = |finetune: &Finetune<Llama>| {
        let written = finetune.complete(&prompts, &sampling).unwrap();
        written.iter().map(|written| vowels(&prompts[0], &written.text)).sum::<f32>() / 3.0
    };
    for (credit, rate, steps, more) in [(Credit::Mean, 0.5, 40, 2.0), (Credit::Parts, 1.0, 20, 1.0)] {
        let mut finetune = finetune(settings().with_population_size(32).with_credit(credit).with_learning_rate(rate));
        let before = mean(&finetune);
        for _ in 0..steps {
            let report = finetune.learn_from(&vowels, &prompts, &sampling).unwrap();
            assert!(report.truncated.is_some() && report.tokens > 0, "{report}");
            assert!(report.generation.stepped || credit == Credit::Mean, "{report}");
        }
        assert!(mean(&finetune) >= before + more, "{credit}: {before} {}", mean(&finetune));
    }
}

#[test]
fn equal_rewards_change_nothing_and_a_nan_is_ranked_last() {
    let mut finetune = finetune(settings());
    let (prompts, sampling) = ([Prompt::new("abc")], SamplingConfig::greedy(2));
    let digest = parameter_digest(finetune.model());
    let report = finetune.learn_from(&|_: &Prompt, _: &str| 1.0, &prompts, &sampling).unwrap();
    assert!(!report.generation.stepped && report.tied_items == 1.0, "{report}");
    assert!(report.to_string().contains("no step"), "{report}");
    assert_eq!(parameter_digest(finetune.model()), digest);
    let some = |_: &Prompt, completion: &str| if completion.starts_with('a') { 1.0 } else { f32::NAN };
    let report = finetune.learn_from(&some, &prompts, &sampling).unwrap();
    assert!(report.generation.non_finite > 0, "{report}");
}

#[test]
fn groups_with_own_items() {
    let mut finetune = finetune(settings());
    let all = items(&finetune);
    let groups = [all[..2].to_vec(), all[2..].to_vec()];
    assert!(finetune.learn(Items::Groups(&groups)).unwrap().generation.stepped);
    let three = [all.clone(), all.clone(), all.clone()];
    let error = finetune.learn(Items::Groups(&three)).unwrap_err();
    assert!(matches!(error, Error::Items(ItemsError::Groups { groups: 3, members: 8 })), "{error}");
}

/// Other noise: members are separate models.
#[test]
fn full_rank_noise_is_learned_from_too() {
    let finetune = finetune(settings());
    let items = items(&finetune);
    let strategy = settings().strategy::<Llama>();
    let mut dense = EvolutionStrategyConfig::new(OpenEsConfig::new(), burn::optim::SgdConfig::new());
    dense = dense.with_population_size(8).with_sigma(0.01).with_learning_rate(strategy.learning_rate.clone());
    let roles = [("layers.*_proj.weight", Role::Dense), ("*", Role::Frozen)];
    let mut finetune = finetune.with_strategy(dense.with_roles(roles)).unwrap();
    let report = finetune.learn(Items::Shared(&items)).unwrap();
    assert!(report.generation.stepped && report.changed.changed > 0, "{report}");
}

#[test]
fn what_does_not_fit_is_refused() {
    struct Picky;
    impl Reward for Picky {
        fn score(&self, _: &Prompt, _: &str) -> f32 {
            unreachable!("refused before")
        }
        fn check(&self, prompt: &Prompt) -> Result<(), PromptError> {
            prompt.expect_reference().map(drop)
        }
    }
    let mut finetune = finetune(settings());
    let sampling = SamplingConfig::greedy(4);
    let error = finetune.learn_from(&Picky, &[Prompt::new("abc")], &sampling).unwrap_err();
    assert!(matches!(error, Error::Prompt(_)), "{error}");
    let long = Prompt::new("a".repeat(30));
    let error = finetune.complete(&[long], &sampling).unwrap_err();
    assert!(
        matches!(error, Error::Items(ItemsError::TooLong { group: None, item: 0, tokens: 34, context: 32 })),
        "{error}"
    );
    let error = finetune.complete(&[], &sampling).unwrap_err();
    assert!(matches!(error, Error::Items(ItemsError::Empty)), "{error}");
    // All data at once, before the first step.
    let items = |third: &str| ["abc", "abc", third].map(|text| finetune.item("", text).unwrap());
    assert_eq!(finetune.check_items(&items("abc")), Ok(()));
    let error = finetune.check_items(&items(&"a".repeat(40))).unwrap_err();
    assert_eq!(error.item(), Some(2));
    assert_eq!(
        error.to_string(),
        "item 2 needs 41 tokens, but the context of the model is 32 tokens: shorten it, or lower max_tokens"
    );
    let prompts = [Prompt::new("abc").with_reference("a"), Prompt::new("abc")];
    let error = finetune.check_prompts(&Picky, &prompts, &sampling).unwrap_err();
    assert!(matches!(error, Error::Prompt(_)), "{error}");
    assert!(finetune.check_prompts(&Picky, &prompts[..1], &sampling).is_ok());
    let error = finetune.check_prompts(&Picky, &prompts[..1], &SamplingConfig::greedy(40)).unwrap_err();
    assert!(matches!(error, Error::Items(ItemsError::TooLong { item: 0, context: 32, .. })), "{error}");
    let error = finetune.complete(&[Prompt::new("abc")], &sampling.with_temperature(-1.0)).unwrap_err();
    assert!(matches!(error, Error::Sampling(_)) && error.to_string().contains("-1"), "{error}");
    assert_eq!(finetune.steps(), 0);
}

/// A begin token that the prompt has already is not put in front of it again; a completion without a prompt follows some token.
#[test]
fn a_text_begins_once() {
    let folder = tempfile::tempdir().unwrap();
    let model = Llama::new(&config(), &Device::flex());
    let begins = settings().init_with(model, tokenizer(folder.path(), true), None).unwrap();
    let plain = finetune(settings());
    for (finetune, prompt, expected) in [
        (&begins, "ab", &[26, 0, 1][..]),
        (&begins, "<end>ab", &[26, 0, 1]),
        (&begins, "", &[26]),
        (&plain, "ab", &[0, 1]),
        (&plain, "", &[26]),
    ] {
        let item = finetune.item(prompt, "c").unwrap();
        assert_eq!((item.prompt(), item.completion()), (expected, &[2][..]), "{prompt:?}");
    }
}

/// What would make a log of another run comes too late.
#[test]
fn strategies_and_logs_come_first() {
    let folder = tempfile::tempdir().unwrap();
    let strategy = || settings().with_sigma(0.2).strategy::<Llama>();
    let logged = finetune(settings()).with_replay_log(folder.path().join("log")).unwrap();
    let error = logged.with_strategy(strategy()).err().unwrap();
    assert!(matches!(error, Error::TooLate { call: "with_strategy", steps: 0, logged: true }), "{error}");
    let mut stepped = finetune(settings());
    let items = items(&stepped);
    stepped.learn(Items::Shared(&items)).unwrap();
    let error = stepped.with_replay_log(folder.path().join("late")).err().unwrap();
    assert!(matches!(error, Error::TooLate { call: "with_replay_log", steps: 1, logged: false }), "{error}");
    assert!(error.to_string().contains("1 steps were made") && !folder.path().join("late").exists(), "{error}");
}

/// Biases alone are trained: scores, perplexity and completions are those of the model as it is.
#[test]
fn reports_are_of_the_present_model() {
    let qwen2 = LlamaConfig { attention_bias: true, ..config() };
    let roles = [("layers.*.bias", Role::Dense), ("*", Role::Frozen)];
    let strategy = settings().strategy::<Llama>().with_noise_scale(NoiseScale::Absolute).with_learning_rate(1.0);
    let strategy = EvolutionStrategyConfig { roles: Vec::new(), ..strategy }.with_roles(roles);
    let mut finetune = finetune_of(&qwen2, settings()).with_strategy(strategy).unwrap();
    let items = items(&finetune);
    let before = finetune.score(&items).unwrap();
    for _ in 0..5 {
        assert!(finetune.learn(Items::Shared(&items)).unwrap().generation.stepped);
    }
    let folder = tempfile::tempdir().unwrap();
    let anew = settings().init_with(finetune.model().clone(), tokenizer(folder.path(), false), None).unwrap();
    assert_eq!(finetune.score(&items).unwrap(), anew.score(&items).unwrap());
    assert_eq!(finetune.perplexity("abcdef", 4).unwrap(), anew.perplexity("abcdef", 4).unwrap());
    assert_ne!(finetune.score(&items).unwrap(), before);
}

/// A model that has diverged does not replace a good one.
#[test]
fn a_model_that_is_no_number_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let good = finetune(settings());
    good.save(folder.path(), SavedDtype::BF16).unwrap();
    let before = std::fs::read(folder.path().join("model.safetensors")).unwrap();
    // A step beyond f32.
    let mut broken = finetune(settings().with_sigma(50.0).with_learning_rate(1e38));
    let items = items(&broken);
    assert!(broken.learn(Items::Shared(&items)).unwrap().generation.stepped);
    let error = broken.save(folder.path(), SavedDtype::BF16).unwrap_err();
    assert!(error.to_string().contains("weights must be finite"), "{error}");
    assert_eq!(std::fs::read(folder.path().join("model.safetensors")).unwrap(), before);
    assert!(Pretrained::open(folder.path()).is_ok());
}

/// A log only names functions of the program: it is continued with those of the strategy that is there, which also has its own chunks.
#[test]
fn a_log_is_continued_with_functions_of_the_program() {
    let shaping = CustomShaping::new("ranks", |scores| FitnessShaping::CenteredRank.shape(scores));
    let sigma = CustomSigma::new("falling", |generation| 0.1 / (1.0 + generation as f64));
    let plain = || settings().strategy::<Llama>();
    let strategies: [(&str, EvolutionStrategyConfig); 3] = [
        ("shaping", plain().with_shaping(shaping)),
        ("sigma", plain().with_sigma(sigma)),
        (
            "noiser",
            EvolutionStrategyConfig {
                noiser: CustomNoiser::new(EggrollConfig::new().init().unwrap()).into(),
                ..plain()
            },
        ),
    ];
    for (name, strategy) in strategies {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let start = |strategy: &EvolutionStrategyConfig| {
            finetune(settings()).with_strategy(strategy.clone()).unwrap().with_replay_log(&path).unwrap()
        };
        let mut first = start(&strategy);
        let items = items(&first);
        for _ in 0..2 {
            first.learn(Items::Shared(&items)).unwrap();
        }
        let digest = parameter_digest(first.model());
        drop(first);
        let mut again = start(&strategy.clone().with_chunk_size(4));
        assert_eq!((again.steps(), parameter_digest(again.model())), (2, digest), "{name}");
        assert_eq!(again.strategy().config().chunk_size, Some(4), "{name}");
        assert!(again.learn(Items::Shared(&items)).unwrap().generation.stepped);
    }
}

/// Groups are asked other items: there are no tokens that all members have scores of.
#[test]
fn groups_do_not_learn_by_part() {
    let mut finetune = finetune(settings().with_credit(Credit::Parts));
    let all = items(&finetune);
    assert!(finetune.learn(Items::Shared(&all)).unwrap().generation.stepped);
    let error = finetune.learn(Items::Groups(&[all[..2].to_vec(), all[2..].to_vec()])).unwrap_err().to_string();
    assert!(error.contains("layers.0.self_attn.q_proj.weight"), "{error}");
}

/// Four members learn an answer from the scores of its tokens in ten steps.
#[test]
fn tokens_teach_four_members() {
    let settings = settings().with_population_size(4).with_credit(Credit::Auto).with_learning_rate(1.0);
    let mut finetune = finetune(settings);
    let item = |letter: char| finetune.item(&format!("a{letter}"), "z").unwrap();
    let items: Vec<Item> = ('b'..='y').map(item).collect();
    let mean = |finetune: &Finetune<Llama>| {
        finetune.score(&items).unwrap().iter().map(Scored::mean_log_probability).sum::<f32>() / 24.0
    };
    let before = mean(&finetune);
    for _ in 0..10 {
        finetune.learn(Items::Shared(&items)).unwrap();
    }
    let after = mean(&finetune);
    assert!(after > before + 1.0, "{before} {after}");
}

/// Noise from a table is not drawn by rows: members are packed one by one, as the same models.
#[test]
fn noise_from_a_table() {
    let strategy = settings().strategy::<Llama>().with_noise_source(NoiseSourceConfig::Table { len: 1 << 16 });
    let mut finetune = finetune(settings()).with_strategy(strategy).unwrap();
    let items = items(&finetune);
    let report = finetune.learn(Items::Shared(&items)).unwrap();
    assert!(report.generation.stepped && report.disagreement > 0.0, "{report}");
}

#[test]
fn a_text_without_perplexity() {
    let finetune = finetune(settings());
    let error = finetune.perplexity("a", 8).unwrap_err();
    assert!(matches!(error, Error::ShortText { tokens: 1 }), "{error}");
    let whole = finetune.perplexity("abcde", usize::MAX).unwrap();
    assert!(whole.is_finite() && whole != finetune.perplexity("abcde", 0).unwrap());
}

/// A model whose weights have diverged has nothing to say, and says so.
#[test]
fn a_model_that_has_diverged_completes_nothing() {
    let mut finetune = finetune(settings().with_learning_rate(1e37));
    let (prompts, sampling) = ([Prompt::new("abc"), Prompt::new("b")], SamplingConfig::greedy(4));
    assert_eq!(finetune.complete(&prompts, &sampling).unwrap().len(), 2, "canary");
    let vowels = |_: &Prompt, completion: &str| completion.matches('a').count() as f32 - completion.len() as f32;
    assert!(finetune.learn_from(&vowels, &prompts, &sampling).unwrap().generation.stepped);
    let error = finetune.complete(&prompts, &sampling).unwrap_err().to_string();
    assert!(error.starts_with("prompt 0 has no next token after 0 generated ones"), "{error}");
}

/// A broken member is not rewarded for a short text.
#[test]
fn logits_that_are_no_numbers_score_nan() {
    let mut finetune = finetune(settings().with_sigma(1e15));
    let short = |_: &Prompt, completion: &str| -(completion.len() as f32);
    let report = finetune.learn_from(&short, &[Prompt::new("abc")], &SamplingConfig::greedy(4)).unwrap();
    assert!(report.generation.non_finite > 0, "{report}");
    assert!(report.to_string().contains("members not finite"), "{report}");
}
