//! Saturating addition.

use super::{SIZES, found, integers, transposed, with_portable_devices};
use crate::testing::conformance::implementations;
use crate::testing::reference::integer as oracle;

#[test]
fn equals_oracle() {
    for n in SIZES {
        let (a, b) = (integers(3 * n, 127, 6), integers(3 * n, 127, 7));
        let expected: Vec<i8> = a.iter().zip(&b).map(|(a, b)| oracle::add(&[*a, *b])).collect();
        let strided = transposed(&a, n);
        for on in implementations() {
            let sum = |a, b| found(on.integer_add(a, b));
            assert!(sum(on.ints(&a, [3, n]), on.ints(&b, [3, n])) == expected, "{}, {n}", on.name);
            let transposed = on.ints(&strided, [n, 3]).transpose();
            assert!(sum(transposed, on.ints(&b, [3, n])) == expected, "{}, {n}, strided", on.name);
            let wrong = sum(on.ints(&a, [3, n]), on.ints(&a, [3, n]));
            assert!(wrong != expected, "canary: {}, {n}", on.name);
        }
    }
}

/// A sum of int8 would wrap.
#[test]
fn saturates() {
    for on in with_portable_devices() {
        let sum = on.integer_add(on.ints(&[127, -127, 100], [3]), on.ints(&[127, -127, -128], [3]));
        assert_eq!(found(sum), [127, -127, -28], "{}", on.name);
    }
}
