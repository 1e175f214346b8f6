//! The running trace: its file, its sections, and the lanes of all threads.

use super::summary::{Section, Summary};
use super::thread_spans::{SpanKind, ThreadSpans, Totals};
use super::times::{Times, wall};
use crate::error::{Error, TraceError};
use eggroll_core::profile;
use eggroll_core::sync::locked;
use serde_json::json;
use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Bytes of events that a thread keeps before it writes them.
const KEPT: usize = 64 * 1024;
/// Name of the section before the first call of [`section`].
const FIRST_SECTION: &str = "run";

/// Locked after a lane, if both are.
static SESSION: Mutex<Option<TraceSession>> = Mutex::new(None);
/// Locked before a lane, if both are.
static LANES: Mutex<Vec<Arc<Mutex<ThreadSpans>>>> = Mutex::new(Vec::new());
/// Whether spans are recorded now.
static RECORDING: AtomicBool = AtomicBool::new(false);
/// Number of the section that spans belong to, through all traces of the process.
static SECTION: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static LANE: OnceCell<Arc<Mutex<ThreadSpans>>> = const { OnceCell::new() };
}

struct TraceSession {
    path: PathBuf,
    file: BufWriter<File>,
    /// The first failure; afterwards nothing is written.
    failure: Option<io::Error>,
    most_generations: Option<u64>,
    synchronize: bool,
    name: String,
    generations: u64,
    start: Times,
    /// When the last traced generation ended, if later ones are left out.
    end: Option<Times>,
    sections: Vec<Section>,
}

pub(super) fn is_recording() -> bool {
    RECORDING.load(Relaxed)
}

fn record(on: bool) {
    RECORDING.store(on, Relaxed);
    // While nothing is recorded, a span costs only a load.
    tracing_core::callsite::rebuild_interest_cache();
}

pub(super) fn start(
    most_generations: Option<u64>,
    synchronize: bool,
    install: impl FnOnce() -> bool,
    open: impl FnOnce() -> Result<(File, PathBuf), Error>,
) -> Result<(), Error> {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    let mut session = locked(&SESSION);
    if session.is_some() {
        return Err(TraceError::Running.into());
    }
    if !INSTALLED.get_or_init(install) {
        return Err(TraceError::Subscriber.into());
    }
    let (file, path) = open()?;
    let mut new = TraceSession {
        path,
        file: BufWriter::new(file),
        failure: None,
        most_generations,
        synchronize,
        name: FIRST_SECTION.to_owned(),
        generations: 0,
        start: Times::now(),
        end: None,
        sections: Vec::new(),
    };
    let process = json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": "eggroll" } });
    new.write(&format!("{{\"traceEvents\":[\n{process}"));
    if let Some(error) = new.failure.take() {
        return Err(Error::io(new.path)(error));
    }
    *session = Some(new);
    drop(session);
    SECTION.fetch_add(1, Relaxed);
    profile::set_synchronize(synchronize);
    record(true);
    Ok(())
}

pub(super) fn finish() -> Option<Result<Summary, Error>> {
    let mut session = locked(&SESSION).take()?;
    record(false);
    profile::set_synchronize(false);
    SECTION.fetch_add(1, Relaxed);
    session.close_section();
    let mut lanes = locked(&LANES);
    for lane in lanes.iter() {
        let mut lane = locked(lane);
        session.write(&lane.text);
        lane.text = String::new();
        lane.named = false;
    }
    lanes.retain(|lane| Arc::strong_count(lane) > 1);
    drop(lanes);
    Some(session.finish())
}

pub(super) fn section(name: &str) {
    let mut session = locked(&SESSION).take();
    let Some(running) = &mut session else { return };
    RECORDING.store(false, Relaxed);
    SECTION.fetch_add(1, Relaxed);
    running.close_section();
    (running.name, running.generations, running.end) = (name.to_owned(), 0, None);
    running.start = Times::now();
    let mark = json!({ "ph": "i", "s": "g", "pid": 1, "tid": 0, "ts": micros(running.start.wall), "name": name });
    running.write(&format!(",\n{mark}"));
    *locked(&SESSION) = session;
    record(true);
}

