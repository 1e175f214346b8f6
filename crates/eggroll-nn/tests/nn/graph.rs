//! Unmodified models in batch against their members one by one, whose weights the f64 oracle forms.

use crate::support::{
    MEMBERS, NETWORK, PAIRS, assert_members, devices, every_device, held, noisers, perturbation, rows_of, scramble,
    uniform, values,
};
use burn::module::{Module, Param};
use burn::nn::attention::generate_autoregressive_mask;
use burn::nn::conv::{Conv1d, Conv1dConfig, Conv2d, Conv2dConfig, ConvTranspose2d, ConvTranspose2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::transformer::{TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput};
use burn::nn::*;
use burn::tensor::kind::Basic;
use burn::tensor::{Device, Int, Tensor, activation};
use eggroll_core::{EggrollConfig, NoiseSourceConfig};
use eggroll_nn::graph::{GraphError, PopulationGraph};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Traces, runs under all noisers and with noise that is held, and compares: every member on its part of `rows`, and all on the
/// first part.
fn check<M: Module + 'static, K: Basic + 'static, const A: usize, const D: usize>(
    model: &M,
    rows: Tensor<A, K>,
    frozen: &[&str],
    forward: fn(&M, Tensor<A, K>) -> Tensor<D>,
) {
    let example = rows_of(&rows, 0);
    let graph = PopulationGraph::trace(model, example.clone(), forward).expect("traced");
    let plain = values(forward(model, example.clone()));
    assert_eq!(values(graph.forward(model, example.clone())), plain);
    assert_eq!(values(graph.forward_shared(model, example.clone())), plain);
    let drawn = noisers().map(|noiser| (noiser, NoiseSourceConfig::OnTheFly));
    let cached = (EggrollConfig::new().into(), NoiseSourceConfig::Cached);
    for (noiser, source) in drawn.into_iter().chain([cached]) {
        let scope = held(&perturbation(model, &noiser, frozen), source);
        let what = format!("{:?}, {noiser:?}, {source:?}, without {frozen:?}", model.devices());
        let alone = |member, model: M| forward(&model, rows_of(&rows, member));
        assert_members((&what, NETWORK), model, &scope, || graph.forward(model, rows.clone()), alone);
        let (what, alone) = (format!("shared, {what}"), |_, model: M| forward(&model, example.clone()));
        assert_members((&what, NETWORK), model, &scope, || graph.forward_shared(model, example.clone()), alone);
    }
}

#[derive(Module, Debug)]
struct GraphMlp {
    first: Linear,
    second: Linear,
}

impl GraphMlp {
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
    for device in every_device() {
        check(&GraphMlp::new(&device), uniform([MEMBERS * 2, 7], 0, &device), &[], GraphMlp::forward::<2>);
        check(&GraphMlp::new(&device), uniform([MEMBERS * 2, 5, 7], 0, &device), &[], GraphMlp::forward::<3>);
    }
}

#[derive(Module, Debug)]
struct GraphCnn {
    first: Conv2d,
    norm: BatchNorm,
    second: Conv2d,
    up: ConvTranspose2d,
    pool: MaxPool2d,
    head: Linear,
}

impl GraphCnn {
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

#[test]
fn convolutional_network() {
    for device in devices() {
        check(&GraphCnn::new(&device), uniform([MEMBERS * 2, 2, 8, 8], 0, &device), &[], GraphCnn::forward);
    }
}

/// Recording moves nothing of the user's model, whose running statistics all clones share.
#[test]
fn the_model_stays_where_it_is() {
    let device = Device::flex();
    let model = GraphCnn::new(&device);
    let graph = PopulationGraph::trace(&model, uniform([2, 2, 8, 8], 0, &device), GraphCnn::forward);
    assert!(graph.is_ok());
    assert_eq!(model.devices()[..], [device]);
    assert_eq!(values(model.norm.running_var.value()), [1.0; 4]);
}

#[derive(Module, Debug)]
struct SequenceModel {
    conv: Conv1d,
    recurrent: Lstm,
    gated: Gru,
    norm: RmsNorm,
    slope: PRelu,
}

#[test]
fn recurrent_network() {
    fn forward(model: &SequenceModel, x: Tensor<3>) -> Tensor<3> {
        let x = model.conv.forward(x.swap_dims(1, 2)).swap_dims(1, 2);
        let (x, _) = model.recurrent.forward(x, None);
        model.slope.forward(model.norm.forward(model.gated.forward(x, None)))
    }
    for device in devices() {
        // Slopes of 0.25 would be 0 under noise of ±0.25, and outputs that are negative all the same.
        let model = scramble(SequenceModel {
            conv: Conv1dConfig::new(3, 4, 3).with_padding(PaddingConfig1d::Same).init(&device),
            recurrent: LstmConfig::new(4, 5, true).init(&device),
            gated: GruConfig::new(5, 4, true).init(&device),
            norm: RmsNormConfig::new(4).init(&device),
            slope: PReluConfig::new().init(&device),
        });
        check(&model, uniform([MEMBERS * 2, 6, 3], 0, &device), &[], forward);
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
            positions: Param::from_tensor(uniform([1, 6, 8], 0, device) * 0.3),
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
        let tokens = Tensor::<1, Int>::arange(0..5 * 2 * MEMBERS as i64, &device).mul_scalar(7) % 11;
        check(&Encoder::new(&device), tokens.reshape([2 * MEMBERS, 5]), &[], Encoder::forward);
    }
}

/// Parameters that are computed with before they meet rows, frozen ones too.
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
        scale: Param::from_tensor(uniform([3], 0, &device)),
    };
    for frozen in [&[][..], &["linear"], &["scale"]] {
        check(&model, uniform([MEMBERS * 2, 4], 0, &device), frozen, supported);
    }
    let x = uniform([2, 4], 0, &device);
    let refused = PopulationGraph::trace(&model, x, forward).expect_err("a sum of all elements");
    assert_eq!(refused, GraphError::UnsupportedUse { operation: "Sum".into(), parameter: "scale".into() });
}

