//! Devices, noisers and values; models with the weights of one member, which the f64 oracle forms, and comparisons with them.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::store::ModuleRecord;
use burn::tensor::kind::Basic;
use burn::tensor::{DType, Device, Tensor, TensorData};
use eggroll_core::ops::{NoiseSource, table_start};
use eggroll_core::rng::philox::philox4x32;
use eggroll_core::rng::sparse;
use eggroll_core::scope::{Perturbation, ScopeUse};
use eggroll_core::{
    EggrollConfig, MatrixView, NoiseDistribution, NoiseSourceConfig, NoiserConfig, OpenEsConfig, PairRange,
    ParameterNoise, ParameterTable, Role, SparseConfig, reference,
};
use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

/// The members of all tests: neither the first pairs, nor as many as anything else.
pub const PAIRS: PairRange = PairRange { first: 2, count: 3 };
pub const MEMBERS: usize = 6;

/// Largest [`distance`] of a layer from its explicit form: roundings of what it adds up.
pub const LAYER: f32 = 2e-5;
/// The same of several layers or steps, each of which is given the roundings of those before it.
pub const NETWORK: f32 = 5e-5;
/// How many times the tolerance a canary must be off.
const CANARY: f32 = 100.0;

/// The host, for tests of modules: what they call on devices is tested by the core's conformance suite.
pub fn devices() -> Vec<Device> {
    vec![Device::flex()]
}

/// Every device that can be tested, for one module of each shape: rows, lookups, a recurrence, a traced model.
pub fn every_device() -> Vec<Device> {
    vec![
        Device::flex(),
        #[cfg(feature = "ndarray")]
        ndarray(),
        #[cfg(feature = "wgpu")]
        Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
    ]
}

#[cfg(feature = "ndarray")]
#[expect(deprecated, reason = "Burn deprecates the backend; users still ask for it")]
fn ndarray() -> Device {
    Device::ndarray()
}

/// Low-rank and dense noise, of both distributions, and sparse noise.
pub fn noisers() -> [NoiserConfig; 5] {
    [
        EggrollConfig::new().with_rank(3).into(),
        OpenEsConfig::new().into(),
        EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher).into(),
        OpenEsConfig::new().with_distribution(NoiseDistribution::Rademacher).into(),
        SparseConfig::new().into(),
    ]
}

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

