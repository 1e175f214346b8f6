//! Where the time goes: spans of the [`tracing`](https://docs.rs/tracing) crate around the parts of a generation.
//!
//! Any subscriber sees them, as spans of level `TRACE` and target [`TARGET`]; `eggroll_run::profile` has one that writes a
//! Chrome trace and a summary. Without a subscriber a span costs one load of a counter that stays in cache.
//!
//! | span | contents |
//! |---|---|
//! | `ask` | a population is made; noise that is held is drawn |
//! | `noise` | noise is drawn, or written as perturbed vectors; a bias's noise too |
//! | `base product` | `x·W`. On a CPU its last step adds the low-rank part to each tile while that is in registers. Integer products, perturbed or not, and the integer GRU are in here whole |
//! | `low-rank part` | `x·B`, and the addition of `(x·B)·Aᵀ` where that is a separate step: rows that all members share, and devices. For OpenES the product `x·ε` |
//! | `fitness` | an evaluation: the user's closure for a chunk of members, and the host read of all fitness |
//! | `estimate` | fitness becomes weights of pairs, those become gradients. The same sums, of one pair, make the noise of members that are separate models |
//! | `optimizer` | burn-optim's step; the votes on integer parameters |
//! | `worlds` | decisions by expected values: worlds are sampled and written as positions. What follows, the oracle, its values and the host read, is `fitness` |
//! | `waiting` | a thread only waits for others: not a component, its time is that of the components that it waits for |
//!
//! Fields: `bytes`, the bytes that the span's work wrote; `fine`, true for spans that are too short and too many to be drawn.
//! An event `generation` precedes every `ask`.
//!
//! # Nesting
//!
//! On a CPU operations are cut into tasks, and the spans of a task belong to the thread that ran it. Spans of one thread nest. On
//! devices, eggroll's kernels draw noise where they use it: on the fly there is no `noise`, and its time is in `low-rank part`
//! and `estimate`.
//!
//! # Devices run later
//!
//! Operations on a device are queued, and with Burn's Fusion even launched later, on a thread of the device. A span around a
//! launch says when work was queued, not how long it took. [`set_synchronize`] makes every span wait for the device at its end:
//! true times, in a slower program with the same results.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;
use tracing::{Level, event};

/// Target of all spans and events.
pub const TARGET: &str = "eggroll";
/// Name of spans in which a thread only waits.
pub const WAITING: &str = "waiting";
/// Name of the event before each generation; its field `number` is the generation.
pub const GENERATION: &str = "generation";

/// A part of a generation: see the table of [the module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// `ask`
    Ask,
    /// `noise`
    Noise,
    /// `base product`
    BaseProduct,
    /// `low-rank part`
    LowRankPart,
    /// `fitness`
    Fitness,
    /// `estimate`
    Estimate,
    /// `optimizer`
    Optimizer,
    /// `worlds`
    Worlds,
}

impl Component {
    /// All components, in the order of a generation; then the components of decisions.
    pub const ALL: [Self; 8] = [
        Self::Ask,
        Self::Noise,
        Self::BaseProduct,
        Self::LowRankPart,
        Self::Fitness,
        Self::Estimate,
        Self::Optimizer,
        Self::Worlds,
    ];

    /// Name of the component's spans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Noise => "noise",
            Self::BaseProduct => "base product",
            Self::LowRankPart => "low-rank part",
            Self::Fitness => "fitness",
            Self::Estimate => "estimate",
            Self::Optimizer => "optimizer",
            Self::Worlds => "worlds",
        }
    }

    /// The component with spans of this name.
    ///
    /// ```
    /// use eggroll_core::profile::Component;
    ///
    /// assert!(Component::ALL.into_iter().all(|component| Component::of_name(component.name()) == Some(component)));
    /// assert_eq!(Component::of_name("waiting"), None);
    /// ```
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|component| component.name() == name)
    }
}

