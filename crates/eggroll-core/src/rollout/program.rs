//! Straight-line programs of float32 operations: physics as data, from which kernels are made.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Sub};
use std::rc::Rc;

/// Kinds of operations of a [`Program`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// Input number `operands[0]`.
    Input,
    /// The float whose bits are `operands[0]`.
    Constant,
    /// `a + b`
    Add,
    /// `a − b`
    Sub,
    /// `a·b`
    Mul,
    /// `a / b`
    Div,
    /// `sin a`
    Sin,
    /// `cos a`
    Cos,
    /// `⌊a⌋`
    Floor,
    /// `|a|`
    Abs,
    /// `a`, at least `b` and at most `c`; NaN stays.
    Clamp,
    /// 1 if `a < b`, else 0.
    Less,
    /// 1 if `a ≤ b`, else 0.
    LessEqual,
    /// `b` if `a` is 1, `c` if it is 0.
    Select,
}

/// One operation; operands are numbers of earlier operations, unless the operator says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// What is done.
    pub operator: Operator,
    /// To what; 0 where there is no operand.
    pub operands: [usize; 3],
}

/// A function from floats to floats without branches and loops, in static single assignment.
///
/// It is [traced](Self::trace): code that is generic over its numbers runs once on [`Symbol`]s, which record their operations.
///
/// # Example
///
/// ```
/// use eggroll_core::device_rollout::Program;
///
/// let wave = Program::trace(2, |x| vec![x[0].clone().sin() * 2.0 + x[1].clone()]);
/// assert_eq!(wave.evaluate(&[0.0, 3.0]), [3.0]);
/// assert_eq!([wave.inputs(), wave.outputs().len()], [2, 1]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    inputs: usize,
    operations: Vec<Operation>,
    /// Numbers of operations.
    outputs: Vec<usize>,
}

impl Program {
    /// The program of a function with `inputs` inputs.
    ///
    /// # Panics
    ///
    /// Panics if the function returns a symbol of another trace.
    #[track_caller]
    pub fn trace(inputs: usize, function: impl FnOnce(&[Symbol]) -> Vec<Symbol>) -> Self {
        let tape = Rc::new(RefCell::new(Vec::new()));
        let symbols: Vec<Symbol> =
            (0..inputs).map(|input| Symbol::record(&tape, Operator::Input, [input, 0, 0])).collect();
        let outputs = function(&symbols);
        assert!(outputs.iter().all(|output| Rc::ptr_eq(&output.tape, &tape)), "program: an output of another trace");
        let outputs = outputs.iter().map(|output| output.number).collect();
        let operations = tape.borrow().clone();
        Self { inputs, operations, outputs }
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The operations, each after its operands.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operations that are the results, by number.
    pub fn outputs(&self) -> &[usize] {
        &self.outputs
    }

    /// Runs it on the host, as the reference for kernels.
    ///
    /// # Panics
    ///
    /// Panics if there are too few inputs.
    pub fn evaluate(&self, inputs: &[f32]) -> Vec<f32> {
        let mut values: Vec<f32> = Vec::with_capacity(self.operations.len());
        let flag = |holds: bool| if holds { 1.0 } else { 0.0 };
        for Operation { operator, operands } in &self.operations {
            let value = |operand: usize| values[operands[operand]];
            values.push(match operator {
                Operator::Input => inputs[operands[0]],
                Operator::Constant => f32::from_bits(operands[0] as u32),
                Operator::Add => value(0) + value(1),
                Operator::Sub => value(0) - value(1),
                Operator::Mul => value(0) * value(1),
                Operator::Div => value(0) / value(1),
                Operator::Sin => value(0).sin(),
                Operator::Cos => value(0).cos(),
                Operator::Floor => value(0).floor(),
                Operator::Abs => value(0).abs(),
                Operator::Clamp if value(0).is_nan() => value(0),
                Operator::Clamp => value(0).max(value(1)).min(value(2)),
                Operator::Less => flag(value(0) < value(1)),
                Operator::LessEqual => flag(value(0) <= value(1)),
                Operator::Select => value(if value(0) == 0.0 { 2 } else { 1 }),
            });
        }
        self.outputs.iter().map(|output| values[*output]).collect()
    }
}

/// A number that records its operations; see [`Program::trace`].
#[derive(Clone, Debug)]
pub struct Symbol {
    tape: Rc<RefCell<Vec<Operation>>>,
    number: usize,
}

impl Symbol {
    /// Equal operations are recorded once.
    fn record(tape: &Rc<RefCell<Vec<Operation>>>, operator: Operator, operands: [usize; 3]) -> Self {
        let operation = Operation { operator, operands };
        let mut operations = tape.borrow_mut();
        let known = operations.iter().position(|known| *known == operation);
        let number = known.unwrap_or_else(|| {
            operations.push(operation);
            operations.len() - 1
        });
        Self { tape: tape.clone(), number }
    }

