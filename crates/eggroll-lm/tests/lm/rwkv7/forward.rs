//! Sequences through the model.

use super::*;
use burn::module::Param;

#[test]
fn host_equals_module() {
    for tied_head in [false, true] {
        let config = Rwkv7Config { tied_head, ..config() };
        let model = model(&config);
        let host = HostRwkv7::new(&model, Precision::F32);
        let all = tokens(1, 3 * 11);
        let expected = values(model.forward(tensor(&all, 3)));
        let mut states: Vec<_> = (0..3).map(|_| host.state(0)).collect();
        let mut sequences: Vec<_> = all.chunks(11).zip(&mut states).collect();
        let found = run(&host, &mut sequences);
        assert!(distance(&found, &expected) < 1e-4, "{}", distance(&found, &expected));

        let mut wrong = model.clone();
        let att = &mut wrong.blocks[1].att;
        att.receptance.weight = Param::from_tensor(att.receptance.weight.val().transpose());
        assert!(distance(&values(wrong.forward(tensor(&all, 3))), &expected) > 1e-2, "canary: a transposed matrix");
        let mut wrong = model.clone();
        let att = &mut wrong.blocks[2].att;
        att.k_k = Param::from_tensor(-att.k_k.val() * att.x_r.val());
        let wrong = HostRwkv7::new(&wrong, Precision::F32);
        let mut states: Vec<_> = (0..3).map(|_| wrong.state(0)).collect();
        let mut sequences: Vec<_> = all.chunks(11).zip(&mut states).collect();
        assert!(distance(&run(&wrong, &mut sequences), &expected) > 1e-3, "canary: another removal key");
    }
}

#[test]
fn module_carries_its_state() {
    let model = model(&config());
    let all = tensor(&tokens(2, 2 * 9), 2);
    let expected = values(model.forward(all.clone()));
    let mut state = model.empty_state(2);
    let first = model.forward_from(all.clone().slice_dim(1, 0..1), &mut state);
    let second = model.forward_from(all.clone().slice_dim(1, 1..6), &mut state);
    let third = model.forward_from(all.clone().slice_dim(1, 6..9), &mut state);
    let found = values(Tensor::cat(vec![first.clone(), second, third], 1));
    assert!(distance(&found, &expected) < 1e-5, "{}", distance(&found, &expected));
    let fresh = model.forward(all.clone().slice_dim(1, 1..9));
    let found = values(Tensor::cat(vec![first, fresh], 1));
    assert!(distance(&found, &expected) > 1e-2, "canary: without the state");
}

#[test]
fn parts_of_any_size_give_the_same_bits() {
    let model = model(&config());
    for precision in Precision::ALL {
        let host = HostRwkv7::new(&model, precision);
        let texts = [tokens(3, 23), tokens(4, 17), tokens(5, 1)];
        let mut whole: Vec<_> = texts.iter().map(|_| host.state(0)).collect();
        let expected: Vec<Vec<f32>> =
            texts.iter().zip(&mut whole).map(|(text, state)| run(&host, &mut [(text, state)])).collect();
        // Together.
        let mut states: Vec<_> = texts.iter().map(|_| host.state(0)).collect();
        let mut sequences: Vec<_> =
            texts.iter().zip(&mut states).map(|(text, state)| (text.as_slice(), state)).collect();
        assert!(run(&host, &mut sequences) == expected.concat(), "{precision}: together");
        assert!(states == whole);
        for size in [1, 2, 5, 16] {
            for (text, (expected, whole)) in texts.iter().zip(expected.iter().zip(&whole)) {
                let mut state = host.state(0);
                let found: Vec<f32> =
                    text.chunks(size).flat_map(|part| run(&host, &mut [(part, &mut state)])).collect();
                assert!(found == *expected && state == *whole, "{precision}: {size} at a time");
            }
        }
        // A copy goes its own way.
        let (begin, end) = texts[0].split_at(10);
        let mut state = host.state(0);
        run(&host, &mut [(begin, &mut state)]);
        let mut fork = host.fork(&state, 0);
        run(&host, &mut [(&texts[1], &mut fork)]);
        assert!(fork != state);
        assert!(run(&host, &mut [(end, &mut state)]) == expected[0][10 * 50..], "{precision}: after a fork");
        assert!(run(&host, &mut [(end, &mut fork)]) != expected[0][10 * 50..], "canary: from another state");
    }
}

/// Lower precisions are near float32, and not the same.
#[test]
fn precisions() {
    let model = model(&config());
    let text = tokens(6, 40);
    let [f32, lower @ ..] = Precision::ALL.map(|precision| {
        let host = HostRwkv7::new(&model, precision);
        run(&host, &mut [(&text, &mut host.state(0))])
    });
    let scale = f32.iter().map(|x| x.abs()).fold(0.0, f32::max);
    let off = lower.map(|logits| distance(&logits, &f32) / scale);
    assert!(off.iter().all(|off| (1e-5..0.05).contains(off)), "{off:?}");
}

#[test]
fn a_state_of_another_model_is_refused() {
    let [host, other] =
        [3, 2].map(|layers| HostRwkv7::new(&model(&Rwkv7Config { layers, ..config() }), Precision::F32));
    let mut state = other.state(0);
    let run = std::panic::AssertUnwindSafe(|| run(&host, &mut [(&[1, 2], &mut state)]));
    assert!(std::panic::catch_unwind(run).is_err());
    assert_eq!(host.state_bytes(1), host.state_bytes(1000));
    assert_eq!(host.state_bytes(0), 3 * (2 * 36 + 3 * 12 * 12) * 4);
}
