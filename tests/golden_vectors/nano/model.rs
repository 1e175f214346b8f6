//! Whole models: `nano_model_a.npz` and `nano_model_b.npz`.

use super::{assert_differs, assert_equal, integers};
use crate::devices;
use crate::loader::{Array, Golden};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::integer::{Votes, step_limit};
use eggroll::core::ops::integer::{Rounding, log_likelihood, update};
use eggroll::core::scope::Perturbation;
use eggroll::core::{MaterializedNoise, NoiserConfig, PairRange, ParameterTable, QEggrollConfig, Role};
use eggroll::nn::integer::{EggModel, EggModelConfig, EggState};
use eggroll::train::{FitnessShaping, fold_pairs};
use std::sync::Arc;

const PAIRS: u32 = 4;
const MEMBERS: usize = 8;
/// Chunks of pairs that sequences are evaluated in.
const CHUNKS: [&[u32]; 3] = [&[4], &[1, 1, 1, 1], &[3, 1]];

/// The name in the files of a parameter, and its layer if it belongs to one.
fn golden_name(path: &str) -> (String, Option<usize>) {
    let Some(inner) = path.strip_prefix("blocks.") else {
        let name = match path {
            "embedding.weight" => "emb",
            "norm.weight" => "ln_out.weight",
            "head.weight" => "head",
            _ => panic!("unknown parameter {path}"),
        };
        return (name.into(), None);
    };
    let (layer, name) = inner.split_once('.').expect("a parameter of a layer");
    let name = match name {
        "gru_norm.weight" => "ln1.weight",
        "gru.forget_input" => "att.Wf",
        "gru.forget_hidden" => "att.Uf",
        "gru.forget_bias" => "att.bf",
        "gru.candidate_input" => "att.Wh",
        "gru.candidate_hidden" => "att.Uh",
        "gru.candidate_bias" => "att.bh",
        "mlp_norm.weight" => "ln2.weight",
        "mlp.expand.weight" => "mlp.0.weight",
        "mlp.contract.weight" => "mlp.1.weight",
        _ => panic!("unknown parameter {path}"),
    };
    (format!("blocks.{name}"), Some(layer.parse().expect("a number")))
}

/// One of the files.
struct Nano {
    golden: Golden,
    device: Device,
}

/// A model of a file with the perturbation by its noise.
struct NanoModelCase {
    nano: Nano,
    model: EggModel,
    table: Arc<ParameterTable>,
    perturbation: Perturbation,
}

impl Nano {
    fn layers(&self) -> usize {
        self.golden.array("one_state_in").shape[0]
    }

    /// A parameter in our layout, before or after an update.
    fn parameter(&self, prefix: &str, path: &str) -> Array {
        let (name, layer) = golden_name(path);
        let array = self.golden.array(&format!("{prefix}:{name}"));
        let array = layer.map_or_else(|| array.clone(), |layer| array.at(layer));
        // Rows of the embedding are those of ours.
        if array.shape.len() == 2 && name != "emb" { array.flipped() } else { array }
    }

    /// The noise of a parameter in our layout: `[pairs, elements]`.
    fn noise(&self, path: &str, shape: &[usize]) -> Array {
        let (name, layer) = golden_name(path);
        let array = self.golden.array(&format!("n:{name}"));
        let array = layer.map_or_else(|| array.clone(), |layer| array.at_second(layer));
        match shape {
            [_, width] if name == "emb" => array.integer_embedding_factors(*width),
            [d_input, _] => array.integer_factors(*d_input),
            _ => array.integer_vector(),
        }
    }

    fn model(&self) -> EggModel {
        let embedding = &self.golden.array("p:emb").shape;
        let config = EggModelConfig::new().with_vocab(embedding[0]).with_width(embedding[1]);
        let mut load = Load { nano: self, path: Vec::new() };
        config.with_layers(self.layers()).init(&self.device).map(&mut load)
    }

    /// A state `(members, layers, width)` of a file.
    fn state(&self, array: &Array) -> EggState {
        EggState { layers: (0..self.layers()).map(|layer| array.at_second(layer).integers(&self.device)).collect() }
    }
}

/// Replaces all parameters by those of a file.
struct Load<'a> {
    nano: &'a Nano,
    path: Vec<String>,
}

