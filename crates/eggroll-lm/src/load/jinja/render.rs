//! Statements, run.

use super::args::CallArgs;
use super::ast::{Arguments, AssignTarget, For, MacroBody, Name, Statement, StatementBlock, StatementKind};
use super::error::{Result, TemplateError, fail};
use super::meter::{Buffer, Deeper, step};
use super::value::{Items, Loop, Macro, Scope, Value};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// What follows a statement.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
}

/// One rendering.
pub(super) struct Renderer {
    pub(super) root: Rc<Scope>,
    /// Scopes that macros see, which hold the macros: cleared at the end.
    seen: RefCell<Vec<Rc<Scope>>>,
    line: Cell<usize>,
    pub(super) now: chrono::DateTime<chrono::FixedOffset>,
}

impl Renderer {
    pub(super) fn new(now: chrono::DateTime<chrono::FixedOffset>) -> Self {
        Self { root: Rc::default(), seen: RefCell::default(), line: Cell::new(1), now }
    }

    /// The text of a template.
    pub(super) fn render(&self, template: &StatementBlock) -> Result<String> {
        let mut out = Buffer::default();
        let top = Scope::inside(&self.root);
        let result = self.run_block(template, &top, &mut out);
        self.seen.take().iter().for_each(|scope| scope.clear());
        result.map_err(|error| TemplateError(format!("{} (line {})", error.0, self.line.get())))?;
        Ok(out.text())
    }

