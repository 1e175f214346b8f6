//! A whole RWKV-7 of two layers, on tensors and on the host: `rwkv7_tiny.npz`.

use crate::compare::{assert_close, assert_differs, values};
use crate::hosts;
use crate::loader::{Array, Golden};
use crate::recorded::{Draw, perturbation};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::ops::explicit::Factors;
use eggroll::core::scope::Perturbation;
use eggroll::core::transformer::{MemberRow, Precision};
use eggroll::core::{EggrollConfig, NoiserConfig, PairRange, ParameterEntry, Role};
use eggroll::lm::host::{Rwkv7LayerState, Rwkv7State, Sequence};
use eggroll::lm::load::Rwkv7Config;
use eggroll::lm::rwkv7::{LayerState, Rwkv7};
use eggroll::lm::{Decoder, HostRwkv7};

/// Two layers in float32, with exponentials and divisions by norms; differences seen are below 5e-6, those of canaries ten times above.
const TOLERANCE: f64 = 2e-4;

const HEADS: usize = 2;
const HEAD_DIM: usize = 8;
const HIDDEN: usize = HEADS * HEAD_DIM;
const LAYERS: usize = 2;

/// The reference has the same for heads of every size; the library scales it, and has it for heads of 64.
const HEAD_EPSILON: f64 = 64e-5;

struct Tiny(Golden);

/// Where the file has a parameter.
struct FilePlace {
    name: String,
    layer: Option<usize>,
    /// Whether the file's matrix is `(out, in)`; the low-rank pairs are `(in, out)`.
    flipped: bool,
}

impl FilePlace {
    fn of(path: &str) -> Self {
        let (path, layer) = match path.strip_prefix("blocks.") {
            Some(rest) => {
                let (layer, rest) = rest.split_once('.').expect("a layer");
                (format!("blocks.{rest}"), Some(layer.parse().expect("a number")))
            }
            None => (path.to_owned(), None),
        };
        let name = path.replace(".gamma", ".weight").replace(".beta", ".bias");
        let low_rank = name.strip_suffix(".weight").filter(|name| name.ends_with(['1', '2']) && name.contains(".att."));
        match low_rank {
            Some(name) => Self { name: name.to_owned(), layer, flipped: false },
            None => Self { flipped: name != "emb.weight", name, layer },
        }
    }
}

impl Tiny {
    fn open() -> Self {
        Self(Golden::open("rwkv7_tiny.npz"))
    }

    fn model(&self, device: &Device) -> Rwkv7 {
        let config = Rwkv7Config {
            vocab_size: 40,
            hidden_size: HIDDEN,
            intermediate_size: 48,
            layers: LAYERS,
            head_dim: HEAD_DIM,
            decay_rank: 6,
            a_rank: 5,
            v_rank: 4,
            gate_rank: 7,
            norm_eps: 1e-5,
            tied_head: false,
        };
        let mut model = Rwkv7::new(&config, device).map(&mut Placing { golden: &self.0, path: Vec::new() });
        for block in &mut model.blocks {
            block.att.ln_x.epsilon = HEAD_EPSILON;
        }
        model
    }

    fn perturbation(&self, model: &Rwkv7, freeze: bool, sigma: f64, device: &Device) -> Perturbation {
        let noiser = NoiserConfig::from(EggrollConfig::new().with_freeze_non_matrix(freeze));
        let record = |entry: &ParameterEntry, _| {
            let FilePlace { name, layer, flipped } = FilePlace::of(&entry.path);
            let noise = self.0.array(&format!("n:{name}"));
            let noise = layer.map_or_else(|| noise.clone(), |layer| noise.at_second(layer));
            match (&entry.role, entry.shape.as_slice()) {
                (Role::LowRank { .. }, [d_input, _]) if flipped => Draw::LowRank(noise.factors(*d_input, device)),
                (Role::LowRank { .. }, [_, d_output]) => {
                    // The file's second axis is that of the output: its factors come in the other order.
                    let Factors { b, a } = noise.factors(*d_output, device);
                    Draw::LowRank(Factors { b: a, a: b })
                }
                _ => {
                    let pairs = noise.shape[0];
                    let shape = vec![pairs, noise.values.len() / pairs];
                    Draw::Dense(Array { shape, ..noise }.dense(device))
                }
            }
        };
        perturbation(model, &noiser, &["emb", "head"], (0, sigma), record)
    }

