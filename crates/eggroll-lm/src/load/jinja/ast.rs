//! A template, parsed. Chains such as `a + b + c` are flat, so that only brackets and blocks nest.

use std::sync::Arc;

pub(super) type Name = Arc<str>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Add,
    Subtract,
    Concat,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
}

#[derive(Debug)]
pub(super) enum Expr {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Box<str>),
    Name(Name),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    /// Operators of one rank, from the left.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
    /// Comparisons, all of which must hold.
    Compare(Box<Expr>, Vec<(Operator, Expr)>),
    /// `a if b else c`; a further `if` is around all before it.
    If(Box<Expr>, Vec<(Expr, Option<Expr>)>),
    /// What follows a value.
    Postfix(Box<Expr>, Vec<Postfix>),
}

#[derive(Debug)]
pub(super) enum Postfix {
    Attribute(Name),
    Item(Expr),
    Slice([Option<Box<Expr>>; 3]),
    Call(Arguments),
    Filter(Name, Arguments),
    Test(Name, Arguments, bool),
}

#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) positional: Vec<Expr>,
    pub(super) named: Vec<(Name, Expr)>,
    pub(super) rest: Option<Box<Expr>>,
    pub(super) named_rest: Option<Box<Expr>>,
}

#[derive(Debug)]
pub(super) enum AssignTarget {
    Name(Name),
    Attribute(Name, Name),
    Tuple(Vec<AssignTarget>),
}

#[derive(Debug)]
pub(super) struct Statement {
    pub(super) line: usize,
    pub(super) kind: StatementKind,
}

/// Statements with their own names.
#[derive(Debug, Default)]
pub(super) struct StatementBlock {
    pub(super) body: Vec<Statement>,
    /// Names that are undefined in it until it sets them, even if they are defined around it.
    pub(super) hidden: Vec<Name>,
}

#[derive(Debug)]
pub(super) enum StatementKind {
    Data(Box<str>),
    Print(Expr),
    If(Vec<(Expr, Vec<Statement>)>, Vec<Statement>),
    For(Arc<For>),
    Set(AssignTarget, Expr),
    SetBlock(AssignTarget, Vec<(Name, Arguments)>, StatementBlock),
    Macro(Name, Arc<MacroBody>),
    Call(Expr, Arc<MacroBody>),
    Filter(Vec<(Name, Arguments)>, StatementBlock),
    With(Vec<(AssignTarget, Expr)>, StatementBlock),
    Generation(StatementBlock),
    Break,
    Continue,
    /// A statement that is refused in a model's templates.
    Refused(Box<str>),
}

#[derive(Debug)]
pub(super) struct For {
    pub(super) target: AssignTarget,
    pub(super) over: Expr,
    pub(super) test: Option<Expr>,
    pub(super) body: StatementBlock,
    pub(super) otherwise: StatementBlock,
    pub(super) recursive: bool,
}

#[derive(Debug)]
pub(super) struct MacroBody {
    pub(super) name: Name,
    pub(super) parameters: Vec<(Name, Option<Expr>)>,
    pub(super) body: StatementBlock,
    /// Which of `varargs`, `kwargs` and `caller` the body names.
    pub(super) catches: [bool; 3],
}