/// A generation begins: the trace ends here if it has enough generations.
pub(super) fn generation(number: u64) {
    let mut session = locked(&SESSION);
    let Some(running) = &mut *session else { return };
    if running.most_generations.is_some_and(|most| running.generations >= most) {
        running.end = Some(Times::now());
        drop(session);
        record(false);
        return;
    }
    running.generations += 1;
    drop(session);
    let mark = json!({ "number": number });
    with_lane(|lane| {
        lane.drives = true;
        let (thread, ts) = (lane.thread, micros(wall()));
        let name = profile::GENERATION;
        lane.text += &format!(
            ",\n{{\"ph\":\"i\",\"s\":\"p\",\"pid\":1,\"tid\":{thread},\"ts\":{ts},\"name\":\"{name}\",\"args\":{mark}}}"
        );
    });
}

pub(super) fn enter(kind: SpanKind, fine: bool, bytes: u64) {
    with_lane(|lane| lane.enter(kind, fine, bytes, SECTION.load(Relaxed), wall()));
}

pub(super) fn exit() {
    with_lane(|lane| {
        let end = wall();
        lane.exit(is_recording().then(|| SECTION.load(Relaxed)), end);
        if lane.text.len() >= KEPT
            && let Some(session) = &mut *locked(&SESSION)
        {
            session.write(&lane.text);
            lane.text.clear();
        }
    });
}

/// This thread's lane.
pub(super) fn with_lane(f: impl FnOnce(&mut ThreadSpans)) {
    // A thread that is ending may have lost its lane already: its last work is not traced.
    let _ = LANE.try_with(|lane| {
        let mut lane = locked(lane.get_or_init(new_lane));
        if !lane.named {
            lane.named = true;
            let (thread, name) = (lane.thread, &lane.name);
            let meta = json!({ "ph": "M", "pid": 1, "tid": thread, "name": "thread_name", "args": { "name": name } });
            lane.text += &format!(",\n{meta}");
        }
        f(&mut lane);
    });
}

fn new_lane() -> Arc<Mutex<ThreadSpans>> {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    let thread = THREADS.fetch_add(1, Relaxed) as usize;
    let name = std::thread::current().name().map_or_else(|| format!("thread {thread}"), str::to_owned);
    let lane = Arc::new(Mutex::new(ThreadSpans::new(thread, name)));
    locked(&LANES).push(lane.clone());
    lane
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

impl TraceSession {
    fn write(&mut self, text: &str) {
        if self.failure.is_none() {
            self.failure = self.file.write_all(text.as_bytes()).err();
        }
    }

    /// Sums up the section that ends here.
    fn close_section(&mut self) {
        let mut totals = Totals::default();
        for lane in locked(&LANES).iter() {
            totals.add(&locked(lane).take_totals());
        }
        if totals.is_empty() {
            return;
        }
        let all = self.end.unwrap_or_else(Times::now) - self.start;
        self.sections.push(Section {
            name: self.name.clone(),
            generations: self.generations,
            wall_seconds: all.wall.as_secs_f64(),
            threads: totals.threads,
            waiting_seconds: totals.waiting_seconds(),
            cpu_seconds: all.cpu.as_secs_f64(),
            components: totals.rows(),
            phases: totals.phases(all),
        });
    }

    fn finish(mut self) -> Result<Summary, Error> {
        let summary = Summary { sections: std::mem::take(&mut self.sections), synchronized: self.synchronize };
        let text = serde_json::to_string_pretty(&summary).expect("numbers and names");
        self.write(&format!("\n],\"displayTimeUnit\":\"ms\",\"summary\":{text}}}\n"));
        let flushed = self.file.flush();
        match self.failure.map_or(flushed, Err) {
            Ok(()) => Ok(summary),
            Err(error) => Err(Error::io(self.path)(error)),
        }
    }
}
