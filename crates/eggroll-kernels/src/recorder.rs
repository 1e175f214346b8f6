//! A device that compiles kernels and runs none.

use crate::targets::{Language, Target};
use cubecl::client::Client;
use cubecl::wgpu::WgslCompiler;
use cubecl_common::bytes::Bytes;
use cubecl_common::device::{DeviceId, DeviceService, ServerUtilitiesHandle, ServiceId};
use cubecl_common::profile::ProfileDuration;
use cubecl_cpp::MslCompiler;
use cubecl_cpp::shared::CppCompiler;
use cubecl_environment::backtrace::BackTrace;
use cubecl_environment::future::DynFut;
use cubecl_environment::stream::StreamId;
use cubecl_server::allocator::{ContiguousMemoryLayoutPolicy, PitchedMemoryLayoutPolicy};
use cubecl_server::compiler::Compiler;
use cubecl_server::dry_run::LaunchMode;
use cubecl_server::id::KernelId;
use cubecl_server::kernel::{BufferIOAttr, CompiledKernel, CubeKernel, KernelDefinition, define_kernel};
use cubecl_server::logging::ServerLogger;
use cubecl_server::memory_management::{ManagedMemoryHandle, MemoryAllocationMode, StreamMemoryReport};
use cubecl_server::server::{
    BufferBinding, CopyDescriptor, CubeCount, IoError, KernelArguments, KernelResource, ProfileError, ProfilingToken,
    Server, ServerCommunication, ServerError, ServerStorage, ServerUtilities,
};
use cubecl_server::storage::{ComputeStorage, ManagedResource, StorageHandle, StorageId};
use cubecl_server::validation::{validate_cube_dim, validate_units};
use cubecl_spirv::SpirvCompiler;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// What became of a kernel.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The path of the kernel in Rust.
    pub path: &'static str,
    /// Everything that was fixed when it was compiled.
    pub variant: String,
    /// Units of a cube.
    pub units: u32,
    /// The source, or why there is none.
    pub source: Result<KernelSource, String>,
}

/// One launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The path of the kernel in Rust.
    pub path: &'static str,
    /// Cubes that were launched.
    pub cubes: u64,
    /// Bytes of the buffers that the kernel reads, as its compiler found.
    pub read: u64,
    /// Bytes of the buffers that it writes.
    pub written: u64,
}

/// All that a device was asked for.
#[derive(Debug, Default)]
pub struct Recording {
    /// The kernels, each once.
    pub kernels: Vec<Recorded>,
    /// The launches in their order.
    pub launches: Vec<Launch>,
}

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct KernelSource {
    /// Name of the kernel's entry point.
    pub entry: String,
    /// Text, or the words of SPIR-V.
    pub code: Vec<u8>,
    /// Bytes of shared memory, where the launch asks for them.
    pub shared_bytes: usize,
    /// What becomes of the buffers, if the compiler says so.
    io: Option<Vec<BufferIOAttr>>,
}

/// A device of CubeCL that keeps the source of every kernel launched on it.
#[derive(Debug)]
pub struct Recorder {
    target: Target,
    utilities: Arc<ServerUtilities>,
    /// Kernels that are compiled already, and what becomes of their buffers.
    seen: HashMap<KernelId, Option<Vec<BufferIOAttr>>>,
    recording: Arc<Mutex<Recording>>,
}

impl Recorder {
    /// A client of a new device that stands for `target`, number `index` of this process, and where its kernels and launches will be found.
    pub fn start(target: Target, index: u16) -> (Client, Arc<Mutex<Recording>>) {
        let device = DeviceId { type_id: 0, index_id: index };
        let (name, alignment) = (target.language.runtime(), target.properties.memory.alignment as usize);
        let (properties, matrices) = (target.properties.clone(), target.matrices.clone());
        let (service, logger) = (ServiceId::of::<Self>(device), Arc::new(ServerLogger::default()));
        let (utilities, _) = if target.pitched {
            let policy = PitchedMemoryLayoutPolicy::new(alignment);
            ServerUtilities::init(service, name, properties, matrices, logger, policy)
        } else {
            let policy = ContiguousMemoryLayoutPolicy::new(alignment);
            ServerUtilities::init(service, name, properties, matrices, logger, policy)
        };
        let recording = Arc::<Mutex<Recording>>::default();
        let recorder =
            Self { target, utilities: Arc::new(utilities), seen: HashMap::new(), recording: recording.clone() };
        let client = Client::try_init(device, recorder).expect("an index that no other device of this process has");
        (client, recording)
    }