/// A parameter with `no_grad()` is a tensor like any other, also where rows do not lie on the leading axis.
#[test]
fn frozen_parameters_in_any_operation() {
    #[derive(Module, Debug)]
    struct Shifted {
        linear: Linear,
        shift: Param<Tensor<3>>,
    }
    fn forward(model: &Shifted, x: Tensor<2>) -> Tensor<2> {
        let [rows, _] = x.dims();
        let shift = model.shift.val().expand([1, rows, 3]).squeeze_dim::<2>(0);
        model.linear.forward(x) + shift * model.shift.val().sum().unsqueeze::<2>()
    }
    let device = Device::flex();
    let model = Shifted {
        linear: LinearConfig::new(4, 3).init(&device),
        shift: Param::from_tensor(uniform([1, 1, 3], 0, &device)).no_grad(),
    };
    check(&model, uniform([MEMBERS * 2, 4], 0, &device), &[], forward);
    let trained = model.clone().set_require_grad(true);
    let refused = PopulationGraph::trace(&trained, uniform([2, 4], 0, &device), forward).expect_err("it has noise");
    assert!(matches!(&refused, GraphError::BatchAxis { parameter, .. } if parameter == "shift"), "{refused}");
    // A graph that was traced before is recorded anew.
    let graph = PopulationGraph::trace(&model, uniform([2, 4], 0, &device), forward).expect("traced");
    let scope = perturbation(&trained, &EggrollConfig::new().into(), &[]);
    let x = uniform([MEMBERS * 2, 4], 0, &device);
    let panic =
        catch_unwind(AssertUnwindSafe(|| scope.run(PAIRS, || graph.forward(&trained, x)))).expect_err("refused");
    let named = |text: &String| text.starts_with("graph: the parameter \"shift\" meets a tensor");
    assert!(panic.downcast_ref::<String>().is_some_and(named), "{panic:?}");
}

