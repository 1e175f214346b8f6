//! A server that loses what it has acknowledged, as JetStream can after a crash: every node ends with the parameters of an undisturbed run, or with an
//! error that names what is missing; and the run that is started again does too.
//!
//! `EGGROLL_LOSSES` says how many schedules are tried, `EGGROLL_LOSSES_FROM` with which they begin.

use crate::nodes::*;
use crate::server::Server;
use crate::support::{LearningModel, Net};
use eggroll_core::rng::philox::philox4x32;
use eggroll_nats::{NatsConfig, NatsError};
use eggroll_train::*;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Schedules at a time.
const THREADS: usize = 12;

/// What the server does to its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    /// Canary of the others: a crash without a loss.
    Crash,
    /// The end of the log is gone.
    Suffix,
    /// A record amid the log is gone.
    Middle,
    /// A bit of the log's file is another.
    Flip,
    /// All streams are as they were some time ago.
    RollBack,
}

const LOSSES: [Loss; 5] = [Loss::Crash, Loss::Suffix, Loss::Middle, Loss::Flip, Loss::RollBack];

struct Schedule {
    loss: Loss,
    /// The generation after which the store is copied, and the one after which the loss comes.
    copied: u64,
    lost: u64,
    /// Whether the coordinator starts again by itself, as a supervisor has it, with its folder or without.
    word: u32,
}

impl Schedule {
    fn of(number: u32) -> Self {
        let [a, b, c, word] = philox4x32([number, 0, 0, 0x10_55e5], [7, 7]);
        let lost = 2 + u64::from(b) % (GENERATIONS - 2);
        Self { loss: LOSSES[a as usize % LOSSES.len()], copied: 1 + u64::from(c) % (lost - 1), lost, word }
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-r").args([from, to]).status().expect("starts").success());
}

fn log_stream(folder: &Path) -> PathBuf {
    folder.join(format!("store/jetstream/$G/streams/eggroll-{RUN}-log"))
}

/// A bit of a file of messages, anywhere in it.
fn flip(stream: &Path, word: u32) {
    let blocks = fs::read_dir(stream.join("msgs")).expect("messages").map(|entry| entry.expect("an entry").path());
    let mut blocks: Vec<PathBuf> = blocks.filter(|path| path.extension().is_some_and(|ext| ext == "blk")).collect();
    blocks.sort();
    let path = &blocks[word as usize % blocks.len()];
    let mut bytes = fs::read(path).expect("reads");
    if let Some(len) = (bytes.len() as u32).checked_sub(1).filter(|len| *len > 0) {
        bytes[(word / 8 % len) as usize] ^= 1 << (word % 8);
        fs::write(path, bytes).expect("writes");
    }
}

/// Takes a record out of the log.
fn take_out(url: &str, place: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(url).await.expect("connects"));
        let stream = context.get_stream(format!("eggroll-{RUN}-log")).await.expect("is there");
        // It may have been dropped behind a checkpoint.
        let _ = stream.delete_message(place).await;
    });
}

/// Takes the contents of all checkpoints out of the server's store, and leaves their names.
fn take_out_contents(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(url).await.expect("connects"));
        let stream = context.get_stream(format!("OBJ_eggroll-{RUN}")).await.expect("is there");
        let purged = stream.purge().filter(format!("$O.eggroll-{RUN}.C.>")).await.expect("purges");
        assert!(purged.purged > 2, "canary: there were some");
    });
}

/// How a node ended: with the right parameters, or by which name.
fn outcome(digest: Result<String, NatsError>, expected: &str) -> &'static str {
    match digest {
        Ok(digest) => {
            assert_eq!(digest, expected, "wrong parameters, and nobody says so");
            "right"
        }
        Err(NatsError::LogLost { .. }) => "LogLost",
        Err(NatsError::SecondCoordinator { .. }) => "SecondCoordinator",
        Err(NatsError::Gap { .. }) => "Gap",
        Err(NatsError::Damaged { .. }) => "Damaged",
        Err(NatsError::NoCoordinator { .. }) => "NoCoordinator",
        Err(NatsError::Patience { .. }) => "Patience",
        Err(NatsError::Checkpoint { .. }) => "Checkpoint",
        Err(error) => panic!("a name that says something else: {error}"),
    }
}

