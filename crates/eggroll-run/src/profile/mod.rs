//! A profiler: a Chrome trace of a run and a summary by component.
//!
//! [`eggroll_core::profile`] documents the spans; any subscriber of the `tracing` crate sees them too. A [`Trace`] writes them to a
//! JSON file for <https://ui.perfetto.dev> and Chrome's `about:tracing`, and sums them up. It installs itself as the process's
//! `tracing` subscriber, once.
//!
//! # Size
//!
//! A span takes 80 to 110 bytes of the file. A trace holds only the first generations of each [`section`]
//! ([`TraceConfig::with_generations`]); later ones are neither written nor summed up, and run at full speed. One generation of
//! the MNIST example with its defaults (2048 members, batch 32) is 3,500 drawn spans, 340 KB. Recording a span costs about a
//! microsecond, which shows in the shares of components whose tasks take a few microseconds.
//!
//! # The summary
//!
//! Seconds are *self time*, summed over threads: a span's time without the spans inside it, and without the time in which its
//! thread waited while others worked on spans. Shares refer to the sum over all components, so they add up to 1. On a device they
//! are true only with [`TraceConfig::with_synchronize`].
//!
//! Phases are the outermost spans of the thread that runs the generations, with its own seconds. Busy processors are the processor time of
//! the whole process in a phase, divided by these seconds. The thread's time outside of spans is the phase `other`.
//!
//! # Example
//!
//! ```
//! use burn::optim::SgdConfig;
//! use burn::tensor::{Device, Tensor};
//! use eggroll_core::EggrollConfig;
//! use eggroll_core::profile::Component;
//! use eggroll_nn::LinearConfig;
//! use eggroll_train::EvolutionStrategyConfig;
//! use eggroll_run::profile::TraceConfig;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("trace.json");
//! let trace = TraceConfig::new(&path).with_generations(2).start()?;
//! let device = Device::flex();
//! let mut model = LinearConfig::new(2, 1).init(&device);
//! let x = Tensor::<2>::ones([4, 2], &device);
//! let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).init(&model);
//! for _ in 0..3 {
//!     let population = strategy.ask();
//!     let fitness = population.evaluate(|members| members.mean(model.forward_shared(x.clone())));
//!     strategy.tell(&mut model, population, fitness)?;
//! }
//! let summary = trace.finish()?;
//! assert_eq!(summary.sections[0].generations, 2);
//! assert_eq!(summary.sections[0].row(Component::Ask).spans, 2);
//! println!("{summary}"); // the same is in the file, under "summary"
//! # Ok(())
//! # }
//! ```

mod recorder;
mod session;
mod summary;
mod thread_spans;
mod times;

pub use summary::{Phase, Row, Section, Summary};

use crate::error::{Error, TraceError};
use std::fs::File;
use std::path::PathBuf;

/// The settings of a trace.
#[derive(Clone, Debug)]
pub struct TraceConfig {
    path: PathBuf,
    generations: Option<u64>,
    synchronize: bool,
}

impl TraceConfig {
    /// A trace of everything, to a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), generations: None, synchronize: false }
    }

    /// Traces the first `generations` generations of each section only.
    pub fn with_generations(mut self, generations: u64) -> Self {
        self.generations = Some(generations);
        self
    }

    /// Lets every span wait for its device: true times on devices, in a slower program. See [`eggroll_core::profile`].
    pub fn with_synchronize(mut self, synchronize: bool) -> Self {
        self.synchronize = synchronize;
        self
    }

    /// Creates the file and begins.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be written; [`TraceError::Generations`] for no generations; [`TraceError::Running`] if a
    /// trace is running; [`TraceError::Subscriber`] if the process has another `tracing` subscriber.
    pub fn start(self) -> Result<Trace, Error> {
        if self.generations == Some(0) {
            return Err(TraceError::Generations(0).into());
        }
        session::start(self.generations, self.synchronize, recorder::install, || {
            let file = File::create(&self.path).map_err(Error::io(&self.path))?;
            Ok((file, self.path.clone()))
        })?;
        Ok(Trace(()))
    }
}

/// A running trace. Dropped without [`finish`](Self::finish), it completes its file all the same.
#[must_use = "a trace that is dropped at once is empty"]
#[derive(Debug)]
pub struct Trace(());

impl Trace {
    /// Ends the trace, completes the file and returns the summary.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file if something could not be written; [`TraceError::NotRunning`] if [`finish_running`] came first.
    pub fn finish(self) -> Result<Summary, Error> {
        finish_running().unwrap_or(Err(TraceError::NotRunning.into()))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // An error cannot be reported here; after `finish` there is nothing left to do.
        drop(finish_running());
    }
}

/// Ends the running trace, if there is one: for signal handlers, which end the process without dropping anything.
///
/// # Errors
///
/// As [`Trace::finish`].
pub fn finish_running() -> Option<Result<Summary, Error>> {
    session::finish()
}

/// Begins a part of the program that has its own summary, and its own count of generations. Does nothing without a trace.
pub fn section(name: &str) {
    session::section(name);
}
