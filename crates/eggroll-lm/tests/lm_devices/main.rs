//! Members on the devices of this build, against the host. One test at a time: kernels are counted by process, and a device is slow in software.

mod devices;
#[path = "../shared/fetched.rs"]
mod fetched;
mod finetune;
mod generation;
#[cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))]
mod launches;
#[path = "../host/made.rs"]
#[expect(dead_code, reason = "made for the tests of the host")]
mod made;
mod quantized;
mod scoring;
#[path = "../shared/small.rs"]
mod small;
mod smollm2;
#[path = "../shared/stored.rs"]
#[expect(dead_code, reason = "made for the tests of loading")]
mod stored;
#[path = "../shared/write_gguf.rs"]
#[expect(dead_code, reason = "made for the tests of loading")]
mod write_gguf;
