//! The `tracing` subscriber: records spans in the lanes of their threads.

use super::session;
use super::thread_spans::SpanKind;
use eggroll_core::profile::{Component, GENERATION, TARGET};
use std::fmt::Debug;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// The subscriber of the process; its only state is the running trace.
struct TraceRecorder;

/// Makes the recorder the subscriber of this process; `false` if there is another.
pub(super) fn install() -> bool {
    tracing::subscriber::set_global_default(TraceRecorder).is_ok()
}

impl Subscriber for TraceRecorder {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target() == TARGET { Interest::sometimes() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if session::is_recording() { LevelFilter::TRACE } else { LevelFilter::OFF })
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET && session::is_recording()
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        Packed { kind: Component::of_name(attributes.metadata().name()), fine: fields.fine, bytes: fields.bytes }.id()
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = SpanFields::default();
        values.record(&mut fields);
        session::with_lane(|lane| lane.set_bytes(fields.bytes));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if event.metadata().name() == GENERATION {
            let mut fields = SpanFields::default();
            event.record(&mut fields);
            session::generation(fields.number);
        }
    }

    fn enter(&self, id: &Id) {
        let Packed { kind, fine, bytes } = Packed::of(id);
        session::enter(kind, fine, bytes);
    }

    fn exit(&self, _: &Id) {
        session::exit();
    }
}

/// All properties of a span, packed into its id: nothing has to be stored. Spans of one kind and size share an id. This
/// suffices: they are entered where they are created, and no code looks one up by its id.
struct Packed {
    kind: SpanKind,
    fine: bool,
    bytes: u64,
}

impl Packed {
    fn id(self) -> Id {
        let kind = self.kind.map_or(0, |component| component as u64 + 1);
        Id::from_u64(1 + (self.bytes << 5 | u64::from(self.fine) << 4 | kind))
    }

    fn of(id: &Id) -> Self {
        let packed = id.into_u64() - 1;
        let component = (packed & 15).checked_sub(1).map(|index| Component::ALL[index as usize]);
        Self { kind: component, fine: packed >> 4 & 1 == 1, bytes: packed >> 5 }
    }
}

/// Values of the fields that are known.
#[derive(Default)]
struct SpanFields {
    bytes: u64,
    number: u64,
    fine: bool,
}

impl Visit for SpanFields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "bytes" => self.bytes = value,
            "number" => self.number = value,
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "fine" {
            self.fine = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}
