//! All the work on one backend after the other.

use crate::args::Args;
use crate::guarded::guarded;
use crate::rows::{Comparison, Figures, Machine, Memory, Outcome, Row};
use crate::training::{Mnist, Trainer};
use crate::{memory, oracle, timing};
use burn::tensor::{Device, Tensor};
use eggroll::core::{DeviceName, InstructionSet};
use eggroll::run::profile::section;
use eggroll_examples::interrupt::Signals;
use eggroll_examples::{Ending, Failure};

/// Runs every chosen backend. A signal ends it, and leaves out the backend that was running.
pub fn measure(args: &Args, signals: &Signals) -> Result<(Comparison, Ending), Failure> {
    let chosen = args.chosen()?;
    let mnist = Mnist::read(&args.data)?;
    let mut comparison = Comparison { machines: vec![Machine::this(&args.label)], rows: Vec::new() };
    for backend in chosen {
        let row = row(args, &mnist, backend, signals);
        let whole = matches!(row.outcome, Outcome::Ran(_));
        if !signals.came() || whole {
            comparison.rows.push(row);
        }
        if signals.came() {
            return Ok((comparison, Ending::Stopped));
        }
    }
    Ok((comparison, Ending::Finished))
}

fn row(args: &Args, mnist: &Mnist, backend: DeviceName, signals: &Signals) -> Row {
    let name = backend.to_string();
    eprintln!("{name} …");
    let device = match guarded(|| present(backend)) {
        Ok(device) => device,
        Err(reason) => return Row::new(args, name, Outcome::Absent { reason }),
    };
    let outcome = match guarded(|| figures(args, mnist, backend, &device, signals)) {
        Ok(figures) => Outcome::Ran(Box::new(figures)),
        Err(reason) => Outcome::Failed { reason },
    };
    Row {
        device: Some(format!("{device:?}")),
        hardware: guarded(|| Ok(hardware(backend, &device))).ok().flatten(),
        ..Row::new(args, name, outcome)
    }
}

/// Opens the device: it is present if values come back from it.
fn present(backend: DeviceName) -> Result<Device, Failure> {
    let (device, values) = (backend.device()?, [1.0f32, -2.0, 3.5]);
    let read: Vec<f32> = Tensor::<1>::from_floats(values, &device).into_data().try_to_vec()?;
    match read == values {
        true => Ok(device),
        false => Err(format!("the device returns {read:?} for {values:?}").into()),
    }
}

fn figures(
    args: &Args,
    mnist: &Mnist,
    backend: DeviceName,
    device: &Device,
    signals: &Signals,
) -> Result<Figures, Failure> {
    memory::reset_peak();
    let max_error = oracle::max_error(device)?;
    section(&format!("{backend}, forward and estimate"));
    let (times, noise_materialized_bytes) = timing::measure(args, device, signals)?;
    section(&format!("{backend}, training"));
    let mut trainer = Trainer::new(mnist, device);
    let (training, work) = trainer.run(args.rank, args.generations, signals)?;
    let memory = Memory {
        noise_materialized_bytes,
        peak_rss_bytes: memory::peak_rss(),
        device_reserved_bytes: device.memory_pool_usage().map(|usage| usage.bytes_reserved),
    };
    Ok(Figures { max_error, times, training, work, memory })
}

/// What the device runs on.
fn hardware(backend: DeviceName, device: &Device) -> Option<String> {
    if backend.is_on_host() {
        return Some(format!("CPU, {}", InstructionSet::detected().name()));
    }
    identity(device)
}

#[cfg(any(feature = "cuda", feature = "vulkan", feature = "metal", feature = "wgpu"))]
fn identity(device: &Device) -> Option<String> {
    device.identity().map(|identity| identity.name)
}

#[cfg(not(any(feature = "cuda", feature = "vulkan", feature = "metal", feature = "wgpu")))]
fn identity(_: &Device) -> Option<String> {
    None
}
