//! Norm by the mean magnitude.

use super::{
    HostVector, NOISES, ROUNDINGS, SIZES, found, integers, members, oracle, transposed, with_portable_devices,
};
use crate::arithmetic::integer::Rounding;
use crate::ops::integer::{IntegerNoise, Vector};
use crate::rng::key::PairRange;
use crate::testing::conformance::{Implementation, implementations};

struct NormCase {
    x: Vec<i8>,
    gain: HostVector,
    /// With [`Rounding::Nearest`].
    bias: Option<HostVector>,
    rounding: Rounding,
}

impl NormCase {
    /// `largest` is the largest magnitude of an input: a small one makes means of 0. `noise`: pairs, sigma shift.
    fn new(n: usize, rows: usize, largest: i8, noise: Option<(u32, u32)>, rounding: Rounding) -> Self {
        let gain = HostVector::new(n, if rounding == Rounding::Floor { (0, 127) } else { (16, 100) }, noise, 3);
        let bias = (rounding == Rounding::Nearest).then(|| HostVector::new(n, (0, 40), noise, 5));
        let rows = rows * members(gain.noise.as_ref());
        let mut x = integers(rows * n, largest, 4);
        if largest == 0 {
            x.iter_mut().step_by(n + 2).for_each(|x| *x = 1);
        }
        if rounding == Rounding::Nearest {
            x[0] = 1;
            x.iter_mut().skip(1).take(1).for_each(|value| *value = -128);
        }
        Self { x, gain, bias, rounding }
    }

    fn expected(&self) -> Vec<i8> {
        let (n, vectors) = (self.gain.values.len(), [Some(&self.gain), self.bias.as_ref()]);
        let noise = vectors.into_iter().flatten().find_map(|vector| vector.noise.as_ref());
        let each = self.x.len() / n / members(noise);
        let row = |(r, x)| {
            let bias = self.bias.as_ref().map(|bias| bias.of(r / each, self.rounding));
            oracle::norm(x, &self.gain.of(r / each, self.rounding), bias.as_deref(), self.rounding)
        };
        self.x.chunks(n).enumerate().flat_map(row).collect()
    }

    fn found(&self, on: &Implementation, noise: Option<IntegerNoise>) -> Vec<i8> {
        let n = self.gain.values.len();
        let gain = Vector { noise, ..self.gain.on(on) };
        let x = on.ints(&self.x, [self.x.len() / n, n]);
        found(on.integer_norm(x, gain, self.bias.as_ref().map(|bias| bias.on(on)), self.rounding))
    }
}

#[test]
fn equals_oracle() {
    for (index, n) in SIZES.into_iter().enumerate() {
        // Means of every size, of one and of 0, each with other noise than at the size before.
        for (of_largest, largest) in [127, 1, 0].into_iter().enumerate() {
            for rounding in ROUNDINGS {
                let [a, b] = NOISES.map(|(_, shift)| Some((1 + index as u32 % 3, shift)));
                let noise = [None, a, b][(index + of_largest) % 3];
                let case = NormCase::new(n, 1 + index % 4, largest, noise, rounding);
                let expected = case.expected();
                for on in implementations() {
                    let found = case.found(&on, case.gain.noise.as_ref().map(|noise| noise.on(&on)));
                    assert!(found == expected, "{}, {n}, up to {largest}, {noise:?}, {rounding:?}", on.name);
                }
            }
        }
    }
}

/// All results of a mean of 0 are there to be compared.
#[test]
fn means_of_zero_occur() {
    let expected = NormCase::new(17, 3, 0, None, Rounding::Floor).expected();
    assert!(expected.contains(&-1) && expected.contains(&-2));
}

/// A norm without a bias after one with a bias, of rows enough for every thread.
#[test]
fn no_bias_is_a_bias_of_zeros() {
    let with_bias = NormCase::new(1024, 256, 127, None, Rounding::Nearest);
    let without = NormCase { bias: None, ..NormCase::new(1024, 256, 127, None, Rounding::Nearest) };
    let zeros = vec![0; 1024];
    let gain = without.gain.of(0, Rounding::Nearest);
    let norm = |x| oracle::norm(x, &gain, Some(&zeros), Rounding::Nearest);
    let expected: Vec<i8> = without.x.chunks(1024).flat_map(norm).collect();
    for on in implementations() {
        assert!(with_bias.found(&on, None) == with_bias.expected(), "{}", on.name);
        assert!(without.found(&on, None) == expected, "{}", on.name);
    }
}

#[test]
fn noise_of_one_vector() {
    let vectors = || [HostVector::new(8, (16, 5), Some((2, 0)), 4), HostVector::new(8, (0, 5), None, 5)];
    let [noisy, plain] = vectors();
    let [other_noisy, other_plain] = vectors();
    for (gain, bias) in [(noisy, plain), (other_plain, other_noisy)] {
        let case = NormCase { x: integers(12 * 8, 127, 6), gain, bias: Some(bias), rounding: Rounding::Nearest };
        for on in implementations() {
            let found = case.found(&on, case.gain.noise.as_ref().map(|noise| noise.on(&on)));
            assert!(found == case.expected(), "{}", on.name);
        }
    }
}

#[test]
fn canary_other_noise_fails() {
    for rounding in ROUNDINGS {
        let case = NormCase::new(32, 2, 127, Some((3, 0)), rounding);
        let noise = case.gain.noise.as_ref().expect("a case with noise");
        for on in implementations() {
            let found = case.found(&on, Some(noise.shifted().on(&on)));
            assert!(found != case.expected(), "{}: neighboring pairs, {rounding:?}", on.name);
            assert!(case.found(&on, None) != case.expected(), "{}: no noise, {rounding:?}", on.name);
        }
    }
}

#[test]
fn chunks_change_no_bit() {
    let case = NormCase::new(33, 3, 127, Some((4, 0)), Rounding::Floor);
    let noise = case.gain.noise.as_ref().expect("a case with noise");
    for on in implementations() {
        let chunk = |first: u32| {
            let x = on.ints(&case.x[33 * 6 * first as usize..33 * 6 * (first as usize + 2)], [12, 33]);
            let noise = IntegerNoise { pairs: PairRange::new(noise.pairs.first + first, 2), ..noise.on(&on) };
            found(on.integer_norm(x, Vector { noise: Some(noise), ..case.gain.on(&on) }, None, case.rounding))
        };
        assert!([chunk(0), chunk(2)].concat() == case.expected(), "{}", on.name);
    }
}

#[test]
fn strided_operands() {
    let case = NormCase::new(17, 3, 127, Some((2, 0)), Rounding::Floor);
    let noise = case.gain.noise.as_ref().expect("a case with noise");
    for on in with_portable_devices() {
        let x = on.ints(&transposed(&case.x, 17), [17, case.x.len() / 17]).transpose();
        let gain = Vector { noise: Some(noise.strided_on(&on)), ..case.gain.on(&on) };
        assert!(found(on.integer_norm(x, gain, None, case.rounding)) == case.expected(), "{}", on.name);
    }
}
