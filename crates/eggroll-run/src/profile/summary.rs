//! The result of a trace.

use super::times::Times;
use eggroll_core::profile::Component;
use serde::Serialize;
use std::fmt;

/// The summary of a trace, section by section.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The sections that hold spans.
    pub sections: Vec<Section>,
    /// Whether spans waited for their device.
    pub synchronized: bool,
}

/// The summary of one section.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Generations that were traced.
    pub generations: u64,
    /// Seconds from its beginning to its end or the end of its last traced generation.
    pub wall_seconds: f64,
    /// Threads with spans.
    pub threads: usize,
    /// Seconds, summed over threads, in which a thread waited while others worked on spans.
    pub waiting_seconds: f64,
    /// Processor time of the process in it, in seconds; 0 outside Unix.
    pub cpu_seconds: f64,
    /// One row for each component, in the order of [`Component::ALL`].
    pub components: Vec<Row>,
    /// What the thread that runs the generations did, one after the other. The last is [`Phase::OTHER`].
    pub phases: Vec<Phase>,
}

/// The times of one phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Name of the component, or [`Phase::OTHER`].
    pub phase: &'static str,
    /// Seconds on the thread that runs the generations.
    pub wall_seconds: f64,
    /// Processor time of all threads meanwhile, in seconds.
    pub cpu_seconds: f64,
}

/// The totals of one component.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the component.
    pub component: &'static str,
    /// Its part of the self time of all components.
    pub share: f64,
    /// Self time, summed over threads.
    pub seconds: f64,
    /// Spans.
    pub spans: u64,
    /// Perturbed operations and estimates that were launched inside, but not inside another component.
    pub launches: u64,
    /// Kernels of eggroll launched on devices.
    pub kernels: u64,
    /// Tensors read to the host.
    pub host_reads: u64,
    /// Bytes of noise written to tensors.
    pub noise_bytes: u64,
    /// Bytes that the work wrote, as spans told: noise drawn, results of products, gradients.
    pub bytes: u64,
}

impl Phase {
    /// The time outside of all spans: data, validation, logs, checkpoints.
    pub const OTHER: &str = "other";

    pub(super) fn new(phase: &'static str, times: Times) -> Self {
        Self { phase, wall_seconds: times.wall.as_secs_f64(), cpu_seconds: times.cpu.as_secs_f64() }
    }

    /// Processors that were busy, on average.
    pub fn busy(&self) -> f64 {
        self.cpu_seconds / self.wall_seconds.max(f64::MIN_POSITIVE)
    }
}

impl Section {
    /// The row of a component.
    pub fn row(&self, component: Component) -> &Row {
        &self.components[component as usize]
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, section) in self.sections.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            section.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, generations, wall_seconds, threads, waiting_seconds, components, cpu_seconds, phases } = self;
        writeln!(f, "{name}: {generations} generations traced, {wall_seconds:.3} s, {threads} threads")?;
        writeln!(
            f,
            "component       share   seconds    spans  launches  kernels  host reads   noise held       written"
        )?;
        // Only decisions have worlds.
        let shown = |row: &&Row| row.spans > 0 || row.component != Component::Worlds.name();
        for row in components.iter().filter(shown) {
            writeln!(
                f,
                "{:<13} {:>5.1} %  {:>8.4} {:>8}  {:>8}  {:>7}  {:>10}  {:>11}  {:>12}",
                row.component,
                100.0 * row.share,
                row.seconds,
                row.spans,
                row.launches,
                row.kernels,
                row.host_reads,
                row.noise_bytes,
                row.bytes
            )?;
        }
        writeln!(f, "waiting                {waiting_seconds:>9.4}")?;
        let all = Phase { phase: "all", wall_seconds: *wall_seconds, cpu_seconds: *cpu_seconds };
        writeln!(f, "phase           share   seconds  busy processors")?;
        for phase in phases.iter().chain([&all]) {
            let share = 100.0 * phase.wall_seconds / wall_seconds.max(f64::MIN_POSITIVE);
            let (name, seconds, busy) = (phase.phase, phase.wall_seconds, phase.busy());
            writeln!(f, "{name:<13} {share:>5.1} %  {seconds:>8.4} {busy:>16.2}")?;
        }
        Ok(())
    }
}
