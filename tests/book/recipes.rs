//! The table *Your model* of the README: each of its recipes stands in this file, compiled and run.

use burn::store::{ModuleSnapshot, SafetensorsStore};
use eggroll::lm::load::Pretrained;
use eggroll::lm::reward::{Prompt, Reward};
use eggroll::lm::{FinetuneConfig, Llama, SamplingConfig};
use eggroll::prelude::*;
use std::fs;
use std::path::Path;

/// A model of Burn's own layers.
#[derive(Module, Debug)]
struct Plain {
    first: burn::nn::Linear,
    second: burn::nn::Linear,
}

impl Plain {
    fn new(device: &Device) -> Self {
        let layer = |d_input, d_output| burn::nn::LinearConfig::new(d_input, d_output).init(device);
        Self { first: layer(3, 4), second: layer(4, 2) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::relu(self.first.forward(x)))
    }
}

fn score(member: &Plain) -> f32 {
    member.forward(Tensor::ones([2, 3], &Device::flex())).mean().into_scalar()
}

#[test]
fn unmodified_models() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let model = Plain::new(&device);
    let x = Tensor::<2>::ones([2, 3], &device);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(8);
    let population = config.try_init(&model)?.ask();

    let graph = PopulationGraph::trace(&model, x.clone(), |model: &Plain, x: Tensor<2>| model.forward(x))?;
    let batched = population.evaluate(|members| members.mean(graph.forward_shared(&model, x.clone())));
    let separate = population.evaluate_each(&model, |member| score(&member));
    assert!(batched.values().iter().zip(separate.values()).all(|(a, b)| (a - b).abs() < 1e-5));

    let host_scores = |members: &MemberChunk| -> Vec<f32> {
        let y = graph.forward_shared(&model, x.clone()); // [members · 2, 2]
        let y = y.into_data().try_to_vec::<f32>().expect("f32");
        y.chunks(y.len() / members.count()).map(|outputs| outputs.iter().sum::<f32>() / 4.0).collect()
    };
    let on_host = population.evaluate(|members| host_scores(members));
    assert!(on_host.values().iter().zip(separate.values()).all(|(a, b)| (a - b).abs() < 1e-5));
    Ok(())
}

#[test]
fn weights_and_roles() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("weights.safetensors");
    let device = Device::flex();
    Plain::new(&device).save_into(&mut SafetensorsStore::from_file(&file))?;
    let mut model = Plain::new(&device);
    model.load_from(&mut SafetensorsStore::from_file(&file))?;

    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
    let config =
        config.with_roles([("first.*", Role::Frozen), ("*.bias", Role::Dense), ("*", Role::LowRank { rank: 4 })]);
    let strategy = config.try_init(&model)?;
    let roles: Vec<Role> = strategy.parameters().entries().iter().map(|entry| entry.role).collect();
    assert_eq!(roles, [Role::Frozen, Role::Frozen, Role::LowRank { rank: 4 }, Role::Dense]);
    Ok(())
}

fn language_model(path: &Path, reward: impl Reward, prompts: [Prompt; 1]) -> Result<(), eggroll::Error> {
    let mut finetune = FinetuneConfig::new().init::<Llama>(Pretrained::open(path)?)?;
    finetune.learn_from(&reward, &prompts, &SamplingConfig::greedy(40))?;
    Ok(())
}

/// `language_models.rs` trains one; here the path has none.
#[test]
fn pretrained_models() {
    let reward = |_: &Prompt, completion: &str| -(completion.len() as f32);
    let error = language_model(Path::new("absent"), reward, [Prompt::new("Why?")]).expect_err("no model");
    assert!(error.to_string().starts_with("no model in absent: found nothing"), "{error}");
}

/// A layer of the list, by its path.
fn is_layer(code: &str) -> bool {
    let name = code.rsplit("::").next().unwrap_or(code);
    let modules = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("crates/eggroll-nn/src");
    let all = fs::read_to_string(modules.join("lib.rs")).expect("reads");
    name.starts_with(|c: char| c.is_ascii_uppercase()) && all.contains(name)
}

/// Every piece of code in the table is here, whatever its spaces.
#[test]
fn the_table_is_this_file() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let words = |text: &str| text.split_whitespace().collect::<String>();
    let here = words(&fs::read_to_string(root.join("tests/book/recipes.rs")).expect("reads"));
    let readme = fs::read_to_string(root.join("README.md")).expect("reads");
    let table =
        readme.split("| you have | write |").nth(1).and_then(|below| below.split("\n\n").next()).expect("a table");
    let rows = table.lines().filter_map(|row| row.replace("\\|", "\u{1}").split('|').nth(2).map(str::to_owned));
    let codes: Vec<String> = rows
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(|code| code.replace('\u{1}', "|")).collect::<Vec<_>>())
        .collect();
    assert!(codes.len() > 15, "{codes:?}");
    for code in codes {
        let is_name = code.chars().all(|c| c.is_alphanumeric() || "_:<>".contains(c));
        assert!(
            is_layer(&code) || is_name || here.contains(&words(&code)),
            "the README's `{code}` is not in this file"
        );
    }
}
