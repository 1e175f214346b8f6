//! A GGUF file that is tuned in its own numbers.

use crate::stored::{Kind, items, model};
use crate::write_gguf::tiny;
use eggroll_core::transformer::Precision;
use eggroll_lm::load::{Pretrained, SavedDtype};
use eggroll_lm::{CausalModel, Error, Finetune, FinetuneConfig, Items, Llama, QuantizedLlama, Scored};
use eggroll_train::Credit;
use std::fs;
use std::path::Path;

fn settings() -> FinetuneConfig {
    FinetuneConfig::new().with_population_size(16).with_sigma(0.1).with_learning_rate(0.2)
}

fn open(path: &Path, settings: FinetuneConfig) -> Finetune<QuantizedLlama> {
    settings.init(Pretrained::open(path).expect("a model")).expect("a model in blocks")
}

fn total(scored: &[Scored]) -> f64 {
    scored.iter().map(|scored| f64::from(scored.log_probability())).sum()
}

#[test]
fn members_are_those_of_the_float_model() {
    for kind in [Kind::Q8, Kind::Q4, Kind::F32, Kind::Bf16] {
        let (_folder, path) = model(kind).write();
        let floats = |seed: u64| -> Vec<f64> {
            let settings = settings().with_precision(Precision::F32).with_seed(seed);
            let finetune = settings.init::<Llama>(Pretrained::open(&path).unwrap()).unwrap();
            scores(&finetune.score_members(&finetune.strategy().ask(), Items::Shared(&items())).unwrap())
        };
        let blocks = open(&path, settings().with_seed(3));
        let found = scores(&blocks.score_members(&blocks.strategy().ask(), Items::Shared(&items())).unwrap());
        let away = |expected: Vec<f64>| {
            let differences = found.iter().zip(expected).map(|(a, b)| (a - b).powi(2));
            (differences.sum::<f64>() / found.len() as f64).sqrt()
        };
        // Rows of activations are rounded to 8 bits, also of bfloat16; weights too, where they were float32.
        let limit = if kind == Kind::F32 { 0.1 } else { 0.06 };
        let (same, other) = (away(floats(3)), away(floats(4)));
        assert!(same < limit && other > 5.0 * same, "{kind:?}: {same}, with other noise {other}");
    }
}

fn scores(scored: &[Vec<Scored>]) -> Vec<f64> {
    scored.iter().map(|items| total(items)).collect()
}

/// Integers move, in expectation, by as much as floats: the slope of the one on the other is 1.
#[test]
fn moves_are_those_of_floats() {
    // After one step: later ones begin with models that differ, and so do their members' scores.
    for kind in [Kind::Q8, Kind::Q4] {
        let (folder, path) = model(kind).write();
        let floats =
            || settings().with_precision(Precision::F32).init::<Llama>(Pretrained::open(&path).unwrap()).unwrap();
        let values = |finetune: &Finetune<Llama>| -> Vec<f32> {
            let tensors = finetune.model().tensors().filter(|(name, ..)| name.contains("_proj"));
            tensors.flat_map(|(_, _, values)| values).collect()
        };
        let (first, mut in_floats, mut in_blocks) = (values(&floats()), floats(), open(&path, settings()));
        in_floats.learn(Items::Shared(&items())).unwrap();
        in_blocks.learn(Items::Shared(&items())).unwrap();
        let tuned = folder.path().join("tuned.gguf");
        in_blocks.save_gguf(&tuned).unwrap();
        let tuned = values(&settings().init(Pretrained::open(&tuned).unwrap()).unwrap());
        let (mut products, mut squares) = (0.0, 0.0);
        for ((first, float), tuned) in first.iter().zip(values(&in_floats)).zip(tuned) {
            let [expected, found] = [float - first, tuned - first].map(f64::from);
            products += expected * found;
            squares += expected * expected;
        }
        let slope = products / squares;
        assert!((0.85..1.15).contains(&slope), "{kind:?}: {slope}");
    }
}

