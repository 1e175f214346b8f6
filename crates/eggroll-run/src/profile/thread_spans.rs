//! One thread's part of a trace: its open spans, and the totals of the closed ones.

use super::summary::{Phase, Row};
use super::times::Times;
use eggroll_core::counters;
use eggroll_core::profile::{Component, WAITING};
use std::fmt::Write;
use std::ops::{AddAssign, Sub};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const COMPONENTS: usize = Component::ALL.len();

/// Nanoseconds of outermost spans on any thread, without waiting: the work of others meanwhile.
static WORKED: AtomicU64 = AtomicU64::new(0);

/// The kind of a span; `None` is waiting.
pub(super) type SpanKind = Option<Component>;

/// Counts of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    launches: u64,
    kernels: u64,
    host_reads: u64,
    noise_bytes: u64,
}

impl Counts {
    fn now() -> Self {
        let counters::Counters { host_reads, launches, noise_bytes } = counters::snapshot();
        Self { launches, kernels: counters::thread_kernels(), host_reads, noise_bytes }
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            launches: self.launches - before.launches,
            kernels: self.kernels - before.kernels,
            host_reads: self.host_reads - before.host_reads,
            noise_bytes: self.noise_bytes - before.noise_bytes,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.launches += other.launches;
        self.kernels += other.kernels;
        self.host_reads += other.host_reads;
        self.noise_bytes += other.noise_bytes;
    }
}

/// A span that is open.
struct Frame {
    kind: SpanKind,
    fine: bool,
    /// The section that it was opened in.
    section: u64,
    bytes: u64,
    start: Duration,
    counts: Counts,
    /// [`WORKED`] at the start.
    worked: u64,
    /// The times at the start, of a phase.
    phase: Option<Times>,
    inside: Inside,
}

/// The share of inner spans in a span.
#[derive(Default)]
struct Inside {
    /// Nanoseconds.
    time: u64,
    /// Nanoseconds of waiting, all of them in `time`.
    waiting: u64,
    counts: Counts,
}

/// Sums by component.
#[derive(Clone, Default)]
pub(super) struct Totals {
    components: [Total; COMPONENTS],
    waiting: u64,
    /// Phases by component; the last is waiting.
    phases: [Times; COMPONENTS + 1],
    pub threads: usize,
}

#[derive(Clone, Copy, Default)]
struct Total {
    time: u64,
    spans: u64,
    bytes: u64,
    counts: Counts,
}

/// One thread.
pub(super) struct ThreadSpans {
    pub thread: usize,
    pub name: String,
    /// Events that are not written to the file yet.
    pub text: String,
    /// Whether the thread's name is in the file of the running trace.
    pub named: bool,
    /// Whether the thread runs the generations: its outermost spans are their phases.
    pub drives: bool,
    open: Vec<Frame>,
    totals: Totals,
}

impl ThreadSpans {
    pub fn new(thread: usize, name: String) -> Self {
        Self {
            thread,
            name,
            text: String::new(),
            named: false,
            drives: false,
            open: Vec::new(),
            totals: Totals::default(),
        }
    }

    pub fn enter(&mut self, kind: SpanKind, fine: bool, bytes: u64, section: u64, now: Duration) {
        let is_phase = self.drives && self.open.is_empty();
        self.open.push(Frame {
            kind,
            fine,
            section,
            bytes,
            start: now,
            counts: Counts::now(),
            worked: WORKED.load(Relaxed),
            phase: is_phase.then(Times::now),
            inside: Inside::default(),
        });
    }

    /// Corrects the bytes of the innermost span.
    pub fn set_bytes(&mut self, bytes: u64) {
        if let Some(frame) = self.open.last_mut() {
            frame.bytes = bytes;
        }
    }

