//! Statements of a template.

use super::ast::{
    Arguments, AssignTarget, Expr, For, MacroBody, Name, Operator, Postfix, Statement, StatementBlock, StatementKind,
};
use super::error::{Result, TemplateError};
use super::frames::analyze;
use super::lexer::{normalized, tokens};
use super::token::Token;
use std::sync::Arc;

/// Levels of blocks and brackets; Python allows some 100.
const DEPTH: usize = 120;

pub(super) struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
    /// Whether a filter that is not known matters only where it runs: within `if`.
    pub(super) soft: bool,
    /// Filters and tests that are not known where it matters.
    pub(super) unknown: Vec<TemplateError>,
    /// Whether the body of a macro names `varargs`, `kwargs` and `caller`.
    pub(super) catches: [bool; 3],
    loops: usize,
}

/// Parses a template's source.
pub(super) fn parse(source: &str) -> Result<StatementBlock> {
    let tokens = tokens(&normalized(source))?;
    let mut parser =
        Parser { tokens, at: 0, depth: 0, soft: false, unknown: Vec::new(), catches: [false; 3], loops: 0 };
    let (body, _) = parser.body(&[])?;
    let mut block = StatementBlock { body, hidden: Vec::new() };
    analyze(&mut block, &[], &[]);
    parser.unknown.into_iter().next().map_or(Ok(block), Err)
}

