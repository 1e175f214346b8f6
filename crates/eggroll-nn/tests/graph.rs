//! Unmodified models in batch against their members one by one, whose weights the f64 oracle forms.

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::attention::generate_autoregressive_mask;
use burn::nn::conv::{Conv1d, Conv1dConfig, Conv2d, Conv2dConfig, ConvTranspose2d, ConvTranspose2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::transformer::{TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput};
use burn::nn::*;
use burn::tensor::{Device, Int, Tensor, activation};
use eggroll_core::scope::{Perturbation, ScopeUse, Use};
use eggroll_core::{
    EggrollConfig, MatrixView, NoiseSourceConfig, NoiserConfig, OpenEsConfig, PairRange, ParameterTable, Role, SparseConfig,
    reference,
};
use eggroll_nn::graph::{GraphError, GraphTensors, PopulationGraph};
use std::sync::Arc;

const PAIRS: PairRange = PairRange { first: 2, count: 3 };
const MEMBERS: usize = 6;
const SIGMA: f64 = 0.05;

fn devices() -> Vec<Device> {
    vec![
        #[cfg(feature = "flex")]
        Device::flex(),
        #[cfg(feature = "ndarray")]
        {
            #[expect(deprecated, reason = "Burn deprecates the backend; users still ask for it")]
            Device::ndarray()
        },
        #[cfg(feature = "wgpu")]
        Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
    ]
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

/// Values that do not come from Burn's generator, which is global.
fn sines<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    let values: Vec<f32> = (0..shape.iter().product()).map(|i| (i as f32 * 0.7).sin()).collect();
    Tensor::<1>::from_floats(&values[..], device).reshape(shape)
}

fn perturbation<M: Module>(
    model: &M,
    noiser: &NoiserConfig,
    source: NoiseSourceConfig,
    frozen: &[&str],
) -> Perturbation {
    let noiser = noiser.init().expect("valid");
    let frozen: Vec<String> = frozen.iter().map(|name| name.to_string()).collect();
    let table = ParameterTable::new(model, noiser.as_ref(), &frozen).expect("valid");
    let held = source.hold(&table, 9, 4, PAIRS.first + PAIRS.count, None);
    Perturbation { noiser, table: Arc::new(table), seed: 9, generation: 4, sigma: SIGMA, held: Arc::new(held) }
}

/// The model as member `member` sees it, its weights formed by the oracle.
struct Member<'a>(&'a Perturbation, usize);

impl ModuleMapper for Member<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Self(scope, member) = *self;
        let noise = scope.parameter(scope.table.position(param.id).expect("of the model"));
        let pair = PAIRS.first + (member / 2) as u32;
        let (value, shape) = (param.val(), param.dims());
        let elements = shape.iter().product();
        let (drawn, scale) = match (noise.role, MatrixView::of(&shape)) {
            (Role::Frozen, _) => return param,
            (Role::LowRank { rank }, Some(view)) => {
                (reference::low_rank_noise(noise.key, pair, rank, [view.d_input, view.d_output]), (rank as f64).sqrt())
            }
            (Role::Sparse, Some(view)) => {
                (reference::sparse_noise(noise.key, pair, [view.d_input, view.d_output]), 1.0)
            }
            _ => (reference::dense_noise(noise.key, pair, elements), 1.0),
        };
        let sign = if member.is_multiple_of(2) { 1.0 } else { -1.0 };
        let shift: Vec<f32> = drawn.iter().map(|e| (sign * SIGMA / scale * e) as f32).collect();
        let shift = Tensor::<1>::from_floats(&shift[..], &value.device());
        let shift = match MatrixView::of(&shape) {
            Some(view) => view.restore(shift.reshape([view.d_input, view.d_output]), shape),
            None => shift.reshape(shape),
        };
        Param::initialized(param.id, value + shift)
    }
}

