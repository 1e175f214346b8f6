//! Exact arithmetic on text, by recursive descent.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed { ("*" | "/") signed }
//! signed  = ("+" | "-") signed | integer | "(" sum ")"
//! ```
//!
//! Integers are ASCII digits; spaces may stand between the tokens. Two operators of Python, `//` and `**`, are not part
//! of it.

/// Parentheses and signs within each other.
const DEEPEST: usize = 64;

/// A numerator, and a denominator that is not 0; not reduced.
#[derive(Clone, Copy, Debug)]
struct Fraction(i64, i64);

/// An expression's value, and the integers that it is written with, in their order.
#[derive(Debug)]
pub(super) struct Evaluated {
    value: Fraction,
    pub(super) integers: Vec<u32>,
}

impl Evaluated {
    /// Whether the value is exactly `target`.
    pub(super) fn equals(&self, target: i64) -> bool {
        let Fraction(numerator, denominator) = self.value;
        target.checked_mul(denominator) == Some(numerator)
    }
}

/// The value of `text`. `None` if it is not an expression, divides by zero, nests deeper than [`DEEPEST`], or a
/// numerator or denominator on the way does not fit in an `i64`.
pub(super) fn evaluate(text: &str) -> Option<Evaluated> {
    let mut parser = Parser { text: text.as_bytes(), position: 0, integers: Vec::new() };
    let value = parser.sum(DEEPEST)?;
    parser.peek().is_none().then_some(Evaluated { value, integers: parser.integers })
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

    fn sum(&mut self, depth: usize) -> Option<Fraction> {
        let mut value = self.product(depth)?;
        while let Some(operator) = self.take(b"+-") {
            value = apply(operator, value, self.product(depth)?)?;
        }
        Some(value)
    }

    fn product(&mut self, depth: usize) -> Option<Fraction> {
        let mut value = self.signed(depth)?;
        while let Some(operator) = self.take(b"*/") {
            value = apply(operator, value, self.signed(depth)?)?;
        }
        Some(value)
    }

    fn signed(&mut self, depth: usize) -> Option<Fraction> {
        let Some(byte) = self.take(b"+-(") else { return self.integer() };
        let depth = depth.checked_sub(1)?;
        if byte != b'(' {
            return apply(byte, Fraction(0, 1), self.signed(depth)?);
        }
        let value = self.sum(depth)?;
        self.take(b")").map(|_| value)
    }

    fn integer(&mut self) -> Option<Fraction> {
        let digits = self.text[self.position..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(&self.text[self.position..self.position + digits]).ok()?;
        let integer: u32 = text.parse().ok()?;
        self.position += digits;
        self.integers.push(integer);
        Some(Fraction(integer.into(), 1))
    }
}

/// `a operator b`.
fn apply(operator: u8, Fraction(p, q): Fraction, Fraction(r, s): Fraction) -> Option<Fraction> {
    let numerator = match operator {
        b'+' => p.checked_mul(s)?.checked_add(r.checked_mul(q)?)?,
        b'-' => p.checked_mul(s)?.checked_sub(r.checked_mul(q)?)?,
        b'*' => return Some(Fraction(p.checked_mul(r)?, q.checked_mul(s)?)),
        _ if r == 0 => return None,
        _ => return Some(Fraction(p.checked_mul(s)?, q.checked_mul(r)?)),
    };
    Some(Fraction(numerator, q.checked_mul(s)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (text, value) in [
            ("7", 7),
            (" 1 + 2 * 3 ", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 4 - 3", 3),
            ("24/4/3", 2),
            ("24/4*3", 18),
            ("7/2*2", 7),
            ("3/(1 - 3/2)", -6),
            ("8 / (3 - 8 / 3)", 24),
            ("4 * -2", -8),
            ("2 - -+3", 5),
            ("(((5)))", 5),
            ("007", 7),
            ("0/5", 0),
        ] {
            let found = evaluate(text).expect(text);
            assert!(found.equals(value) && !found.equals(value + 1), "{text}: {found:?}");
        }
        let half = evaluate("7/2").expect("a fraction");
        assert!(!half.equals(3) && !half.equals(4));
        assert_eq!(evaluate("3*(3+12)-(-7)").expect("an expression").integers, [3, 3, 12, 7]);
    }

    #[test]
    fn what_has_no_value() {
        let syntax = "|  |1 2|3.7|(1|1)|()|2**3|7//2|(2)(3)|1 +|* 1|2 x 3|2 = 2|1\n+1|٣|1e3|1_0";
        for text in syntax.split('|').chain(["1/0", "1/(2-2)", "0/0", "4294967296"]) {
            assert!(evaluate(text).is_none(), "{text:?}");
        }
    }

    /// Models write long nonsense: neither the stack nor a multiplication overflows.
    #[test]
    fn size_and_depth_have_limits() {
        let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(evaluate(&nested(64)).is_some() && evaluate(&nested(65)).is_none());
        assert!(evaluate(&"-".repeat(1_000_000)).is_none());
        assert!(evaluate("4294967295*4294967295*4294967295").is_none());
        assert!(evaluate("1/4294967295/4294967295/4294967295").is_none());
        assert!(evaluate(&format!("1{}", "+1".repeat(100_000))).is_some_and(|found| found.equals(100_001)));
    }
}
