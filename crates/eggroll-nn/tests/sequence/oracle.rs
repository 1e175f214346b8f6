//! A model as one member sees it, its parameters formed by the f64 oracle, and comparisons with it.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::store::ModuleRecord;
use burn::tensor::{Device, Tensor};
use eggroll_core::scope::Perturbation;
use eggroll_core::{
    EggrollConfig, NoiseDistribution, Noiser, NoiserConfig, OpenEsConfig, PairRange, ParameterTable, Role, reference,
};
use std::ops::Range;
use std::sync::Arc;

/// Members 4 to 9.
pub const PAIRS: PairRange = PairRange { first: 2, count: 3 };

/// What off by this much still counts as equal: several steps of f32, on devices with fast `exp` and `tanh`.
const TOLERANCE: f32 = 5e-4;

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

/// The devices that this build has.
#[cfg_attr(feature = "ndarray", expect(deprecated, reason = "Burn deprecates the backend; users still ask for it"))]
pub fn devices() -> Vec<Device> {
    Vec::from([
        Device::flex(),
        #[cfg(feature = "ndarray")]
        Device::ndarray(),
        #[cfg(feature = "wgpu")]
        Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
    ])
}

/// Values in (−1, 1) that look like nothing in particular.
pub fn wave<const D: usize>(shape: [usize; D], phase: f32, device: &Device) -> Tensor<D> {
    let count = shape.iter().product::<usize>();
    let values: Vec<f32> = (0..count).map(|i| ((i as f32 + phase) * 12.9898).sin()).collect();
    Tensor::<1>::from_floats(&values[..], device).reshape(shape)
}

/// Low-rank and dense, normal and signs.
pub fn noisers() -> [NoiserConfig; 3] {
    [
        EggrollConfig::new().with_rank(2).into(),
        OpenEsConfig::new().into(),
        EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher).into(),
    ]
}

pub fn perturbation<M: Module>(model: &M, noiser: NoiserConfig, frozen: &[&str]) -> Perturbation {
    let noiser: Arc<dyn Noiser> = noiser.init().expect("valid");
    let frozen: Vec<String> = frozen.iter().map(|name| name.to_string()).collect();
    let table = ParameterTable::new(model, noiser.as_ref(), &frozen).expect("valid");
    Perturbation { noiser, table: Arc::new(table), seed: 9, generation: 4, sigma: 0.25, held: Arc::default() }
}

/// Compares `forward` inside the scope with the plain `forward` of each member's explicit model on the member's rows.
///
/// `forward` takes the range of rows to read, of `members · rows` rows. What is compared must not hold for the other member
/// of the pair, nor without the noise.
pub fn check_members<M: Module, const D: usize>(
    model: &M,
    (noiser, frozen): (NoiserConfig, &[&str]),
    rows: usize,
    forward: impl Fn(&M, Range<usize>) -> Tensor<D>,
) {
    let scope = perturbation(model, noiser, frozen);
    let members = PAIRS.members();
    let (found, used) = scope.run(PAIRS, || forward(model, 0..members * rows));
    let unused = used.uses.iter().zip(scope.table.entries()).find(|(used, _)| !used.is_used());
    assert!(unused.is_none(), "never perturbed: {}", unused.map_or("", |(_, entry)| entry.path.as_str()));
    let plain = forward(model, 0..members * rows);
    for member in 0..members {
        let own = member * rows..(member + 1) * rows;
        let expected = forward(&explicit(model, &scope, member), own.clone());
        let off = largest_difference(found.clone().slice_dim(0, own.clone()), expected.clone());
        assert!(off < TOLERANCE, "member {member}: {off}");
        let other = forward(&explicit(model, &scope, member ^ 1), own.clone());
        for (canary, name) in [(other, "other member"), (plain.clone().slice_dim(0, own), "plain")] {
            let off = largest_difference(canary, expected.clone());
            assert!(off > 10.0 * TOLERANCE, "canary, member {member}, {name}: {off}");
        }
    }
}

pub fn largest_difference<const D: usize>(found: Tensor<D>, expected: Tensor<D>) -> f32 {
    assert_eq!(found.dims(), expected.dims());
    values(found).iter().zip(values(expected)).map(|(found, expected)| (found - expected).abs()).fold(0.0, f32::max)
}

/// The model as `member` of [`PAIRS`] sees it.
fn explicit<M: Module>(model: &M, scope: &Perturbation, member: usize) -> M {
    let pair = PAIRS.first + (member / 2) as u32;
    let sign = if member.is_multiple_of(2) { 1.0 } else { -1.0 };
    model.clone().map(&mut Explicit { scope, pair, sign })
}

struct Explicit<'a> {
    scope: &'a Perturbation,
    pair: u32,
    sign: f64,
}

impl ModuleMapper for Explicit<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let position = self.scope.table.position(param.id).expect("a parameter of the model");
        let noise = self.scope.parameter(position);
        let (value, shape) = (param.val(), param.dims());
        let (drawn, scale) = match noise.role {
            Role::Frozen => return Param::from_tensor(value),
            Role::Dense => (reference::dense_noise(noise.key, self.pair, shape.iter().product()), 1.0),
            Role::Sparse => (reference::sparse_noise(noise.key, self.pair, [shape[0], shape[1]]), 1.0),
            Role::LowRank { rank } => {
                let drawn = reference::low_rank_noise(noise.key, self.pair, rank, [shape[0], shape[1]]);
                (drawn, (rank as f64).sqrt())
            }
        };
        let shift: Vec<f32> = drawn.iter().map(|e| (self.sign * self.scope.sigma / scale * e) as f32).collect();
        Param::from_tensor(value.clone() + Tensor::<1>::from_floats(&shift[..], &value.device()).reshape(shape))
    }
}

/// All parameters, in traversal order.
pub fn parameters<M: Module>(model: &M) -> Vec<(String, Vec<f32>)> {
    #[derive(Default)]
    struct Collector {
        path: Vec<String>,
        found: Vec<(String, Vec<f32>)>,
    }
    impl ModuleVisitor for Collector {
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
    let mut collector = Collector::default();
    model.visit(&mut collector);
    collector.found
}

/// The model with other values in every parameter, those of a fresh layer norm too.
pub fn scramble<M: Module>(model: M, phase: f32) -> M {
    struct Scramble(f32);
    impl ModuleMapper for Scramble {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            self.0 += 1.0;
            let value = param.val();
            let shift = wave(value.dims(), self.0, &value.device()) * 0.4;
            param.map(|value| value * 0.7 + shift)
        }
    }
    model.map(&mut Scramble(phase))
}

/// Records of Burn's module load into the twin and back; display and parameters are the same.
pub fn check_records<B, T>(burn_module: B, other: B)
where
    B: Module + From<T> + std::fmt::Display,
    T: Module + From<B> + std::fmt::Display,
{
    let burn_module = scramble(burn_module, 3.0);
    let expected = parameters(&burn_module);
    assert_ne!(parameters(&other), expected, "canary");
    let bytes = burn_module.clone().into_record().into_bytes().expect("writes");
    let twin = T::from(other.clone()).load_record(ModuleRecord::from_bytes(bytes).expect("reads"));
    assert_eq!(parameters(&twin), expected);
    assert_eq!(format!("{twin}"), format!("{burn_module}"));
    assert_eq!(parameters(&B::from(twin.clone())), expected);
    let bytes = twin.into_record().into_bytes().expect("writes");
    let back = other.load_record(ModuleRecord::from_bytes(bytes).expect("reads"));
    assert_eq!(parameters(&back), expected);
}
