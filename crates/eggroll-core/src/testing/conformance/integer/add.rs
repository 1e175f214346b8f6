//! Addition of activations.

use super::{ROUNDINGS, SIZES, found, integers, oracle, transposed, with_portable_devices};
use crate::arithmetic::integer::Rounding;
use crate::testing::conformance::implementations;

#[test]
fn equals_oracle() {
    for n in SIZES {
        for (rounding, largest) in
            ROUNDINGS.into_iter().flat_map(|rounding| [127, 5, 0].map(|largest| (rounding, largest)))
        {
            let (mut a, mut b) = (integers(3 * n, largest, 6), integers(3 * n, largest, 7));
            if largest == 127 {
                (a[0], b[0]) = (-128, -128);
            }
            let rows = a.chunks(n).zip(b.chunks(n));
            let expected: Vec<i8> = rows.flat_map(|(a, b)| oracle::add(a, b, rounding)).collect();
            let strided = transposed(&a, n);
            for on in implementations() {
                let case = format!("{}, {n}, up to {largest}, {rounding:?}", on.name);
                let sum = |a, b| found(on.integer_add(a, b, rounding));
                assert!(sum(on.ints(&a, [3, n]), on.ints(&b, [3, n])) == expected, "{case}");
                let transposed = on.ints(&strided, [n, 3]).transpose();
                assert!(sum(transposed, on.ints(&b, [3, n])) == expected, "{case}, strided");
                if largest == 127 && (n > 1 || rounding == Rounding::Floor) {
                    let wrong = sum(on.ints(&a, [3, n]), on.ints(&a, [3, n]));
                    assert!(wrong != expected, "canary: {case}");
                }
            }
        }
    }
}

/// A sum of int8 would wrap; rows run along the last axis, also in tensors of one dimension.
#[test]
fn known_answers() {
    for on in with_portable_devices() {
        let sum = |rounding| {
            found(on.integer_add(on.ints(&[127, -127, 100], [3]), on.ints(&[127, -127, -128], [3]), rounding))
        };
        assert_eq!(sum(Rounding::Floor), [127, -127, -28], "{}", on.name);
        assert_eq!(sum(Rounding::Nearest), [127, -127, -14], "{}", on.name);
    }
}
