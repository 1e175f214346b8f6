//! Functions of single rows against f64.

use super::super::{argmax, log_sum_exp, rotary};
use super::*;

/// Lengths around the lengths of vectors.
const LENGTHS: [usize; 10] = [1, 3, 7, 8, 9, 15, 16, 17, 48, 577];

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

#[test]
fn rms_norm() {
    for (n, size) in LENGTHS.into_iter().flat_map(|n| [0.0, 1e-4, 1.0, 1e4].map(|size| (n, size))) {
        let x: Vec<f32> = inputs(3 * n, 1).iter().map(|x| x * size).collect();
        let (weight, epsilon) = (inputs(n, 2), 1e-5);
        let mut y = Activations::new(Precision::F32);
        y.rms_norm(&x, &weight, epsilon);
        let row = |x: &[f32]| {
            let x = wide(x);
            let scale = (x.iter().map(|x| x * x).sum::<f64>() / n as f64 + f64::from(epsilon)).sqrt();
            x.iter().zip(wide(&weight)).map(|(x, w)| x / scale * w).collect::<Vec<_>>()
        };
        let mut expected: Vec<f64> = x.chunks_exact(n).flat_map(row).collect();
        let found = distance(y.values(), &expected, 1, 2e-6);
        assert!(found < 1.0, "{n} elements of {size}: {found}");
        assert_eq!(y.width(), n);
        if n > 8 && size >= 1.0 {
            expected.swap(0, 1);
            assert!(distance(y.values(), &expected, 1, 2e-6) > 100.0, "the canary");
        }
    }
}

type Gated = fn(&mut Activations, &mut Vec<f32>, &[f32], usize);

#[test]
fn swiglu() {
    gated(Activations::swiglu, |x| x / (1.0 + (-x).exp()));
}