impl Parser {
    pub(super) fn current(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)].0
    }

    pub(super) fn ahead(&self, by: usize) -> &Token {
        &self.tokens[(self.at + by).min(self.tokens.len() - 1)].0
    }

    fn line(&self) -> usize {
        self.tokens[self.at.min(self.tokens.len() - 1)].1
    }

    pub(super) fn fail<T>(&self, reason: impl std::fmt::Display) -> Result<T> {
        Err(TemplateError(format!("syntax error: {reason} (line {})", self.line())))
    }

    pub(super) fn unexpected<T>(&self, expected: &str) -> Result<T> {
        let found = match self.current() {
            Token::End => "the end of the template".to_owned(),
            Token::BlockEnd => "the end of the statement".to_owned(),
            Token::PrintEnd => "the end of the print statement".to_owned(),
            Token::Name(name) => format!("{name:?}"),
            Token::Operator(operator) => format!("{operator:?}"),
            token => format!("{token:?}"),
        };
        self.fail(format!("found {found}, expected {expected}"))
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.current().clone();
        self.at += 1;
        token
    }

    pub(super) fn is_operator(&self, operator: &str) -> bool {
        matches!(self.current(), Token::Operator(found) if *found == operator)
    }

    pub(super) fn is_name(&self, name: &str) -> bool {
        matches!(self.current(), Token::Name(found) if found == name)
    }

    pub(super) fn skip(&mut self, operator: &str) -> bool {
        let found = self.is_operator(operator);
        self.at += usize::from(found);
        found
    }

    pub(super) fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, operator: &str) -> Result<()> {
        if self.skip(operator) { Ok(()) } else { self.unexpected(&format!("{operator:?}")) }
    }

    pub(super) fn name(&mut self) -> Result<Name> {
        match self.current() {
            Token::Name(_) => match self.next() {
                Token::Name(name) => Ok(name.into()),
                _ => self.unexpected("a name"),
            },
            _ => self.unexpected("a name"),
        }
    }

    /// Parses something that is a level deeper.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > DEPTH {
            return self.fail(format!("blocks and brackets nest more than {DEPTH} deep"));
        }
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn end_of_block(&mut self) -> Result<()> {
        if *self.current() != Token::BlockEnd {
            return self.unexpected("the end of the statement");
        }
        self.at += 1;
        Ok(())
    }

    /// Statements up to one of some tags, whose name is returned; the tag is still open.
    fn body(&mut self, ends: &[&str]) -> Result<(Vec<Statement>, String)> {
        let mut body = Vec::new();
        loop {
            let line = self.line();
            let kind = match self.current() {
                Token::End if ends.is_empty() => return Ok((body, String::new())),
                Token::End => return self.unexpected(&ends.join(" or ")),
                Token::Data(_) => match self.next() {
                    Token::Data(text) => StatementKind::Data(text.into()),
                    _ => return self.unexpected("text"),
                },
                Token::PrintBegin => {
                    self.at += 1;
                    let value = self.tuple(true)?;
                    if *self.current() != Token::PrintEnd {
                        return self.unexpected("the end of the print statement");
                    }
                    self.at += 1;
                    StatementKind::Print(value)
                }
                _ => {
                    self.at += 1;
                    let tag = self.name()?;
                    if ends.contains(&&*tag) {
                        return Ok((body, tag.to_string()));
                    }
                    self.deeper(|parser| parser.statement(&tag))?
                }
            };
            body.push(Statement { line, kind });
        }
    }

    /// A whole block: the end of its tag, its statements, and its end tag.
    fn block(&mut self, end: &str) -> Result<Vec<Statement>> {
        self.end_of_block()?;
        let (body, _) = self.body(&[end])?;
        self.end_of_block()?;
        Ok(body)
    }

    /// A block with its own names, in which filters must be known.
    fn own_block(&mut self, end: &str) -> Result<StatementBlock> {
        let soft = std::mem::take(&mut self.soft);
        let body = self.block(end);
        self.soft = soft;
        Ok(StatementBlock { body: body?, hidden: Vec::new() })
    }

    fn statement(&mut self, tag: &str) -> Result<StatementKind> {
        Ok(match tag {
            "if" => return self.conditional(),
            "for" => return self.for_loop(),
            "set" => return self.set(),
            "macro" => {
                let name = self.name()?;
                self.expect("(")?;
                let parameters = self.parameters()?;
                StatementKind::Macro(name.clone(), self.macro_body(name, parameters, "endmacro")?)
            }
            "call" => {
                let parameters = if self.skip("(") { self.parameters()? } else { Vec::new() };
                let call = self.expression()?;
                if !is_call(&call) {
                    return self.fail("a call block needs a call");
                }
                StatementKind::Call(call, self.macro_body("caller".into(), parameters, "endcall")?)
            }
            "filter" => {
                let filters = self.filters(true)?;
                StatementKind::Filter(filters, self.own_block("endfilter")?)
            }
            "with" => {
                let mut values = Vec::new();
                while *self.current() != Token::BlockEnd {
                    if !values.is_empty() {
                        self.expect(",")?;
                    }
                    let target = self.target(false)?;
                    self.expect("=")?;
                    values.push((target, self.expression()?));
                }
                StatementKind::With(values, self.own_block("endwith")?)
            }
            "generation" => StatementKind::Generation(self.own_block("endgeneration")?),
            "print" => {
                let mut values = vec![self.expression()?];
                while self.skip(",") {
                    values.push(self.expression()?);
                }
                self.end_of_block()?;
                return Ok(StatementKind::Print(print_all(values)));
            }
            "break" | "continue" => {
                if self.loops == 0 {
                    return self.fail(format!("{tag} outside of a loop"));
                }
                self.end_of_block()?;
                if tag == "break" { StatementKind::Break } else { StatementKind::Continue }
            }
            "include" | "import" | "from" | "extends" => {
                while !matches!(self.current(), Token::BlockEnd | Token::End) {
                    self.at += 1;
                }
                self.end_of_block()?;
                StatementKind::Refused(format!("{tag}: there are no other templates").into())
            }
            "block" | "autoescape" => {
                return self.fail(format!("the statement {tag:?} is not supported in chat templates"));
            }
            tag => return self.fail(format!("unknown statement {tag:?}")),
        })
    }

    fn conditional(&mut self) -> Result<StatementKind> {
        let soft = std::mem::replace(&mut self.soft, true);
        let mut branches = Vec::new();
        let otherwise = loop {
            let test = self.tuple(false)?;
            self.end_of_block()?;
            let (body, tag) = self.body(&["elif", "else", "endif"])?;
            branches.push((test, body));
            match tag.as_str() {
                "elif" => continue,
                "else" => break self.block("endif")?,
                _ => {
                    self.end_of_block()?;
                    break Vec::new();
                }
            }
        };
        self.soft = soft;
        Ok(StatementKind::If(branches, otherwise))
    }

    fn for_loop(&mut self) -> Result<StatementKind> {
        let soft = std::mem::take(&mut self.soft);
        let target = self.target(true)?;
        if !self.skip_name("in") {
            return self.unexpected("\"in\"");
        }
        let over = self.tuple(false)?;
        let test = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        self.end_of_block()?;
        self.loops += 1;
        let (body, tag) = self.body(&["endfor", "else"])?;
        self.loops -= 1;
        let otherwise = if tag == "else" {
            self.block("endfor")?
        } else {
            self.end_of_block()?;
            Vec::new()
        };
        self.soft = soft;
        let [body, otherwise] = [body, otherwise].map(|body| StatementBlock { body, hidden: Vec::new() });
        Ok(StatementKind::For(Arc::new(For { target, over, test, body, otherwise, recursive })))
    }

    fn set(&mut self) -> Result<StatementKind> {
        let target = self.target(true)?;
        if self.skip("=") {
            let value = self.tuple(true)?;
            self.end_of_block()?;
            return Ok(StatementKind::Set(target, value));
        }
        if matches!(target, AssignTarget::Tuple(_)) {
            return self.unexpected("\"=\"");
        }
        let filters = self.filters(false)?;
        Ok(StatementKind::SetBlock(target, filters, self.own_block("endset")?))
    }

    /// Names to assign to; several are a tuple.
    fn target(&mut self, tuples: bool) -> Result<AssignTarget> {
        let mut targets = vec![self.one_target()?];
        let mut is_tuple = false;
        while tuples && self.skip(",") {
            is_tuple = true;
            if self.is_operator("=") || self.is_name("in") || *self.current() == Token::BlockEnd {
                break;
            }
            targets.push(self.one_target()?);
        }
        let first = if is_tuple { None } else { targets.pop() };
        Ok(first.unwrap_or(AssignTarget::Tuple(targets)))
    }

    fn one_target(&mut self) -> Result<AssignTarget> {
        if self.skip("(") || self.skip("[") {
            let target = self.deeper(|parser| parser.target(true))?;
            if !self.skip(")") {
                self.expect("]")?;
            }
            return Ok(target);
        }
        let name = self.name()?;
        if ["true", "false", "none", "True", "False", "None"].contains(&&*name) {
            return self.fail(format!("cannot assign to {name:?}"));
        }
        if self.skip(".") { Ok(AssignTarget::Attribute(name, self.name()?)) } else { Ok(AssignTarget::Name(name)) }
    }

    fn parameters(&mut self) -> Result<Vec<(Name, Option<Expr>)>> {
        let mut parameters: Vec<(Name, Option<Expr>)> = Vec::new();
        while !self.skip(")") {
            if !parameters.is_empty() {
                self.expect(",")?;
                if self.skip(")") {
                    break;
                }
            }
            let name = self.name()?;
            let default = if self.skip("=") { Some(self.expression()?) } else { None };
            if default.is_none() && parameters.last().is_some_and(|(_, last)| last.is_some()) {
                return self.fail("a parameter without a default follows one with a default");
            }
            parameters.push((name, default));
        }
        Ok(parameters)
    }

    fn macro_body(&mut self, name: Name, parameters: Vec<(Name, Option<Expr>)>, end: &str) -> Result<Arc<MacroBody>> {
        let outer = std::mem::take(&mut self.catches);
        let loops = std::mem::take(&mut self.loops);
        let body = self.own_block(end)?;
        self.loops = loops;
        let inner = std::mem::replace(&mut self.catches, outer);
        let named = |index: usize, name: &str| inner[index] && !parameters.iter().any(|(other, _)| &**other == name);
        let catches = [named(0, "varargs"), named(1, "kwargs"), named(2, "caller")];
        Ok(Arc::new(MacroBody { name, parameters, body, catches }))
    }

    /// Filters after `|`; the first has none where the statement itself says that filters follow.
    fn filters(&mut self, first: bool) -> Result<Vec<(Name, Arguments)>> {
        let mut filters = Vec::new();
        while (first && filters.is_empty()) || self.skip("|") {
            filters.push(self.filter()?);
        }
        Ok(filters)
    }
}

fn is_call(expression: &Expr) -> bool {
    matches!(expression, Expr::Postfix(_, parts) if matches!(parts.last(), Some(Postfix::Call(_))))
}

/// Several values are printed one after the other.
fn print_all(mut values: Vec<Expr>) -> Expr {
    let first = values.remove(0);
    if values.is_empty() {
        return first;
    }
    let rest = values.into_iter().map(|value| (Operator::Concat, value)).collect();
    Expr::Chain(Box::new(first), rest)
}
