use super::*;

/// Numbers that look random, in `[−1, 1)`.
fn numbers(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn worst(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max)
}

#[test]
fn functions_of_elements() {
    let x: Vec<f32> = numbers(1, 1003).iter().map(|x| 12.0 * x).chain([0.0, 100.0, -100.0]).collect();
    let logistic = |x: f32| 1.0 / (1.0 + (-f64::from(x)).exp());
    let check = |function: fn(&mut [f32]), expected: &dyn Fn(f32) -> f64, tolerance: f64| {
        let mut y = x.clone();
        function(&mut y);
        let expected: Vec<f64> = x.iter().map(|x| expected(*x)).collect();
        assert!(worst(&y, &expected) < tolerance, "{}", worst(&y, &expected));
        assert!(worst(&y[1..], &expected[..y.len() - 1]) > 1e-2, "canary: the next element's value");
    };
    check(sigmoid, &logistic, 3e-7);
    check(tanh, &|x| f64::from(x).tanh(), 6e-7);
    check(wkv7_decay, &|x| (-(-0.5f64).exp() * logistic(x)).exp(), 5e-7);
    let mut nan = [f32::NAN; 3];
    sigmoid(&mut nan);
    assert!(nan.iter().all(|x| x.is_nan()), "NaN stays NaN: {nan:?}");
}

#[test]
fn groups_are_normalized() {
    for (groups, size) in [(1, 16), (2, 8), (3, 33), (1, 5), (12, 64)] {
        let n = groups * size;
        let (x, weight, bias) = (numbers(2, 3 * n), numbers(3, n), numbers(4, n));
        let mut y = vec![0.0; 3 * n];
        group_norm(&x, groups, &weight, &bias, 1e-3, &mut y);
        let mut expected = Vec::new();
        for (g, x) in x.chunks_exact(size).enumerate() {
            let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / size as f64;
            let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / size as f64;
            expected.extend(x.iter().enumerate().map(|(i, x)| {
                let at = g % groups * size + i;
                (f64::from(*x) - mean) / (variance + 1e-3).sqrt() * f64::from(weight[at]) + f64::from(bias[at])
            }));
        }
        assert!(worst(&y, &expected) < 2e-6, "{groups} of {size}: {}", worst(&y, &expected));
        if groups > 1 {
            group_norm(&x, 1, &weight, &bias, 1e-3, &mut y);
            assert!(worst(&y, &expected) > 1e-2, "canary: one group");
        }
    }
}

/// The recurrence as the paper has it, in f64: `[rows, heads, head_dim]`, and the state.
fn plain(rows: Wkv7, state: &[f32]) -> (Vec<f64>, Vec<f64>) {
    let (heads, dim) = (rows.heads, rows.head_dim);
    let mut state: Vec<f64> = state.iter().map(|x| f64::from(*x)).collect();
    let mut out = vec![0.0; rows.key.len()];
    for row in 0..rows.key.len() / (heads * dim) {
        for head in 0..heads {
            let of = |values: &[f32], j: usize| f64::from(values[(row * heads + head) * dim + j]);
            let state = &mut state[head * dim * dim..][..dim * dim];
            for i in 0..dim {
                let removed: f64 = (0..dim).map(|j| of(rows.removal, j) * state[j * dim + i]).sum();
                for j in 0..dim {
                    let s = &mut state[j * dim + i];
                    *s = *s * of(rows.decay, j) - of(rows.rate, j) * of(rows.removal, j) * removed
                        + of(rows.key, j) * of(rows.value, i);
                    out[(row * heads + head) * dim + i] += *s * of(rows.receptance, j);
                }
            }
        }
    }
    (out, state)
}

#[test]
fn recurrence() {
    for (heads, head_dim) in [(2, 8), (1, 64), (3, 20), (1, 72), (2, 1)] {
        let (rows, width) = (5, heads * head_dim);
        let mut values = [1, 2, 3, 4, 5, 6].map(|seed| numbers(seed, rows * width));
        values[0].iter_mut().for_each(|w| *w = 0.75 + 0.2 * *w);
        let scale = 1.0 / (head_dim as f32).sqrt();
        values[4].iter_mut().for_each(|removal| *removal *= scale);
        values[5].iter_mut().for_each(|rate| *rate = 0.5 + 0.5 * *rate);
        let of = |values: &[Vec<f32>; 6], range: std::ops::Range<usize>, run: &mut dyn FnMut(Wkv7)| {
            let [decay, receptance, key, value, removal, rate] =
                values.each_ref().map(|v| &v[range.start * width..range.end * width]);
            run(Wkv7 { heads, head_dim, decay, receptance, key, value, removal, rate });
        };
        let begin = numbers(7, heads * head_dim * head_dim);
        let (mut state, mut out) = (begin.clone(), vec![0.0; rows * width]);
        of(&values, 0..rows, &mut |wkv| wkv.run(&mut state, &mut out));
        let mut expected = (Vec::new(), Vec::new());
        of(&values, 0..rows, &mut |wkv| expected = plain(wkv, &begin));
        assert!(worst(&out, &expected.0) < 2e-5, "{heads} of {head_dim}: {}", worst(&out, &expected.0));
        assert!(worst(&state, &expected.1) < 2e-5, "{heads} of {head_dim}: {}", worst(&state, &expected.1));
        // Row by row, bit for bit.
        let (mut single, mut again) = (begin.clone(), vec![0.0; rows * width]);
        for (row, again) in again.chunks_exact_mut(width).enumerate() {
            of(&values, row..row + 1, &mut |wkv| wkv.run(&mut single, again));
        }
        assert!(single == state && again == out);
        let swapped = {
            let [decay, receptance, key, value, removal, rate] = values.clone();
            [decay, receptance, value, key, removal, rate]
        };
        of(&swapped, 0..rows, &mut |wkv| wkv.run(&mut begin.clone(), &mut out));
        assert!(head_dim == 1 || worst(&out, &expected.0) > 1e-2, "canary: key and value swapped");
    }
}