/// Values in `[−1, 1)` that look random, others in every stream: the same on every device, and not of Burn's generator, which is
/// global.
pub fn uniform<const D: usize>(shape: [usize; D], stream: u32, device: &Device) -> Tensor<D> {
    let count = shape.iter().product::<usize>() as u32;
    let word = |i| philox4x32([i, stream, 0, u32::MAX], [3; 2])[0];
    let values: Vec<f32> = (0..count).map(|i| (word(i) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect();
    Tensor::from_data(TensorData::new(values, shape), (device, DType::F32))
}

/// The model with other values in every parameter, so that none is 0 or 1 throughout.
pub fn scramble<M: Module>(model: M) -> M {
    struct Scramble(u32);
    impl ModuleMapper for Scramble {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            self.0 += 1;
            param.map(|value| {
                let shift = uniform(value.dims(), self.0, &value.device()) * 0.4;
                value * 0.7 + shift
            })
        }
    }
    model.map(&mut Scramble(100))
}

/// The perturbation of `model`, its noise drawn on the fly.
pub fn perturbation(model: &impl Module, noiser: &NoiserConfig, frozen: &[&str]) -> Perturbation {
    let noiser = noiser.init().expect("valid");
    let frozen: Vec<String> = frozen.iter().map(|name| name.to_string()).collect();
    let table = ParameterTable::new(model, noiser.as_ref(), &frozen).expect("valid");
    Perturbation { noiser, table: Arc::new(table), seed: 9, generation: 4, sigma: 0.25, held: Arc::default() }
}

/// The same with noise from elsewhere.
pub fn held(scope: &Perturbation, source: NoiseSourceConfig) -> Perturbation {
    let pairs = PairRange::new(0, PAIRS.first + PAIRS.count);
    let held = source.hold(&scope.table, scope.seed, scope.generation, pairs, None);
    Perturbation { held: Arc::new(held), ..scope.clone() }
}

/// The rows of one member.
pub fn rows_of<const D: usize, K: Basic>(x: &Tensor<D, K>, member: usize) -> Tensor<D, K> {
    let rows = x.dims()[0] / MEMBERS;
    x.clone().slice_dim(0, member * rows..(member + 1) * rows)
}

/// Largest difference, `|found − expected| / (1 + |expected|)`; infinite where there is no number.
pub fn distance<const D: usize>(found: Tensor<D>, expected: Tensor<D>) -> f32 {
    assert_eq!(found.dims(), expected.dims());
    let one = |(found, expected): (f32, f32)| (found - expected).abs() / (1.0 + expected.abs());
    let numbers = |distance: f32| if distance.is_nan() { f32::INFINITY } else { distance };
    values(found).into_iter().zip(values(expected)).map(one).map(numbers).fold(0.0, f32::max)
}

/// Checks what members compute together against what explicit weights compute member by member.
///
/// `together` runs in the scope; `alone` gets a member, for its rows, and the model with its weights. No member's output may be
/// that of the next member, nor its own with the noise of the other sign, nor without noise. Every parameter must be used.
pub fn assert_members<M: Module, const D: usize>(
    (what, tolerance): (&str, f32),
    model: &M,
    scope: &Perturbation,
    together: impl FnOnce() -> Tensor<D>,
    alone: impl Fn(usize, M) -> Tensor<D>,
) -> ScopeUse {
    let (found, used) = scope.run(PAIRS, together);
    assert!(used.output_bytes > 0, "{what}: no bytes counted");
    for (entry, used) in scope.table.entries().iter().zip(&used.uses) {
        assert!(used.is_used(), "{what}: {} is not used", entry.path);
    }
    let models: Vec<M> = (0..MEMBERS).map(|member| explicit(model, scope, member)).collect();
    let outputs: Vec<Tensor<D>> = (0..MEMBERS).map(|member| alone(member, models[member].clone())).collect();
    assert_eq!(found.dims()[0], outputs[0].dims()[0] * MEMBERS, "{what}");
    for (member, expected) in outputs.iter().enumerate() {
        let off = distance(rows_of(&found, member), expected.clone());
        assert!(off < tolerance, "{what}, member {member}: {off:e}");
        let canaries = [
            ("next member", outputs[(member + 1) % MEMBERS].clone()),
            ("other sign", alone(member, models[member ^ 1].clone())),
            ("plain", alone(member, model.clone())),
        ];
        for (name, canary) in canaries {
            let off = distance(canary, expected.clone());
            assert!(off > CANARY * tolerance, "canary: {what}, member {member}, {name}: {off:e}");
        }
    }
    used
}

/// As [`assert_members`] for two rows of each member and a `forward` of the model that takes the range of rows to read.
pub fn assert_forward<M: Module, const D: usize>(
    model: &M,
    (noiser, frozen): (&NoiserConfig, &[&str]),
    forward: impl Fn(&M, Range<usize>) -> Tensor<D>,
) {
    let scope = perturbation(model, noiser, frozen);
    let what = format!("{:?}, {noiser:?}, without {frozen:?}", model.devices());
    let alone = |member: usize, model: M| forward(&model, 2 * member..2 * member + 2);
    assert_members((&what, NETWORK), model, &scope, || forward(model, 0..2 * MEMBERS), alone);
}

/// The model as `member` sees it.
fn explicit<M: Module>(model: &M, scope: &Perturbation, member: usize) -> M {
    let sign = if member.is_multiple_of(2) { 1.0 } else { -1.0 };
    model.clone().map(&mut Explicit { scope, pair: PAIRS.first + (member / 2) as u32, sign })
}

struct Explicit<'a> {
    scope: &'a Perturbation,
    pair: u32,
    sign: f64,
}