impl ModuleMapper for Load<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        let array = self.nano.parameter("p", &self.path.join("."));
        assert_eq!(array.shape, param.dims(), "{:?}", self.path);
        param.map(|_| array.integers(&self.nano.device))
    }
}

/// All files on all devices.
fn cases() -> impl Iterator<Item = NanoModelCase> {
    let files = ["nano_model_a.npz", "nano_model_b.npz"];
    let open = move |device: Device| files.map(|file| NanoModelCase::new(Golden::open(file), device.clone(), 0));
    devices().into_iter().flat_map(open)
}

impl NanoModelCase {
    /// With a sigma shift above that of the file, for canaries.
    fn new(golden: Golden, device: Device, more_shift: u32) -> Self {
        let sigma_shift = golden.scalar("sigma_shift") as u32 + more_shift;
        let nano = Nano { golden, device };
        let model = nano.model();
        let noiser = NoiserConfig::from(QEggrollConfig::new().with_sigma_shift(sigma_shift)).init().expect("a noiser");
        let table = Arc::new(ParameterTable::new(&model, noiser.as_ref(), &[]).expect("a table"));
        let entries = table.entries().iter();
        let noise = entries.map(|entry| Some(nano.noise(&entry.path, &entry.shape).integers(&nano.device))).collect();
        let held = Arc::new(MaterializedNoise::of_integers(0, noise));
        let perturbation = Perturbation { noiser, table: table.clone(), seed: 0, generation: 0, sigma: 1.0, held };
        Self { nano, model, table, perturbation }
    }

    fn quieter(&self) -> Self {
        let file = if self.nano.layers() == 2 { "nano_model_a.npz" } else { "nano_model_b.npz" };
        Self::new(Golden::open(file), self.nano.device.clone(), 1)
    }

    fn array(&self, name: &str) -> &Array {
        self.nano.golden.array(name)
    }

    /// Logits and states of all members after one token.
    fn one_token(&self, perturbed: bool) -> (Vec<f64>, Vec<f64>) {
        let token = self.nano.golden.scalar("one_token");
        let token = Array { shape: vec![MEMBERS, 1], values: vec![token; MEMBERS] }.tokens(&self.nano.device);
        let state = self.array("one_state_in");
        let all = Array { shape: [&[MEMBERS], &state.shape[..]].concat(), values: state.values.repeat(MEMBERS) };
        let forward = || self.model.forward(token, self.nano.state(&all));
        let (logits, state) =
            if perturbed { self.perturbation.run(PairRange::new(0, PAIRS), forward).0 } else { forward() };
        (integers(logits), self.states(vec![state]))
    }

    /// States of chunks as the files hold them: `(members, layers, width)`.
    fn states(&self, chunks: Vec<EggState>) -> Vec<f64> {
        let chunk = |state: EggState| integers(Tensor::stack::<3>(state.layers, 1));
        chunks.into_iter().flat_map(chunk).collect()
    }

    /// Log-likelihoods of all members' sequences and the states after them.
    fn sequences(&self, state: &Array, perturbed: Option<&[u32]>) -> (Vec<f64>, Vec<f64>) {
        let tokens = self.array("tokens");
        let members: Vec<usize> = (0..MEMBERS).map(|member| member / 2).collect();
        let tokens = tokens.select(&members).tokens::<2>(&self.nano.device);
        let steps = tokens.dims()[1] - 1;
        let part = |first: usize, count: usize| {
            let rows = tokens.clone().narrow(0, first, count);
            let state = self.nano.state(&state.select(&(first..first + count).collect::<Vec<_>>()));
            let (logits, state) = self.model.forward(rows.clone().narrow(1, 0, steps), state);
            let [_, _, vocab] = logits.dims();
            let targets = rows.narrow(1, 1, steps).reshape([count * steps]);
            (log_likelihood(logits.reshape([count * steps, vocab]), targets, count, Rounding::Floor), state)
        };
        let Some(chunks) = perturbed else {
            let (likelihoods, state) = part(0, MEMBERS);
            return (integers(likelihoods), self.states(vec![state]));
        };
        let (mut likelihoods, mut states, mut first) = (Vec::new(), Vec::new(), 0);
        for count in chunks {
            let pairs = PairRange::new(first, *count);
            let ((part, state), scope) = self.perturbation.run(pairs, || part(2 * first as usize, 2 * *count as usize));
            assert!(scope.uses.iter().all(|how| how.is_used()), "{:?}", scope.uses);
            likelihoods.extend(integers(part));
            states.push(state);
            first += count;
        }
        assert_eq!(first, PAIRS);
        (likelihoods, self.states(states))
    }
}

