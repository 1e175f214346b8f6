//! `--trace` of the examples: a Chrome trace of the run, and a summary by component.

use eggroll::run::Error;
use std::path::PathBuf;

/// Options of a trace.
#[derive(clap::Args, Debug, Clone)]
pub struct TraceArgs {
    /// Write a trace for Perfetto (ui.perfetto.dev), and a summary by component.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Traced generations, or rounds, of each part of the run.
    #[arg(long, value_name = "K", default_value_t = 20, requires = "trace")]
    pub trace_generations: u64,
    /// Let spans wait for the device: true times on GPUs, but a slower run.
    #[arg(long, requires = "trace")]
    pub trace_synchronize: bool,
}

impl TraceArgs {
    /// Runs `work` under a trace if there is to be one. The trace is complete also if `work` fails, panics, or is stopped by a signal,
    /// which [`interrupt`](crate::interrupt) sees to.
    ///
    /// # Errors
    ///
    /// The errors of `work`, and a trace that cannot be written.
    pub fn around<T, E: From<Error>>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        #[cfg(feature = "profile")]
        if let Some(path) = &self.trace {
            let config = eggroll::run::profile::TraceConfig::new(path).with_generations(self.trace_generations);
            let trace = config.with_synchronize(self.trace_synchronize).start()?;
            let done = work()?;
            let summary = trace.finish()?;
            eggroll::run::print_note!("{summary}trace: {}", path.display());
            return Ok(done);
        }
        work()
    }
}

/// Begins a part of the program that has its own summary in the trace, if there is one.
#[cfg_attr(not(feature = "profile"), expect(unused_variables, reason = "there are no traces"))]
pub fn section(name: &str) {
    #[cfg(feature = "profile")]
    eggroll::run::profile::section(name);
}

/// Completes the trace, if there is one: for a process that ends at once.
///
/// # Errors
///
/// That of a trace that cannot be written.
pub fn finish() -> Result<(), Error> {
    #[cfg(feature = "profile")]
    if let Some(finished) = eggroll::run::profile::finish_running() {
        return finished.map(drop);
    }
    Ok(())
}
