//! The running trace: its file, its sections, and the open spans of each thread.

use super::summary::{Row, Section, Summary};
use crate::error::{Error, TraceError};
use eggroll_core::counters;
use eggroll_core::profile::{self, Component, WAITING};
use eggroll_core::sync::locked;
use serde_json::json;
use std::array::from_fn;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Name of the section before the first call of [`section`].
const FIRST_SECTION: &str = "run";

static SESSION: Mutex<Option<Session>> = Mutex::new(None);
/// Whether spans are recorded now.
static RECORDING: AtomicBool = AtomicBool::new(false);
/// Number of the section that spans belong to, through all traces of the process. Changes while the session is locked.
static SECTION: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds that spans without a span around them took on any thread, waiting taken out: how much others worked meanwhile.
static WORKED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OPEN: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
    static THREAD: u64 = {
        static THREADS: AtomicU64 = AtomicU64::new(0);
        THREADS.fetch_add(1, Relaxed)
    };
}

/// What a span is about; `None` is waiting.
pub(super) type Kind = Option<Component>;

/// Launches, kernels, host reads and bytes of noise of a thread.
type Counts = [u64; 4];

fn counts() -> Counts {
    let counters::Counters { host_reads, launches, noise_bytes } = counters::snapshot();
    [launches, counters::thread_kernels(), host_reads, noise_bytes]
}

fn sum(a: Counts, b: Counts) -> Counts {
    from_fn(|index| a[index] + b[index])
}

fn difference(a: Counts, b: Counts) -> Counts {
    from_fn(|index| a[index] - b[index])
}

/// A span that is open.
struct Frame {
    kind: Kind,
    fine: bool,
    section: u64,
    bytes: u64,
    start: Duration,
    counts: Counts,
    /// [`WORKED`] at the start.
    worked: u64,
    inside: Inside,
}

/// What belongs to spans inside a span, and not to itself.
#[derive(Default)]
struct Inside {
    /// Nanoseconds.
    time: u64,
    /// Nanoseconds of waiting, all of them in `time`.
    waiting: u64,
    counts: Counts,
}

/// Sums of a component.
#[derive(Default)]
struct Total {
    time: u64,
    spans: u64,
    bytes: u64,
    counts: Counts,
}

/// Sums of a section.
#[derive(Default)]
struct Totals {
    components: [Total; Component::ALL.len()],
    waiting: u64,
    threads: BTreeSet<u64>,
}

struct Session {
    path: PathBuf,
    file: BufWriter<File>,
    /// The first failure; after it nothing more is written.
    failure: Option<io::Error>,
    most_generations: Option<u64>,
    synchronize: bool,
    /// Threads whose names are in the file.
    named: BTreeSet<u64>,
    name: String,
    generations: u64,
    start: Duration,
    /// When the last traced generation ended, if later ones are left out.
    end: Option<Duration>,
    totals: Totals,
    sections: Vec<Section>,
}

/// Since the first trace of the process began.
fn now() -> Duration {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed()
}

pub(super) fn is_recording() -> bool {
    RECORDING.load(Relaxed)
}

fn record(on: bool) {
    RECORDING.store(on, Relaxed);
    // Nothing but a load is left of spans when nothing is recorded.
    tracing_core::callsite::rebuild_interest_cache();
}

pub(super) fn start(path: &Path, most_generations: Option<u64>, synchronize: bool) -> Result<(), Error> {
    let mut session = locked(&SESSION);
    if session.is_some() {
        return Err(TraceError::Running.into());
    }
    let mut file = BufWriter::new(File::create(path).map_err(Error::io(path))?);
    let process = json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": "eggroll" } });
    write!(file, "{{\"traceEvents\":[\n{process}").map_err(Error::io(path))?;
    *session = Some(Session {
        path: path.to_owned(),
        file,
        failure: None,
        most_generations,
        synchronize,
        named: BTreeSet::new(),
        name: FIRST_SECTION.to_owned(),
        generations: 0,
        start: now(),
        end: None,
        totals: Totals::default(),
        sections: Vec::new(),
    });
    SECTION.fetch_add(1, Relaxed);
    drop(session);
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
    Some(session.finish())
}

pub(super) fn section(name: &str) {
    let mut session = locked(&SESSION);
    let Some(running) = &mut *session else { return };
    running.close_section();
    SECTION.fetch_add(1, Relaxed);
    (running.name, running.generations, running.end) = (name.to_owned(), 0, None);
    running.start = now();
    let mark = json!({ "ph": "i", "s": "g", "pid": 1, "tid": 0, "ts": micros(running.start), "name": name });
    running.write(format_args!(",\n{mark}"));
    drop(session);
    record(true);
}

/// A generation begins: the trace ends here if it has enough of them.
pub(super) fn generation(number: u64) {
    let mut session = locked(&SESSION);
    let Some(running) = &mut *session else { return };
    if running.most_generations.is_some_and(|most| running.generations >= most) {
        running.end = Some(now());
        drop(session);
        return record(false);
    }
    running.generations += 1;
    let (thread, ts, name) = (running.thread(), micros(now()), profile::GENERATION);
    let args = json!({ "number": number });
    let mark = json!({ "ph": "i", "s": "p", "pid": 1, "tid": thread, "ts": ts, "name": name, "args": args });
    running.write(format_args!(",\n{mark}"));
}

