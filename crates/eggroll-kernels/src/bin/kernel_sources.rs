//! Writes the sources of all kernels on all targets to a folder, with a table of them: `kernel_sources FOLDER`.
//!
//! `kernels.tsv` has a line for each: target, file, kernel, entry point, type, units, bytes of shared memory, what was fixed at compile time.
//! Ends with 1 where a kernel could not be compiled, naga refused its WGSL, or no call reached a kernel of the sources.

use eggroll_kernels::{Language, Recorded, Recorder, Target, all, launch_all, missing, msl_of_wgsl};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: kernel_sources FOLDER")?);
    let targets = all();
    // Each target's recorder compiles on a separate thread.
    let recorded: Vec<Vec<Recorded>> = std::thread::scope(|scope| {
        let run = |(index, target): (usize, &Target)| {
            let target = target.clone();
            scope.spawn(move || {
                let (client, recording) = Recorder::start(target, index as u16);
                launch_all(&client);
                let recording = recording.lock().expect("the device's thread is idle");
                recording.kernels.clone()
            })
        };
        let running: Vec<_> = targets.iter().enumerate().map(run).collect();
        running.into_iter().map(|thread| thread.join().expect("operations launch")).collect()
    });
    let mut table = String::new();
    let mut refused = 0;
    for (target, kernels) in targets.iter().zip(&recorded) {
        let written = write(&folder, target, kernels, &mut table)?;
        refused += kernels.len() - written;
        println!("{}: {written} of {} kernels", target.name, kernels.len());
    }
    std::fs::write(folder.join("kernels.tsv"), table)?;
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let everything: Vec<Recorded> = recorded.concat();
    let missing = missing(&crates, &everything)?;
    for kernel in &missing {
        eprintln!(
            "no call reaches {kernel}: crates/eggroll-kernels/src/ floats.rs, integers.rs or rollouts.rs needs one"
        );
    }
    Ok(if refused == 0 && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes the kernels of one target; returns how many are there.
fn write(folder: &Path, target: &Target, kernels: &[Recorded], table: &mut String) -> Result<usize, Box<dyn Error>> {
    let place = folder.join(target.name);
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    std::fs::create_dir_all(&place)?;
    let mut written = 0;
    for kernel in kernels {
        let path = kernel.path;
        let source = match &kernel.source {
            Ok(source) => source,
            Err(reason) => {
                eprintln!("{}: {path} is not compiled: {reason}\n  {}", target.name, kernel.variant);
                continue;
            }
        };
        let file = format!("{}.{}", source.entry, target.language.suffix());
        std::fs::write(place.join(&file), &source.code)?;
        if let Language::Wgsl(_) = target.language {
            match msl_of_wgsl(std::str::from_utf8(&source.code)?) {
                Ok(text) => std::fs::write(place.join(format!("{}.metal", source.entry)), text)?,
                Err(reason) => {
                    eprintln!("{}: naga refuses {file}: {reason}", target.name);
                    continue;
                }
            }
        }
        written += 1;
        let Recorded { units, variant, .. } = kernel;
        let (name, shared) = (target.name, source.shared_bytes);
        writeln!(table, "{name}\t{file}\t{path}\t{}\t{units}\t{shared}\t{variant}", source.entry)?;
    }
    Ok(written)
}
