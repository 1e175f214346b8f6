//! Rayon's threads, bounded by the cores.

use super::support::{Place, Running, run, signal, wait_until_watched};
use std::fs;

#[test]
fn wrong_numbers_of_threads_are_named() {
    for wrong in ["100000", "18446744073709551616", "-1", "abc"] {
        let place = Place::new();
        let ended = run(place.mnist(&["--generations", "2"]).env("RAYON_NUM_THREADS", wrong), &place);
        assert_eq!(ended.status, 0, "{ended:?}");
        assert!(ended.errors.contains("warning: RAYON_NUM_THREADS") && ended.errors.contains(wrong), "{ended:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn no_more_threads_are_started_than_there_are_cores() {
    let place = Place::new();
    let mut command = place.mnist(&["--generations", "10000000"]);
    let running = Running::start(command.env("RAYON_NUM_THREADS", "100000"), &place);
    wait_until_watched(running.id());
    running.wait_for("\n        50 ");
    let threads = fs::read_dir(format!("/proc/{}/task", running.id())).expect("Linux").count();
    signal(running.id(), "TERM");
    assert_eq!(running.end().status, 75);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Rayon's, those of the members' chunks, and a handful of the machinery.
    assert!(threads <= 2 * cores + 10, "{threads} threads on {cores} cores");
}
