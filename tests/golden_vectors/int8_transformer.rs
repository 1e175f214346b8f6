//! The integer transformer against its scalar program, `int8_transformer.py`: every number equal, on every device.

use crate::devices;
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use eggroll::core::integer::transformer::gelu;
use eggroll::core::ops::integer::integer_type;
use eggroll::core::ops::integer::{Rounding, log_likelihood};
use eggroll::core::scope::Perturbation;
use eggroll::core::{MaterializedNoise, NoiserConfig, PairRange, ParameterTable, QEggrollConfig};
use eggroll::nn::integer::transformer::{Transformer, TransformerConfig, TransformerState};
use serde_json::Value;
use std::sync::Arc;

/// Members in the order of ours: plus and minus of pair 0, then of pair 1.
const MEMBERS: [&str; 4] = ["pair0+", "pair0-", "pair1+", "pair1-"];

fn golden() -> Value {
    serde_json::from_str(include_str!("../golden/int8_transformer.json")).expect("JSON")
}

/// All numbers of an array of any depth, row after row.
fn flat(value: &Value) -> Vec<i32> {
    match value {
        Value::Array(values) => values.iter().flat_map(flat).collect(),
        value => vec![value.as_i64().expect("an integer") as i32],
    }
}

struct Int8TransformerCase {
    values: Value,
    device: Device,
    model: Transformer,
}

/// Replaces all parameters by those of the file.
struct Load<'a> {
    weights: &'a Value,
    path: Vec<String>,
}

/// The name of a parameter in the file.
fn named(path: &str) -> &str {
    if path == "embedding.bias" { "embedding_bias" } else { path }
}

impl ModuleMapper for Load<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        let path = self.path.join(".");
        let values = flat(&self.weights[named(&path)]);
        param.map(|old| {
            assert_eq!(old.shape().num_elements(), values.len(), "{path}");
            Tensor::from_data(TensorData::new(values, old.shape()), (&old.device(), old.dtype()))
        })
    }
}

impl Int8TransformerCase {
    fn new(values: &Value, device: &Device) -> Self {
        let size = |name: &str| values["sizes"][name].as_u64().expect("a size") as usize;
        let config = TransformerConfig::new()
            .with_vocab(size("V"))
            .with_layers(size("L"))
            .with_width(size("D"))
            .with_heads(size("H"))
            .with_hidden(Some(size("F")))
            .with_context(size("T"));
        let model = config.init(device).map(&mut Load { weights: &values["weights"], path: Vec::new() });
        Self { values: values.clone(), device: device.clone(), model }
    }

    fn perturbation(&self) -> Perturbation {
        let sizes = &self.values["sizes"];
        let number = |name: &str| sizes[name].as_u64().expect("a number");
        let config = QEggrollConfig::new().with_rank(number("rank") as usize).with_sigma_shift(number("sg") as u32);
        let noiser = NoiserConfig::from(config).init().expect("a noiser");
        let table = Arc::new(ParameterTable::new(&self.model, noiser.as_ref(), &[]).expect("a table"));
        let noise_of = |path: &str| {
            let pair = |pair: &str| {
                let noise = &self.values["noise"][pair][named(path)];
                let parts = if noise.get("B").is_some() { ["B", "A"] } else { ["n0", "n1"] };
                parts.map(|part| flat(&noise[part])).concat()
            };
            let values = [pair("pair0"), pair("pair1")];
            let shape = [2, values[0].len()];
            let data = TensorData::new(values.concat(), shape);
            Some(Tensor::<2, Int>::from_data(data, (&self.device, integer_type(&self.device))))
        };
        let noise = table.entries().iter().map(|entry| noise_of(&entry.path)).collect();
        let held = Arc::new(MaterializedNoise::of_integers(0, noise));
        Perturbation { noiser, table, seed: 0, generation: 0, sigma: 1.0, held }
    }