    /// Closes the innermost span; it is dropped if it belongs to an earlier section.
    pub fn exit(&mut self, section: Option<u64>, now: Duration) {
        let Some(frame) = self.open.pop() else { return };
        if section != Some(frame.section) {
            return;
        }
        if let Some(start) = frame.phase {
            let phase = frame.kind.map_or(COMPONENTS, |component| component as usize);
            self.totals.phases[phase] += Times::now() - start;
        }
        let elapsed = (now - frame.start).as_nanos() as u64;
        let around = self.open.last_mut().filter(|around| around.section == frame.section).map(|f| &mut f.inside);
        match frame.kind {
            None => {
                let idle = elapsed.saturating_sub(frame.inside.time);
                // Time in which no other thread worked stays with the outer span: launching, or work without a span.
                let waited = idle.min(WORKED.load(Relaxed) - frame.worked);
                self.totals.waiting += waited;
                if let Some(around) = around {
                    around.time += frame.inside.time + waited;
                    around.waiting += frame.inside.waiting + waited;
                    around.counts += frame.inside.counts;
                }
            }
            Some(component) => {
                let counts = Counts::now() - frame.counts;
                let total = &mut self.totals.components[component as usize];
                total.time += elapsed.saturating_sub(frame.inside.time);
                total.spans += 1;
                total.bytes += frame.bytes;
                total.counts += counts - frame.inside.counts;
                match around {
                    Some(around) => {
                        around.time += elapsed;
                        around.waiting += frame.inside.waiting;
                        around.counts += counts;
                    }
                    None => {
                        WORKED.fetch_add(elapsed.saturating_sub(frame.inside.waiting), Relaxed);
                    }
                }
            }
        }
        if !frame.fine {
            self.draw(frame.kind.map_or(WAITING, Component::name), frame.start, elapsed, frame.bytes);
        }
    }

    fn draw(&mut self, name: &str, start: Duration, elapsed: u64, bytes: u64) {
        let (start, thread) = (start.as_nanos(), self.thread);
        let (ts, dur) = ((start / 1000, start % 1000), (elapsed / 1000, elapsed % 1000));
        let event = format_args!(
            ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{thread},\"ts\":{}.{:03},\"dur\":{}.{:03},\"name\":\"{name}\"",
            ts.0, ts.1, dur.0, dur.1
        );
        self.text.write_fmt(event).expect("a string grows");
        self.text.push_str(if bytes == 0 { "}" } else { "" });
        if bytes > 0 {
            write!(self.text, ",\"args\":{{\"bytes\":{bytes}}}}}").expect("a string grows");
        }
    }

    /// The sums since the last call.
    pub fn take_totals(&mut self) -> Totals {
        std::mem::take(&mut self.totals)
    }
}

impl Totals {
    pub fn add(&mut self, other: &Self) {
        for (total, other) in self.components.iter_mut().zip(&other.components) {
            total.time += other.time;
            total.spans += other.spans;
            total.bytes += other.bytes;
            total.counts += other.counts;
        }
        for (phase, other) in self.phases.iter_mut().zip(&other.phases) {
            *phase += *other;
        }
        self.waiting += other.waiting;
        self.threads += usize::from(!other.is_empty());
    }

    pub fn is_empty(&self) -> bool {
        self.components.iter().all(|total| total.spans == 0)
    }

    pub fn waiting_seconds(&self) -> f64 {
        1e-9 * self.waiting as f64
    }

    /// The phases that took time, and the time outside of them, of a section that took `all`.
    pub fn phases(&self, all: Times) -> Vec<Phase> {
        let names = Component::ALL.iter().map(|component| component.name()).chain([WAITING]);
        let mut other = all;
        let mut phases = Vec::new();
        for (name, times) in names.zip(&self.phases) {
            other = other - *times;
            if !times.wall.is_zero() {
                phases.push(Phase::new(name, *times));
            }
        }
        phases.push(Phase::new(Phase::OTHER, other));
        phases
    }

    pub fn rows(&self) -> Vec<Row> {
        let all = self.components.iter().map(|total| total.time).sum::<u64>().max(1);
        let row = |(component, total): (&Component, &Total)| Row {
            component: component.name(),
            share: total.time as f64 / all as f64,
            seconds: 1e-9 * total.time as f64,
            spans: total.spans,
            launches: total.counts.launches,
            kernels: total.counts.kernels,
            host_reads: total.counts.host_reads,
            noise_bytes: total.counts.noise_bytes,
            bytes: total.bytes,
        };
        Component::ALL.iter().zip(&self.components).map(row).collect()
    }
}