pub(super) fn enter(kind: Kind, fine: bool, bytes: u64) {
    let (section, worked) = (SECTION.load(Relaxed), WORKED.load(Relaxed));
    let (start, counts, inside) = (now(), counts(), Inside::default());
    // A thread that is ending may have lost its spans already: what it does then is not traced.
    let _ = OPEN.try_with(|open| {
        open.borrow_mut().push(Frame { kind, fine, section, bytes, start, counts, worked, inside });
    });
}

/// Corrects the bytes of the innermost span.
pub(super) fn set_bytes(bytes: u64) {
    let _ = OPEN.try_with(|open| {
        if let Some(frame) = open.borrow_mut().last_mut() {
            frame.bytes = bytes;
        }
    });
}

/// Closes the innermost span; of another section than the running one, it is forgotten.
pub(super) fn exit() {
    let end = now();
    let _ = OPEN.try_with(|open| {
        let mut open = open.borrow_mut();
        let Some(frame) = open.pop() else { return };
        let around = open.last_mut().filter(|around| around.section == frame.section).map(|frame| &mut frame.inside);
        let mut session = locked(&SESSION);
        let is_current = is_recording() && frame.section == SECTION.load(Relaxed);
        if let Some(session) = session.as_mut().filter(|_| is_current) {
            session.close(&frame, around, end);
        }
    });
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

impl Session {
    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        if self.failure.is_none() {
            self.failure = self.file.write_fmt(text).err();
        }
    }

    /// This thread's number. Its name is in the file from then on.
    fn thread(&mut self) -> u64 {
        let number = THREAD.try_with(|number| *number).unwrap_or_default();
        if self.named.insert(number) {
            let name = std::thread::current().name().map_or_else(|| format!("thread {number}"), str::to_owned);
            let meta = json!({ "ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": { "name": name } });
            self.write(format_args!(",\n{meta}"));
        }
        number
    }

    /// Counts a span that ends, and draws it.
    fn close(&mut self, frame: &Frame, around: Option<&mut Inside>, end: Duration) {
        let (thread, elapsed) = (self.thread(), (end - frame.start).as_nanos() as u64);
        let mut passed =
            Inside { time: elapsed, waiting: frame.inside.waiting, counts: difference(counts(), frame.counts) };
        match frame.kind {
            None => {
                let idle = elapsed.saturating_sub(frame.inside.time);
                // What others did not work in is left to the span around: launching, or work that has no span.
                let waited = idle.min(WORKED.load(Relaxed) - frame.worked);
                self.totals.waiting += waited;
                passed.time = frame.inside.time + waited;
                passed.waiting += waited;
                passed.counts = frame.inside.counts;
            }
            Some(component) => {
                let total = &mut self.totals.components[component as usize];
                total.time += elapsed.saturating_sub(frame.inside.time);
                total.spans += 1;
                total.bytes += frame.bytes;
                total.counts = sum(total.counts, difference(passed.counts, frame.inside.counts));
                self.totals.threads.insert(thread);
                if around.is_none() {
                    WORKED.fetch_add(elapsed.saturating_sub(passed.waiting), Relaxed);
                }
            }
        }
        if let Some(around) = around {
            around.time += passed.time;
            around.waiting += passed.waiting;
            around.counts = sum(around.counts, passed.counts);
        }
        if !frame.fine {
            let (name, start, bytes) = (frame.kind.map_or(WAITING, Component::name), micros(frame.start), frame.bytes);
            let duration = micros(Duration::from_nanos(elapsed));
            self.write(format_args!(
                ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{thread},\"ts\":{start:.3},\"dur\":{duration:.3},\"name\":\"{name}\""
            ));
            match bytes {
                0 => self.write(format_args!("}}")),
                _ => self.write(format_args!(",\"args\":{{\"bytes\":{bytes}}}}}")),
            }
        }
    }

    /// Sums up the section that ends here.
    fn close_section(&mut self) {
        let Totals { components, waiting, threads } = std::mem::take(&mut self.totals);
        if threads.is_empty() {
            return;
        }
        let all = components.iter().map(|total| total.time).sum::<u64>().max(1);
        let row = |(component, total): (&Component, &Total)| {
            let [launches, kernels, host_reads, noise_bytes] = total.counts;
            Row {
                component: component.name(),
                share: total.time as f64 / all as f64,
                seconds: 1e-9 * total.time as f64,
                spans: total.spans,
                launches,
                kernels,
                host_reads,
                noise_bytes,
                bytes: total.bytes,
            }
        };
        self.sections.push(Section {
            name: self.name.clone(),
            generations: self.generations,
            wall_seconds: (self.end.unwrap_or_else(now) - self.start).as_secs_f64(),
            threads: threads.len(),
            waiting_seconds: 1e-9 * waiting as f64,
            components: Component::ALL.iter().zip(&components).map(row).collect(),
        });
    }

    fn finish(mut self) -> Result<Summary, Error> {
        let summary = Summary { sections: std::mem::take(&mut self.sections), synchronized: self.synchronize };
        let text = serde_json::to_string_pretty(&summary).expect("numbers and names");
        self.write(format_args!("\n],\"displayTimeUnit\":\"ms\",\"summary\":{text}}}\n"));
        let flushed = self.file.flush();
        match self.failure.map_or(flushed, Err) {
            Ok(()) => Ok(summary),
            Err(error) => Err(Error::io(self.path)(error)),
        }
    }
}
