//! Names that a block hides from inner blocks until it sets them, as in jinja2. A name that a block sets before it reads it belongs to
//! the block from its beginning.

use super::ast::{Arguments, AssignTarget, Expr, Name, Postfix, Statement, StatementBlock, StatementKind};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Names that a block around a block mentions.
type Outer<'a> = &'a BTreeSet<Name>;

/// What a block mentions, in order.
#[derive(Default)]
struct Mentions {
    all: BTreeSet<Name>,
    /// Of these, what it sets first.
    set: Vec<Name>,
}

/// Finds hidden names in a block and all blocks in it; the block has some names from its begin.
pub(super) fn analyze(block: &mut StatementBlock, given: &[Name], outer: &[Outer<'_>]) {
    let mut mentions = Mentions { all: given.iter().cloned().collect(), set: Vec::new() };
    mentions.statements(&block.body, true);
    block.hidden = mentions.set.into_iter().filter(|name| !outer.iter().any(|names| names.contains(name))).collect();
    let mut outer = outer.to_vec();
    outer.push(&mentions.all);
    inner(&mut block.body, &outer);
}

fn inner(body: &mut [Statement], outer: &[Outer<'_>]) {
    for statement in body {
        match &mut statement.kind {
            StatementKind::If(branches, otherwise) => {
                branches.iter_mut().for_each(|(_, body)| inner(body, outer));
                inner(otherwise, outer);
            }
            StatementKind::For(each) => {
                let Some(each) = Arc::get_mut(each) else { continue };
                let mut names = vec![Name::from("loop")];
                targets(&each.target, &mut names);
                analyze(&mut each.body, &names, outer);
                analyze(&mut each.otherwise, &[], outer);
            }
            StatementKind::Macro(_, body) | StatementKind::Call(_, body) => {
                let Some(body) = Arc::get_mut(body) else { continue };
                let names = body.parameters.iter().map(|(name, _)| name.clone());
                let names: Vec<Name> = names.chain(["caller", "varargs", "kwargs"].map(Name::from)).collect();
                analyze(&mut body.body, &names, outer);
            }
            StatementKind::SetBlock(_, _, body) | StatementKind::Filter(_, body) | StatementKind::Generation(body) => {
                analyze(body, &[], outer)
            }
            StatementKind::With(values, body) => {
                let mut names = Vec::new();
                values.iter().for_each(|(target, _)| targets(target, &mut names));
                analyze(body, &names, outer);
            }
            _ => {}
        }
    }
}

fn targets(target: &AssignTarget, names: &mut Vec<Name>) {
    match target {
        AssignTarget::Name(name) => names.push(name.clone()),
        AssignTarget::Attribute(..) => {}
        AssignTarget::Tuple(all) => all.iter().for_each(|target| targets(target, names)),
    }
}

impl Mentions {
    /// Mentions of statements; within a branch, what is set may not be, and so is not hidden.
    fn statements(&mut self, body: &[Statement], always: bool) {
        for statement in body {
            match &statement.kind {
                StatementKind::Print(value) => self.read(value),
                StatementKind::If(branches, otherwise) => {
                    if let Some((test, _)) = branches.first() {
                        self.read(test);
                    }
                    for (place, (test, body)) in branches.iter().enumerate() {
                        if place > 0 {
                            self.read(test);
                        }
                        self.statements(body, false);
                    }
                    self.statements(otherwise, false);
                }
                StatementKind::For(each) => self.read(&each.over),
                StatementKind::Set(target, value) => {
                    self.read(value);
                    self.target(target, always);
                }
                StatementKind::SetBlock(target, ..) => self.target(target, always),
                StatementKind::Macro(name, _) => self.write(name, always),
                StatementKind::Call(call, _) => self.read(call),
                StatementKind::Filter(filters, _) => {
                    filters.iter().for_each(|(_, arguments)| self.arguments(arguments))
                }
                StatementKind::With(values, _) => values.iter().for_each(|(_, value)| self.read(value)),
                _ => {}
            }
        }
    }

    fn target(&mut self, target: &AssignTarget, always: bool) {
        match target {
            AssignTarget::Name(name) => self.write(name, always),
            AssignTarget::Attribute(name, _) => drop(self.all.insert(name.clone())),
            AssignTarget::Tuple(all) => all.iter().for_each(|target| self.target(target, always)),
        }
    }

    fn write(&mut self, name: &Name, always: bool) {
        if self.all.insert(name.clone()) && always {
            self.set.push(name.clone());
        }
    }

    fn read(&mut self, expression: &Expr) {
        match expression {
            Expr::Name(name) => drop(self.all.insert(name.clone())),
            Expr::List(values) | Expr::Tuple(values) => values.iter().for_each(|value| self.read(value)),
            Expr::Dict(pairs) => pairs.iter().for_each(|(key, value)| {
                self.read(key);
                self.read(value);
            }),
            Expr::Not(value) | Expr::Negative(value) | Expr::Positive(value) => self.read(value),
            Expr::Chain(first, rest) | Expr::Compare(first, rest) => {
                self.read(first);
                rest.iter().for_each(|(_, value)| self.read(value));
            }
            Expr::If(first, branches) => {
                self.read(first);
                for (test, otherwise) in branches {
                    self.read(test);
                    otherwise.iter().for_each(|value| self.read(value));
                }
            }
            Expr::Postfix(value, parts) => {
                self.read(value);
                for part in parts {
                    match part {
                        Postfix::Attribute(_) => {}
                        Postfix::Item(key) => self.read(key),
                        Postfix::Slice(bounds) => bounds.iter().flatten().for_each(|bound| self.read(bound)),
                        Postfix::Call(arguments) | Postfix::Filter(_, arguments) | Postfix::Test(_, arguments, _) => {
                            self.arguments(arguments);
                        }
                    }
                }
            }
            Expr::None | Expr::Bool(_) | Expr::Int(_) | Expr::Float(_) | Expr::Text(_) => {}
        }
    }

    fn arguments(&mut self, arguments: &Arguments) {
        arguments.positional.iter().for_each(|value| self.read(value));
        arguments.named.iter().for_each(|(_, value)| self.read(value));
        arguments.rest.iter().chain(&arguments.named_rest).for_each(|value| self.read(value));
    }
}
