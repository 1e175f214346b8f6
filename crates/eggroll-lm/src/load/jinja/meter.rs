//! Limits of a template: steps, live memory and depth. Each rendering has its own thread, and thus its own counters.

use super::error::{Result, TemplateError};
use std::cell::Cell;

/// Steps of one rendering: about a second.
pub(super) const STEPS: u64 = 10_000_000;
/// Bytes of all live texts and lists, in addition to the chat's.
pub(super) const MEMORY: usize = 64 << 20;
/// Levels of calls, blocks and expressions.
const DEPTH: usize = 500;
/// Levels of values in values.
pub(super) const LEVELS: usize = 150;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(STEPS) };
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static LIMIT: Cell<usize> = const { Cell::new(MEMORY) };
    static LEVEL: Cell<usize> = const { Cell::new(0) };
}

/// Sets the counters for a rendering whose values take some bytes.
pub(super) fn start(bytes: usize) {
    LEFT.set(STEPS);
    LIVE.set(0);
    LIMIT.set(MEMORY.saturating_add(bytes.saturating_mul(8)));
    LEVEL.set(0);
}

/// Counts steps.
pub(super) fn step(count: usize) -> Result<()> {
    let left = LEFT.get().checked_sub(count as u64);
    LEFT.set(left.unwrap_or(0));
    left.map(drop).ok_or_else(|| TemplateError(format!("it does not end within {STEPS} instructions")))
}

/// Fails where some more bytes are too many.
pub(super) fn room(bytes: usize) -> Result<()> {
    let limit = LIMIT.get();
    if LIVE.get().checked_add(bytes).is_some_and(|live| live <= limit) {
        return Ok(());
    }
    Err(TemplateError(format!("its texts and lists take more than {limit} bytes")))
}

/// Bytes that are counted while they live.
#[derive(Debug)]
pub(super) struct MeteredBytes(usize);

impl MeteredBytes {
    pub(super) fn new(bytes: usize) -> Result<Self> {
        step(bytes / 64)?;
        room(bytes)?;
        LIVE.set(LIVE.get() + bytes);
        Ok(Self(bytes))
    }
}

impl Drop for MeteredBytes {
    fn drop(&mut self) {
        LIVE.set(LIVE.get().saturating_sub(self.0));
    }
}

/// One level deeper, as long as it lives.
pub(super) struct Deeper;

impl Deeper {
    pub(super) fn new() -> Result<Self> {
        step(1)?;
        LEVEL.set(LEVEL.get() + 1);
        if LEVEL.get() > DEPTH {
            LEVEL.set(LEVEL.get() - 1);
            return Err(TemplateError(format!("it nests calls and expressions more than {DEPTH} deep")));
        }
        Ok(Self)
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        LEVEL.set(LEVEL.get() - 1);
    }
}

/// A text in the making, counted as it grows.
#[derive(Debug, Default)]
pub(super) struct Buffer(String);

impl Buffer {
    pub(super) fn push(&mut self, text: &str) -> Result<()> {
        step(text.len() / 64)?;
        room(text.len())?;
        LIVE.set(LIVE.get() + text.len());
        self.0.push_str(text);
        Ok(())
    }

    pub(super) fn push_char(&mut self, character: char) -> Result<()> {
        self.push(character.encode_utf8(&mut [0; 4]))
    }

    pub(super) fn repeat(&mut self, text: &str, count: usize) -> Result<()> {
        room(text.len().saturating_mul(count))?;
        (0..count).try_for_each(|_| self.push(text))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn text(mut self) -> String {
        LIVE.set(LIVE.get().saturating_sub(self.0.len()));
        std::mem::take(&mut self.0)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        LIVE.set(LIVE.get().saturating_sub(self.0.len()));
    }
}
