//! All the work on one backend after the other, each in a separate process: a driver may crash the one that it is in.

use super::args::ComparisonArgs;
use super::rows::{BackendOutcome, BackendRow, Comparison, Figures, Machine, Memory};
use super::training::{Mnist, Trainer};
use super::{oracle, timing};
use burn::tensor::{Device, Tensor};
use eggroll::core::DeviceName;
use eggroll_examples::child::{self, End};
use eggroll_examples::device::{Opened, open};
use eggroll_examples::guarded::guarded;
use eggroll_examples::interrupt::Signals;
use eggroll_examples::trace::section;
use eggroll_examples::{Ending, Failure, status};
use std::fs;
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Runs every chosen backend. A signal ends it, and leaves out the backend that was running.
pub fn measure(args: &ComparisonArgs, signals: &Signals) -> Result<(Comparison, Ending), Failure> {
    let chosen = args.chosen()?;
    // No backend can do without it: one error instead of one for each.
    Mnist::read(&args.data)?;
    let mut comparison = Comparison { machines: vec![Machine::this(&args.label)], rows: Vec::new() };
    for backend in chosen {
        eprintln!("{backend} …");
        match row(args, backend, signals)? {
            Some(row) => comparison.rows.push(row),
            None => return Ok((comparison, Ending::Stopped)),
        }
    }
    Ok((comparison, Ending::Finished))
}

/// The row of a backend, from its process; nothing if a signal came.
fn row(args: &ComparisonArgs, backend: DeviceName, signals: &Signals) -> Result<Option<BackendRow>, Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("row.json");
    let mut command = Command::new(std::env::current_exe()?);
    // A program of several is told by its name which it is.
    #[cfg(unix)]
    command.arg0(std::env::args_os().next().unwrap_or_default());
    command.args(args.of_child(backend, &path));
    let reason = match child::run(&mut command, Some(Duration::from_secs_f64(args.limit)), signals.flag())? {
        End::Interrupted => return Ok(None),
        // A driver may crash behind the work, when it is unloaded.
        End::Exited(_) if path.exists() => return Ok(Some(serde_json::from_slice(&fs::read(&path)?)?)),
        End::Exited(status) => format!("its process ended with {status}"),
        End::TimedOut => format!("its process did not end within {} s", args.limit),
    };
    Ok(Some(BackendRow::new(args, backend.to_string(), BackendOutcome::Failed { reason })))
}

/// Measures one backend in this process and writes its row.
pub fn write_row(args: &ComparisonArgs, backend: DeviceName, path: &Path) -> Result<Ending, Failure> {
    let row = measured(args, backend);
    // Renamed into place: a row that is there is whole.
    let part = path.with_extension("part");
    fs::write(&part, serde_json::to_vec(&row)?)?;
    fs::rename(&part, path)?;
    Ok(Ending::Finished)
}

fn measured(args: &ComparisonArgs, backend: DeviceName) -> BackendRow {
    let name = backend.to_string();
    let opened = match guarded(|| present(backend)) {
        Ok(opened) => opened,
        Err(reason) => return BackendRow::new(args, name, BackendOutcome::Absent { reason }),
    };
    let outcome = match guarded(|| figures(args, backend, &opened.device)) {
        Ok(figures) => BackendOutcome::Ran(Box::new(figures)),
        Err(reason) => BackendOutcome::Failed { reason },
    };
    let device = Some(format!("{:?}", opened.device));
    BackendRow { device, hardware: Some(opened.hardware), ..BackendRow::new(args, name, outcome) }
}

/// Opens the device: it is present if values come back from it.
fn present(backend: DeviceName) -> Result<Opened, Failure> {
    let (opened, values) = (open(backend)?, [1.0f32, -2.0, 3.5]);
    let read: Vec<f32> = Tensor::<1>::from_floats(values, &opened.device).into_data().try_to_vec()?;
    match read == values {
        true => Ok(opened),
        false => Err(format!("the device returns {read:?} for {values:?}").into()),
    }
}

fn figures(args: &ComparisonArgs, backend: DeviceName, device: &Device) -> Result<Figures, Failure> {
    let mnist = Mnist::read(&args.data)?;
    let max_error = oracle::max_error(backend, device)?;
    section(&format!("{backend}, forward and estimate"));
    let (times, noise_materialized_bytes) = timing::measure(args, device)?;
    section(&format!("{backend}, training"));
    let mut trainer = Trainer::new(&mnist, device);
    let (training, work) = trainer.run(args.rank, args.generations)?;
    let memory = Memory {
        noise_materialized_bytes,
        peak_rss_bytes: status::bytes("VmHWM"),
        device_reserved_bytes: device.memory_pool_usage().map(|usage| usage.bytes_reserved),
    };
    Ok(Figures { max_error, times, training, work, memory })
}
