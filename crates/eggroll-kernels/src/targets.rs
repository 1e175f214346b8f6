//! The devices that sources are written for: what they report, and which of CubeCL's compilers they get.
//!
//! Properties match the reports of CubeCL's runtimes for such devices, as far as kernels and their launchers ask for them.

use cubecl::WgpuCompilationOptions;
use cubecl::cmma::MatrixLayout;
use cubecl::features::{Plane, Tma, TypeUsage};
use cubecl::ir::{
    AddressType, ContiguousElements, DeviceIdentity, DeviceProperties, ElemType, FloatKind, HardwareProperties,
    IntKind, MemoryDeviceProperties, MmaProperties, OpaqueType, TargetProperties, UIntKind,
};
use cubecl_common::profile::TimingMethod;
use cubecl_cpp::cuda::arch::CudaArchitecture;
use cubecl_cpp::cuda::mma::CudaCmmaCompiler;
use cubecl_cpp::cuda::mma::manual::contiguous_elements_cuda;
use cubecl_cpp::metal::arch::MetalArchitecture;
use cubecl_cpp::metal::supported_cmma_combinations_metal;
use cubecl_cpp::shared::{CompilationOptions, CppSupportedFeatures, register_mma_features, register_wmma_features};

/// The language of a target's sources, with what its compiler has to know.
#[derive(Clone, Copy, Debug)]
pub enum Language {
    /// CUDA C++, for NVRTC.
    Cuda(CompilationOptions),
    /// Apple's Metal, by CubeCL's compiler.
    Msl,
    /// Vulkan.
    SpirV(WgpuCompilationOptions),
    /// WebGPU.
    Wgsl(WgpuCompilationOptions),
}

impl Language {
    /// The name of CubeCL's runtime on such a device: launchers ask it which compiler there is.
    pub fn runtime(&self) -> &'static str {
        match self {
            Self::Cuda(_) => "cuda",
            Self::Msl => "wgpu<msl>",
            Self::SpirV(_) => "wgpu<spirv>",
            Self::Wgsl(_) => "wgpu<wgsl>",
        }
    }

    /// The suffix of a file.
    pub fn suffix(&self) -> &'static str {
        match self {
            Self::Cuda(_) => "cu",
            Self::Msl => "metal",
            Self::SpirV(_) => "spv",
            Self::Wgsl(_) => "wgsl",
        }
    }
}

/// A device that sources are written for.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name of the folder of its sources.
    pub name: &'static str,
    /// The language of its sources.
    pub language: Language,
    /// What the device reports.
    pub properties: DeviceProperties,
    /// What its tensor cores report.
    pub matrices: TargetProperties,
    /// Whether rows of tensors are padded in memory.
    pub pitched: bool,
}

/// All targets.
pub fn all() -> Vec<Target> {
    // Shared memory that a block may opt in to: A100, H100 and H200, RTX 5090.
    let cuda = [cuda("sm_80", 80, 163 << 10), cuda("sm_90", 90, 227 << 10), cuda("sm_120", 120, 99 << 10)];
    let others = [vulkan("vulkan", true), vulkan("vulkan-plain", false), metal()];
    let wgsl = [wgsl("wgsl", true), wgsl("wgsl-plain", false)];
    cuda.into_iter().chain(others).chain(wgsl).collect()
}

fn properties(name: &'static str, hardware: HardwareProperties, alignment: u64) -> DeviceProperties {
    const MEMORY: u64 = 16 << 30;
    let memory = MemoryDeviceProperties::new(MEMORY / 4, alignment).with_max_memory(MEMORY);
    let identity = DeviceIdentity { name: name.into(), fingerprint: name.into(), physical: None };
    let mut properties = DeviceProperties::new(Default::default(), memory, hardware, TimingMethod::System, identity);
    properties.register_address_type(AddressType::U32);
    for elem in [ElemType::Index, ElemType::Bool, ElemType::UInt(UIntKind::U32), ElemType::Int(IntKind::I32)] {
        properties.register_type_usage(elem, TypeUsage::all());
    }
    properties.register_type_usage(FloatKind::F32, TypeUsage::all());
    properties
}

fn hardware(planes: (u32, u32), units: u32, shared: usize, bindings: u32) -> HardwareProperties {
    HardwareProperties {
        load_width: 128,
        vector_register_count: None,
        plane_size_min: planes.0,
        plane_size_max: planes.1,
        max_bindings: bindings,
        max_shared_memory_size: shared,
        max_cube_count: (65_535, 65_535, 65_535),
        max_units_per_cube: units,
        max_cube_dim: (units, units, 64),
        num_streaming_multiprocessors: None,
        num_cpu_cores: None,
        last_level_cache_size: None,
        num_tensor_cores: None,
        min_tensor_cores_dim: None,
        max_vector_size: 4,
        cube_mma_reserved_shared_memory: 0,
    }
}

const WIDE: [ElemType; 2] = [ElemType::UInt(UIntKind::U64), ElemType::Int(IntKind::I64)];
const NARROW: [ElemType; 4] = [
    ElemType::UInt(UIntKind::U8),
    ElemType::UInt(UIntKind::U16),
    ElemType::Int(IntKind::I8),
    ElemType::Int(IntKind::I16),
];