    fn run(&self, body: &[Statement], scope: &Rc<Scope>, out: &mut Buffer) -> Result<Flow> {
        let _deeper = Deeper::new()?;
        for statement in body {
            self.line.set(statement.line);
            step(1)?;
            let flow = self.statement(&statement.kind, scope, out)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    /// Runs a block in its scope.
    fn run_block(&self, block: &StatementBlock, scope: &Rc<Scope>, out: &mut Buffer) -> Result<Flow> {
        block.hidden.iter().for_each(|name| scope.set(name, Value::undefined(name)));
        self.run(&block.body, scope, out)
    }

    /// The text of a block.
    fn capture(&self, block: &StatementBlock, scope: &Rc<Scope>) -> Result<Value> {
        let mut text = Buffer::default();
        match self.run_block(block, scope, &mut text)? {
            Flow::On => text.value(),
            _ => fail("break and continue out of a set or filter block are not supported"),
        }
    }

    fn statement(&self, kind: &StatementKind, scope: &Rc<Scope>, out: &mut Buffer) -> Result<Flow> {
        match kind {
            StatementKind::Data(text) => out.push(text)?,
            StatementKind::Print(value) => self.eval(value, scope)?.print(out)?,
            StatementKind::If(branches, otherwise) => {
                for (test, body) in branches {
                    if self.eval(test, scope)?.is_true() {
                        return self.run(body, scope, out);
                    }
                }
                return self.run(otherwise, scope, out);
            }
            StatementKind::For(each) => {
                let over = self.eval(&each.over, scope)?;
                self.for_loop(each, &over, scope, 0, out)?;
            }
            StatementKind::Set(target, value) => {
                let value = self.eval(value, scope)?;
                self.assign(target, value, scope)?;
            }
            StatementKind::SetBlock(target, filters, body) => {
                let text = self.capture(body, &Scope::inside(scope))?;
                let text = self.filtered(text, filters, scope)?;
                self.assign(target, text, scope)?;
            }
            StatementKind::Macro(name, body) => {
                let value = self.closure(body, scope);
                scope.set(name, value);
            }
            StatementKind::Call(call, body) => {
                let caller = self.closure(body, scope);
                self.eval_call(call, Some(caller), scope)?.print(out)?;
            }
            StatementKind::Filter(filters, body) => {
                let text = self.capture(body, &Scope::inside(scope))?;
                self.filtered(text, filters, scope)?.print(out)?;
            }
            StatementKind::With(values, body) => {
                let inner = Scope::inside(scope);
                for (target, value) in values {
                    let value = self.eval(value, scope)?;
                    self.assign(target, value, &inner)?;
                }
                return self.run_block(body, &inner, out);
            }
            StatementKind::Generation(body) => self.capture(body, &Scope::inside(scope))?.print(out)?,
            StatementKind::Break => return Ok(Flow::Break),
            StatementKind::Continue => return Ok(Flow::Continue),
            StatementKind::Refused(reason) => return fail(&**reason),
        }
        Ok(Flow::On)
    }

    fn filtered(&self, text: Value, filters: &[(Name, Arguments)], scope: &Rc<Scope>) -> Result<Value> {
        filters.iter().try_fold(text, |text, (name, arguments)| {
            let args = self.arguments(arguments, scope)?;
            self.filter(name, text, args)
        })
    }

    fn closure(&self, body: &Arc<MacroBody>, scope: &Rc<Scope>) -> Value {
        self.seen.borrow_mut().push(scope.clone());
        Value::Macro(Rc::new(Macro { body: body.clone(), scope: scope.clone() }))
    }

    fn assign(&self, target: &AssignTarget, value: Value, scope: &Rc<Scope>) -> Result<()> {
        match target {
            AssignTarget::Name(name) => scope.set(name, value),
            AssignTarget::Attribute(name, attribute) => {
                let Some(Value::Namespace(names)) = scope.get(name) else {
                    return fail(format!("cannot assign attribute on non-namespace object {name:?}"));
                };
                if attribute.starts_with('_') {
                    return fail(format!("a namespace cannot have the attribute {attribute:?}"));
                }
                if !value.is_plain() {
                    return fail("a namespace within a namespace is not supported");
                }
                let mut names = names.0.borrow_mut();
                match names.iter_mut().find(|(name, _)| name == attribute) {
                    Some((_, old)) => *old = value,
                    None => names.push((attribute.clone(), value)),
                }
            }
            AssignTarget::Tuple(targets) => {
                let values = value.iterate()?;
                if values.len() != targets.len() {
                    return fail(format!("{} values for {} names", values.len(), targets.len()));
                }
                for (target, value) in targets.iter().zip(values) {
                    self.assign(target, value, scope)?;
                }
            }
        }
        Ok(())
    }

    /// A loop over values, at a depth of recursion.
    fn for_loop(&self, each: &Arc<For>, over: &Value, scope: &Rc<Scope>, depth: usize, out: &mut Buffer) -> Result<()> {
        let mut values = over.iterate()?;
        if let Some(test) = &each.test {
            let mut kept = Vec::new();
            for value in values {
                let inner = Scope::inside(scope);
                self.assign(&each.target, value.clone(), &inner)?;
                if self.eval(test, &inner)?.is_true() {
                    kept.push(value);
                }
            }
            values = kept;
        }
        let state = Rc::new(Loop {
            items: Items::new(values)?,
            index: Cell::new(0),
            depth,
            changed: RefCell::default(),
            again: each.recursive.then(|| (each.clone(), scope.clone())),
        });
        let name: Name = "loop".into();
        let mut whole = false;
        for (place, value) in state.items.values.iter().enumerate() {
            state.index.set(place);
            let inner = Scope::inside(scope);
            inner.set(&name, Value::Loop(state.clone()));
            self.assign(&each.target, value.clone(), &inner)?;
            match self.run_block(&each.body, &inner, out)? {
                Flow::Break => break,
                Flow::Continue => {}
                Flow::On => whole = true,
            }
        }
        // A value of the loop that outlives it must not hold the loop.
        state.changed.take();
        // As in jinja2: also where each time ended early.
        if !whole {
            self.run_block(&each.otherwise, &Scope::inside(scope), out)?;
        }
        Ok(())
    }

    /// `loop(values)` in a recursive loop.
    pub(super) fn recurse(&self, state: &Loop, values: &Value) -> Result<Value> {
        let Some((each, scope)) = &state.again else {
            return fail("the loop is called, but it is not marked as recursive");
        };
        let line = self.line.get();
        let mut text = Buffer::default();
        self.for_loop(each, values, scope, state.depth + 1, &mut text)?;
        self.line.set(line);
        text.value()
    }

    /// A macro's text.
    pub(super) fn call_macro(&self, value: &Macro, mut args: CallArgs) -> Result<Value> {
        let (body, line) = (&value.body, self.line.get());
        let scope = Scope::inside(&value.scope);
        let [varargs, kwargs, caller] = body.catches;
        if body.name.as_ref() != "caller" || caller {
            let given =
                args.named.iter().position(|(name, _)| &**name == "caller").map(|place| args.named.remove(place));
            if given.is_some() && !caller && !kwargs {
                return fail(format!("macro {:?} takes no caller", body.name));
            }
            if caller {
                let given = given.map_or_else(|| Value::undefined("No caller defined"), |(_, value)| value);
                scope.set(&"caller".into(), given);
            }
        }
        let mut missing = Vec::new();
        let mut positional = std::mem::take(&mut args.positional).into_iter();
        for (name, default) in &body.parameters {
            let named = args.named.iter().position(|(other, _)| other == name);
            match (positional.next(), named) {
                (Some(_), Some(_)) => return fail(format!("two values for argument {name:?} of {:?}", body.name)),
                (Some(value), None) => scope.set(name, value),
                (None, Some(place)) => scope.set(name, args.named.remove(place).1),
                (None, None) => missing.push((name, default)),
            }
        }
        let rest: Vec<Value> = positional.collect();
        if !rest.is_empty() && !varargs {
            return fail(format!("macro {:?} takes not more than {} arguments", body.name, body.parameters.len()));
        }
        if varargs {
            scope.set(&"varargs".into(), Value::tuple(rest)?);
        }
        if kwargs {
            let mut pairs = Vec::new();
            for (name, value) in std::mem::take(&mut args.named) {
                pairs.push((Value::text(&*name)?, value));
            }
            scope.set(&"kwargs".into(), Value::dict(pairs)?);
        }
        if let Some((name, _)) = args.named.first() {
            return fail(format!("macro {:?} takes no keyword argument {name:?}", body.name));
        }
        for (name, default) in missing {
            let value = match default {
                Some(default) => self.eval(default, &scope)?,
                None => Value::undefined(name),
            };
            scope.set(name, value);
        }
        let text = self.capture(&body.body, &scope)?;
        self.line.set(line);
        Ok(text)
    }
}
