//! Operations between layers.

use super::{distance, implementations, implementations_of, inputs, values};
use crate::ops::rows::{Activation, CausalAttention, RowOps};
use crate::ops::{self, portable::rows as portable};
use crate::testing::reference::floats::rows as oracle;
use crate::work::device::is_on_host;
use burn::backend::Dispatch;
use burn::tensor::{Tensor, TensorData};

#[test]
fn activations() {
    let x: Vec<f64> = inputs(123, 31).iter().map(|x| f64::from((9.0 * x) as f32)).collect();
    for function in [Activation::Gelu, Activation::Sigmoid, Activation::Silu, Activation::Tanh] {
        let expected: Vec<f64> = x.iter().map(|x| oracle::activation(function, *x)).collect();
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
        let expected = oracle::rms_normalized(&x, width, 1e-3);
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
        let expected = oracle::gated_recurrence([&forget, &candidate], &kept, &state, [batch, steps, width]);
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
        let expected = oracle::causal_attention([&query, &key, &value], shape, attention);
        let other = CausalAttention { window: attention.window + 1, ..attention };
        let wider = oracle::causal_attention([&query, &key, &value], shape, other);
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
