//! Expressions, evaluated.

use super::args::CallArgs;
use super::ast::{Arguments, Expr, Operator, Postfix};
use super::error::{Result, fail};
use super::meter::{Buffer, Deeper, step};
use super::operators::{binary, compare};
use super::render::Renderer;
use super::value::{Scope, Value};
use std::rc::Rc;

impl Renderer {
    /// The value of an expression.
    pub(super) fn eval(&self, expression: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        match expression {
            Expr::None => Ok(Value::None),
            Expr::Bool(value) => Ok(Value::Bool(*value)),
            Expr::Int(value) => Ok(Value::Int(*value)),
            Expr::Float(value) => Ok(Value::Float(*value)),
            Expr::Text(text) => Value::text(&**text),
            Expr::Name(name) => {
                step(1)?;
                Ok(scope.get(name).unwrap_or_else(|| Value::undefined(name)))
            }
            _ => {
                let _deeper = Deeper::new()?;
                self.compound(expression, scope)
            }
        }
    }

    fn all(&self, expressions: &[Expr], scope: &Rc<Scope>) -> Result<Vec<Value>> {
        expressions.iter().map(|expression| self.eval(expression, scope)).collect()
    }

    fn compound(&self, expression: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        match expression {
            Expr::List(values) => Value::list(self.all(values, scope)?),
            Expr::Tuple(values) => Value::tuple(self.all(values, scope)?),
            Expr::Dict(pairs) => {
                let mut values = Vec::new();
                for (key, value) in pairs {
                    values.push((self.eval(key, scope)?, self.eval(value, scope)?));
                }
                Value::dict(values)
            }
            Expr::Not(value) => Ok(Value::Bool(!self.eval(value, scope)?.is_true())),
            Expr::Negative(value) => {
                let value = self.eval(value, scope)?;
                // The negative of zero is another float.
                match value {
                    Value::Float(value) => Ok(Value::Float(-value)),
                    value => binary(Operator::Subtract, &Value::Int(0), &value),
                }
            }
            Expr::Positive(value) => binary(Operator::Add, &Value::Int(0), &self.eval(value, scope)?),
            Expr::Chain(first, rest) => self.chain(first, rest, scope),
            Expr::Compare(first, rest) => {
                let mut left = self.eval(first, scope)?;
                for (operator, right) in rest {
                    let right = self.eval(right, scope)?;
                    if !compare(*operator, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            Expr::If(first, branches) => {
                // The last condition is around the others.
                for (test, otherwise) in branches.iter().rev() {
                    if !self.eval(test, scope)?.is_true() {
                        return match otherwise {
                            Some(otherwise) => self.eval(otherwise, scope),
                            None => Ok(Value::undefined("the value of an if without else")),
                        };
                    }
                }
                self.eval(first, scope)
            }
            Expr::Postfix(value, parts) => {
                let value = self.eval(value, scope)?;
                self.parts(value, parts, scope)
            }
            _ => self.eval(expression, scope),
        }
    }

    fn chain(&self, first: &Expr, rest: &[(Operator, Expr)], scope: &Rc<Scope>) -> Result<Value> {
        let mut left = self.eval(first, scope)?;
        if rest.first().is_some_and(|(operator, _)| *operator == Operator::Concat) {
            let mut text = Buffer::default();
            left.print(&mut text)?;
            for (_, right) in rest {
                self.eval(right, scope)?.print(&mut text)?;
            }
            return text.value();
        }
        for (operator, right) in rest {
            left = match operator {
                Operator::Or if left.is_true() => return Ok(left),
                Operator::And if !left.is_true() => return Ok(left),
                Operator::Or | Operator::And => self.eval(right, scope)?,
                _ => binary(*operator, &left, &self.eval(right, scope)?)?,
            };
        }
        Ok(left)
    }

    fn parts(&self, mut value: Value, parts: &[Postfix], scope: &Rc<Scope>) -> Result<Value> {
        for part in parts {
            step(1)?;
            value = match part {
                Postfix::Attribute(name) => value.attribute(name)?,
                Postfix::Item(key) => value.item(&self.eval(key, scope)?)?,
                Postfix::Slice(bounds) => {
                    let bound = |bound: &Option<Box<Expr>>| match bound {
                        Some(bound) => self.eval(bound, scope),
                        None => Ok(Value::None),
                    };
                    value.slice(&[bound(&bounds[0])?, bound(&bounds[1])?, bound(&bounds[2])?])?
                }
                Postfix::Call(arguments) => {
                    let args = self.arguments(arguments, scope)?;
                    self.call(&value, args)?
                }
                Postfix::Filter(name, arguments) => {
                    let args = self.arguments(arguments, scope)?;
                    self.filter(name, value, args)?
                }
                Postfix::Test(name, arguments, negated) => {
                    let args = self.arguments(arguments, scope)?;
                    Value::Bool(self.test(name, &value, args)? != *negated)
                }
            };
        }
        Ok(value)
    }

    /// A call at the end of an expression, with one more argument.
    pub(super) fn eval_call(&self, call: &Expr, caller: Option<Value>, scope: &Rc<Scope>) -> Result<Value> {
        let Expr::Postfix(value, parts) = call else { return fail("a call block needs a call") };
        let Some((Postfix::Call(arguments), before)) = parts.split_last() else {
            return fail("a call block needs a call");
        };
        let value = self.eval(value, scope)?;
        let value = self.parts(value, before, scope)?;
        let mut args = self.arguments(arguments, scope)?;
        args.named.extend(caller.map(|caller| ("caller".into(), caller)));
        self.call(&value, args)
    }

    /// The values of arguments.
    pub(super) fn arguments(&self, arguments: &Arguments, scope: &Rc<Scope>) -> Result<CallArgs> {
        let mut args = CallArgs { positional: self.all(&arguments.positional, scope)?, named: Vec::new() };
        if let Some(rest) = &arguments.rest {
            args.positional.extend(self.eval(rest, scope)?.iterate()?);
        }
        for (name, value) in &arguments.named {
            args.named.push((name.clone(), self.eval(value, scope)?));
        }
        if let Some(rest) = &arguments.named_rest {
            let Value::Dict(dict) = self.eval(rest, scope)? else { return fail("** needs a dictionary") };
            for (name, value) in &dict.pairs {
                let Some(name) = name.as_str() else { return fail("names of arguments must be texts") };
                if args.named.iter().any(|(other, _)| &**other == name) {
                    return fail(format!("two values for argument {name:?}"));
                }
                args.named.push((name.into(), value.clone()));
            }
        }
        Ok(args)
    }
}
