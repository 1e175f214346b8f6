//! Log-likelihood by member.

use super::{integers, oracle, with_portable_devices};
use crate::arithmetic::integer::Rounding::{Floor, Nearest};
use crate::ops::integer::log_likelihood;
use crate::testing::conformance::implementations;

fn expected(logits: &[i8], targets: &[i32], classes: usize, members: usize) -> Vec<i32> {
    let row = |(logits, target): (&[i8], &i32)| oracle::log_likelihood(logits, *target as usize);
    let rows: Vec<i32> = logits.chunks(classes).zip(targets).map(row).collect();
    rows.chunks(rows.len() / members).map(|rows| rows.iter().sum()).collect()
}

#[test]
fn equals_oracle() {
    // 32 units share a row: fewer classes, as many, and as many as there can be.
    for (index, classes) in [1, 17, 32, 256].into_iter().enumerate() {
        // One member, rows that a cube takes at once, and more: logits that are equal, near, and far apart.
        for (members, rows, largest) in [(1, 1, 0), (3, 5, 20), (2, 100, 127)] {
            let mut logits = integers(members * rows * classes, largest, 40);
            if index % 2 == 0 && largest == 127 {
                logits.iter_mut().step_by(5).for_each(|logit| *logit = -128);
            }
            let targets: Vec<i32> = (0..members * rows).map(|r| ((r * 5 + 1) % classes) as i32).collect();
            let expected = expected(&logits, &targets, classes, members);
            for on in implementations() {
                let logits = on.ints(&logits, [members * rows, classes]);
                let found = on.integer_log_likelihood(logits, on.indices(&targets), members, Floor);
                assert_eq!(found, expected, "{}, {classes} classes, {members} × {rows}", on.name);
            }
        }
    }
}

/// A certain target costs nothing, 256 equal logits cost 8 bits.
#[test]
fn known_answers() {
    for on in implementations() {
        let one = on.integer_log_likelihood(on.ints(&[-48], [1, 1]), on.indices(&[0]), 1, Floor);
        assert_eq!(one, [0], "{}", on.name);
        let uniform = on.integer_log_likelihood(on.ints(&[0; 256], [1, 256]), on.indices(&[7]), 1, Floor);
        assert_eq!(uniform, [-128], "{}", on.name);
    }
}

fn wide_logits(len: usize, spread: i32, salt: u32) -> Vec<i32> {
    let pairs = integers(len, 127, salt).into_iter().zip(integers(len, 127, salt + 1));
    pairs.map(|(high, low)| (i32::from(high) * 258 + i32::from(low)).clamp(-32767, 32767) * spread / 32767).collect()
}

#[test]
fn in_256ths_equals_oracle() {
    for (index, classes) in [1, 17, 256].into_iter().enumerate() {
        // Logits that are equal, near, and far apart.
        for (members, rows, spread) in [(1, 1, 0), (3, 5, 300), (1, 2, 3000), (2, 100, 32767)] {
            let logits = wide_logits(members * rows * classes, spread, 40 + index as u32);
            let targets: Vec<i32> = (0..members * rows).map(|r| ((r * 5 + 1) % classes) as i32).collect();
            let row = |(logits, target): (&[i32], &i32)| oracle::fine_log_likelihood(logits, *target as usize);
            let likelihoods: Vec<i32> = logits.chunks(classes).zip(&targets).map(row).collect();
            let expected: Vec<i32> = likelihoods.chunks(rows).map(|rows| rows.iter().sum()).collect();
            for on in implementations() {
                let logits = on.wide(&logits, [members * rows, classes]);
                let found = on.integer_log_likelihood(logits, on.indices(&targets), members, Nearest);
                assert_eq!(found, expected, "{}, {classes} classes, {members} × {rows}, {spread}", on.name);
            }
        }
    }
}

/// Uniform logits cost 8 bits at any level, a certain target nothing; the loss matches the probabilities.
#[test]
fn known_answers_in_256ths() {
    for on in implementations() {
        for level in [-30000, 0, 77] {
            let uniform = on.wide(&[level; 256], [1, 256]);
            assert_eq!(on.integer_log_likelihood(uniform, on.indices(&[7]), 1, Nearest), [-2048], "{}", on.name);
        }
        let certain = on.wide(&[0, 9000, 0], [1, 3]);
        assert_eq!(on.integer_log_likelihood(certain, on.indices(&[1]), 1, Nearest), [0], "{}", on.name);
    }
    for spread in [100, 1000, 5000] {
        let logits = wide_logits(256, spread, 50);
        let total: f64 = logits.iter().map(|logit| (f64::from(*logit) / 256.0).exp2()).sum();
        let exact = f64::from(logits[3]) - 256.0 * total.log2();
        assert!((f64::from(oracle::fine_log_likelihood(&logits, 3)) - exact).abs() < 3.0, "{spread}");
    }
}

#[test]
fn canary_other_targets_fail() {
    let logits = integers(6 * 17, 127, 41);
    let targets = [1, 2, 3, 4, 5, 6];
    let expected = expected(&logits, &targets, 17, 2);
    for on in implementations() {
        let found =
            |targets: &[i32]| on.integer_log_likelihood(on.ints(&logits, [6, 17]), on.indices(targets), 2, Floor);
        assert_eq!(found(&targets), expected, "{}", on.name);
        assert_ne!(found(&[1, 2, 3, 4, 5, 7]), expected, "{}", on.name);
    }
}

#[test]
fn strided_logits() {
    let logits = integers(6 * 17, 127, 41);
    let targets = [1, 2, 3, 4, 5, 6];
    for on in with_portable_devices() {
        let strided = on.ints(&super::transposed(&logits, 17), [17, 6]).transpose();
        let found = on.integer_log_likelihood(strided, on.indices(&targets), 2, Floor);
        assert_eq!(found, expected(&logits, &targets, 17, 2), "{}", on.name);
    }
}

#[test]
#[should_panic(expected = "logits [6, 17] do not fit targets [6] of 4 members")]
fn refuses_uneven_rows() {
    let on = &implementations()[0];
    log_likelihood(on.ints(&[0; 6 * 17], [6, 17]), on.indices(&[0; 6]), 4, Floor);
}

#[test]
#[should_panic(expected = "logits [1, 257] do not fit")]
fn refuses_many_classes() {
    let on = &implementations()[0];
    log_likelihood(on.ints(&[0; 257], [1, 257]), on.indices(&[0]), 1, Floor);
}

#[test]
#[should_panic(expected = "16385 rows of a member are more than 16384")]
fn refuses_more_rows_than_int32_sums() {
    let on = &implementations()[0];
    log_likelihood(on.wide(&[0; 16385], [16385, 1]), on.indices(&[0; 16385]), 1, Nearest);
}
