//! Products in float32.

use super::*;

pub(super) const SHAPES: [[usize; 2]; 5] = [[1, 1], [7, 33], [96, 31], [193, 64], [576, 40]];
pub(super) const ROWS: [usize; 5] = [1, 7, 8, 9, 15];

/// Row-major `x·W` in f64, with a weight for each row.
pub(super) fn product<'a>(x: &[f32], weight: impl Fn(usize) -> &'a [f64], [d_input, d_output]: [usize; 2]) -> Vec<f64> {
    let element = |row: usize, column: usize| -> f64 {
        let weight = weight(row);
        let x = &x[row * d_input..][..d_input];
        x.iter().enumerate().map(|(k, x)| f64::from(*x) * weight[k * d_output + column]).sum()
    };
    (0..x.len() / d_input)
        .flat_map(|row| (0..d_output).map(move |column| (row, column)))
        .map(|(r, c)| element(r, c))
        .collect()
}

pub(super) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// `W ± s·c·B·Aᵀ` of a slot.
pub(super) fn formed(weight: &[f32], factors: &Factors, member: MemberRow) -> Vec<f64> {
    let ([d_input, d_output], rank) = (factors.shape, factors.rank);
    let (b, a) = factors.values[member.slot as usize * rank * (d_input + d_output)..].split_at(rank * d_input);
    let scale = f64::from(factors.scale) * if member.minus { -1.0 } else { 1.0 };
    let noise = |k: usize, c: usize| -> f64 {
        (0..rank).map(|r| f64::from(b[r * d_input + k]) * f64::from(a[r * d_output + c])).sum()
    };
    let place = |at: usize| (at / d_output, at % d_output);
    weight.iter().enumerate().map(|(at, w)| f64::from(*w) + scale * noise(place(at).0, place(at).1)).collect()
}

#[test]
fn equal_a_loop() {
    for shape in SHAPES {
        let weight = inputs(shape[0] * shape[1], 1);
        let packed = PackedMatrix::new(&weight, shape, Precision::F32);
        for rows in ROWS {
            let x = inputs(rows * shape[0], 2);
            let weight = wide(&weight);
            let expected = product(&x, |_| &weight, shape);
            let found = multiply(&packed, &activations(Precision::F32, &x, shape[0]), None);
            let distance = distance(&found, &expected, shape[0], TOLERANCE);
            assert!(distance < 1.0, "{shape:?}, {rows} rows: {distance}");
        }
    }
}

#[test]
fn with_noise_equal_a_formed_weight() {
    for shape in SHAPES {
        let weight = inputs(shape[0] * shape[1], 1);
        let packed = PackedMatrix::new(&weight, shape, Precision::F32);
        for (rank, rows) in [1, 3].into_iter().flat_map(|rank| ROWS.map(|rows| (rank, rows))) {
            let (factors, rows) = (factors(rank, shape, 3), members(rows, 3));
            let x = inputs(rows.len() * shape[0], 2);
            let formed: Vec<_> = rows.iter().map(|row| formed(&weight, &factors, *row)).collect();
            let expected = product(&x, |row| &formed[row], shape);
            let found = multiply(&packed, &activations(Precision::F32, &x, shape[0]), Some((&factors, &rows)));
            // `x·B` and `A` multiply their errors.
            let distance = distance(&found, &expected, shape[0], 4.0 * TOLERANCE);
            assert!(distance < 1.0, "{shape:?}, rank {rank}, {} rows: {distance}", rows.len());
        }
    }
}

/// More rows of one pair than are projected together, all slots.
#[test]
fn long_runs_of_one_slot() {
    let shape = [33, 17];
    let weight = inputs(shape[0] * shape[1], 1);
    let packed = PackedMatrix::new(&weight, shape, Precision::F32);
    let factors = factors(2, shape, 2);
    let rows: Vec<_> = (0..150).map(|row| MemberRow { slot: u32::from(row < 133), minus: row % 2 == 0 }).collect();
    let x = inputs(rows.len() * shape[0], 2);
    let formed: Vec<_> = rows.iter().map(|row| formed(&weight, &factors, *row)).collect();
    let expected = product(&x, |row| &formed[row], shape);
    let found = multiply(&packed, &activations(Precision::F32, &x, shape[0]), Some((&factors, &rows)));
    assert!(distance(&found, &expected, shape[0], 4.0 * TOLERANCE) < 1.0);
}

#[test]
fn a_wrong_sign_or_row_is_found() {
    let shape = [96, 31];
    let weight = inputs(shape[0] * shape[1], 1);
    let packed = PackedMatrix::new(&weight, shape, Precision::F32);
    let (factors, rows) = (factors(1, shape, 3), members(9, 3));
    let x = inputs(rows.len() * shape[0], 2);
    let found = multiply(&packed, &activations(Precision::F32, &x, shape[0]), Some((&factors, &rows)));
    let away = |rows: &[MemberRow]| {
        let formed: Vec<_> = rows.iter().map(|row| formed(&weight, &factors, *row)).collect();
        distance(&found, &product(&x, |row| &formed[row], shape), shape[0], 4.0 * TOLERANCE)
    };
    let mut wrong = rows.clone();
    wrong[4].minus = !wrong[4].minus;
    assert!(away(&rows) < 1.0 && away(&wrong) > 100.0, "{} {}", away(&rows), away(&wrong));
    let mut wrong = rows.clone();
    wrong[5].slot = (wrong[5].slot + 1) % 3;
    assert!(away(&wrong) > 100.0, "{}", away(&wrong));
    let weight = wide(&weight);
    let mut swapped = product(&x, |_| &weight, shape);
    let found = multiply(&packed, &activations(Precision::F32, &x, shape[0]), None);
    let (first, second) = swapped.split_at_mut(shape[1]);
    first.swap_with_slice(&mut second[..shape[1]]);
    assert!(distance(&found, &swapped, shape[0], TOLERANCE) > 100.0);
}