static SYNCHRONIZE: AtomicBool = AtomicBool::new(false);

/// Whether spans wait for their device at their end. Off at first; results do not depend on it.
pub fn set_synchronize(synchronize: bool) {
    SYNCHRONIZE.store(synchronize, Relaxed);
}

/// Whether a subscriber may be listening: one load.
#[inline]
pub fn enabled() -> bool {
    LevelFilter::current() == LevelFilter::TRACE
}

/// A span that is open until it is dropped.
///
/// # Example
///
/// ```
/// use eggroll_core::profile::{self, Component};
///
/// let span = profile::span(Component::Fitness, 0);
/// // … work on this thread …
/// drop(span);
/// ```
#[must_use = "a span that is dropped at once measures nothing"]
#[derive(Debug)]
pub struct Span {
    open: Option<EnteredSpan>,
}

/// Opens a span of work that writes `bytes` bytes.
#[inline]
pub fn span(component: Component, bytes: usize) -> Span {
    task(enabled(), component, bytes)
}

/// Opens a span in which this thread waits for work that others do.
#[inline]
pub fn waiting() -> Span {
    Span { open: enabled().then(open_waiting) }
}

/// Marks the beginning of a generation.
#[inline]
pub fn generation(number: u64) {
    event!(name: GENERATION, target: TARGET, Level::TRACE, number);
}

/// Like [`span`] for the tasks of an operation that has asked [`enabled`] once.
#[inline]
pub(crate) fn task(traced: bool, component: Component, bytes: usize) -> Span {
    Span { open: traced.then(|| open(component, bytes as u64, false)) }
}

/// Like [`task`], for parts so short and many that they are summed up but not drawn.
#[inline]
pub(crate) fn fine(traced: bool, component: Component, bytes: usize) -> Span {
    Span { open: traced.then(|| open(component, bytes as u64, true)) }
}

/// Opens a span of waiting if this thread hands its parallel work to threads of a pool. A thread of a pool does its part.
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) fn waiting_for_pool() -> Span {
    match enabled() && rayon::current_thread_index().is_none() {
        true => waiting(),
        false => Span { open: None },
    }
}

impl Span {
    /// Closes the span. If [`set_synchronize`] is on and a subscriber listens, it first waits for the device by
    /// `synchronize`; that time counts for the span.
    pub fn end(self, synchronize: impl FnOnce()) {
        if self.open.is_some() && SYNCHRONIZE.load(Relaxed) {
            synchronize();
        }
    }

    /// Like [`end`](Self::end), if the device's work has separate spans on the device's thread.
    pub fn end_waiting(self, synchronize: impl FnOnce()) {
        self.end(|| {
            let _waiting = waiting();
            synchronize();
        });
    }

    /// Sets the bytes that the span's work has written, if they were not known before.
    pub(crate) fn set_bytes(&self, bytes: usize) {
        if let Some(span) = &self.open {
            span.record("bytes", bytes as u64);
        }
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if let Some(span) = self.open.take() {
            close(span);
        }
    }
}

// Out of line: kernels pay for the test above only.
#[cold]
#[inline(never)]
fn close(span: EnteredSpan) {
    drop(span);
}

#[cold]
#[inline(never)]
fn open(component: Component, bytes: u64, fine: bool) -> EnteredSpan {
    /// `tracing` needs a separate callsite for every name.
    macro_rules! by_name {
        ($($variant:ident)*) => {
            match component {
                $(Component::$variant => {
                    tracing::span!(target: TARGET, Level::TRACE, Component::$variant.name(), bytes, fine)
                })*
            }
        };
    }
    by_name!(Ask Noise BaseProduct LowRankPart Fitness Estimate Optimizer Worlds).entered()
}

#[cold]
#[inline(never)]
fn open_waiting() -> EnteredSpan {
    tracing::span!(target: TARGET, Level::TRACE, WAITING).entered()
}