#[test]
fn geglu() {
    let inner = |x: f64| (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
    gated(Activations::geglu, |x| x / 2.0 * (1.0 + inner(x).tanh()));
}

fn gated(run: Gated, function: impl Fn(f64) -> f64) {
    for n in LENGTHS {
        for size in [1.0, 10.0, 90.0, 1e4] {
            let gate: Vec<f32> = inputs(2 * n, 1).iter().map(|x| x * size).collect();
            let up = inputs(2 * n, 2);
            let expected: Vec<f64> = wide(&gate).iter().zip(wide(&up)).map(|(gate, up)| function(*gate) * up).collect();
            let mut y = Activations::new(Precision::F32);
            run(&mut y, &mut gate.clone(), &up, n);
            let found = distance(y.values(), &expected, 1, 1e-6);
            assert!(found < 1.0, "{n} elements of {size}: {found}");
            let other: Vec<f64> = expected.iter().map(|y| -y).collect();
            assert!(distance(y.values(), &other, 1, 1e-6) > 100.0, "the canary");
        }
    }
    let mut gate = vec![0.0, 1e4, -1e4, f32::NAN, 1.0, f32::INFINITY];
    let mut y = Activations::new(Precision::F32);
    run(&mut y, &mut gate, &[3.0, 2.0, 2.0, 1.0, f32::NAN, 1.0], 6);
    let [zero, large, small, gate, up, infinite] = y.values() else { panic!("six values") };
    assert!(*zero == 0.0 && *large == 2e4 && small.abs() < 1e-30, "{zero} {large} {small}");
    assert!(gate.is_nan() && up.is_nan() && *infinite == f32::INFINITY, "{gate} {up} {infinite}");
}

#[test]
fn rotary_positions() {
    for (heads, half) in [(1, 1), (2, 4), (3, 9), (9, 32)] {
        let angles = inputs(50 * half, 3).iter().map(|x| 30.0 * f64::from(*x)).collect::<Vec<_>>();
        let cosines: Vec<f32> = angles.iter().map(|x| x.cos() as f32).collect();
        let sines: Vec<f32> = angles.iter().map(|x| x.sin() as f32).collect();
        let positions = [0, 49, 7, 7, 1];
        let x = inputs(5 * heads * 2 * half, 1);
        let mut y = x.clone();
        rotary(&mut y, heads, &positions, &cosines, &sines, half);
        let mut expected = Vec::new();
        for (row, head) in (0..5).flat_map(|row| (0..heads).map(move |head| (row, head))) {
            let x = wide(&x[(row * heads + head) * 2 * half..][..2 * half]);
            let angle = |i: usize| angles[positions[row] as usize * half + i];
            expected.extend((0..half).map(|i| x[i] * angle(i).cos() - x[i + half] * angle(i).sin()));
            expected.extend((0..half).map(|i| x[i + half] * angle(i).cos() + x[i] * angle(i).sin()));
        }
        assert!(distance(&y, &expected, 1, 1e-6) < 1.0, "{heads} heads of {half}");
        let other = expected.iter().rev().copied().collect::<Vec<_>>();
        assert!(distance(&y, &other, 1, 1e-6) > 100.0, "the canary");
    }
}

#[test]
fn log_sum_exp_of_any_logits() {
    let expected = |x: &[f32]| {
        let x = wide(x);
        let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        x.iter().map(|x| (x - largest).exp()).sum::<f64>().ln() + largest
    };
    for (n, size) in LENGTHS.into_iter().flat_map(|n| [0.0, 1.0, 30.0, 1e4].map(|size| (n, size))) {
        let mut x: Vec<f32> = inputs(n, 1).iter().map(|x| x * size).collect();
        assert!(distance(&[log_sum_exp(&x)], &[expected(&x)], 1, 1e-6) < 1.0, "{n} logits of {size}");
        if n > 1 {
            x[n / 2] = f32::NEG_INFINITY;
            assert!(distance(&[log_sum_exp(&x)], &[expected(&x)], 1, 1e-6) < 1.0, "{n} logits, one of −∞");
        }
        let infinite = vec![f32::NEG_INFINITY; n];
        assert_eq!(log_sum_exp(&infinite), f32::NEG_INFINITY);
        for at in [0, n / 2, n - 1] {
            for strange in [f32::NAN, -f32::NAN, f32::INFINITY, f32::from_bits(0x7fc0_0001)] {
                let mut x = inputs(n, 1);
                x[at] = strange;
                assert!(log_sum_exp(&x).is_nan(), "{strange} at {at} of {n}");
            }
        }
    }
    let x = inputs(577, 1);
    assert!(distance(&[log_sum_exp(&x)], &[expected(&x[1..])], 1, 1e-6) > 100.0, "the canary");
    assert_eq!(log_sum_exp(&[]), f32::NEG_INFINITY);
}

#[test]
fn argmax_is_the_first_of_the_largest() {
    assert_eq!(argmax(&[]), None);
    assert_eq!(argmax(&[f32::NEG_INFINITY; 3]), Some(0));
    assert_eq!(argmax(&[-3.0, -1.0, f32::NEG_INFINITY, -1.0]), Some(1));
    assert_eq!(argmax(&[1.0, f32::INFINITY]), Some(1));
    assert_eq!(argmax(&[0.0, -0.0]), Some(0));
    for at in 0..3 {
        let mut x = [1.0, 2.0, 3.0];
        assert_eq!(argmax(&x), Some(2));
        x[at] = f32::NAN;
        assert_eq!(argmax(&x), None);
    }
}

/// A NaN stays where it is, in whatever vector it lies: also one that other software has made.
#[test]
fn a_nan_stays() {
    for (n, strange) in LENGTHS.into_iter().flat_map(|n| [0x7fc0_0000, 0xffc0_0000, 0x7fc0_0001].map(|bits| (n, bits)))
    {
        let strange = f32::from_bits(strange);
        let mut x = inputs(2 * n, 1);
        x[n - 1] = strange;
        let mut y = Activations::new(Precision::F32);
        y.rms_norm(&x, &vec![1.0; n], 1e-5);
        assert!(y.values()[..n].iter().all(|y| y.is_nan()) && y.values()[n..].iter().all(|y| y.is_finite()));
        y.swiglu(&mut x.clone(), &vec![1.0; 2 * n], n);
        assert!((0..2 * n).all(|at| y.values()[at].is_nan() == (at == n - 1)), "{n} elements");
    }
}
