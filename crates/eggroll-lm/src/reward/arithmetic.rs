//! Exact arithmetic on text, by recursive descent.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed { ("*" | "/") signed }
//! signed  = ("+" | "-") signed | integer | "(" sum ")"
//! ```
//!
//! Integers are ASCII digits; spaces may stand between the tokens. Two operators of Python, `//` and `**`, are not part of it.

use num_rational::Ratio;

/// Parentheses and signs within each other.
const DEEPEST: usize = 64;

/// An expression's value, and the integers that it is written with, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evaluated {
    pub value: Ratio<i64>,
    pub integers: Vec<u32>,
}

/// Why a text has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoValue {
    /// Not an expression; the byte where it ends to be one.
    Syntax(usize),
    /// Division by zero.
    Division,
    /// An integer above `u32::MAX`, or a fraction whose numerator or denominator does not fit in an `i64`.
    Overflow,
    /// More than [`DEEPEST`] parentheses and signs within each other.
    Depth,
}

/// The value of `text`, exactly.
pub(super) fn evaluate(text: &str) -> Result<Evaluated, NoValue> {
    let mut parser = Parser { text: text.as_bytes(), position: 0, integers: Vec::new() };
    let value = parser.sum(DEEPEST)?;
    match parser.peek() {
        None => Ok(Evaluated { value, integers: parser.integers }),
        Some(_) => Err(NoValue::Syntax(parser.position)),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    position: usize,
    integers: Vec<u32>,
}

impl Parser<'_> {
    /// The next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.position) == Some(&b' ') {
            self.position += 1;
        }
        self.text.get(self.position).copied()
    }

    /// The next byte, consumed, if it is one of `these`.
    fn take(&mut self, these: &[u8]) -> Option<u8> {
        let byte = self.peek().filter(|byte| these.contains(byte))?;
        self.position += 1;
        Some(byte)
    }

    fn sum(&mut self, depth: usize) -> Result<Ratio<i64>, NoValue> {
        let mut value = self.product(depth)?;
        while let Some(operator) = self.take(b"+-") {
            value = apply(operator, value, self.product(depth)?)?;
        }
        Ok(value)
    }

    fn product(&mut self, depth: usize) -> Result<Ratio<i64>, NoValue> {
        let mut value = self.signed(depth)?;
        while let Some(operator) = self.take(b"*/") {
            value = apply(operator, value, self.signed(depth)?)?;
        }
        Ok(value)
    }

    fn signed(&mut self, depth: usize) -> Result<Ratio<i64>, NoValue> {
        let Some(byte) = self.take(b"+-(") else { return self.integer() };
        let depth = depth.checked_sub(1).ok_or(NoValue::Depth)?;
        if byte != b'(' {
            return apply(byte, Ratio::from_integer(0), self.signed(depth)?);
        }
        let value = self.sum(depth)?;
        self.take(b")").map(|_| value).ok_or(NoValue::Syntax(self.position))
    }

    fn integer(&mut self) -> Result<Ratio<i64>, NoValue> {
        let mut integer = None;
        while let Some(byte @ b'0'..=b'9') = self.text.get(self.position) {
            let digit = u32::from(byte - b'0');
            let longer = integer.unwrap_or(0_u32).checked_mul(10).and_then(|tens| tens.checked_add(digit));
            integer = Some(longer.ok_or(NoValue::Overflow)?);
            self.position += 1;
        }
        let integer = integer.ok_or(NoValue::Syntax(self.position))?;
        self.integers.push(integer);
        Ok(Ratio::from_integer(integer.into()))
    }
}