/// The steps of bfloat16 add up as in a run whose weights are float32. Spreads of weights, which scale the noise, differ in their last bits. Rounding of
/// activations to 8 bits turns that into differences of about a hundredth in the scores of members, and so in steps.
#[test]
fn bfloat16_learns_as_float32() {
    let (folder, path) = model(Kind::Bf16).write();
    let floats = |seed: u64, steps: usize| -> Vec<f32> {
        let settings = settings().with_precision(Precision::Bf16).with_seed(seed);
        let mut finetune: Finetune<Llama> = settings.init(Pretrained::open(&path).unwrap()).unwrap();
        for _ in 0..steps {
            finetune.learn(Items::Shared(&items())).unwrap();
        }
        finetune.model().tensors().flat_map(|(_, _, values)| values).collect()
    };
    let mut halves = open(&path, settings());
    for _ in 0..10 {
        halves.learn(Items::Shared(&items())).unwrap();
    }
    let tuned = folder.path().join("tuned.gguf");
    halves.save_gguf(&tuned).unwrap();
    let tuned: Finetune<Llama> = settings().init(Pretrained::open(&tuned).unwrap()).unwrap();
    let tuned: Vec<f32> = tuned.model().tensors().flat_map(|(_, _, values)| values).collect();
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
    let (first, expected) = (floats(0, 0), floats(0, 10));
    let moved = distance(&expected, &first);
    let [off, other] = [distance(&tuned, &expected), distance(&tuned, &floats(1, 10))].map(|off| off / moved);
    assert!(off < 0.1 && other > 0.5, "off by {off} of what moved, with another seed by {other}");
}

#[test]
fn a_model_that_was_not_tuned_is_the_file() {
    for kind in [Kind::Q8, Kind::Q4, Kind::Bf16] {
        let (folder, path) = model(kind).write();
        let copy = folder.path().join("copy.gguf");
        open(&path, settings()).save_gguf(&copy).unwrap();
        let [expected, found] = [&path, &copy].map(|path| fs::read(path).unwrap());
        let at = expected.iter().zip(&found).position(|(a, b)| a != b);
        assert!(at.is_none() && found.len() == expected.len(), "{kind:?}: byte {at:?}");
    }
}

#[test]
fn learns_in_its_quantization_and_is_written_back() {
    for (kind, seed) in [Kind::Q8, Kind::Q4, Kind::Bf16].into_iter().flat_map(|kind| [1, 2, 3].map(|seed| (kind, seed)))
    {
        let (folder, path) = model(kind).write();
        let tuned = folder.path().join("tuned.gguf");
        let mut finetune = open(&path, settings().with_seed(seed));
        let before = total(&finetune.score(&items()).unwrap());
        let mut moved = 0.0;
        for _ in 0..30 {
            moved += finetune.learn(Items::Shared(&items())).unwrap().changed.share().unwrap();
        }
        let after = finetune.score(&items()).unwrap();
        assert!(total(&after) > before + 2.0, "{kind:?}, seed {seed}: from {before} to {}", total(&after));
        assert!(moved > 0.01, "{moved}");
        finetune.save_gguf(&tuned).unwrap();
        let again = open(&tuned, settings());
        assert_eq!(again.score(&items()).unwrap(), after, "{kind:?}");
        // Nothing but the integers of matrices of layers is another.
        let [first, second] = [&path, &tuned].map(|path| fs::read(path).unwrap());
        assert_eq!(first.len(), second.len());
        let file = model(kind);
        let data: usize = file.tensors.iter().map(|tensor| tensor.3.len().next_multiple_of(32)).sum();
        let mut start = first.len().next_multiple_of(32) - data;
        assert_eq!(first[..start], second[..start], "the header");
        for (name, _, stored, bytes) in &file.tensors {
            let [a, b] = [&first, &second].map(|file| &file[start..start + bytes.len()]);
            let in_layers = *stored != 0 && name.starts_with("blk.");
            assert_eq!(a == b, !in_layers, "{name}");
            if in_layers && kind != Kind::Bf16 {
                let of_block = if kind == Kind::Q4 { 18 } else { 34 };
                let scales = |data: &[u8]| data.chunks(of_block).map(|b| [b[0], b[1]]).collect::<Vec<_>>();
                assert_eq!(scales(a), scales(b), "scales of {name}");
            }
            start += bytes.len().next_multiple_of(32);
        }
    }
}