    fn tokens(&self) -> Vec<u32> {
        self.0.array("tokens").indices().into_iter().map(|token| token as u32).collect()
    }

    /// A state of the file for the host. It has `[heads, values, keys]`, we `[heads, keys, values]`.
    fn state(&self, name: &str) -> Rwkv7State {
        let array = self.0.array(name);
        let layer = |layer: usize| {
            let values: Vec<f32> = array.at(layer).values.iter().map(|value| *value as f32).collect();
            let (rows, wkv) = values.split_at(2 * HIDDEN);
            let heads = wkv.chunks_exact(HEAD_DIM * HEAD_DIM);
            let turned = heads.flat_map(|head| {
                (0..HEAD_DIM).flat_map(move |key| (0..HEAD_DIM).map(move |value| head[value * HEAD_DIM + key]))
            });
            Rwkv7LayerState {
                attention: rows[HIDDEN..].to_vec(),
                feed_forward: rows[..HIDDEN].to_vec(),
                wkv: turned.collect(),
            }
        };
        Rwkv7State { layers: (0..LAYERS).map(layer).collect() }
    }
}

/// Takes the weights of the file.
struct Placing<'a> {
    golden: &'a Golden,
    path: Vec<String>,
}

impl ModuleMapper for Placing<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let FilePlace { name, layer, flipped } = FilePlace::of(&self.path.join("."));
        let array = self.golden.array(&format!("p:{name}"));
        let array = layer.map_or_else(|| array.clone(), |layer| array.at(layer));
        let array = if D == 2 && flipped { array.flipped() } else { array };
        parameter.map(|tensor| {
            let shape = tensor.dims().to_vec();
            assert!(D == 1 || array.shape == shape, "{name}: {:?}", array.shape);
            Array { shape, values: array.values }.tensor(&tensor.device())
        })
    }
}

/// A host's state as tensors, for `rows` sequences.
fn tensors(state: &Rwkv7State, rows: usize, device: &Device) -> Vec<LayerState> {
    let tensor = |values: &[f32]| Tensor::<1>::from_floats(values, device);
    let layer = |layer: &Rwkv7LayerState| LayerState {
        attention: tensor(&layer.attention).unsqueeze::<2>().repeat_dim(0, rows),
        feed_forward: tensor(&layer.feed_forward).unsqueeze::<2>().repeat_dim(0, rows),
        wkv: tensor(&layer.wkv).reshape([1, HEADS, HEAD_DIM, HEAD_DIM]).repeat_dim(0, rows),
    };
    state.layers.iter().map(layer).collect()
}

fn state_values(state: &Rwkv7State) -> Vec<f64> {
    let layers = state.layers.iter().flat_map(|layer| [&layer.attention, &layer.feed_forward, &layer.wkv]);
    layers.flatten().map(|value| f64::from(*value)).collect()
}

fn tensor_state_values(state: &[LayerState]) -> Vec<f64> {
    let layer = |layer: &LayerState| {
        let LayerState { attention, feed_forward, wkv } = layer.clone();
        [values(attention), values(feed_forward), values(wkv)].concat()
    };
    state.iter().flat_map(layer).collect()
}

/// Something that reads tokens of one sequence: the module and the host.
trait TokenReader {
    type State;

    fn begin(&self, state: &Rwkv7State) -> Self::State;
    fn read(&self, tokens: &[u32], state: &mut Self::State) -> Vec<f64>;
    fn end(&self, state: &Self::State) -> Vec<f64>;
}

impl TokenReader for HostRwkv7 {
    type State = Rwkv7State;