    fn source(&self, kernel: &dyn CubeKernel, id: &KernelId) -> Result<KernelSource, String> {
        validate_cube_dim(&self.target.properties, id).map_err(|error| error.to_string())?;
        validate_units(&self.target.properties, id).map_err(|error| error.to_string())?;
        let definition = define_kernel(kernel).map_err(|error| error.to_string())?;
        let source = match &self.target.language {
            Language::Cuda(options) => {
                let mut compiler = CppCompiler::<cubecl_cpp::target::Cuda>::default();
                let (kernel, mut source) = compiled(kernel, definition, &mut compiler, options)?;
                source.shared_bytes = kernel.shared_memory_size;
                source
            }
            Language::Msl => {
                let mut compiler = MslCompiler::default();
                let (kernel, mut source) = compiled(kernel, definition, &mut compiler, &Default::default())?;
                source.shared_bytes = kernel.shared_memory_size;
                source
            }
            Language::SpirV(options) => {
                let (kernel, mut source) = compiled(kernel, definition, &mut SpirvCompiler, options)?;
                source.code = kernel.assembled_module.iter().flat_map(|word| word.to_le_bytes()).collect();
                source.shared_bytes = kernel.shared_size;
                source
            }
            Language::Wgsl(options) => compiled(kernel, definition, &mut WgslCompiler, options)?.1,
        };
        let most = self.target.properties.hardware.max_shared_memory_size;
        if source.shared_bytes > most {
            return Err(format!("{} bytes of shared memory, more than the {most} of the device", source.shared_bytes));
        }
        Ok(source)
    }
}

/// What a compiler makes of a kernel, and its text.
fn compiled<C: Compiler>(
    kernel: &dyn CubeKernel,
    definition: KernelDefinition,
    compiler: &mut C,
    options: &C::CompilationOptions,
) -> Result<(C::Representation, KernelSource), String> {
    let compiled = CompiledKernel::compile(kernel, definition, compiler, options).map_err(|error| error.to_string())?;
    let (entry, code) = (compiled.entrypoint_name, compiled.source.into_bytes());
    let source = KernelSource { entry, code, shared_bytes: 0, io: compiled.io };
    let representation = compiled.repr.ok_or("a kernel that is written in the target's language")?;
    Ok((representation, source))
}

impl DeviceService for Recorder {
    fn init(device: DeviceId) -> Self {
        panic!("no recorder was started as {device:?}: Recorder::start makes them");
    }

    fn utilities(&self) -> ServerUtilitiesHandle {
        self.utilities.clone()
    }
}

impl ServerCommunication for Recorder {}

/// Memory is described but never allocated: buffers of any size cost nothing.
impl Server for Recorder {
    fn initialize_memory(&mut self, _: ManagedMemoryHandle, _: u64, _: StreamId) -> Result<(), ServerError> {
        Ok(())
    }

    fn logger(&self) -> Arc<ServerLogger> {
        self.utilities.logger.clone()
    }

    fn utilities(&self) -> Arc<ServerUtilities> {
        self.utilities.clone()
    }

    fn read(&mut self, _: Vec<CopyDescriptor>, _: StreamId) -> DynFut<Result<Vec<Bytes>, ServerError>> {
        Box::pin(async { Err(nothing_is_computed()) })
    }

    fn write(&mut self, _: Vec<(CopyDescriptor, Bytes)>, _: StreamId) {}

    fn sync(&mut self, _: Vec<BufferBinding>, _: StreamId) -> DynFut<Result<(), ServerError>> {
        Box::pin(async { Ok(()) })
    }

