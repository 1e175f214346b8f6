//! Expressions of a template, with Jinja's ranks: `~` binds more than `+`, filters more than all.

use super::ast::{Arguments, Expr, Name, Operator, Postfix};
use super::error::Result;
use super::names::{is_filter, is_test};
use super::parser::Parser;
use super::token::Token;

impl Parser {
    /// Any expression.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.deeper(|parser| {
            let (soft, unknown) = (parser.soft, parser.unknown.len());
            let first = parser.at_or()?;
            let mut branches = Vec::new();
            while parser.skip_name("if") {
                parser.soft = true;
                parser.unknown.truncate(unknown);
                let test = parser.at_or()?;
                let otherwise = if parser.skip_name("else") { Some(parser.expression()?) } else { None };
                branches.push((test, otherwise));
            }
            parser.soft = soft;
            Ok(if branches.is_empty() { first } else { Expr::If(Box::new(first), branches) })
        })
    }

    /// An expression, or several as a tuple.
    pub(super) fn tuple(&mut self, with_condition: bool) -> Result<Expr> {
        let one = |parser: &mut Self| if with_condition { parser.expression() } else { parser.at_or() };
        let first = one(self)?;
        if !self.is_operator(",") {
            return Ok(first);
        }
        let mut values = vec![first];
        while self.skip(",") {
            let ends = matches!(self.current(), Token::BlockEnd | Token::PrintEnd | Token::Operator(")" | "]"));
            if ends || self.is_name("recursive") {
                break;
            }
            values.push(one(self)?);
        }
        Ok(Expr::Tuple(values))
    }

    fn chain(
        &mut self,
        operator: impl Fn(&mut Self) -> Option<Operator>,
        operand: impl Fn(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Some(operator) = operator(self) {
            rest.push((operator, operand(self)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Chain(Box::new(first), rest) })
    }

    fn at_or(&mut self) -> Result<Expr> {
        self.chain(|parser| parser.skip_name("or").then_some(Operator::Or), Self::at_and)
    }

    fn at_and(&mut self) -> Result<Expr> {
        self.chain(|parser| parser.skip_name("and").then_some(Operator::And), Self::at_not)
    }

    fn at_not(&mut self) -> Result<Expr> {
        if self.skip_name("not") {
            return Ok(Expr::Not(Box::new(self.deeper(Self::at_not)?)));
        }
        let first = self.at_sum()?;
        let mut rest = Vec::new();
        while let Some(operator) = self.comparison() {
            rest.push((operator, self.at_sum()?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(first), rest) })
    }

    fn comparison(&mut self) -> Option<Operator> {
        if self.is_name("not") && matches!(self.ahead(1), Token::Name(name) if name == "in") {
            self.next();
            self.next();
            return Some(Operator::NotIn);
        }
        if self.skip_name("in") {
            return Some(Operator::In);
        }
        self.one_of(&[
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<", Operator::Less),
            ("<=", Operator::LessEqual),
            (">", Operator::Greater),
            (">=", Operator::GreaterEqual),
        ])
    }

    fn one_of(&mut self, operators: &[(&str, Operator)]) -> Option<Operator> {
        operators.iter().find(|(text, _)| self.skip(text)).map(|(_, operator)| *operator)
    }

    fn at_sum(&mut self) -> Result<Expr> {
        let operator = |parser: &mut Self| parser.one_of(&[("+", Operator::Add), ("-", Operator::Subtract)]);
        self.chain(operator, Self::at_concat)
    }

    fn at_concat(&mut self) -> Result<Expr> {
        self.chain(|parser| parser.one_of(&[("~", Operator::Concat)]), Self::at_product)
    }

    fn at_product(&mut self) -> Result<Expr> {
        let operators = [
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("//", Operator::FloorDivide),
            ("%", Operator::Modulo),
        ];
        let power = |parser: &mut Self| {
            parser.chain(|parser| parser.one_of(&[("**", Operator::Power)]), |parser| parser.unary(true))
        };
        self.chain(|parser| parser.one_of(&operators), power)
    }

    fn unary(&mut self, with_filters: bool) -> Result<Expr> {
        let value = if self.skip("-") {
            Expr::Negative(Box::new(self.deeper(|parser| parser.unary(false))?))
        } else if self.skip("+") {
            Expr::Positive(Box::new(self.deeper(|parser| parser.unary(false))?))
        } else {
            self.primary()?
        };
        let mut parts = Vec::new();
        self.subscripts(&mut parts)?;
        loop {
            if !with_filters {
                break;
            } else if self.skip("|") {
                let (name, arguments) = self.filter()?;
                parts.push(Postfix::Filter(name, arguments));
            } else if self.skip_name("is") {
                parts.push(self.test()?);
            } else if self.skip("(") {
                // Only calls may follow filters.
                parts.push(Postfix::Call(self.arguments()?));
            } else {
                break;
            }
        }
        Ok(if parts.is_empty() { value } else { Expr::Postfix(Box::new(value), parts) })
    }

    fn subscripts(&mut self, parts: &mut Vec<Postfix>) -> Result<()> {
        loop {
            if self.skip(".") {
                parts.push(match self.next() {
                    Token::Name(name) => Postfix::Attribute(name.into()),
                    Token::Int(index) => Postfix::Item(Expr::Int(index)),
                    _ => return self.fail("a name or a number must follow \".\""),
                });
            } else if self.skip("[") {
                let part = self.deeper(Self::item)?;
                parts.push(part);
            } else if self.skip("(") {
                parts.push(Postfix::Call(self.arguments()?));
            } else {
                return Ok(());
            }
        }
    }

    fn item(&mut self) -> Result<Postfix> {
        let mut bounds: [Option<Box<Expr>>; 3] = [None, None, None];
        let mut place = 0;
        let mut is_slice = false;
        while !self.is_operator("]") {
            if self.skip(":") {
                is_slice = true;
                place += 1;
                if place > 2 {
                    return self.unexpected("\"]\"");
                }
            } else if self.is_operator(",") {
                break;
            } else if bounds[place].is_some() {
                return self.unexpected("\"]\"");
            } else {
                bounds[place] = Some(Box::new(self.expression()?));
            }
        }
        if is_slice {
            self.expect("]")?;
            return Ok(Postfix::Slice(bounds));
        }
        let [Some(first), ..] = bounds else { return self.unexpected("a subscript") };
        if !self.is_operator(",") {
            self.expect("]")?;
            return Ok(Postfix::Item(*first));
        }
        let mut values = vec![*first];
        while self.skip(",") && !self.is_operator("]") {
            values.push(self.expression()?);
        }
        self.expect("]")?;
        Ok(Postfix::Item(Expr::Tuple(values)))
    }

    fn primary(&mut self) -> Result<Expr> {
        match self.next() {
            Token::Name(name) => Ok(match name.as_str() {
                "true" | "True" => Expr::Bool(true),
                "false" | "False" => Expr::Bool(false),
                "none" | "None" => Expr::None,
                name => {
                    let caught = ["varargs", "kwargs", "caller"].iter().position(|caught| *caught == name);
                    if let Some(place) = caught {
                        self.catches[place] = true;
                    }
                    Expr::Name(name.into())
                }
            }),
            Token::Int(value) => Ok(Expr::Int(value)),
            Token::Float(value) => Ok(Expr::Float(value)),
            Token::Text(mut text) => {
                while let Token::Text(more) = self.current() {
                    text.push_str(more);
                    self.next();
                }
                Ok(Expr::Text(text.into()))
            }
            Token::Operator("(") => self.deeper(|parser| {
                if parser.skip(")") {
                    return Ok(Expr::Tuple(Vec::new()));
                }
                let value = parser.tuple(true)?;
                parser.expect(")")?;
                Ok(value)
            }),
            Token::Operator("[") => {
                let values = self.deeper(|parser| parser.separated("]", Self::expression))?;
                Ok(Expr::List(values))
            }
            Token::Operator("{") => {
                let pair = |parser: &mut Self| {
                    let key = parser.expression()?;
                    parser.expect(":")?;
                    Ok((key, parser.expression()?))
                };
                Ok(Expr::Dict(self.deeper(|parser| parser.separated("}", pair))?))
            }
            token => self.fail(format!("found {token:?}, expected a value")),
        }
    }

    fn separated<T>(&mut self, end: &str, one: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut values = Vec::new();
        while !self.skip(end) {
            if !values.is_empty() {
                self.expect(",")?;
                if self.skip(end) {
                    break;
                }
            }
            values.push(one(self)?);
        }
        Ok(values)
    }

    /// Arguments after the bracket that opens them.
    fn arguments(&mut self) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        self.deeper(|parser| {
            let mut first = true;
            while !parser.skip(")") {
                if !first {
                    parser.expect(",")?;
                    if parser.skip(")") {
                        break;
                    }
                }
                first = false;
                let open = arguments.named.is_empty() && arguments.rest.is_none() && arguments.named_rest.is_none();
                if parser.skip("*") {
                    if arguments.rest.is_some() || arguments.named_rest.is_some() {
                        return parser.fail("invalid arguments of a call");
                    }
                    arguments.rest = Some(Box::new(parser.expression()?));
                } else if parser.skip("**") {
                    if arguments.named_rest.is_some() {
                        return parser.fail("invalid arguments of a call");
                    }
                    arguments.named_rest = Some(Box::new(parser.expression()?));
                } else if matches!(parser.ahead(1), Token::Operator("=")) && matches!(parser.current(), Token::Name(_))
                {
                    let name = parser.name()?;
                    parser.expect("=")?;
                    if arguments.named_rest.is_some() || arguments.named.iter().any(|(other, _)| *other == name) {
                        return parser.fail("invalid arguments of a call");
                    }
                    arguments.named.push((name, parser.expression()?));
                } else if open {
                    arguments.positional.push(parser.expression()?);
                } else {
                    return parser.fail("invalid arguments of a call");
                }
            }
            Ok(())
        })?;
        Ok(arguments)
    }

    fn dotted(&mut self) -> Result<Name> {
        let mut name = self.name()?.to_string();
        while self.skip(".") {
            name = format!("{name}.{}", self.name()?);
        }
        Ok(name.into())
    }

    /// A filter's name and its arguments.
    pub(super) fn filter(&mut self) -> Result<(Name, Arguments)> {
        let name = self.dotted()?;
        if !self.soft && !is_filter(&name) {
            let error = self.fail::<()>(format!("no filter named {name:?}"));
            self.unknown.extend(error.err());
        }
        let arguments = if self.skip("(") { self.arguments()? } else { Arguments::default() };
        Ok((name, arguments))
    }

    fn test(&mut self) -> Result<Postfix> {
        let negated = self.skip_name("not");
        let name = self.dotted()?;
        if !self.soft && !is_test(&name) {
            let error = self.fail::<()>(format!("no test named {name:?}"));
            self.unknown.extend(error.err());
        }
        let mut arguments = Arguments::default();
        if self.skip("(") {
            arguments = self.arguments()?;
        } else {
            let begins = match self.current() {
                Token::Name(word) => !["else", "or", "and"].contains(&word.as_str()),
                Token::Text(_) | Token::Int(_) | Token::Float(_) | Token::Operator("(" | "[" | "{") => true,
                _ => false,
            };
            if begins {
                if self.is_name("is") {
                    return self.fail("you cannot chain multiple tests with is");
                }
                let value = self.deeper(|parser| {
                    let value = parser.primary()?;
                    let mut parts = Vec::new();
                    parser.subscripts(&mut parts)?;
                    Ok(if parts.is_empty() { value } else { Expr::Postfix(Box::new(value), parts) })
                })?;
                arguments.positional.push(value);
            }
        }
        Ok(Postfix::Test(name, arguments, negated))
    }
}