/// A worker that is started again whenever it ends by a name, as its errors say, until the coordinator's life is over.
fn supervised(config: NatsConfig, over: &Arc<AtomicBool>) -> JoinHandle<Result<String, NatsError>> {
    let over = over.clone();
    std::thread::spawn(move || {
        loop {
            let result = work_from(&config, Net::start(), Net::strategy(), fitness);
            if result.is_ok() || over.load(Ordering::Relaxed) {
                return result.map(|(digest, _)| digest);
            }
            println!(
                "{} starts again: {}",
                config.node,
                result.as_ref().err().map_or(String::new(), ToString::to_string)
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    })
}

fn fitness(model: &Net, members: &Population) -> Result<Fitness, eggroll_run::UserError> {
    Ok(model.fitness(members))
}

/// Runs a schedule; how the nodes ended that met the loss, and those that were started after it.
fn run(schedule: &Schedule, expected: &str) -> Option<Vec<&'static str>> {
    let mut server = Server::start()?;
    let (url, folder) = (server.url(), server.folder.path().to_owned());
    let node = |name: &str| NatsConfig {
        ack_wait: Duration::from_millis(300),
        offer_again_after: Duration::from_millis(500),
        patience: Duration::from_secs(12),
        ..config(&url, name)
    };
    let (stream, store, kept) = (log_stream(&folder), folder.join("store"), folder.join("kept"));
    let first = Local::start_with_pauses::<Net>(node("coordinator"), &[schedule.copied, schedule.lost]);
    let over = Arc::new(AtomicBool::new(false));
    let workers = ["w1", "w2"].map(|name| supervised(node(name), &over));
    first.wait(schedule.copied);
    server.kill();
    copy(if schedule.loss == Loss::Suffix { &stream } else { &store }, &kept);
    server.restart();
    first.resume();
    first.wait(schedule.lost);
    if schedule.loss == Loss::Middle {
        take_out(&url, 1 + u64::from(schedule.word) % schedule.lost);
    }
    server.kill();
    match schedule.loss {
        Loss::Suffix => copy(&kept, &stream),
        Loss::RollBack => copy(&kept, &store),
        Loss::Flip => flip(&stream, schedule.word),
        Loss::Crash | Loss::Middle => {}
    }
    if !server.try_restart() {
        // The server itself may end on a damaged file: whoever runs it takes the stream away.
        assert!(schedule.loss == Loss::Flip, "{:?}: the server ends at its start", schedule.loss);
        fs::remove_dir_all(&stream).expect("removes");
        server.restart();
    }
    // Sometimes the worker that is late has to read what is lost.
    let late = supervised(node("late"), &over);
    first.resume();
    let (result, run_folder) = first.end_with_folder();
    over.store(true, Ordering::Relaxed);
    let mut ends = vec![outcome(result.map(|result| result.digest), expected)];
    for worker in workers.into_iter().chain([late]) {
        ends.push(outcome(worker.join().expect("no panic"), expected));
    }
    // Whoever is started again, as the errors say.
    let folder = if schedule.word.is_multiple_of(2) { run_folder } else { tempfile::tempdir().expect("a folder") };
    let path = folder.path().to_owned();
    let config = node("coordinator");
    let second = std::thread::spawn(move || coordinate::<Net>(&config, &path, |_| {}));
    let over = Arc::new(AtomicBool::new(false));
    let again = ["w3", "w4"].map(|name| supervised(node(name), &over));
    ends.push(outcome(second.join().expect("no panic").map(|result| result.digest), expected));
    over.store(true, Ordering::Relaxed);
    for worker in again {
        ends.push(outcome(worker.join().expect("no panic"), expected));
    }
    Some(ends)
}

#[test]
fn whatever_the_server_loses_nodes_end_right_or_say_why() {
    let number = |name, default| env::var(name).map_or(default, |count| count.parse().expect("a number"));
    let (from, count) = (number("EGGROLL_LOSSES_FROM", 0), number("EGGROLL_LOSSES", 5));
    let expected = expected::<Net>();
    let (next, ends) = (AtomicU32::new(from), Mutex::new(BTreeMap::<Loss, BTreeMap<&str, u32>>::new()));
    // Nodes wait most of the time.
    let some = || {
        while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < from + count) {
            let schedule = Schedule::of(number);
            println!("{number}: begins: {:?} of {} after {}", schedule.loss, schedule.copied, schedule.lost);
            let Some(found) = run(&schedule, &expected) else { return };
            println!("{number}: {:?} of {} after {}: {found:?}", schedule.loss, schedule.copied, schedule.lost);
            let mut ends = ends.lock().expect("no panic");
            for end in found {
                *ends.entry(schedule.loss).or_default().entry(end).or_default() += 1;
            }
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(some))));
    let ends = ends.into_inner().expect("no panic");
    println!("RESULT {ends:?}");
    // Canary: without a loss nobody says that there is one. Records behind two checkpoints are dropped, which a worker that is late may meet.
    for (end, count) in ends.get(&Loss::Crash).into_iter().flatten() {
        assert!(["right", "Gap"].contains(end), "{count} nodes after a crash: {end}");
    }
}

/// A checkpoint without its contents is no wait without end: who needs it says so, and the next one replaces it.
#[test]
fn a_checkpoint_that_cannot_be_read_is_named_and_replaced() {
    let Some(server) = Server::start() else { return };
    let config =
        |node: &str, seconds| NatsConfig { patience: Duration::from_secs(seconds), ..config(&server.url(), node) };
    let paused = CHECKPOINT_EVERY + 1;
    let coordinator = Local::start_with_pause::<Net>(config("coordinator", 60), Some(paused));
    let worker = work(config("early", 60), fitness);
    coordinator.wait(paused);
    take_out_contents(&server.url());
    let error = work_from(&config("late", 3), Net::start(), Net::strategy(), fitness).expect_err("no checkpoint");
    assert!(matches!(&error, NatsError::Patience { what, .. } if what == "copying a checkpoint"), "{error}");
    coordinator.resume();
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    worker.join().expect("no panic").expect("to the end");
    let (digest, report) = work_from(&config("late", 60), Net::start(), Net::strategy(), fitness).expect("to the end");
    assert_eq!((digest, report.checkpoints), (expected::<Net>(), 1));
}
