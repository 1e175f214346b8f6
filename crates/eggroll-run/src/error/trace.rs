//! Traces.

/// Why a trace does not begin or end.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A trace of no generations.
    #[error("a trace holds at least 1 generation, not {0}")]
    Generations(u64),
    /// A second trace at a time.
    #[error("a trace is running already: finish it first")]
    Running,
    /// A trace that has ended before.
    #[error("the trace has ended already")]
    NotRunning,
    /// A process that has another subscriber.
    #[error("a trace must be the process's tracing subscriber, but another one is set: use only one of them")]
    Subscriber,
}

eggroll_core::debug_is_message!(TraceError);
