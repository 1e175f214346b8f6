//! Jinja templates as in transformers: jinja2 in an immutable sandbox, with Python's values.
//!
//! `lexer`, `parser` and `expressions` make the statements of `ast`; `render` and `eval` run them on values of `value`, with `operators`,
//! `access`, `methods`, `filters`, `lists`, `predicates`, `format` and `json`. Unsupported features of Python are errors that name them. `meter`
//! bounds steps, memory and depth of every template.

mod access;
mod args;
mod ast;
mod call;
mod classes;
mod error;
mod eval;
mod expressions;
mod filters;
mod format;
mod frames;
mod input;
mod json;
mod lexer;
mod lists;
mod literals;
mod meter;
mod methods;
mod names;
mod operators;
mod parser;
mod predicates;
mod render;
mod text;
mod token;
mod value;

pub(crate) use input::Input;

use ast::StatementBlock;
use chrono::{DateTime, FixedOffset};
use error::{Result, fail};
use render::Renderer;
use std::sync::Arc;
use value::Value;

/// Bytes of a template's source at most.
const SOURCE: usize = 1 << 20;
/// Stack of the thread that parses or renders: enough for the deepest levels that the two allow.
const STACK: usize = 64 << 20;

/// A template that was parsed.
#[derive(Clone, Debug)]
pub(crate) struct Template(Arc<StatementBlock>);

impl Template {
    /// Parses a template's source.
    pub(crate) fn parse(source: &str) -> Result<Self> {
        if source.len() > SOURCE {
            return fail(format!("its source has {} bytes, {SOURCE} at most are supported", source.len()));
        }
        apart(|| parser::parse(source)).map(|block| Self(Arc::new(block)))
    }

    /// The text for some values, at a time.
    pub(crate) fn render(&self, values: &Input, now: DateTime<FixedOffset>) -> Result<String> {
        apart(|| {
            meter::start(values.bytes());
            let renderer = Renderer::new(now);
            for name in call::FUNCTIONS {
                renderer.root.set(&name.into(), Value::Function(name));
            }
            if let Input::Object(values) = values {
                for (name, value) in values {
                    renderer.root.set(&name.as_str().into(), value.value()?);
                }
            }
            renderer.render(&self.0)
        })
    }
}

/// Runs on a thread with its own stack: the caller's may be small.
fn apart<T: Send>(run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("template".into()).stack_size(STACK).spawn_scoped(scope, run);
        match thread.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => fail("it panics"),
            Err(error) => fail(format!("there is no thread for it: {error}")),
        }
    })
}