/// Largest difference between the batched forward and its members one by one, and whether all parameters were used.
fn compare<M: Module, X: GraphTensors, const D: usize>(
    model: &M,
    graph: &PopulationGraph<M, X, Tensor<D>>,
    scope: &Perturbation,
    rows: &[X],
    folded: X,
    forward: impl Fn(&M, X) -> Tensor<D>,
) -> (f32, ScopeUse) {
    let (y, used) = scope.run(PAIRS, || graph.forward(model, folded));
    let own = y.dims()[0] / MEMBERS;
    let mut largest = 0.0f32;
    for (member, rows) in rows.iter().enumerate() {
        let explicit = model.valid().map(&mut Member(scope, member));
        let expected = values(forward(&explicit, rows.clone()));
        let found = values(y.clone().slice_dim(0, member * own..(member + 1) * own));
        assert_eq!(found.len(), expected.len());
        let scale = expected.iter().fold(1.0f32, |a, b| a.max(b.abs()));
        let difference = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        largest = largest.max(difference / scale);
    }
    (largest, used)
}

/// Traces, runs under several noisers and sources, and compares; every member has rows of its own.
fn check<M: Module + 'static, const A: usize, const D: usize>(
    model: &M,
    shape: [usize; A],
    frozen: &[&str],
    forward: fn(&M, Tensor<A>) -> Tensor<D>,
) {
    let device = model.devices()[0].clone();
    let example = sines(shape, &device);
    let graph = PopulationGraph::trace(model, example.clone(), forward).expect("traced");
    assert_eq!(values(graph.forward(model, example.clone())), values(forward(model, example.clone())));
    assert_eq!(values(graph.forward_shared(model, example.clone())), values(forward(model, example.clone())));
    let mut all = shape;
    all[0] *= MEMBERS;
    let folded = sines(all, &device);
    let own = |member: usize| folded.clone().slice_dim(0, member * shape[0]..(member + 1) * shape[0]);
    let rows: Vec<Tensor<A>> = (0..MEMBERS).map(own).collect();
    let drawn = NoiseSourceConfig::OnTheFly;
    for (noiser, source) in [
        (NoiserConfig::from(EggrollConfig::new().with_rank(2)), drawn),
        (OpenEsConfig::new().into(), drawn),
        (EggrollConfig::new().into(), NoiseSourceConfig::Cached),
        (SparseConfig::new().into(), drawn),
    ] {
        let scope = perturbation(model, &noiser, source, frozen);
        let (difference, used) = compare(model, &graph, &scope, &rows, folded.clone(), forward);
        assert!(difference < 2e-4, "{noiser:?}: {difference:e}");
        assert!(used.uses.iter().all(Use::is_used), "{used:?}");
        shared_rows(model, &graph, &scope, example.clone(), example.clone().repeat_dim(0, MEMBERS));
        // Canary: other members.
        let mut shifted = rows.clone();
        shifted.rotate_left(1);
        let (difference, _) = compare(model, &graph, &scope, &shifted, folded.clone(), forward);
        assert!(difference > 1e-3, "{difference:e}");
    }
}

/// Rows that all members share give what they give when they are repeated.
fn shared_rows<M: Module, X: GraphTensors, const D: usize>(
    model: &M,
    graph: &PopulationGraph<M, X, Tensor<D>>,
    scope: &Perturbation,
    rows: X,
    repeated: X,
) {
    let (shared, used) = scope.run(PAIRS, || graph.forward_shared(model, rows));
    let (expected, _) = scope.run(PAIRS, || graph.forward(model, repeated));
    assert!(used.uses.iter().all(Use::is_used), "{used:?}");
    assert_eq!(shared.dims(), expected.dims());
    for (shared, expected) in values(shared).into_iter().zip(values(expected)) {
        assert!((shared - expected).abs() < 2e-4 * (1.0 + expected.abs()), "{shared} {expected}");
    }
}

#[derive(Module, Debug)]
struct Mlp {
    first: Linear,
    second: Linear,
}

impl Mlp {
    fn new(device: &Device) -> Self {
        Self {
            first: LinearConfig::new(7, 9).init(device),
            second: LinearConfig::new(9, 3).with_bias(false).init(device),
        }
    }

    fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.second.forward(activation::gelu(self.first.forward(x)))
    }
}

#[test]
fn mlp() {
    for device in devices() {
        check(&Mlp::new(&device), [2, 7], &[], Mlp::forward::<2>);
        check(&Mlp::new(&device), [2, 5, 7], &[], Mlp::forward::<3>);
    }
}

