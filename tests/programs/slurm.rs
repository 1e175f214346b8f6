//! `scripts/slurm` with a `srun` and a `scontrol` that only look like them.

use super::support::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// What Slurm's script does when the ranks end with `status`: its own status, and what it has asked for.
fn submit(place: &Place, status: i32) -> (i32, String) {
    let log = place.path("log");
    let _ = fs::remove_file(&log);
    for (name, status) in [("srun", status), ("scontrol", 0)] {
        let path = place.path(name);
        fs::write(&path, format!("#!/bin/sh\necho {name} \"$@\" >> {log}\nexit {status}\n")).expect("writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("may");
    }
    let path = format!("{}:{}", place.path("."), std::env::var("PATH").expect("a path"));
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("scripts/slurm");
    let variables = [("SLURM_JOB_ID", "17"), ("SLURM_JOB_NAME", "test"), ("SLURM_CPUS_PER_TASK", "2")];
    let mut command = Command::new("bash");
    command.arg(script).envs(variables).env("PATH", path).env("SLURM_SUBMIT_DIR", place.path("."));
    let ended = command.status().expect("bash");
    (ended.code().expect("a status"), fs::read_to_string(log).expect("a log"))
}

#[test]
fn a_stopped_job_goes_into_the_queue_again() {
    let place = Place::new();
    let (status, log) = submit(&place, 75);
    assert_eq!(status, 75);
    assert!(log.ends_with("scontrol requeue 17\n"), "{log}");
    assert!(!log.contains("--resume"), "{log}");
    // With a checkpoint the run continues.
    fs::create_dir_all(place.path("runs/test/checkpoints")).expect("a folder");
    assert!(submit(&place, 0).1.contains("--resume"));
}

#[test]
fn a_job_that_has_finished_or_failed_does_not() {
    for status in [0, 1, 137, 143] {
        let place = Place::new();
        let (found, log) = submit(&place, status);
        assert_eq!(found, status);
        assert!(log.starts_with("srun ") && !log.contains("scontrol"), "{log}");
    }
}

#[test]
fn bash_reads_it() {
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("scripts/slurm");
    assert!(Command::new("bash").arg("-n").arg(script).status().expect("bash").success());
}