    /// Tokens or targets, the same for all rows.
    fn tokens(&self, name: &str, rows: usize) -> Tensor<2, Int> {
        let tokens = flat(&self.values[name]);
        Tensor::from_data(TensorData::new(tokens.repeat(rows), [rows, tokens.len()]), &self.device)
    }

    /// Logits of every token and the sum of all losses, of each row; the text is read in these chunks.
    fn read(&self, rows: usize, chunks: &[usize]) -> (Vec<Vec<i32>>, Vec<i32>) {
        let (tokens, mut state, mut parts, mut at) =
            (self.tokens("tokens", rows), TransformerState::default(), Vec::new(), 0);
        for steps in chunks {
            let part = tokens.clone().narrow(1, at, *steps);
            let (logits, next) = self.model.forward(part, state);
            (state, at) = (next, at + steps);
            parts.push(logits);
        }
        let logits = Tensor::cat(parts, 1);
        let [_, steps, vocab] = logits.dims();
        assert_eq!(steps, at);
        let targets = self.tokens("targets", rows).reshape([rows * steps]);
        let scores = log_likelihood(logits.clone().reshape([rows * steps, vocab]), targets, rows, Rounding::Nearest);
        let rows: Vec<i32> = logits.into_data().try_to_vec().expect("I32");
        (rows.chunks(steps * vocab).map(<[i32]>::to_vec).collect(), scores.into_data().try_to_vec().expect("I32"))
    }

    fn steps(&self) -> usize {
        flat(&self.values["tokens"]).len()
    }

    fn check(&self, member: &str, logits: &[i32], score: i32) {
        let expected = &self.values["outputs"][member];
        let last = flat(&expected["logits"]);
        assert_eq!(logits[logits.len() - last.len()..], last, "{member}, {:?}", self.device);
        assert_eq!(score, expected["score"].as_i64().expect("a score") as i32, "{member}, {:?}", self.device);
    }
}

fn cases() -> Vec<Int8TransformerCase> {
    let golden = golden();
    let cases = golden["cases"].as_object().expect("cases");
    devices()
        .iter()
        .flat_map(|device| cases.values().map(|values| Int8TransformerCase::new(values, device)).collect::<Vec<_>>())
        .collect()
}

#[test]
fn plain_model() {
    for case in cases() {
        let steps = case.steps();
        // Whole, token by token, and in uneven parts: keys and values are carried.
        for chunks in [vec![steps], vec![1; steps], vec![2, 1, steps - 3]] {
            let (logits, scores) = case.read(1, &chunks);
            case.check("plain", &logits[0], scores[0]);
        }
    }
}

#[test]
fn members() {
    for case in cases() {
        let perturbation = case.perturbation();
        for chunks in [vec![case.steps()], vec![2, 1, case.steps() - 3]] {
            let (logits, scores) = perturbation.run(PairRange::new(0, 2), || case.read(4, &chunks)).0;
            for (m, member) in MEMBERS.into_iter().enumerate() {
                case.check(member, &logits[m], scores[m]);
            }
            assert_ne!(scores[0], scores[1], "canary: members differ");
        }
        // A chunk of pairs alone.
        let (logits, scores) = perturbation.run(PairRange::new(1, 1), || case.read(2, &[case.steps()])).0;
        case.check("pair1+", &logits[0], scores[0]);
        case.check("pair1-", &logits[1], scores[1]);
    }
}

#[test]
fn gelu_is_that_of_the_file() {
    let table = flat(&golden()["tables"]["ACT"]);
    let ours: Vec<i32> = (-127..=127i8).map(|q| i32::from(gelu(q))).collect();
    assert_eq!(table[1..], ours);
}

/// The types of activations: integers of the device's own small type, logits of I32.
#[test]
fn logits_are_of_type_i32() {
    for case in cases() {
        let (logits, _) = case.model.forward(case.tokens("tokens", 1), TransformerState::default());
        assert_eq!(logits.dtype(), DType::I32);
    }
}