    fn begin(&self, state: &Rwkv7State) -> Rwkv7State {
        self.fork(state, 0)
    }

    fn read(&self, tokens: &[u32], state: &mut Rwkv7State) -> Vec<f64> {
        let member = MemberRow { slot: 0, minus: false };
        let (mut buffers, mut hidden, mut logits) = (self.buffers(), Vec::new(), Vec::new());
        let mut sequences = [Sequence { member, tokens, wanted: 0..tokens.len(), state }];
        self.forward(None, &mut sequences, &mut buffers, &mut hidden);
        self.logits(None, &vec![member; tokens.len()], &hidden, &mut buffers, &mut logits);
        logits.into_iter().map(f64::from).collect()
    }

    fn end(&self, state: &Rwkv7State) -> Vec<f64> {
        state_values(state)
    }
}

struct OnDevice(Rwkv7, Device);

impl TokenReader for OnDevice {
    type State = Vec<LayerState>;

    fn begin(&self, state: &Rwkv7State) -> Vec<LayerState> {
        tensors(state, 1, &self.1)
    }

    fn read(&self, tokens: &[u32], state: &mut Vec<LayerState>) -> Vec<f64> {
        values(self.0.forward_from(token_rows(tokens, 1, &self.1), state))
    }

    fn end(&self, state: &Vec<LayerState>) -> Vec<f64> {
        tensor_state_values(state)
    }
}

fn token_rows(tokens: &[u32], rows: usize, device: &Device) -> Tensor<2, Int> {
    let tokens: Vec<i32> = tokens.iter().map(|token| *token as i32).collect();
    Tensor::<1, Int>::from_ints(tokens.as_slice(), device).unsqueeze::<2>().repeat_dim(0, rows)
}

/// Without noise: from an empty state, from one that is given, and with a new sequence that begins within.
fn check_plain(tiny: &Tiny, model: &impl TokenReader, what: &str) {
    let tokens = tiny.tokens();
    let empty = tensors_of_zeros();
    for (begin, logits, end) in
        [(empty.clone(), "logits_zero", "state_zero"), (tiny.state("state_in"), "logits_in", "state_out")]
    {
        let mut state = model.begin(&begin);
        let found = model.read(&tokens, &mut state);
        assert_close(&format!("{what}: {logits}"), &found, tiny.0.values(logits), TOLERANCE);
        let end = state_values(&tiny.state(end));
        assert_close(&format!("{what}: {logits}, state"), &model.end(&state), &end, TOLERANCE);
        assert_differs("the begin as the end", &model.end(&model.begin(&begin)), &end, TOLERANCE);
    }
    let mut state = model.begin(&empty);
    let found = model.read(&tokens, &mut state);
    assert_differs("from another state", &found, tiny.0.values("logits_in"), TOLERANCE);

    let starts = tiny.0.values("new_starts");
    let start = starts.iter().position(|start| *start == 1.0).expect("a start");
    assert_eq!(starts.iter().sum::<f64>(), 1.0, "one start");
    let (mut first, mut second) = (model.begin(&tiny.state("state_in")), model.begin(&empty));
    let mut found = model.read(&tokens[..start], &mut first);
    found.extend(model.read(&tokens[start..8], &mut second));
    let end = state_values(&tiny.state("state_ns_len8"));
    assert_close(&format!("{what}: a new start, state"), &model.end(&second), &end, TOLERANCE);
    assert_differs("the first sequence's state", &model.end(&first), &end, TOLERANCE);
    found.extend(model.read(&tokens[8..], &mut second));
    assert_close(&format!("{what}: a new start"), &found, tiny.0.values("logits_ns_len8"), TOLERANCE);
    assert_differs("no new start", &found, tiny.0.values("logits_in"), TOLERANCE);
}

fn tensors_of_zeros() -> Rwkv7State {
    let layer = Rwkv7LayerState {
        attention: vec![0.0; HIDDEN],
        feed_forward: vec![0.0; HIDDEN],
        wkv: vec![0.0; HIDDEN * HEAD_DIM],
    };
    Rwkv7State { layers: vec![layer; LAYERS] }
}

