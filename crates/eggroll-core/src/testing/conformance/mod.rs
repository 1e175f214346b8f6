//! One conformance suite over every implementation present: portable defaults and kernels, against the f64 oracle.
//!
//! [`implementations`] lists what runs; each operation has a file. Kernels run on the detected instruction set, and reduce as the
//! device does best. [`other_instruction_sets`] and [`other_reductions`] repeat the suite in child processes for the others.
//! `EGGROLL_CONFORMANCE=ndarray,wgpu` runs these implementations only: a second build with other features need not repeat what a
//! first one has tested.

mod baseline;
mod cross_entropy;
mod estimate;
mod half;
mod integer;
mod linear;
mod linear_groups;
mod part_estimate;
mod patches;
mod perturbed_embedding;
#[cfg(feature = "flex")]
mod refused;
mod row_projection;
mod rows;
mod source;
mod sparse;
mod vector;

use crate::ops::{
    self, DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, MatrixNoise, NoiseSource, PairRange, Window,
    portable,
};
use crate::rng::NoiseDistribution;
use crate::rng::key::NoiseKey;
use crate::simd::{InstructionSet, VARIABLE};
use burn::backend::Dispatch;
#[cfg(feature = "wgpu")]
use burn::tensor::DeviceKind;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// Largest distance from the oracle, relative to the size of the sum that an element is. f32 rounds to 6e-8, and an
/// error of the Gaussian values enters every term.
const TOLERANCE: f64 = 4e-6;

/// Every distribution that noise may have.
const DISTRIBUTIONS: [NoiseDistribution; 2] = [NoiseDistribution::Normal, NoiseDistribution::Rademacher];
/// How many times [`TOLERANCE`] a product may be off on tensor cores. For f32 they round factors to TF32, by 2⁻¹¹, unless
/// `EGGROLL_DEVICE_F32=f32` leaves them out.
#[cfg(feature = "cuda")]
const TENSOR_CORES: f64 = 128.0;

/// Names of the implementations to test, separated by commas; all if it is not set.
const CHOICE: &str = "EGGROLL_CONFORMANCE";

/// Set where every implementation is to take every case: scripts/thorough.
const ALL_CASES: &str = "EGGROLL_CONFORMANCE_ALL_CASES";

/// Whether the implementation of that name is to be tested.
fn is_chosen(name: &str) -> bool {
    std::env::var(CHOICE).map_or(true, |chosen| chosen.split(',').any(|choice| choice == name))
}

/// One way to compute the operations.
struct Implementation {
    name: &'static str,
    device: Device,
    portable: bool,
    /// How many times [`TOLERANCE`] the product `x·W` may be off.
    product_slack: f64,
    /// Whether a row's product is the same, bit for bit, in products of every size. On a GPU the kernel is chosen by size.
    same_products: bool,
}

impl Implementation {
    const fn new(name: &'static str, device: Device) -> Self {
        Self { name, device, portable: false, product_slack: 1.0, same_products: true }
    }
}

/// The CPU, whatever is to be tested: only there are values of indices looked at before they are used.
#[cfg(feature = "flex")]
fn host() -> Implementation {
    Implementation::new("flex", Device::flex())
}

fn implementations() -> Vec<Implementation> {
    let mut all = Vec::new();
    #[cfg(feature = "flex")]
    {
        all.push(Implementation::new("flex", Device::flex()));
        all.push(Implementation { portable: true, ..Implementation::new("flex, portable", Device::flex()) });
    }
    #[cfg(feature = "ndarray")]
    all.push(Implementation::new("ndarray", Device::ndarray()));
    // Instruction sets are the processor's: a child process that tests another one leaves devices out.
    #[cfg(feature = "cube")]
    if std::env::var_os(VARIABLE).is_none() {
        all.extend(devices());
    }
    all.retain(|implementation| is_chosen(implementation.name));
    assert!(!all.is_empty(), "no implementation to test");
    all
}

/// The implementations that take a case of this index. All take every case, but WebGPU takes `some` cases only, which differ in their way through kernels. A
/// software driver compiles for seconds for each shape. [`ALL_CASES`] has it take all.
fn implementations_of(index: usize, some: &[usize]) -> Vec<Implementation> {
    let takes_all = std::env::var_os(ALL_CASES).is_some() || some.contains(&index);
    implementations().into_iter().filter(|on| takes_all || on.name != "wgpu").collect()
}