#[test]
fn one_token() {
    for case in cases() {
        let expected = |name: &str| &case.array(name).values;
        let (logits, state) = case.one_token(false);
        assert_equal("logits", &logits, &expected("one_logits").repeat(MEMBERS));
        assert_equal("state", &state, &expected("one_state_out").repeat(MEMBERS));
        let (noised_logits, noised_state) = case.one_token(true);
        assert_equal("perturbed logits", &noised_logits, expected("one_logits_noised"));
        assert_equal("perturbed state", &noised_state, expected("one_state_noised"));
        assert_differs("plain against perturbed logits", &logits, expected("one_logits_noised"));
        assert_differs("plain against perturbed state", &state, expected("one_state_noised"));
    }
}

#[test]
fn sequences() {
    for case in cases() {
        let expected = |name: &str| &case.array(name).values[..];
        let from = case.array("seq_state_in");
        let (likelihoods, states) = case.sequences(from, None);
        assert_equal("log-likelihoods", &likelihoods, expected("seq_ll"));
        assert_equal("states", &states, expected("seq_state"));
        for chunks in CHUNKS {
            let (likelihoods, states) = case.sequences(from, Some(chunks));
            assert_equal("perturbed log-likelihoods", &likelihoods, expected("seq_ll_noised"));
            assert_equal("perturbed states", &states, expected("seq_state_noised"));
            let signs = fold_pairs(&FitnessShaping::PairSign.shape(&likelihoods));
            assert_equal("fitness", &signs, expected("fitness"));
        }
        assert_differs("plain against perturbed", &likelihoods, expected("seq_ll_noised"));
    }
}

#[test]
fn canary_other_noise_and_states_differ() {
    for case in cases() {
        let from = case.array("seq_state_in");
        let expected = case.array("seq_ll_noised");
        let (quieter, _) = case.quieter().sequences(from, Some(&[PAIRS]));
        assert_differs("half the noise", &quieter, &expected.values);
        let none = Array { values: vec![0.0; from.values.len()], ..from.clone() };
        let (likelihoods, _) = case.sequences(&none, Some(&[PAIRS]));
        assert_differs("no state before", &likelihoods, &expected.values);
        // A sequence that begins with a document forgets the state before it.
        for (member, (found, expected)) in likelihoods.iter().zip(&expected.values).enumerate() {
            let starts = case.array("tokens").at(member / 2).values[0] == 0.0;
            assert!(!starts || found == expected, "member {member}");
        }
    }
}

#[test]
fn updates() {
    for case in cases() {
        let fitness = case.array("fitness");
        for threshold in [0, 8, 16] {
            let limit = step_limit(threshold, PAIRS as usize, Votes::Values);
            let mut other = false;
            for (position, entry) in case.table.entries().iter().enumerate() {
                let found = |scores: Tensor<1, Int>| {
                    let noise = case.perturbation.held.integer(position).expect("noise").clone();
                    let before = case.nano.parameter("p", &entry.path);
                    let (device, shape) = (&case.nano.device, before.shape.len());
                    match entry.role {
                        Role::LowRank { rank } => {
                            integers(update(before.integers::<2>(device), noise, scores, rank, Votes::Values, limit))
                        }
                        _ => {
                            assert_eq!(shape, 1);
                            integers(update(before.integers::<1>(device), noise, scores, 0, Votes::Values, limit))
                        }
                    }
                };
                let expected = case.nano.parameter(&format!("u{threshold}"), &entry.path).values;
                let scores = fitness.integers::<1>(&case.nano.device);
                assert_equal(&format!("{}, threshold {threshold}", entry.path), &found(scores.clone()), &expected);
                other |= found(-scores) != expected;
            }
            assert!(other, "canary: the opposite fitness gives the same update at threshold {threshold}");
        }
    }
}
