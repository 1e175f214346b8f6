//! Devices, noisers, and models with the weights of one member.

use burn::module::{Module, ModuleMapper, Param};
use burn::store::ModuleRecord;
use burn::tensor::{DType, Device, Tensor, TensorData};
use eggroll_core::scope::{Perturbation, ScopeUse, Use};
use eggroll_core::{
    EggrollConfig, MatrixView, NoiseDistribution, NoiseSourceConfig, NoiserConfig, OpenEsConfig, PairRange, SparseConfig,
    ParameterTable, Role,
};
use std::sync::Arc;

/// The members of all tests: neither the first pairs, nor as many as anything else.
pub const PAIRS: PairRange = PairRange { first: 2, count: 3 };
pub const MEMBERS: usize = 6;

/// Every device that can be tested.
pub fn devices() -> Vec<Device> {
    vec![
        #[cfg(feature = "flex")]
        Device::flex(),
        #[cfg(feature = "ndarray")]
        ndarray(),
        #[cfg(all(feature = "wgpu", not(any(feature = "vulkan", feature = "metal"))))]
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
        SparseConfig::new().into(),
        EggrollConfig::new().with_rank(3).into(),
        OpenEsConfig::new().into(),
        EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher).into(),
        OpenEsConfig::new().with_distribution(NoiseDistribution::Rademacher).into(),
    ]
}

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

/// Values in `[−1, 1)` that look random, the same on every device.
pub fn inputs<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    let count = shape.iter().product::<usize>() as u32;
    let word = |i| eggroll_core::rng::philox::philox4x32([i, 0, 0, u32::MAX], [3; 2])[0];
    let values: Vec<f32> = (0..count).map(|i| (word(i) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect();
    Tensor::from_data(TensorData::new(values, shape), (device, DType::F32))
}

pub fn perturbation(model: &impl Module, noiser: &NoiserConfig, frozen: &[&str]) -> Perturbation {
    let noiser = noiser.init().expect("valid");
    let frozen: Vec<String> = frozen.iter().map(|name| name.to_string()).collect();
    let table = ParameterTable::new(model, noiser.as_ref(), &frozen).expect("valid");
    Perturbation { noiser, table: Arc::new(table), seed: 9, generation: 4, sigma: 0.25, held: Arc::default() }
}

/// The same with noise that is held.
pub fn held(scope: &Perturbation, source: NoiseSourceConfig) -> Perturbation {
    let held = source.hold(&scope.table, scope.seed, scope.generation, PAIRS.first + PAIRS.count, None);
    Perturbation { held: Arc::new(held), ..scope.clone() }
}

/// The model with the weights that `member` sees.
pub fn explicit<M: Module>(model: &M, scope: &Perturbation, member: usize) -> M {
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
        let Some(position) = self.scope.table.position(param.id) else {
            return param;
        };
        let noise = self.scope.parameter(position);
        if noise.role == Role::Frozen {
            return param;
        }
        let (device, shape) = (param.val().device(), param.dims());
        let flat = self.scope.noiser.noise(noise, self.pair, &shape, (&device, DType::F32));
        let drawn = match MatrixView::of(&shape) {
            Some(view) => view.restore(flat.reshape([view.d_input, view.d_output]), shape),
            None => flat.reshape(shape),
        };
        param.map(|value| value + drawn * self.sign)
    }
}

/// Checks what members compute together against what explicit weights compute member by member.
///
/// `together` runs in the scope; `alone` gets the member and the model with its weights. With `frozen` nothing may differ between
/// members; otherwise the neighbour's output is the canary.
pub fn assert_members<M: Module, const D: usize>(
    what: &str,
    model: &M,
    scope: &Perturbation,
    together: impl Fn() -> Tensor<D>,
    alone: impl Fn(usize, M) -> Tensor<D>,
) -> ScopeUse {
    let (all, used) = scope.run(PAIRS, &together);
    let dims = all.dims();
    let found = values(all);
    assert!(used.output_bytes >= 4, "{what}: {} bytes", used.output_bytes);
    for (entry, used) in scope.table.entries().iter().zip(&used.uses) {
        assert!(used.is_used(), "{what}: {} is not used", entry.path);
    }
    let perturbed = scope.table.entries().iter().any(|entry| entry.role != Role::Frozen);
    let outputs: Vec<Vec<f32>> = (0..MEMBERS)
        .map(|member| {
            let expected = alone(member, explicit(model, scope, member));
            assert_eq!(expected.dims()[0] * MEMBERS, dims[0], "{what}: {dims:?}");
            assert_eq!(expected.dims()[1..], dims[1..], "{what}");
            values(expected)
        })
        .collect();
    for (member, (found, expected)) in found.chunks(found.len() / MEMBERS).zip(&outputs).enumerate() {
        assert!(distance(found, expected) < 1.0, "{what}, member {member}: {}", distance(found, expected));
        let neighbour = &outputs[(member + 1) % MEMBERS];
        assert!(!perturbed || distance(found, neighbour) > 100.0, "canary: {what}, member {member}");
    }
    used
}

/// Largest distance in units of the tolerance: 2e-5 of what is added up.
pub fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let one = |(found, expected): (&f32, &f32)| (found - expected).abs() / (2e-5 * (1.0 + expected.abs()));
    found.iter().zip(expected).map(one).fold(0.0, f32::max)
}

/// The input rows of one member.
pub fn rows_of<const D: usize>(x: &Tensor<D>, member: usize) -> Tensor<D> {
    let rows = x.dims()[0] / MEMBERS;
    x.clone().slice_dim(0, member * rows..(member + 1) * rows)
}

/// Records of twin and original move both ways.
pub fn assert_records_move<A: Module, B: Module>(
    twin: A,
    original: B,
    parameters: (impl Fn(&A) -> Vec<f32>, impl Fn(&B) -> Vec<f32>),
) {
    let (of_twin, of_original) = parameters;
    assert_ne!(of_twin(&twin), of_original(&original), "canary: equal before");
    let bytes = original.clone().into_record().into_bytes().expect("writes");
    let loaded = twin.clone().load_record(ModuleRecord::from_bytes(bytes).expect("reads"));
    assert_eq!(of_twin(&loaded), of_original(&original));
    let expected = of_twin(&twin);
    let bytes = twin.into_record().into_bytes().expect("writes");
    let back = original.load_record(ModuleRecord::from_bytes(bytes).expect("reads"));
    assert_eq!(of_original(&back), expected);
}

/// A parameter was used once, on shared rows.
pub fn is_shared(used: &Use) -> bool {
    matches!(used, Use::Shared(_))
}