    fn check(&mut self, _: Vec<BufferBinding>, _: StreamId) -> Result<(), ServerError> {
        Ok(())
    }

    unsafe fn launch(
        &mut self,
        kernel: Box<dyn CubeKernel>,
        cubes: CubeCount,
        arguments: KernelArguments,
        _: StreamId,
        _: LaunchMode,
    ) {
        let id = kernel.id();
        let mut recording = self.recording.lock().expect("no thread panicked with the list");
        if !self.seen.contains_key(&id) {
            let source = self.source(&*kernel, &id);
            self.seen.insert(id.clone(), source.as_ref().ok().and_then(|source| source.io.clone()));
            let units = id.cube_dim.num_elems();
            recording.kernels.push(Recorded { path: id.type_name(), variant: id.stable_format(), units, source });
        }
        recording.launches.push(launched(id.type_name(), &cubes, &arguments, self.seen[&id].as_deref()));
    }

    fn flush(&mut self, _: StreamId) -> Result<(), ServerError> {
        Ok(())
    }

    fn memory_report(&mut self, _: StreamId) -> Option<StreamMemoryReport> {
        None
    }

    fn memory_cleanup(&mut self, _: StreamId) -> Result<(), ServerError> {
        Ok(())
    }

    fn start_profile(&mut self, _: StreamId) -> Result<ProfilingToken, ServerError> {
        Err(nothing_is_computed())
    }

    fn end_profile(&mut self, _: StreamId, _: ProfilingToken) -> Result<ProfileDuration, ProfileError> {
        Err(ProfileError::NotRegistered { backtrace: BackTrace::capture() })
    }

    fn allocation_mode(&mut self, _: MemoryAllocationMode, _: StreamId) {}
}

impl ServerStorage for Recorder {
    type Storage = NoMemory;

    fn get_resource(&mut self, _: BufferBinding, _: StreamId) -> Result<ManagedResource<()>, ServerError> {
        Err(nothing_is_computed())
    }
}

fn launched(path: &'static str, cubes: &CubeCount, arguments: &KernelArguments, io: Option<&[BufferIOAttr]>) -> Launch {
    let cubes = match cubes {
        CubeCount::Static(x, y, z) => [x, y, z].map(|count| u64::from(*count)).iter().product(),
        CubeCount::Dynamic(_) => 0,
    };
    let mut launch = Launch { path, cubes, read: 0, written: 0 };
    for (index, resource) in arguments.resources.iter().enumerate() {
        let KernelResource::Buffer(buffer) = resource else { continue };
        let bytes = buffer.size - buffer.offset_start.unwrap_or(0) - buffer.offset_end.unwrap_or(0);
        let declared = arguments.declared_io.get(index);
        let becomes = io.and_then(|io| io.get(index)).or(declared).copied().unwrap_or(BufferIOAttr::ReadWrite);
        launch.read += if becomes.is_readable() { bytes } else { 0 };
        launch.written += if becomes.is_writable() { bytes } else { 0 };
    }
    launch
}

fn nothing_is_computed() -> ServerError {
    let reason = "a recorder computes nothing: there is nothing to read or to time".into();
    ServerError::Generic { reason, backtrace: BackTrace::capture() }
}

/// Storage of which nobody gets any.
pub struct NoMemory;

impl ComputeStorage for NoMemory {
    type Resource = ();

    fn alignment(&self) -> usize {
        1
    }

    fn get(&mut self, _: &StorageHandle) -> Result<(), IoError> {
        Err(IoError::UnsupportedIoOperation { backtrace: BackTrace::capture() })
    }

    fn alloc(&mut self, _: u64) -> Result<StorageHandle, IoError> {
        Err(IoError::UnsupportedIoOperation { backtrace: BackTrace::capture() })
    }

    fn dealloc(&mut self, _: StorageId) {}

    fn flush(&mut self) {}

    fn bytes_allocated(&self) -> u64 {
        0
    }
}