#[test]
fn without_noise() {
    let tiny = Tiny::open();
    for device in hosts() {
        check_plain(&tiny, &OnDevice(tiny.model(&device), device.clone()), "module");
    }
    let model = tiny.model(&hosts()[0]);
    check_plain(&tiny, &HostRwkv7::new(&model, Precision::F32), "host");
}

/// What is easily mistaken is far off.
#[test]
fn canary_other_models_differ() {
    let tiny = Tiny::open();
    let device = &hosts()[0];
    type Change = fn(&mut Rwkv7);
    let wrong: [(&str, Change); 6] = [
        ("a transposed matrix", |model| {
            let key = &mut model.blocks[0].att.key;
            key.weight = Param::from_tensor(key.weight.val().transpose());
        }),
        ("ε scaled with the size of a head", |model| model.blocks[0].att.ln_x.epsilon = 8e-5),
        ("the first layer's value for no layer", |model| model.blocks[1].att.v0 = None),
        ("the decay's sign", |model| {
            let w0 = &mut model.blocks[0].att.w0;
            *w0 = Param::from_tensor(-w0.val());
        }),
        ("mixes swapped", |model| {
            let att = &mut model.blocks[1].att;
            std::mem::swap(&mut att.x_k, &mut att.x_v);
        }),
        ("no gate", |model| {
            let gate = &mut model.blocks[1].att.g1;
            gate.weight = Param::from_tensor(gate.weight.val().zeros_like());
        }),
    ];
    for (what, change) in wrong {
        let mut model = tiny.model(device);
        change(&mut model);
        let host = HostRwkv7::new(&model, Precision::F32);
        let found = host.read(&tiny.tokens(), &mut host.begin(&tiny.state("state_in")));
        assert_differs(what, &found, tiny.0.values("logits_in"), TOLERANCE);
        let model = OnDevice(model, device.clone());
        let found = model.read(&tiny.tokens(), &mut model.begin(&tiny.state("state_in")));
        assert_differs(what, &found, tiny.0.values("logits_in"), TOLERANCE);
    }
}

/// Noise on the matrices, and on the vectors too: all members inside the scope, and each as a model of its own on the host.
#[test]
fn with_noise() {
    let tiny = Tiny::open();
    let (sigma, tokens, state) = (tiny.0.scalar("sigma"), tiny.tokens(), tiny.state("state_in"));
    for device in hosts() {
        let model = tiny.model(&device);
        let run = |perturbation: &Perturbation| {
            let pairs = PairRange::new(0, 2);
            let mut state = tensors(&state, pairs.members(), &device);
            let rows = token_rows(&tokens, pairs.members(), &device);
            values(perturbation.run(pairs, || model.forward_from(rows, &mut state)).0)
        };
        for (freeze, name, other) in
            [(true, "noised_frozen1", "noised_frozen0"), (false, "noised_frozen0", "noised_frozen1")]
        {
            let perturbation = tiny.perturbation(&model, freeze, sigma, &device);
            let expected = tiny.0.values(name);
            let found = run(&perturbation);
            assert_close(name, &found, expected, TOLERANCE);
            assert_differs("with other parameters frozen", &found, tiny.0.values(other), TOLERANCE);
            let opposite = tiny.perturbation(&model, freeze, -sigma, &device);
            assert_differs("wrong signs", &run(&opposite), expected, TOLERANCE);
            let each = tiny.0.array(name);
            for pair in 0..2 {
                for (sign, member) in perturbation.materialize(&model, pair).iter().enumerate() {
                    let host = HostRwkv7::new(member, Precision::F32);
                    let found = host.read(&tokens, &mut host.begin(&state));
                    let at = 2 * pair as usize + sign;
                    assert_close(&format!("{name}: member {at} on the host"), &found, &each.at(at).values, TOLERANCE);
                    assert_differs("the pair's other member", &found, &each.at(at ^ 1).values, TOLERANCE);
                }
            }
        }
    }
}
