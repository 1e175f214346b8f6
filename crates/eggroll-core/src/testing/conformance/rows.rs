//! Operations between layers.

use super::{distance, implementations, implementations_of, inputs, values};
use crate::ops::rows::{Activation, CausalAttention, RowOps};
use crate::ops::{self, portable::rows as portable};
use crate::work::device::is_on_host;
use burn::backend::Dispatch;
use burn::tensor::{Tensor, TensorData};

/// `½·erfc(−x/√2)`, by the midpoints of an integral of the density.
fn normal_distribution(x: f64) -> f64 {
    let (steps, far) = (200_000, 12.0);
    let width = (x + far) / f64::from(steps);
    let density = |i: i32| {
        let z = -far + (f64::from(i) + 0.5) * width;
        (-0.5 * z * z).exp()
    };
    width * (0..steps).map(density).sum::<f64>() / (2.0 * std::f64::consts::PI).sqrt()
}

fn activation(function: Activation, x: f64) -> f64 {
    match function {
        Activation::Gelu => x * normal_distribution(x),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
    }
}

#[test]
fn activations() {
    let x: Vec<f64> = inputs(123, 31).iter().map(|x| f64::from((9.0 * x) as f32)).collect();
    for function in [Activation::Gelu, Activation::Sigmoid, Activation::Silu, Activation::Tanh] {
        let expected: Vec<f64> = x.iter().map(|x| activation(function, *x)).collect();
        for on in implementations() {
            let apply = |x: Tensor<3>| -> Tensor<3> {
                let x = x.into_dispatch();
                Tensor::from_dispatch(match on.portable {
                    true => portable::activation::<Dispatch>(x, function),
                    false => Dispatch::activation(x, function),
                })
            };
            let found = values(apply(on.tensor(&x, [3, 41, 1])));
            assert!(distance(&found, &expected, 1) < 1.0, "{} {function:?}: {found:?} {expected:?}", on.name);
            let turned = values(apply(on.tensor(&x, [1, 41, 3]).swap_dims(1, 2)).swap_dims(1, 2));
            assert!(distance(&turned, &expected, 1) < 1.0, "{} {function:?}: strides", on.name);
            let scaled: Vec<f64> = expected.iter().map(|y| y + 1e-4).collect();
            assert!(distance(&found, &scaled, 1) > 5.0, "canary: {}", on.name);
            // WGSL promises nothing for NaN.
            if is_on_host(&on.device) {
                let nan = values(apply(on.tensor(&[f64::NAN, 0.5], [1, 2, 1])));
                assert!(nan[0].is_nan() && nan[1].is_finite(), "{} {function:?}: {nan:?}", on.name);
            }
        }
    }
}

/// Far arguments, on kernels of the CPU: what comes back is the limit.
#[cfg(feature = "flex")]
#[test]
fn limits_of_activations() {
    let on = super::host();
    let x = || on.tensor(&[f64::NEG_INFINITY, -1e30, -100.0, 100.0, 1e30, f64::INFINITY, 0.0], [7]);
    let found = values(ops::gelu(x()));
    assert!(found[..3].iter().all(|y| (-1e-30..=0.0).contains(y)), "{found:?}");
    assert_eq!(found[3..], [100.0, 1e30, f32::INFINITY, 0.0]);
    assert_eq!(values(ops::tanh(x())), [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 0.0]);
    let found = values(ops::sigmoid(x()));
    assert!(found[..3].iter().all(|y| (0.0..1e-37).contains(y)) && found[3..] == [1.0, 1.0, 1.0, 0.5], "{found:?}");
    let found = values(ops::silu(x()));
    assert!(found[..3].iter().all(|y| (-1e-30..=0.0).contains(y)), "{found:?}");
    assert_eq!(found[3..], [100.0, 1e30, f32::INFINITY, 0.0]);
}

