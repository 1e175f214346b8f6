//! Embedding, norm, residual connections, log-likelihood: on devices too these are the portable operations.

use super::super::SIZES;
use super::{Held, HostVector, PairRange, found, integers, members, oracle};
use crate::ops::integer::transformer::log_likelihood;
use crate::testing::conformance::implementations;

#[test]
fn embedding_equals_oracle() {
    for (index, (vocab, width)) in [(3, 1), (17, 33), (256, 64)].into_iter().enumerate() {
        for noise in [None, Some((1, 1, 4)), Some((2, 3, 0))] {
            let held = noise.map(|(pairs, rank, sigma_shift)| {
                Held::new(2, rank * (vocab + width), rank, sigma_shift, PairRange::new(5, pairs))
            });
            let bias = HostVector::new(width, (0, 60), noise.map(|(pairs, _, shift)| (pairs, shift)), 7);
            let (weight, rows) = (integers(vocab * width, 127, 3), (1 + index) * members(held.as_ref()));
            let tokens: Vec<i32> = (0..rows).map(|r| ((r * 7 + 2) % vocab) as i32).collect();
            let row = |(r, token): (usize, &i32)| {
                let member = r / (1 + index);
                let noise = held.as_ref().map(|noise| noise.member(member));
                oracle::embedding(*token as usize, &weight, noise, &bias.of(member))
            };
            let expected: Vec<i8> = tokens.iter().enumerate().flat_map(row).collect();
            for on in implementations() {
                let noise = held.as_ref().map(|noise| noise.on(&on));
                let weight = on.ints(&weight, [vocab, width]);
                let y = on.transformer_embedding(on.indices(&tokens), weight, noise, bias.on(&on));
                assert!(found(y) == expected, "{}, {vocab} × {width}", on.name);
            }
        }
    }
}

#[test]
fn norm_equals_oracle() {
    for (index, n) in SIZES.into_iter().enumerate() {
        // Each with other noise than at the size before.
        for (of_largest, largest) in [127, 1, 0].into_iter().enumerate() {
            let noise = [None, Some((1, 4)), Some((2, 0))][(index + of_largest) % 3];
            let gain = HostVector::new(n, (16, 100), noise, 4);
            let bias = HostVector::new(n, (0, 40), noise, 5);
            let each = 1 + index % 4;
            let rows = each * members(gain.noise.as_ref());
            let mut x = integers(rows * n, largest, 6);
            x[0] = 1;
            x.iter_mut().skip(1).take(1).for_each(|value| *value = -128);
            let row = |(r, x)| oracle::norm(x, &gain.of(r / each), &bias.of(r / each));
            let expected: Vec<i8> = x.chunks(n).enumerate().flat_map(row).collect();
            for on in implementations() {
                let y = on.transformer_norm(on.ints(&x, [rows, n]), gain.on(&on), bias.on(&on));
                assert!(found(y) == expected, "{}, {n}, up to {largest}", on.name);
            }
        }
    }
}

#[test]
fn norm_with_noise_of_one_vector() {
    let (gain, bias) = (HostVector::new(8, (16, 5), Some((2, 0)), 4), HostVector::new(8, (0, 5), None, 5));
    let x = integers(12 * 8, 127, 6);
    for (gain, bias) in [(&gain, &bias), (&bias, &gain)] {
        let row = |(r, x)| oracle::norm(x, &gain.of(r / 3), &bias.of(r / 3));
        let expected: Vec<i8> = x.chunks(8).enumerate().flat_map(row).collect();
        for on in implementations() {
            let y = on.transformer_norm(on.ints(&x, [12, 8]), gain.on(&on), bias.on(&on));
            assert!(found(y) == expected, "{}", on.name);
        }
    }
}

#[test]
fn sums_are_rescaled() {
    for n in SIZES {
        for largest in [127, 5, 0] {
            let (mut x, mut y) = (integers(3 * n, largest, 8), integers(3 * n, largest, 9));
            if largest == 127 {
                (x[0], y[0]) = (-128, -128);
            }
            let expected: Vec<i8> = x.chunks(n).zip(y.chunks(n)).flat_map(|(x, y)| oracle::add(x, y)).collect();
            assert!(largest == 0 || n < 17 || expected.iter().any(|value| value.abs() == 127), "canary");
            for on in implementations() {
                let sum = on.transformer_add(on.ints(&x, [3, n]), on.ints(&y, [3, n]));
                assert!(found(sum) == expected, "{}, {n}, up to {largest}", on.name);
            }
        }
    }
}

fn logits(len: usize, spread: i32, salt: u32) -> Vec<i32> {
    let pairs = integers(len, 127, salt).into_iter().zip(integers(len, 127, salt + 1));
    pairs.map(|(high, low)| (i32::from(high) * 258 + i32::from(low)).clamp(-32767, 32767) * spread / 32767).collect()
}

#[test]
fn log_likelihoods_equal_oracle() {
    for (index, classes) in [1, 17, 256].into_iter().enumerate() {
        // Logits that are equal, near, and far apart.
        for (members, rows, spread) in [(1, 1, 0), (3, 5, 300), (1, 2, 3000), (2, 100, 32767)] {
            let logits = logits(members * rows * classes, spread, 40 + index as u32);
            let targets: Vec<i32> = (0..members * rows).map(|r| ((r * 5 + 1) % classes) as i32).collect();
            let row = |(logits, target): (&[i32], &i32)| oracle::loss(logits, *target as usize);
            let losses: Vec<i32> = logits.chunks(classes).zip(&targets).map(row).collect();
            let expected: Vec<i32> = losses.chunks(rows).map(|rows| -rows.iter().sum::<i32>()).collect();
            for on in implementations() {
                let logits = on.wide(&logits, [members * rows, classes]);
                let found = on.transformer_log_likelihood(logits, on.indices(&targets), members);
                assert_eq!(found, expected, "{}, {classes} classes, {members} × {rows}, {spread}", on.name);
            }
        }
    }
}

/// Uniform logits cost 8 bits whatever their level, a certain target nothing; the loss is that of probabilities.
#[test]
fn losses_are_in_256ths_of_a_bit() {
    for on in implementations() {
        for level in [-30000, 0, 77] {
            let uniform = on.wide(&[level; 256], [1, 256]);
            assert_eq!(on.transformer_log_likelihood(uniform, on.indices(&[7]), 1), [-2048], "{}", on.name);
        }
        let certain = on.wide(&[0, 9000, 0], [1, 3]);
        assert_eq!(on.transformer_log_likelihood(certain, on.indices(&[1]), 1), [0], "{}", on.name);
    }
    for spread in [100, 1000, 5000] {
        let logits = logits(256, spread, 50);
        let total: f64 = logits.iter().map(|logit| (f64::from(*logit) / 256.0).exp2()).sum();
        let exact = 256.0 * total.log2() - f64::from(logits[3]);
        assert!((f64::from(oracle::loss(&logits, 3)) - exact).abs() < 3.0, "{spread}");
    }
}

#[test]
#[should_panic(expected = "logits [6, 17] do not fit targets [6] of 4 members")]
fn refuses_uneven_rows() {
    let on = &implementations()[0];
    log_likelihood(on.wide(&[0; 6 * 17], [6, 17]), on.indices(&[0; 6]), 4);
}

#[test]
#[should_panic(expected = "16385 rows of a member are more than 16384")]
fn refuses_more_rows_than_int32_sums() {
    let on = &implementations()[0];
    log_likelihood(on.wide(&[0; 16385], [16385, 1]), on.indices(&[0; 16385]), 1);
}