/// `a operator b`. Products of two `i64` and their sums fit in an `i128`: it only overflows if the reduced fraction is too large.
fn apply(operator: u8, a: Ratio<i64>, b: Ratio<i64>) -> Result<Ratio<i64>, NoValue> {
    let [p, q, r, s] = [*a.numer(), *a.denom(), *b.numer(), *b.denom()].map(i128::from);
    let (numerator, denominator) = match operator {
        b'+' => (p * s + r * q, q * s),
        b'-' => (p * s - r * q, q * s),
        b'*' => (p * r, q * s),
        _ => (p * s, q * r),
    };
    if denominator == 0 {
        return Err(NoValue::Division);
    }
    let exact = Ratio::new(numerator, denominator);
    match (i64::try_from(*exact.numer()), i64::try_from(*exact.denom())) {
        (Ok(numerator), Ok(denominator)) => Ok(Ratio::new_raw(numerator, denominator)), // reduced, and denominator > 0
        _ => Err(NoValue::Overflow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Result<(i64, i64), NoValue> {
        evaluate(text).map(|found| (*found.value.numer(), *found.value.denom()))
    }

    #[test]
    fn known_values() {
        for (text, numerator, denominator) in [
            ("7", 7, 1),
            (" 1 + 2 * 3 ", 7, 1),
            ("(1 + 2) * 3", 9, 1),
            ("10 - 4 - 3", 3, 1),
            ("24/4/3", 2, 1),
            ("24/4*3", 18, 1),
            ("7/2", 7, 2),
            ("1/3 + 1/6", 1, 2),
            ("3/(1 - 3/2)", -6, 1),
            ("-3 + 5", 2, 1),
            ("4 * -2", -8, 1),
            ("--2", 2, 1),
            ("2 - -+3", 5, 1),
            ("(((5)))", 5, 1),
            ("007", 7, 1),
            ("0/5", 0, 1),
            ("1/3*3", 1, 1),
        ] {
            assert_eq!(value(text), Ok((numerator, denominator)), "{text}");
        }
    }

    #[test]
    fn integers_are_listed_with_their_repeats() {
        assert_eq!(evaluate("3*(3+12)-(-7)").unwrap().integers, [3, 3, 12, 7]);
    }

    #[test]
    fn what_is_not_an_expression() {
        for (text, at) in [
            ("", 0),
            ("  ", 2),
            ("1 2", 2),
            ("3.7", 1),
            ("(1", 2),
            ("1)", 1),
            ("()", 1),
            ("2**3", 2),
            ("7//2", 2),
            ("(2)(3)", 3),
            ("1 +", 3),
            ("* 1", 0),
            ("2 x 3", 2),
            ("2 = 2", 2),
            ("1\n+1", 1),
            ("٣", 0),
            ("1e3", 1),
            ("1_0", 1),
        ] {
            assert_eq!(value(text), Err(NoValue::Syntax(at)), "{text:?}");
        }
    }

    #[test]
    fn zero_size_and_depth_have_limits() {
        assert_eq!(value("1/0"), Err(NoValue::Division));
        assert_eq!(value("1/(2-2)"), Err(NoValue::Division));
        assert_eq!(value("0/0"), Err(NoValue::Division));
        assert_eq!(value("4294967295"), Ok((4_294_967_295, 1)));
        assert_eq!(value("4294967296"), Err(NoValue::Overflow));
        assert_eq!(value(&"9".repeat(1000)), Err(NoValue::Overflow));
        assert_eq!(value("4294967295*4294967295*4294967295"), Err(NoValue::Overflow));
        assert_eq!(value("1/4294967295/4294967295/4294967295"), Err(NoValue::Overflow));
        assert_eq!(value(&format!("{}1{}", "(".repeat(64), ")".repeat(64))), Ok((1, 1)));
        assert_eq!(value(&format!("{}1{}", "(".repeat(65), ")".repeat(65))), Err(NoValue::Depth));
        assert_eq!(value(&"(".repeat(1_000_000)), Err(NoValue::Depth));
        assert_eq!(value(&"-".repeat(1_000_000)), Err(NoValue::Depth));
        assert_eq!(value(&format!("1{}", "+1".repeat(100_000))), Ok((100_001, 1)));
    }

    /// The extremes that the widening arithmetic must hold: values of all 64 bits.
    #[test]
    fn the_largest_fractions_do_not_overflow_within() {
        let extremes = [Ratio::new_raw(i64::MIN, i64::MAX), Ratio::new_raw(i64::MIN, 1), Ratio::new_raw(i64::MAX, 1)];
        for a in extremes {
            for b in extremes {
                for operator in *b"+-*/" {
                    let _ = apply(operator, a, b);
                }
            }
        }
        assert_eq!(apply(b'-', extremes[1], extremes[1]), Ok(Ratio::from_integer(0)));
        assert_eq!(apply(b'/', extremes[2], extremes[2]), Ok(Ratio::from_integer(1)));
        assert_eq!(apply(b'+', extremes[2], Ratio::from_integer(1)), Err(NoValue::Overflow));
    }

    /// An expression and its value, computed apart from the parser.
    fn expression() -> impl Strategy<Value = (String, Option<f64>)> {
        let leaf = (0_u32..100).prop_map(|integer| (integer.to_string(), Some(f64::from(integer))));
        leaf.prop_recursive(4, 16, 2, |inner| {
            (inner.clone(), 0..4_usize, inner).prop_map(|((a, x), operator, (b, y))| {
                let value = x.zip(y).and_then(|(x, y)| match operator {
                    0 => Some(x + y),
                    1 => Some(x - y),
                    2 => Some(x * y),
                    _ => (y.abs() > 1e-9).then(|| x / y),
                });
                (format!("({a}) {} ({b})", ["+", "-", "*", "/"][operator]), value)
            })
        })
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", likely in "[0-9+*/() -]{0,40}") {
            let _ = evaluate(&text);
            let _ = evaluate(&likely);
        }

        #[test]
        fn values_agree_with_floating_point((text, expected) in expression()) {
            match (evaluate(&text), expected) {
                (Ok(found), Some(expected)) => {
                    let value = *found.value.numer() as f64 / *found.value.denom() as f64;
                    // Differences of nearly equal fractions lose digits in `expected`.
                    prop_assert!((value - expected).abs() <= 1e-6 * (1.0 + expected.abs()), "{text} = {value}, not {expected}");
                }
                (Err(NoValue::Division), None) | (Err(NoValue::Overflow), _) => {}
                other => prop_assert!(false, "{text}: {other:?}"),
            }
        }
    }
}