impl ModuleMapper for Explicit<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        // Running statistics are not in the table.
        let Some(position) = self.scope.table.position(param.id) else {
            return param;
        };
        let noise = self.scope.parameter(position);
        let scale = match noise.role {
            Role::Frozen => return param,
            Role::LowRank { rank } => self.sign * noise.sigma / (rank as f64).sqrt(),
            Role::Dense | Role::Sparse => self.sign * noise.sigma,
        };
        let shift: Vec<f32> =
            drawn(&noise, self.pair, &param.dims()).iter().map(|drawn| (scale * drawn) as f32).collect();
        param.map(|value| {
            let shift = Tensor::<1>::from_floats(&shift[..], &value.device());
            let shape = value.dims();
            value + MatrixView::shape_flat(shift, shape)
        })
    }
}

/// The oracle's noise of one pair, without scale and sign: in the order of the parameter's matrix, if it has one.
fn drawn(noise: &ParameterNoise, pair: u32, shape: &[usize]) -> Vec<f64> {
    let elements = noise.role.noise_elements(shape);
    let stream = match &noise.source {
        NoiseSource::Drawn | NoiseSource::Cached { .. } => reference::dense_noise(noise.key, pair, elements),
        NoiseSource::Table(table) => {
            let start = table_start(noise.key, pair, elements, table.dims()[0]);
            values(table.clone().slice_dim(0, start..start + elements)).into_iter().map(f64::from).collect()
        }
    };
    match (noise.role, MatrixView::of(shape)) {
        (Role::LowRank { rank }, Some(MatrixView { d_input, d_output, .. })) => {
            // `B·Aᵀ` of `B` as `[rank, d_input]` and `A` as `[rank, d_output]`.
            let (b, a) = stream.split_at(rank * d_input);
            let b: Vec<f64> = (0..d_input * rank).map(|at| b[at % rank * d_input + at / rank]).collect();
            reference::matmul(&b, a, rank, d_output)
        }
        (Role::Sparse, Some(MatrixView { d_input, d_output, .. })) => {
            let mut matrix = vec![0.0; d_input * d_output];
            for ([row, column], value) in sparse::places(noise.key, pair, [d_input, d_output]).zip(stream) {
                matrix[row * d_output + column] += value;
            }
            matrix
        }
        _ => stream,
    }
}

/// Records of Burn's module load into the twin and back; parameters and what is displayed are the same.
pub fn assert_records_move<B, T>(fresh: impl Fn() -> B)
where
    B: Module + From<T> + Display,
    T: Module + From<B> + Display,
{
    let original = scramble(fresh());
    let expected = parameters(&original);
    let differ = parameters(&fresh()).iter().zip(&expected).all(|(fresh, expected)| fresh.1 != expected.1);
    assert!(differ, "canary: equal before");
    let bytes = original.clone().into_record().into_bytes().expect("writes");
    let twin = T::from(fresh()).load_record(ModuleRecord::from_bytes(bytes).expect("reads"));
    assert_eq!(parameters(&twin), expected);
    assert_eq!(format!("{twin}"), format!("{original}"));
    assert_eq!(parameters(&B::from(twin.clone())), expected);
    let bytes = twin.into_record().into_bytes().expect("writes");
    let back = fresh().load_record(ModuleRecord::from_bytes(bytes).expect("reads"));
    assert_eq!(parameters(&back), expected);
}

/// All parameters and running statistics with their paths, in traversal order.
fn parameters<M: Module>(model: &M) -> Vec<(String, Vec<f32>)> {
    #[derive(Default)]
    struct FloatCollector {
        path: Vec<String>,
        found: Vec<(String, Vec<f32>)>,
    }
    impl ModuleVisitor for FloatCollector {
        fn enter_module(&mut self, name: &str, _container_type: &str) {
            self.path.push(name.to_owned());
        }
        fn exit_module(&mut self, _name: &str, _container_type: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.found.push((self.path.join("."), values(param.val())));
        }
    }
    let mut collector = FloatCollector::default();
    model.visit(&mut collector);
    collector.found
}