/// Devices that run CubeCL kernels.
#[cfg(feature = "cube")]
fn devices() -> Vec<Implementation> {
    #[cfg(any(feature = "cuda", feature = "rocm", feature = "vulkan", feature = "metal"))]
    let hardware = |name, device| Implementation { same_products: false, ..Implementation::new(name, device) };
    vec![
        #[cfg(feature = "cuda")]
        Implementation { product_slack: TENSOR_CORES, ..hardware("cuda", Device::cuda(0)) },
        #[cfg(feature = "rocm")]
        hardware("rocm", Device::rocm(0)),
        #[cfg(feature = "vulkan")]
        hardware("vulkan", Device::vulkan(DeviceKind::DefaultDevice)),
        #[cfg(feature = "metal")]
        hardware("metal", Device::metal(DeviceKind::DefaultDevice)),
        #[cfg(all(feature = "wgpu", not(any(feature = "vulkan", feature = "metal"))))]
        Implementation::new("wgpu", Device::wgpu(DeviceKind::DefaultDevice)),
    ]
}

impl Implementation {
    /// Largest distance of a result that contains a product `x·W`, in units of what is allowed.
    fn distance(&self, found: &[f32], expected: &[f64], terms: usize) -> f64 {
        distance(found, expected, terms) / self.product_slack
    }

    /// Whether two results are the same: bit for bit, or within rounding where products of other sizes round otherwise.
    fn same(&self, a: &[f32], b: &[f32], terms: usize) -> bool {
        let wide: Vec<f64> = b.iter().copied().map(f64::from).collect();
        if self.same_products { a == b } else { self.distance(a, &wide, terms) < 1.0 }
    }

    fn tensor<const D: usize>(&self, values: &[f64], shape: [usize; D]) -> Tensor<D> {
        let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        Tensor::from_data(TensorData::new(values, shape), &self.device)
    }

    fn low_rank_linear(
        &self,
        x: Tensor<2>,
        w: Tensor<2>,
        bias: LinearBias,
        noise: LowRankNoise,
        source: NoiseSource,
        members: LinearMembers,
    ) -> Tensor<2> {
        if !self.portable {
            return ops::low_rank_linear(x, w, bias, noise, source, members);
        }
        let (x, w, source) = (x.into_dispatch(), w.into_dispatch(), source.into_primitive());
        Tensor::from_dispatch(portable::low_rank_linear::<Dispatch>(
            x,
            w,
            bias.into_primitive(),
            noise,
            source,
            members,
        ))
    }

    fn dense_linear(
        &self,
        x: Tensor<2>,
        w: Tensor<2>,
        bias: LinearBias,
        noise: DenseNoise,
        source: NoiseSource,
        members: LinearMembers,
    ) -> Tensor<2> {
        if !self.portable {
            return ops::dense_linear(x, w, bias, noise, source, members);
        }
        let (x, w, source) = (x.into_dispatch(), w.into_dispatch(), source.into_primitive());
        Tensor::from_dispatch(portable::dense_linear::<Dispatch>(x, w, bias.into_primitive(), noise, source, members))
    }

    fn perturbed_embedding(
        &self,
        weight: Tensor<2>,
        indices: Tensor<1, Int>,
        noise: MatrixNoise,
        source: NoiseSource,
        members: LinearMembers,
    ) -> Tensor<2> {
        if !self.portable {
            return ops::perturbed_embedding(weight, indices, noise, source, members);
        }
        let (weight, indices, source) = (weight.into_dispatch(), indices.into_dispatch(), source.into_primitive());
        Tensor::from_dispatch(portable::perturbed_embedding::<Dispatch>(weight, indices, noise, source, members))
    }

    fn patches(&self, images: Tensor<4>, window: Window, input: InputRows) -> Tensor<2> {
        if !self.portable {
            return ops::patches(images, window, input);
        }
        Tensor::from_dispatch(portable::patches::<Dispatch>(images.into_dispatch(), window))
    }

    fn perturbed_vector(
        &self,
        vector: Tensor<1>,
        noise: DenseNoise,
        source: NoiseSource,
        pairs: PairRange,
    ) -> Tensor<2> {
        if !self.portable {
            return ops::perturbed_vector(vector, noise, source, pairs);
        }
        Tensor::from_dispatch(portable::perturbed_vector::<Dispatch>(
            vector.into_dispatch(),
            noise,
            source.into_primitive(),
            pairs,
        ))
    }

    fn low_rank_estimate(
        &self,
        weights: Tensor<1>,
        noise: LowRankNoise,
        source: NoiseSource,
        first: u32,
        shape: [usize; 2],
    ) -> Tensor<2> {
        let dtype = weights.dtype();
        if !self.portable {
            return ops::low_rank_estimate(weights, noise, source, first, shape, dtype);
        }
        Tensor::from_dispatch(portable::low_rank_estimate::<Dispatch>(
            weights.into_dispatch(),
            noise,
            source.into_primitive(),
            first,
            shape,
            dtype,
        ))
    }