#[test]
fn rms_norm() {
    for (index, (rows, width)) in [(1, 1), (5, 7), (33, 64), (300, 65)].into_iter().enumerate() {
        let x = inputs(rows * width, 32);
        let row = |x: &[f64]| {
            let mean = x.iter().map(|x| x * x).sum::<f64>() / width as f64;
            x.iter().map(|x| x / (mean + 1e-3).sqrt()).collect::<Vec<f64>>()
        };
        let expected: Vec<f64> = x.chunks(width).flat_map(row).collect();
        for on in implementations_of(index, &[1]) {
            let x = on.tensor(&x, [1, rows, width]);
            let found = values(match on.portable {
                true => Tensor::<3>::from_dispatch(portable::rms_normalized::<Dispatch>(x.into_dispatch(), 1e-3)),
                false => ops::rms_normalized(x, 1e-3),
            });
            assert!(distance(&found, &expected, 1) < 1.0, "{}: {found:?} {expected:?}", on.name);
        }
    }
}

#[test]
fn recurrence() {
    for (index, [batch, steps, width]) in [[1, 1, 1], [3, 4, 17], [65, 9, 32]].into_iter().enumerate() {
        let [forget, candidate] = [33, 34].map(|salt| inputs(batch * steps * width, salt));
        let kept: Vec<f64> = (0..batch * steps).map(|i| f64::from(u8::from(i % 5 != 3))).collect();
        let state = inputs(batch * width, 35);
        let mut expected = vec![0.0; batch * steps * width];
        for b in 0..batch {
            let mut h = state[b * width..][..width].to_vec();
            for t in 0..steps {
                for (c, h) in h.iter_mut().enumerate() {
                    let at = (b * steps + t) * width + c;
                    let f = 1.0 / (1.0 + (-forget[at]).exp());
                    *h = (1.0 - f) * kept[b * steps + t] * *h + f * candidate[at];
                    expected[at] = *h;
                }
            }
        }
        for on in implementations_of(index, &[1]) {
            let shape = [batch, steps, width];
            let (f, c) = (on.tensor(&forget, shape), on.tensor(&candidate, shape));
            let (k, h) = (on.tensor(&kept, [batch, steps]), on.tensor(&state, [batch, width]));
            let found: Tensor<3> = match on.portable {
                true => Tensor::from_dispatch(portable::gated_recurrence::<Dispatch>(
                    f.into_dispatch(),
                    c.into_dispatch(),
                    k.into_dispatch(),
                    h.into_dispatch(),
                )),
                false => ops::gated_recurrence(f, c, k, h),
            };
            let found = values(found);
            assert!(distance(&found, &expected, steps) < 1.0, "{} {shape:?}", on.name);
            let wrong: Vec<f64> = expected.iter().map(|h| h * 1.001).collect();
            assert!(distance(&found, &wrong, steps) > 5.0, "canary: {}", on.name);
        }
    }
}

/// By its definition, one step after the other.
fn attended(operands: [&[f64]; 3], [batch, steps, width]: [usize; 3], attention: CausalAttention) -> Vec<f64> {
    let [query, key, value] = operands;
    let CausalAttention { heads, window, rotary } = attention;
    let d = width / heads;
    let turned = |x: &[f64], step: usize| -> Vec<f64> {
        let Some(base) = rotary else { return x.to_vec() };
        let angle = |i: usize| step as f64 * f64::from(base).powf(-2.0 * i as f64 / d as f64);
        let (first, second) = x.split_at(d / 2);
        let one = |i: usize| first[i] * angle(i).cos() - second[i] * angle(i).sin();
        let other = |i: usize| second[i] * angle(i).cos() + first[i] * angle(i).sin();
        (0..d / 2).map(one).chain((0..d / 2).map(other)).collect()
    };
    let mut out = vec![0.0; batch * steps * width];
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        let at = |step: usize| (b * steps + step) * width + h * d;
        for t in 0..steps {
            let q = turned(&query[at(t)..][..d], t);
            let seen = (t + 1).saturating_sub(window)..t + 1;
            let score = |s: usize| {
                let k = turned(&key[at(s)..][..d], s);
                (q.iter().zip(&k).map(|(q, k)| q * k).sum::<f64>() / (d as f64).sqrt()).exp()
            };
            let scores: Vec<f64> = seen.clone().map(score).collect();
            let sum: f64 = scores.iter().sum();
            for (s, score) in seen.zip(&scores) {
                for i in 0..d {
                    out[at(t) + i] += score / sum * value[at(s) + i];
                }
            }
        }
    }
    out
}