/// What moves were short of is made again of the log: a run that was stopped writes the same file as one that was not.
#[test]
fn a_log_is_continued_bit_for_bit() {
    [Kind::Q8, Kind::Bf16].into_iter().for_each(continued);
}

fn continued(kind: Kind) {
    let (folder, path) = model(kind).write();
    let [whole, parts] = ["whole", "parts"].map(|name| folder.path().join(name));
    let run = |to: &Path, steps: u64| {
        let mut finetune = open(&path, settings()).with_replay_log(to.with_extension("replay")).unwrap();
        while finetune.steps() < steps {
            finetune.learn(Items::Shared(&items())).unwrap();
        }
        finetune.save_gguf(to.with_extension("gguf")).unwrap();
        fs::read(to.with_extension("gguf")).unwrap()
    };
    let expected = run(&whole, 12);
    let early = run(&parts, 5);
    assert_ne!(early, expected);
    assert_eq!(run(&parts, 12), expected);
    // Of another file, the log is refused.
    let other = folder.path().join("other.gguf");
    // In a matrix of a layer, and in the embeddings, which do not learn.
    for tensor in [2, 0] {
        let mut file = model(kind);
        file.tensors[tensor].3[5] ^= 64;
        fs::write(&other, file.bytes()).unwrap();
        let log = open(&other, settings()).with_replay_log(whole.with_extension("replay"));
        let error = log.err().expect("another model").to_string();
        assert!(error.contains("spread") || error.contains("digest"), "tensor {tensor}: {error}");
    }
}

/// Wherever it is in its block.
#[test]
fn a_weight_that_is_not_a_number_is_refused() {
    for (place, value) in [(0, f32::NAN), (1, f32::NAN), (15, f32::INFINITY), (30, -f32::NAN), (31, f32::NAN)] {
        let mut file = model(Kind::F32);
        let matrix = file.tensors.iter_mut().find(|tensor| tensor.0 == "blk.1.ffn_up.weight").unwrap();
        matrix.3[4 * (64 + place)..][..4].copy_from_slice(&value.to_le_bytes());
        let (_folder, path) = file.write();
        let error = settings().init::<QuantizedLlama>(Pretrained::open(path).unwrap()).err().unwrap().to_string();
        assert!(error.contains("block 0 of output 2") && error.contains("finite"), "{place}: {error}");
    }
}

/// A run would end with a model that cannot be saved.
#[test]
fn a_folder_is_refused_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (_folder, path) = model(Kind::Bf16).write();
    let floats: Finetune<Llama> = settings().init(Pretrained::open(&path).unwrap()).unwrap();
    floats.save(folder.path(), SavedDtype::BF16).unwrap();
    let error = settings().init::<QuantizedLlama>(Pretrained::open(folder.path()).unwrap()).err().unwrap().to_string();
    assert!(error.contains("SafeTensors") && error.contains("GGUF"), "{error}");
}

#[test]
fn settings_that_integers_do_not_learn_by_are_named() {
    let (_folder, path) = model(Kind::Q8).write();
    let refused = |settings: FinetuneConfig| {
        let opened = settings.init::<QuantizedLlama>(Pretrained::open(&path).unwrap());
        opened.err().expect("a refusal").to_string()
    };
    let error = refused(settings().with_credit(Credit::Auto));
    assert!(error.contains("credit is \"auto\", expected \"mean\""), "{error}");
    let error = refused(settings().with_anchor_decay(0.1));
    assert!(error.contains("anchor_decay is 0.1"), "{error}");
    let adam = settings().strategy::<QuantizedLlama>();
    let adam = eggroll_train::EvolutionStrategyConfig { optimizer: burn::optim::AdamConfig::new().into(), ..adam };
    let error = open(&path, settings()).with_strategy(adam).err().unwrap();
    assert!(matches!(&error, Error::Quantized { setting: "optimizer", .. }), "{error}");
    // Blocks of 32 do not fill 4 inputs.
    let (_folder, path) = tiny("llama").write();
    let error = settings().init::<QuantizedLlama>(Pretrained::open(path).unwrap()).err().unwrap().to_string();
    assert!(error.contains("8 inputs of tensor \"model.embed_tokens.weight\"; supported: multiples of 32"), "{error}");
}