#[derive(Module, Debug)]
struct Cnn {
    first: Conv2d,
    norm: BatchNorm,
    second: Conv2d,
    up: ConvTranspose2d,
    pool: MaxPool2d,
    head: Linear,
}

impl Cnn {
    fn new(device: &Device) -> Self {
        Self {
            first: Conv2dConfig::new([2, 4], [3, 3]).with_padding(PaddingConfig2d::Same).init(device),
            norm: BatchNormConfig::new(4).init(device),
            second: Conv2dConfig::new([4, 6], [3, 2]).with_stride([2, 1]).with_groups(2).init(device),
            up: ConvTranspose2dConfig::new([6, 3], [2, 2]).init(device),
            pool: MaxPool2dConfig::new([2, 2]).init(),
            head: LinearConfig::new(3 * 2 * 4, 5).init(device),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let x = activation::relu(self.norm.forward(self.first.forward(x))); // [rows, 4, 8, 8]
        let x = activation::relu(self.second.forward(x)); // [rows, 6, 3, 7]
        let x = self.pool.forward(self.up.forward(x)); // [rows, 3, 2, 4]
        self.head.forward(x.flatten(1, 3))
    }
}

const RUNNING: [&str; 2] = ["norm.running_mean", "norm.running_var"];

#[test]
fn convolutional_network() {
    for device in devices() {
        check(&Cnn::new(&device), [2, 2, 8, 8], &RUNNING, Cnn::forward);
    }
}

/// Recording moves nothing of the user's model, whose running statistics all clones share.
#[test]
fn the_model_stays_where_it_is() {
    let device = Device::flex();
    let model = Cnn::new(&device);
    let graph = PopulationGraph::trace(&model, sines([2, 2, 8, 8], &device), Cnn::forward);
    assert!(graph.is_ok());
    assert_eq!(model.devices()[..], [device.clone()]);
    assert_eq!(values(model.norm.running_var.value()), [1.0; 4]);
}

#[derive(Module, Debug)]
struct Sequence {
    conv: Conv1d,
    recurrent: Lstm,
    gated: Gru,
    norm: RmsNorm,
    slope: PRelu,
}

#[test]
fn recurrent_network() {
    fn forward(model: &Sequence, x: Tensor<3>) -> Tensor<3> {
        let x = model.conv.forward(x.swap_dims(1, 2)).swap_dims(1, 2);
        let (x, _) = model.recurrent.forward(x, None);
        model.slope.forward(model.norm.forward(model.gated.forward(x, None)))
    }
    for device in devices() {
        let model = Sequence {
            conv: Conv1dConfig::new(3, 4, 3).with_padding(PaddingConfig1d::Same).init(&device),
            recurrent: LstmConfig::new(4, 5, true).init(&device),
            gated: GruConfig::new(5, 4, true).init(&device),
            norm: RmsNormConfig::new(4).init(&device),
            slope: PReluConfig::new().init(&device),
        };
        check(&model, [2, 6, 3], &[], forward);
    }
}

#[derive(Module, Debug)]
struct Encoder {
    tokens: Embedding,
    positions: Param<Tensor<3>>,
    encoder: TransformerEncoder,
}

impl Encoder {
    fn new(device: &Device) -> Self {
        Self {
            tokens: EmbeddingConfig::new(11, 8).init(device),
            positions: Param::from_tensor(sines([1, 6, 8], device) * 0.3),
            encoder: TransformerEncoderConfig::new(8, 16, 2, 2).with_norm_first(true).init(device),
        }
    }

    /// The head is tied to the embedding.
    fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [batch, length] = tokens.dims();
        let mask = generate_autoregressive_mask(batch, length, &tokens.device());
        let x = self.tokens.forward(tokens) + self.positions.val().slice_dim(1, 0..length);
        let x = self.encoder.forward(TransformerEncoderInput::new(x).mask_attn(mask));
        x.matmul(self.tokens.weight.val().transpose().unsqueeze())
    }
}