#[test]
fn attention() {
    let heads = |heads, window, rotary| CausalAttention { heads, window, rotary };
    let cases = [
        ([1, 1, 4], heads(1, 1, None)),
        ([2, 5, 12], heads(2, 100, Some(10_000.0))),
        ([3, 40, 64], heads(4, 7, Some(500.0))),
        ([5, 33, 34], heads(2, 33, None)),
        ([2, 70, 8], heads(4, 64, Some(10_000.0))),
    ];
    for (index, (shape, attention)) in cases.into_iter().enumerate() {
        let [query, key, value] = [36, 37, 38].map(|salt| {
            inputs(shape.iter().product(), salt).iter().map(|x| f64::from((2.0 * x) as f32)).collect::<Vec<f64>>()
        });
        let expected = attended([&query, &key, &value], shape, attention);
        let other = CausalAttention { window: attention.window + 1, ..attention };
        let wider = attended([&query, &key, &value], shape, other);
        for on in implementations_of(index, &[1]) {
            let [q, k, v] = [&query, &key, &value].map(|x| on.tensor(x, shape));
            let found: Tensor<3> = match on.portable {
                true => Tensor::from_dispatch(portable::causal_attention::<Dispatch>(
                    q.into_dispatch(),
                    k.into_dispatch(),
                    v.into_dispatch(),
                    attention,
                )),
                false => ops::causal_attention(q, k, v, attention),
            };
            let found = values(found);
            assert!(on.distance(&found, &expected, shape[1]) < 1.0, "{} {shape:?}", on.name);
            if attention.window < shape[1] {
                assert!(distance(&found, &wider, shape[1]) > 100.0, "canary: {} {shape:?}", on.name);
            }
        }
    }
}

/// No sequence, member or thread changes another one: a part of a batch has the bits of the whole one.
#[cfg(feature = "flex")]
#[test]
fn parts_have_the_bits_of_the_whole() {
    let on = super::host();
    let x = |salt: u32, batch: usize| on.tensor(&inputs(40 * 8 * 20, salt)[..batch * 8 * 20], [batch, 8, 20]);
    let all = |batch: usize| {
        let attention = CausalAttention { heads: 2, window: 5, rotary: Some(100.0) };
        let mixed = ops::causal_attention(x(1, batch), x(2, batch), x(3, batch), attention);
        let (kept, state) = (Tensor::ones([batch, 8], &on.device), Tensor::zeros([batch, 20], &on.device));
        let states = ops::gated_recurrence(x(1, batch), x(2, batch), kept, state);
        [mixed, states, ops::gelu(x(4, batch)), ops::rms_normalized(x(5, batch), 1e-6)].map(values)
    };
    let (whole, part) = (all(40), all(3));
    whole.iter().zip(&part).for_each(|(whole, part)| assert_eq!(whole[..part.len()], part[..]));
    assert_ne!(whole[0][..160], whole[0][160..320], "canary: sequences differ");
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let device = implementations().remove(0).device;
    let zeros = |shape: [usize; 3]| Tensor::<3>::zeros(shape, &device);
    let message = |run: &dyn Fn()| {
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("shapes that do not fit");
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).expect("a message")
    };
    let attend = |width: usize, heads, window, rotary| {
        let x = zeros([1, 2, width]);
        ops::causal_attention(x.clone(), x.clone(), x, CausalAttention { heads, window, rotary });
    };
    let found = message(&|| attend(6, 4, 1, None));
    assert!(found.contains("a width of 6 is not 4 heads"), "{found}");
    let found = message(&|| attend(6, 2, 1, Some(1e4)));
    assert!(found.contains("a width of 6 is not 2 heads of an even size"), "{found}");
    let found = message(&|| attend(6, 2, 0, None));
    assert!(found.contains("a window of 0 steps"), "{found}");
    let found = message(&|| {
        let data = TensorData::new(vec![1.0f32; 2], [1, 2]);
        ops::gated_recurrence(
            zeros([1, 2, 3]),
            zeros([1, 2, 3]),
            Tensor::from_data(data, &device),
            Tensor::zeros([1, 4], &device),
        );
    });
    assert!(found.contains("[1, 4]") && found.contains("[1, 2, 3]"), "{found}");
}