fn cuda(name: &'static str, version: u32, shared: usize) -> Target {
    let mut hardware = hardware((32, 32), 1024, shared, 1024);
    hardware.max_cube_count.0 = i32::MAX as u32;
    hardware.num_streaming_multiprocessors = Some(132);
    hardware.num_tensor_cores = Some(4);
    hardware.min_tensor_cores_dim = Some(8);
    hardware.max_vector_size = 16;
    // The pitch of rows.
    let mut properties = properties(name, hardware, 512);
    cubecl_cpp::register_supported_types(&mut properties);
    properties.register_type_usage(FloatKind::TF32, TypeUsage::Conversion);
    let features = &mut properties.features;
    features.plane = Plane::Ops | Plane::Sync | Plane::NonUniformControlFlow;
    (features.alignment, features.memory_reinterpret) = (true, true);
    (features.copy_async, features.device_memory_scope) = (true, true);
    let half = [FloatKind::F16, FloatKind::BF16].map(ElemType::Float);
    features.matmul.ldmatrix.extend(half);
    properties.register_opaque_type(OpaqueType::Barrier);
    let hopper = version >= 90;
    if hopper {
        properties.features.tma.insert(Tma::Base);
        properties.features.cube_cluster = true;
        properties.features.matmul.stmatrix.extend(half);
        properties.register_opaque_type(OpaqueType::TensorMap);
    }
    let architecture = CudaArchitecture { version, tensor_cores: true };
    register_wmma_features(CudaCmmaCompiler::Cpp.supported_cmma_combinations(&architecture), &mut properties);
    register_mma_features(cubecl_cpp::cuda::supported_mma_combinations(&architecture), &mut properties);
    let supports_features = CppSupportedFeatures {
        grid_constants: true,
        clusters: hopper,
        fast_math: true,
        fast_tanh: true,
        elect_sync: hopper,
        dp4a: true,
    };
    let language = Language::Cuda(CompilationOptions { supports_features, ..Default::default() });
    let mma = MmaProperties {
        register_size_bits: 32,
        const_plane_size: 32,
        register_layout_a: MatrixLayout::RowMajor,
        register_layout_b: MatrixLayout::ColMajor,
        register_layout_acc: MatrixLayout::RowMajor,
        register_duplication_a: 1,
        register_duplication_b: 1,
        register_duplication_acc: 1,
        contiguous_elements: ContiguousElements::new(contiguous_elements_cuda),
    };
    Target { name, language, properties, matrices: TargetProperties { mma }, pitched: true }
}

/// Vulkan 1.3 of a present GPU, or 1.2 with planes of no fixed size and nothing optional.
fn vulkan(name: &'static str, present: bool) -> Target {
    let planes = if present { (32, 32) } else { (8, 64) };
    let mut properties = properties(name, hardware(planes, 1024, 48 << 10, 32), 64);
    let mut options = WgpuCompilationOptions { supports_vulkan_compiler: true, ..Default::default() };
    options.vulkan.max_spirv_version = (1, if present { 6 } else { 5 });
    options.vulkan.max_vector_size = 4;
    options.vulkan.push_constant_size = 256;
    options.vulkan.supports_uniform_standard_layout = true;
    // Without VK_KHR_workgroup_memory_explicit_layout CubeCL 0.11.3 writes access chains to shared memory that spirv-val refuses, Burn's
    // products among them.
    options.vulkan.supports_explicit_smem = true;
    properties.features.device_memory_scope = true;
    properties.features.plane.insert(Plane::Sync);
    properties.features.plane.insert(Plane::NonUniformControlFlow);
    if present {
        properties.features.plane.insert(Plane::Ops);
        options.supports_u64 = true;
        options.vulkan.supports_dp4a = true;
        for elem in WIDE.into_iter().chain(NARROW).chain([ElemType::Float(FloatKind::F16)]) {
            properties.register_type_usage(elem, TypeUsage::all());
        }
        properties.register_type_usage(FloatKind::BF16, TypeUsage::Conversion | TypeUsage::Buffer);
    }
    Target { name, language: Language::SpirV(options), properties, matrices: Default::default(), pitched: false }
}

fn metal() -> Target {
    let mut properties = properties("metal", hardware((32, 32), 1024, 32 << 10, 30), 256);
    properties.register_address_type(AddressType::U64);
    let half = [FloatKind::F16, FloatKind::BF16].map(ElemType::Float);
    for elem in WIDE.into_iter().chain(NARROW).chain(half) {
        properties.register_type_usage(elem, TypeUsage::all());
    }
    properties.features.plane = Plane::Ops | Plane::Sync | Plane::NonUniformControlFlow;
    (properties.features.alignment, properties.features.device_memory_scope) = (true, true);
    register_wmma_features(supported_cmma_combinations_metal(&MetalArchitecture::Metal3), &mut properties);
    Target { name: "metal", language: Language::Msl, properties, matrices: Default::default(), pitched: false }
}

/// WebGPU of a present GPU, or with no planes, no f16 and the shared memory and units that the standard guarantees.
fn wgsl(name: &'static str, present: bool) -> Target {
    let (planes, units, shared) = if present { ((32, 32), 1024, 32 << 10) } else { ((8, 128), 256, 16 << 10) };
    let mut properties = properties(name, hardware(planes, units, shared, 30), 256);
    if present {
        properties.features.plane.insert(Plane::Ops);
        properties.register_type_usage(FloatKind::F16, TypeUsage::all());
    }
    let language = Language::Wgsl(WgpuCompilationOptions::default());
    Target { name, language, properties, matrices: Default::default(), pitched: false }
}