    fn dense_estimate(
        &self,
        weights: Tensor<1>,
        noise: DenseNoise,
        source: NoiseSource,
        first: u32,
        elements: usize,
    ) -> Tensor<1> {
        let dtype = weights.dtype();
        if !self.portable {
            return ops::dense_estimate(weights, noise, source, first, elements, dtype);
        }
        Tensor::from_dispatch(portable::dense_estimate::<Dispatch>(
            weights.into_dispatch(),
            noise,
            source.into_primitive(),
            first,
            elements,
            dtype,
        ))
    }

    fn noise(&self, key: NoiseKey, pairs: PairRange, elements: usize) -> Tensor<2> {
        if !self.portable {
            return ops::noise(key, pairs, elements, &self.device, DType::F32);
        }
        let like = Tensor::<1>::empty([1], &self.device).into_dispatch();
        Tensor::from_dispatch(portable::noise::<Dispatch>(key, pairs, elements, &like))
    }

    fn row_projection(&self, gradient: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        if !self.portable {
            return ops::row_projection(gradient, x);
        }
        Tensor::from_dispatch(portable::row_projection::<Dispatch>(gradient.into_dispatch(), x.into_dispatch()))
    }

    fn member_cross_entropy(&self, logits: Tensor<2>, targets: Tensor<1, Int>, members: usize) -> Tensor<1> {
        if !self.portable {
            return ops::member_cross_entropy(logits, targets, members);
        }
        let (logits, targets) = (logits.into_dispatch(), targets.into_dispatch());
        Tensor::from_dispatch(portable::member_cross_entropy::<Dispatch>(logits, targets, members))
    }

    fn row_cross_entropy(&self, logits: Tensor<2>, targets: Tensor<1, Int>, members: usize) -> Tensor<2> {
        if !self.portable {
            return ops::row_cross_entropy(logits, targets, members);
        }
        let (logits, targets) = (logits.into_dispatch(), targets.into_dispatch());
        Tensor::from_dispatch(portable::row_cross_entropy::<Dispatch>(logits, targets, members))
    }
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("an f32 tensor")
}

/// Deterministic inputs in `[−1, 1)`, exact in f32.
fn inputs(len: usize, salt: u32) -> Vec<f64> {
    let word = |i| crate::rng::philox::philox4x32([i, salt, 0, u32::MAX], [0; 2])[0];
    (0..len as u32).map(|i| f64::from(word(i) >> 8) / f64::from(1u32 << 23) - 1.0).collect()
}

/// Largest distance of `found` from `expected` in units of what [`TOLERANCE`] allows for `terms` terms.
fn distance(found: &[f32], expected: &[f64], terms: usize) -> f64 {
    assert_eq!(found.len(), expected.len(), "length");
    let allowed = |expected: f64| TOLERANCE * (expected.abs() + (terms as f64).sqrt() + 1.0);
    let distance = |(found, expected): (&f32, &f64)| (f64::from(*found) - expected).abs() / allowed(*expected);
    found.iter().zip(expected).map(distance).fold(0.0, f64::max)
}

#[test]
fn other_instruction_sets() {
    // The CPU backends share their kernels.
    if std::env::var_os(VARIABLE).is_some() || !is_chosen("flex") {
        return;
    }
    let sets = InstructionSet::available();
    let preferred = sets.last().expect("portable is always there").of_floats();
    for set in &sets[..sets.len() - 1] {
        // Where only the integer kernels are others, the float ones have been tested.
        let suite = if set.of_floats() == preferred { "conformance::integer" } else { "conformance" };
        let run = crate::testing::this_binary()
            .args([suite, "--test-threads", "2"])
            .env(VARIABLE, set.name())
            .output()
            .expect("the test binary runs");
        let output = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{set:?}:\n{output}");
        assert!(!output.contains("running 0 tests"), "{set:?} ran nothing");
    }
}

/// Reductions by planes where the device reports none but has them, as software drivers do, and through shared memory where it
/// would use planes.
#[cfg(feature = "cube")]
#[test]
fn other_reductions() {
    use crate::backend::cube::device::{REDUCTIONS, fixed_plane_size, plane_size, tested};
    if std::env::var_os(REDUCTIONS).is_some() || std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let client = tested().client();
    let hardware = &client.properties().hardware;
    if fixed_plane_size(hardware) == 0 {
        println!(
            "planes of {} to {} units: nothing but shared memory to test",
            hardware.plane_size_min, hardware.plane_size_max
        );
        return;
    }
    let other = if plane_size(&client) == 0 { "planes" } else { "shared" };
    let suites = ["linear::equals", "linear::chunks", "linear_groups::equals", "cross_entropy::", "row_projection::"];
    let run = crate::testing::this_binary()
        .args(suites.map(|suite| format!("conformance::{suite}")))
        .env(REDUCTIONS, other)
        .output()
        .expect("the test binary runs");
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{other}:\n{output}");
    assert!(!output.contains("running 0 tests"), "{other} ran nothing");
}