#[test]
fn forwards_that_mix_rows_are_refused() {
    let device = Device::flex();
    let model = GraphMlp::new(&device);
    let x = || uniform([2, 7], 0, &device);
    let centered = PopulationGraph::trace(&model, x(), |model: &GraphMlp, x: Tensor<2>| {
        let mean = x.clone().mean_dim(0);
        model.forward(x - mean)
    });
    assert!(matches!(centered, Err(GraphError::MixesRows { .. })), "{centered:?}");
    // Every row has its part of the batch, from another row: only the comparison shows it.
    let flipped = PopulationGraph::trace(&model, x(), |model: &GraphMlp, x: Tensor<2>| model.forward(x).flip([0]));
    assert!(matches!(flipped, Err(GraphError::Differs { .. })), "{flipped:?}");
    let transposed = PopulationGraph::trace(&model, uniform([7, 7], 0, &device), |model: &GraphMlp, x: Tensor<2>| {
        let rows = x.dims()[0];
        let wide = x.transpose().unsqueeze_dim::<3>(2).repeat_dim(2, 7); // [7, rows, 7]
        model.forward(wide).swap_dims(0, 1).reshape([rows, 21])
    });
    assert!(matches!(transposed, Err(GraphError::BatchAxis { .. })), "{transposed:?}");
    let dependent = PopulationGraph::trace(&model, x(), |model: &GraphMlp, x: Tensor<2>| {
        let large = x.dims()[0] > 10;
        if large { model.forward(x) * 2.0 } else { model.forward(x) }
    });
    assert!(matches!(dependent, Err(GraphError::ShapeDependent { .. })), "{dependent:?}");
    // Rows from other rows: by an index, before any parameter, of an example without values, and of outputs that are integers.
    let indexed = PopulationGraph::trace(
        &model,
        (x(), Tensor::<1, Int>::from_ints([1, 1], &device)),
        |model: &GraphMlp, (x, from): (Tensor<2>, Tensor<1, Int>)| model.forward(x.select(0, from)),
    );
    assert!(matches!(indexed, Err(GraphError::Differs { .. })), "{indexed:?}");
    let early = PopulationGraph::trace(&model, x(), |model: &GraphMlp, x: Tensor<2>| model.forward(x.flip([0])));
    assert!(matches!(early, Err(GraphError::Differs { .. })), "{early:?}");
    let blank = PopulationGraph::trace(&model, x().zeros_like(), |model: &GraphMlp, x: Tensor<2>| {
        model.second.forward(model.first.forward(x.clone()) - model.first.forward(x.zeros_like())).flip([0])
    });
    assert!(matches!(blank, Err(GraphError::Differs { .. })), "{blank:?}");
    let chosen = PopulationGraph::trace(&model, uniform([9, 7], 0, &device), |model: &GraphMlp, x: Tensor<2>| {
        model.forward(x).flip([0]).argmax(1)
    });
    assert!(matches!(chosen, Err(GraphError::Differs { .. })), "{chosen:?}");
    let right = PopulationGraph::trace(&model, uniform([9, 7], 0, &device), |model: &GraphMlp, x: Tensor<2>| {
        model.forward(x).argmax(1)
    });
    assert!(right.is_ok(), "canary: {right:?}");
}

/// One step is in the order of rows, several with time first are not.
#[test]
fn time_first_is_refused_for_any_number_of_steps() {
    let device = Device::flex();
    let model = GraphMlp::new(&device);
    fn forward(model: &GraphMlp, x: Tensor<3>) -> Tensor<3> {
        let [batch, steps, width] = x.dims();
        let y = model.forward(x.swap_dims(0, 1).reshape([steps * batch, width]));
        y.reshape([steps, batch, 3]).swap_dims(0, 1)
    }
    let steps = PopulationGraph::trace(&model, uniform([2, 4, 7], 0, &device), forward);
    assert!(matches!(steps, Err(GraphError::MixesRows { .. })), "{steps:?}");
    let graph = PopulationGraph::trace(&model, uniform([2, 1, 7], 0, &device), forward).expect("one step");
    let scope = perturbation(&model, &EggrollConfig::new().into(), &[]);
    let run = |x: Tensor<3>| catch_unwind(AssertUnwindSafe(|| scope.run(PAIRS, || graph.forward(&model, x))));
    let panic = run(uniform([MEMBERS * 2, 4, 7], 0, &device)).expect_err("four steps");
    let named = |text: &String| text.starts_with("graph: Reshape joins rows of the batch");
    assert!(panic.downcast_ref::<String>().is_some_and(named), "{panic:?}");
    assert!(run(uniform([MEMBERS * 2, 1, 7], 0, &device)).is_ok(), "canary: one step");
}