#[test]
fn transformer_encoder() {
    for device in devices() {
        let model = Encoder::new(&device);
        let tokens = |rows: usize| Tensor::<1, Int>::arange(0..5 * rows as i64, &device).mul_scalar(7) % 11;
        let tokens = |rows: usize| tokens(rows).reshape([rows, 5]);
        let forward = |model: &Encoder, tokens: Tensor<2, Int>| model.forward(tokens);
        let graph = PopulationGraph::trace(&model, tokens(2), forward).expect("traced");
        let folded = tokens(2 * MEMBERS);
        let own = |member: usize| folded.clone().slice_dim(0, 2 * member..2 * member + 2);
        let rows: Vec<Tensor<2, Int>> = (0..MEMBERS).map(own).collect();
        for noiser in [NoiserConfig::from(EggrollConfig::new().with_rank(2)), OpenEsConfig::new().into()] {
            let scope = perturbation(&model, &noiser, NoiseSourceConfig::OnTheFly, &[]);
            let (difference, used) = compare(&model, &graph, &scope, &rows, folded.clone(), forward);
            assert!(difference < 2e-4, "{noiser:?}: {difference:e}");
            assert!(used.uses.iter().all(Use::is_used), "{used:?}");
            let mut shifted = rows.clone();
            shifted.rotate_left(1);
            assert!(compare(&model, &graph, &scope, &shifted, folded.clone(), forward).0 > 1e-3);
            shared_rows(&model, &graph, &scope, tokens(2), tokens(2).repeat_dim(0, MEMBERS));
        }
    }
}

/// A frozen parameter, and one that is computed with before it meets rows.
#[test]
fn parameters_that_are_computed_with() {
    #[derive(Module, Debug)]
    struct Scaled {
        linear: Linear,
        scale: Param<Tensor<1>>,
    }
    fn forward(model: &Scaled, x: Tensor<2>) -> Tensor<2> {
        let weight = model.linear.weight.val() * activation::softmax(model.scale.val(), 0).unsqueeze::<2>();
        x.matmul(weight) * model.scale.val().exp().sum().unsqueeze::<2>()
    }
    fn supported(model: &Scaled, x: Tensor<2>) -> Tensor<2> {
        let weight = model.linear.weight.val() * activation::softmax(model.scale.val(), 0).unsqueeze::<2>();
        let rows = x.dims()[0];
        let shift = model.scale.val().exp().unsqueeze::<2>().repeat_dim(0, rows);
        x.matmul(weight) + shift
    }
    let device = Device::flex();
    let model = Scaled {
        linear: LinearConfig::new(4, 3).with_bias(false).init(&device),
        scale: Param::from_tensor(sines([3], &device)),
    };
    check(&model, [2, 4], &[], supported);
    let refused = PopulationGraph::trace(&model, sines([2, 4], &device), forward).expect_err("a sum of all elements");
    assert_eq!(refused, GraphError::UnsupportedUse { operation: "Sum".into(), parameter: "scale".into() });
}

#[test]
fn forwards_that_mix_rows_are_refused() {
    let device = Device::flex();
    let model = Mlp::new(&device);
    let x = || sines([2, 7], &device);
    let centred = PopulationGraph::trace(&model, x(), |model: &Mlp, x: Tensor<2>| {
        let mean = x.clone().mean_dim(0);
        model.forward(x - mean)
    });
    assert!(matches!(centred, Err(GraphError::MixesRows { .. })), "{centred:?}");
    // Every row has its part of the batch, from another row: only the comparison shows it.
    let flipped = PopulationGraph::trace(&model, x(), |model: &Mlp, x: Tensor<2>| model.forward(x).flip([0]));
    assert!(matches!(flipped, Err(GraphError::Differs { .. })), "{flipped:?}");
    let transposed = PopulationGraph::trace(&model, sines([7, 7], &device), |model: &Mlp, x: Tensor<2>| {
        let rows = x.dims()[0];
        let wide = x.transpose().unsqueeze_dim::<3>(2).repeat_dim(2, 7); // [7, rows, 7]
        model.forward(wide).swap_dims(0, 1).reshape([rows, 21])
    });
    assert!(matches!(transposed, Err(GraphError::BatchAxis { .. })), "{transposed:?}");
    let dependent = PopulationGraph::trace(&model, x(), |model: &Mlp, x: Tensor<2>| {
        let large = x.dims()[0] > 10;
        if large { model.forward(x) * 2.0 } else { model.forward(x) }
    });
    assert!(matches!(dependent, Err(GraphError::ShapeDependent { .. })), "{dependent:?}");
}
