//! The devices of this build on this machine: `cargo run --release --example devices --features wgpu`.
//!
//! Each is opened, named as its driver names it, and asked for an exponential, which needs what compiles its kernels: a driver may list
//! a device that lacks that. `--backend cuda` asks for one and ends with 1 and a sentence if it cannot be used; scripts ask before
//! they measure.

use burn::tensor::{DType, Tensor};
use clap::Parser;
use eggroll::core::DeviceName;
use eggroll_examples::device::{Opened, open};
use eggroll_examples::guarded::guarded;
use eggroll_examples::{Failure, main_of};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Float types that networks are trained in.
const TYPES: [DType; 3] = [DType::BF16, DType::F16, DType::F32];

/// Lists the devices of this build on this machine.
#[derive(Parser, Debug)]
struct DevicesArgs {
    /// Only this one: flex, ndarray, cuda, rocm, vulkan, metal or wgpu, if compiled in; cuda:1 is the second card.
    #[arg(long)]
    backend: Option<DeviceName>,
    /// Refuse a driver that computes on the CPU.
    #[arg(long, requires = "backend")]
    gpu: bool,
    /// Refuse a device without this type: bf16, f16 or f32.
    #[arg(long, requires = "backend", value_parser = named_type)]
    dtype: Option<DType>,
}

fn named_type(name: &str) -> Result<DType, String> {
    let found = TYPES.into_iter().find(|dtype| type_name(*dtype) == name);
    found.ok_or_else(|| format!("expected one of {}", TYPES.map(type_name).join(", ")))
}

fn type_name(dtype: DType) -> String {
    format!("{dtype:?}").to_lowercase()
}

pub(crate) fn main() -> ExitCode {
    let args = DevicesArgs::parse();
    main_of(|| run(&args))
}

fn run(args: &DevicesArgs) -> Result<(), Failure> {
    let rows = match args.backend {
        Some(name) => {
            let opened = usable(name)?;
            if args.gpu && opened.is_software() {
                return Err(format!("{name} runs on {}, a software driver, and on no GPU", opened.hardware).into());
            }
            args.dtype.map_or(Ok(()), |dtype| opened.has(name, dtype))?;
            vec![row(name, &Ok(opened))]
        }
        None => DeviceName::compiled().map(|name| row(name, &usable(name))).collect(),
    };
    println!("RESULT {}", json!({ "devices": rows }));
    Ok(())
}

/// Opens a device and lets it compute.
fn usable(name: DeviceName) -> Result<Opened, Failure> {
    let opened = open(name)?;
    let values: Vec<f32> = guarded(|| {
        let zeros = Tensor::<1>::zeros([3], &opened.device);
        Ok(zeros.exp().try_into_data()?.try_to_vec()?)
    })
    .map_err(|reason| format!("{name} cannot run kernels on {}: {reason}", opened.hardware))?;
    match values.iter().all(|value| (value - 1.0).abs() < 1e-3) {
        true => Ok(opened),
        false => Err(format!("{name} computes exp(0) = {values:?} on {}", opened.hardware).into()),
    }
}

/// Prints a line, and returns what the result says.
fn row(name: DeviceName, opened: &Result<Opened, Failure>) -> Value {
    let backend = name.to_string();
    match opened {
        Ok(opened) => {
            let types = TYPES.into_iter().filter(|dtype| opened.device.supports_dtype(*dtype)).map(type_name);
            let types: Vec<String> = types.collect();
            let software = if opened.is_software() { ", a software driver" } else { "" };
            println!("{backend:<8} {}{software}: {}", opened.hardware, types.join(" "));
            json!({ "backend": backend, "hardware": opened.hardware, "software": opened.is_software(), "types": types })
        }
        Err(reason) => {
            println!("{backend:<8} absent: {reason}");
            json!({ "backend": backend, "absent": reason.to_string() })
        }
    }
}