#[test]
fn adds_to_what_is_there() {
    for precision in Precision::ALL {
        let shape = [193, 37];
        let packed = PackedMatrix::new(&inputs(shape[0] * shape[1], 1), shape, precision);
        let (factors, rows) = (factors(2, shape, 3), members(9, 3));
        let x = activations(precision, &inputs(rows.len() * shape[0], 2), shape[0]);
        let noise = Some((&factors, rows.as_slice()));
        let alone = multiply(&packed, &x, noise);
        let before = inputs(alone.len(), 3);
        let mut y = before.clone();
        packed.multiply(&x, noise, true, &mut Vec::new(), &mut y);
        let expected: Vec<f32> = before.iter().zip(&alone).map(|(a, b)| a + b).collect();
        assert_eq!(bits(&y), bits(&expected), "{precision}");
        assert_ne!(bits(&y), bits(&alone), "{precision}");
    }
}

/// A row gives the same bits, whatever rows stand next to it, and wherever it stands.
#[test]
fn rows_do_not_know_each_other() {
    for (precision, shape) in Precision::ALL.into_iter().flat_map(|p| SHAPES.map(|s| (p, s))) {
        let packed = PackedMatrix::new(&inputs(shape[0] * shape[1], 1), shape, precision);
        let (factors, rows) = (factors(3, shape, 3), members(39, 3));
        let x = inputs(rows.len() * shape[0], 2);
        let of = |range: std::ops::Range<usize>| {
            let x = activations(precision, &x[range.start * shape[0]..range.end * shape[0]], shape[0]);
            bits(&multiply(&packed, &x, Some((&factors, &rows[range]))))
        };
        let all = of(0..39);
        for range in (0..39).map(|row| row..row + 1).chain([0..7, 3..11, 5..14, 16..31, 1..33, 5..39]) {
            let found = of(range.clone());
            assert_eq!(found, all[range.start * shape[1]..range.end * shape[1]], "{precision} {shape:?} {range:?}");
        }
        // Slots that others have drawn do not matter either.
        let each = factors.values.len() / 3;
        let one = Factors { values: factors.values[each..2 * each].to_vec(), ..factors.clone() };
        let row = [MemberRow { slot: 0, minus: rows[2].minus }];
        let x = activations(precision, &x[2 * shape[0]..3 * shape[0]], shape[0]);
        assert_eq!(rows[2].slot, 1);
        assert_eq!(bits(&multiply(&packed, &x, Some((&one, &row)))), all[2 * shape[1]..3 * shape[1]]);
    }
}

/// Drawn factors are the noise that the members of a population have.
#[cfg(feature = "flex")]
#[test]
fn drawn_noise_is_that_of_the_members() {
    use crate::ops::NoiseSource;
    use crate::{NoiseKey, ParameterNoise, Role};
    use burn::tensor::{DType, Device};
    let shape = [19, 23];
    for (rank, minus) in [(1, false), (3, true)] {
        let noise = ParameterNoise {
            role: Role::LowRank { rank },
            key: NoiseKey::new(9, 4, 2),
            sigma: 0.3,
            source: NoiseSource::Drawn,
            counts_signs: false,
        };
        assert!(Factors::can_draw(&noise));
        let factors = Factors::draw(&noise, shape, [3, 8]).expect("low-rank noise");
        assert_eq!(factors.slots(), 2);
        let weight = vec![0.0; shape[0] * shape[1]];
        for (slot, pair) in [(0, 3), (1, 8)] {
            let expected = noise.clone().noise(pair, &shape, (&Device::flex(), DType::F32));
            let expected: Vec<f32> = expected.into_data().try_to_vec().expect("f32");
            let sign = if minus { -1.0 } else { 1.0 };
            let found: Vec<f32> =
                formed(&weight, &factors, MemberRow { slot, minus }).iter().map(|x| (x * sign) as f32).collect();
            assert!(distance(&found, &wide(&expected), 1, 1e-5) < 1.0, "rank {rank}, pair {pair}");
            assert!(expected.iter().any(|x| x.abs() > 0.1));
        }
    }
    let dense = ParameterNoise {
        role: Role::Dense,
        key: NoiseKey::new(9, 4, 2),
        sigma: 0.3,
        source: NoiseSource::Drawn,
        counts_signs: false,
    };
    assert!(!Factors::can_draw(&dense) && Factors::draw(&dense, shape, [3]).is_none());
}