/// Tensors and numbers that are no parameters are read anew in every scope, in the same shapes and with the same noise.
#[test]
fn constants_are_those_of_the_scope() {
    #[derive(Module, Debug)]
    struct Observer {
        linear: Linear,
        mean: Tensor<2>,
        scale: f64,
    }
    fn forward(model: &Observer, x: Tensor<2>) -> Tensor<2> {
        model.linear.forward((x - model.mean.clone()) * model.scale)
    }
    let device = Device::flex();
    let linear = LinearConfig::new(4, 3).init(&device);
    let mut model = Observer { linear, mean: Tensor::zeros([1, 4], &device), scale: 1.0 };
    let graph = PopulationGraph::trace(&model, uniform([2, 4], 0, &device), forward).expect("traced");
    let x = uniform([MEMBERS * 2, 4], 0, &device);
    let scope = perturbation(&model, &EggrollConfig::new().into(), &[]);
    for (number, scale) in [(0, 1.0), (1, 1.0), (2, 0.5)] {
        (model.mean, model.scale) = (uniform([1, 4], number, &device), scale);
        let alone = |member, model: Observer| forward(&model, rows_of(&x, member));
        let what = format!("constants {number}");
        assert_members((&what, NETWORK), &model, &scope, || graph.forward(&model, x.clone()), alone);
    }
}

/// A forward that panics while it is recorded, by the rows that it is given, and what can be done afterwards.
#[test]
fn a_panic_while_recording_breaks_nothing() {
    let device = Device::flex();
    let model = GraphMlp::new(&device);
    let scope = perturbation(&model, &EggrollConfig::new().into(), &[]);
    let forward = |model: &GraphMlp, x: Tensor<2>| {
        assert!(!x.dims()[0].is_multiple_of(5), "five rows");
        model.forward(x)
    };
    let recorded = |graph: &PopulationGraph<GraphMlp, Tensor<2>, Tensor<2>>, rows: usize| {
        let x = uniform([MEMBERS * rows, 7], 0, &device);
        scope.run(PAIRS, || values(graph.forward(&model, x))).0
    };
    let traced = || PopulationGraph::trace(&model, uniform([2, 7], 0, &device), forward).expect("traced");
    let expected = [2, 3, 4].map(|rows| recorded(&traced(), rows));
    let graph = traced();
    for _ in 0..2 {
        let panic = catch_unwind(AssertUnwindSafe(|| recorded(&graph, 5))).expect_err("the forward's panic");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"five rows"));
    }
    let refused =
        catch_unwind(AssertUnwindSafe(|| PopulationGraph::trace(&model, uniform([5, 7], 0, &device), forward)));
    assert!(refused.is_err(), "canary: it panics while it is traced, too");
    // Of a form that is known, of a new one, and by another thread.
    assert_eq!(recorded(&graph, 2), expected[0]);
    assert_eq!(recorded(&graph, 3), expected[1]);
    std::thread::scope(|threads| {
        let on_another = threads.spawn(|| (recorded(&graph, 4), recorded(&traced(), 3)));
        assert_eq!(on_another.join().expect("records"), (expected[2].clone(), expected[1].clone()));
    });
}

/// Graphs that are traced at the same time, and one that several threads record for, some of them by a forward that panics.
#[test]
fn concurrent_recordings() {
    let device = Device::flex();
    let model = GraphMlp::new(&device);
    let scope = perturbation(&model, &EggrollConfig::new().into(), &[]);
    let forward = |model: &GraphMlp, x: Tensor<2>| {
        assert!(!x.dims()[0].is_multiple_of(5), "five rows");
        model.forward(x)
    };
    let traced = || PopulationGraph::trace(&model, uniform([2, 7], 0, &device), forward).expect("traced");
    let recorded = |graph: &PopulationGraph<GraphMlp, Tensor<2>, Tensor<2>>, rows: usize| {
        let x = uniform([MEMBERS * rows, 7], 0, &device);
        scope.run(PAIRS, || values(graph.forward(&model, x))).0
    };
    let rows = [1, 2, 3, 4];
    let expected = rows.map(|rows| recorded(&traced(), rows));
    let shared = traced();
    std::thread::scope(|threads| {
        for thread in 0..8 {
            let (shared, expected) = (&shared, &expected[thread % 4]);
            threads.spawn(move || {
                for _ in 0..4 {
                    let own = traced();
                    let panicked = catch_unwind(AssertUnwindSafe(|| recorded(shared, 5))).is_err();
                    assert!(panicked, "canary: five rows");
                    assert_eq!(recorded(shared, rows[thread % 4]), *expected);
                    assert_eq!(recorded(&own, rows[thread % 4]), *expected);
                }
            });
        }
    });
}