    #[track_caller]
    fn with(&self, operator: Operator, others: &[&Self]) -> Self {
        let same = others.iter().all(|other| Rc::ptr_eq(&other.tape, &self.tape));
        assert!(same, "program: {operator:?} of symbols of two traces");
        let mut operands = [self.number, 0, 0];
        operands[1..].iter_mut().zip(others).for_each(|(operand, other)| *operand = other.number);
        Self::record(&self.tape, operator, operands)
    }

    /// A constant of the same program.
    pub fn constant(&self, value: f32) -> Self {
        Self::record(&self.tape, Operator::Constant, [value.to_bits() as usize, 0, 0])
    }

    /// `sin`
    pub fn sin(self) -> Self {
        self.with(Operator::Sin, &[])
    }

    /// `cos`
    pub fn cos(self) -> Self {
        self.with(Operator::Cos, &[])
    }

    /// The largest whole number that is not larger.
    pub fn floor(self) -> Self {
        self.with(Operator::Floor, &[])
    }

    /// The absolute value.
    pub fn abs(self) -> Self {
        self.with(Operator::Abs, &[])
    }

    /// The nearest number from `low` to `high`; NaN stays.
    pub fn clamp(self, low: f32, high: f32) -> Self {
        let (low, high) = (self.constant(low), self.constant(high));
        self.with(Operator::Clamp, &[&low, &high])
    }

    /// 1 if it is less than `other`, else 0.
    pub fn less(&self, other: &Self) -> Self {
        self.with(Operator::Less, &[other])
    }

    /// 1 if it is not more than `other`, else 0.
    pub fn less_equal(&self, other: &Self) -> Self {
        self.with(Operator::LessEqual, &[other])
    }

    /// `then` if this is 1, `otherwise` if it is 0.
    pub fn select(&self, then: Self, otherwise: Self) -> Self {
        self.with(Operator::Select, &[&then, &otherwise])
    }
}

/// An operator between symbols, and between a symbol and a float.
macro_rules! operator {
    ($($operator:ident $method:ident),*) => {$(
        impl $operator for Symbol {
            type Output = Self;

            #[track_caller]
            fn $method(self, other: Self) -> Self {
                self.with(Operator::$operator, &[&other])
            }
        }

        impl $operator<f32> for Symbol {
            type Output = Self;

            fn $method(self, other: f32) -> Self {
                let other = self.constant(other);
                self.with(Operator::$operator, &[&other])
            }
        }
    )*};
}

operator!(Add add, Sub sub, Mul mul, Div div);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_what_was_traced() {
        let program = Program::trace(2, |x| {
            let [a, b] = [x[0].clone(), x[1].clone()];
            let larger = a.less(&b).select(b.clone(), a.clone());
            let same = a.clone() * 3.0 + b.clone() * 3.0;
            let again = a.clone() * 3.0;
            vec![larger, same, again / b.clone(), (a.clone() - b).abs().clamp(0.5, 2.0), a.sin().cos().floor()]
        });
        for [a, b] in [[1.0f32, 4.0], [-2.5, -3.0], [0.1, 0.2]] {
            let expected =
                [a.max(b), a * 3.0 + b * 3.0, a * 3.0 / b, (a - b).abs().clamp(0.5, 2.0), a.sin().cos().floor()];
            assert_eq!(program.evaluate(&[a, b]), expected);
        }
        let products = program.operations().iter().filter(|operation| operation.operator == Operator::Mul).count();
        assert_eq!(products, 2, "3·a is computed once");
    }

    #[test]
    #[should_panic(expected = "program: Add of symbols of two traces")]
    fn traces_are_not_mixed() {
        Program::trace(1, |x| {
            let outer = x[0].clone();
            Program::trace(1, |y| vec![y[0].clone() + outer]);
            x.to_vec()
        });
    }
}
