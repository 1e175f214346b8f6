//! New episodes: functions of their keys alone, in Gymnasium's ranges, and stable from release to release.

use super::support::{all, classic, devices, keys, values};
use eggroll_core::rng::{PhiloxRng, philox::philox4x32};
use eggroll_rl::{Bandit, CartPole, EpisodeKey, Memory, TensorEnvironment, WorldKey};
use rand::{Rng, RngExt};
use std::collections::HashSet;
use std::f32::consts::PI;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Largest `√n·D` of Kolmogorov and Smirnov: `2·exp(−2k²) = 5.7e-7`, the two tails of five sigma.
const KOLMOGOROV: f64 = 2.745;

#[test]
fn the_same_in_every_chunk_order_and_device() {
    for environment in all() {
        let keys = keys(40);
        let state = |keys: &[EpisodeKey]| {
            let mut state = vec![f32::NAN; keys.len() * environment.state_size()];
            for (row, key) in state.chunks_exact_mut(environment.state_size()).zip(keys) {
                environment.reset_host(*key, row);
            }
            state
        };
        let expected = state(&keys);
        assert!(expected.iter().all(|value| value.is_finite()), "{}", environment.name());
        for (device, _) in devices() {
            for chunk in [1, 7, 40] {
                let chunks = keys.chunks(chunk).flat_map(|keys| values(environment.reset(keys, &device)));
                assert_eq!(chunks.collect::<Vec<_>>(), expected, "{}, chunks of {chunk}", environment.name());
            }
            let reversed: Vec<EpisodeKey> = keys.iter().rev().copied().collect();
            let found = values(environment.reset(&reversed, &device));
            let back: Vec<f32> = found.chunks_exact(environment.state_size()).rev().flatten().copied().collect();
            assert_eq!(back, expected, "{}, reversed", environment.name());
            assert_ne!(found, expected, "{}: all episodes are the same", environment.name());
        }
    }
}

#[test]
fn every_part_of_a_key_matters() {
    let key = EpisodeKey::new((1 << 32) | 7, 5, 9);
    let others = [EpisodeKey::new(7, 5, 9), EpisodeKey::new((1 << 32) | 7, 6, 9), EpisodeKey::new((1 << 32) | 7, 5, 8)];
    let first = |key: EpisodeKey| [0, 1, 2, 3].map(|draw| key.word(0, draw));
    for other in others.into_iter().chain([key.restarted(1), key.restarted(2), key.restarted(1).restarted(1)]) {
        assert_ne!(first(key), first(other));
        assert_ne!(first(key.restarted(1)), first(other.restarted(1)));
    }
    assert_eq!(first(key.restarted(3)), first(key.restarted(3)));
    assert_ne!(first(key), [0, 1, 2, 3].map(|draw| key.word(1, draw)));
    assert_ne!(first(key), [4, 5, 6, 7].map(|draw| key.word(0, draw)));
}

#[test]
fn filled_numbers_are_the_draws_of_the_reset() {
    let key = EpisodeKey::new(3, 1, 4);
    let mut numbers = [0.0; 11];
    key.fill_uniform(-2.0, 3.0, &mut numbers);
    for (draw, number) in numbers.into_iter().enumerate() {
        assert_eq!(number.to_bits(), key.uniform_in(-2.0, 3.0, 0, draw as u32).to_bits(), "draw {draw}");
    }
}

/// The upper bound is no number of its interval: this draw is the largest there is, and rounds to it.
#[test]
fn intervals_are_half_open() {
    let (key, draw) = (EpisodeKey::new(2, 0, 0), 1_774_750);
    assert_eq!(key.uniform(0, draw), 1.0 - f32::EPSILON / 2.0);
    for (low, high) in
        [(1.0, 2.0), (0.9, 1.1), (-1.1, -0.9), (-1.0, 1.0), (1e8, 1e8 + 8.0), (0.0, 1e-45), (1.0, 1.0 + f32::EPSILON)]
    {
        let number = key.uniform_in(low, high, 0, draw);
        assert!(low <= number && number < high, "{number:e} in [{low:e}, {high:e})");
    }
    assert_eq!(key.uniform_in(1.0, 2.0, 0, draw), 2.0 - f32::EPSILON);
    assert_eq!((key.uniform_in(0.3, 0.3, 0, draw), key.uniform_in(-2.0, -2.0, 0, 0)), (0.3, -2.0));
    let mut numbers = vec![0.0; draw as usize + 1];
    key.fill_uniform(0.9, 1.1, &mut numbers);
    assert!(numbers.iter().all(|number| (0.9..1.1).contains(number)));
}

#[test]
fn intervals_without_numbers_are_refused() {
    let (key, inf) = (EpisodeKey::new(1, 0, 0), f32::INFINITY);
    for (low, high) in
        [(2.0, 1.0), (f32::NAN, 1.0), (0.0, f32::NAN), (-inf, 0.0), (0.0, inf), (inf, inf), (f32::MIN, f32::MAX)]
    {
        let draws: [&dyn Fn(); 2] =
            [&|| assert!(key.uniform_in(low, high, 0, 0) > 0.0), &|| key.fill_uniform(low, high, &mut [0.0; 3])];
        for draw in draws {
            let panic = catch_unwind(AssertUnwindSafe(draw)).expect_err("refused");
            let text = panic.downcast_ref::<String>().expect("a text");
            assert!(text.starts_with(&format!("uniform numbers from {low:e} to {high:e}: ")), "{text}");
        }
    }
}

/// Whoever changes these makes other episodes of all seeds. Computed by a second implementation.
#[test]
fn values_are_stable() {
    let key = EpisodeKey::new(0x0123_4567_89ab_cdef, 2, 3);
    let words = [0, 1, 2, 3, 4].map(|draw| key.word(0, draw));
    assert_eq!(words, [0xdac0_1340, 0xdc9e_ab06, 0x5955_93b2, 0x33fa_ec68, 0xa5b6_0f76]);
    assert_eq!([0, 1].map(|draw| key.restarted(17).word(0, draw)), [0x3d21_4dff, 0x8752_5487]);
    let mut state = [0.0; 4];
    CartPole::new().reset_host(key, &mut state);
    assert_eq!(state.map(f32::to_bits), [0x3d11_3351, 0x3d14_3111, 0xbc77_75ec, 0xbcf3_4373]);
}

/// As above, for generators.
#[test]
fn values_of_generators_are_stable() {
    let key = EpisodeKey::new(0x0123_4567_89ab_cdef, 2, 3);
    let mut rng = key.rng();
    assert_eq!([(); 5].map(|()| rng.next_u32()), [0x0aa6_8c97, 0x2699_ca8e, 0xde17_5b81, 0xbeb0_8a5e, 0x9f60_cc32]);
    let mut rng = key.member_rng(5);
    assert_eq!([(); 4].map(|()| rng.next_u32()), [0x699b_fcf0, 0x80cd_e75b, 0x2091_3474, 0x6885_ab40]);
}

/// First blocks of all generators near a key.
fn blocks(key: fn(u64, u32, u32) -> EpisodeKey) -> Vec<[u32; 4]> {
    let numbers = || [0, 1, 2, 3, (1 << 28) - 1];
    let keys = [1, 1 << 32].into_iter().flat_map(|seed| numbers().map(|stream| (seed, stream)));
    let keys = keys.flat_map(|(seed, stream)| numbers().map(|episode| key(seed, stream, episode)));
    let generators = |key: EpisodeKey| numbers().map(|member| key.member_rng(member)).into_iter().chain([key.rng()]);
    keys.flat_map(generators).map(|mut rng| [(); 4].map(|()| rng.next_u32())).collect()
}

/// No generator repeats another's words, and none has words that the key, a world or noise has.
#[test]
fn generators_are_apart_from_each_other_and_from_all_else() {
    let found = blocks(EpisodeKey::new);
    let mut all: HashSet<[u32; 4]> = found.iter().copied().collect();
    assert_eq!(all.len(), found.len());
    for (seed, number) in [1, 1 << 32].into_iter().flat_map(|seed| [0, 1, 2, 3].map(|number| (seed, number))) {
        for (step, episode) in
            [0, 1, 2, 3, u32::MAX].into_iter().flat_map(|step| [0, 1, 2, 3].map(|episode| (step, episode)))
        {
            let key = EpisodeKey::new(seed, number, episode);
            assert!(all.insert([0, 1, 2, 3].map(|draw| key.word(step, draw))), "words of {key:?}, step {step}");
            let mut world = WorldKey::new(seed, episode, number).rng(step);
            assert!(all.insert([(); 4].map(|()| world.next_u32())), "world {step} of {key:?}");
            let noise = philox4x32([0, step, number, episode], [seed as u32, (seed >> 32) as u32]);
            assert!(all.insert(noise), "noise of pair {step} of {key:?}");
        }
    }
    let canary = blocks(|seed, stream, _| EpisodeKey::new(seed, stream, 0)); // as if episodes did not matter
    assert!(canary.iter().collect::<HashSet<_>>().len() < canary.len());
}

/// Members', generations' and episodes' numbers do not go together.
#[test]
fn generators_are_not_correlated() {
    let count = 4000;
    let numbers = |mut rng: PhiloxRng| -> Vec<f64> { (0..count).map(|_| rng.random_range(-1.0..1.0)).collect() };
    let correlation = |a: PhiloxRng, b: PhiloxRng| {
        numbers(a).iter().zip(numbers(b)).map(|(a, b)| 3.0 * a * b).sum::<f64>() / f64::from(count)
    };
    let (key, bound) = (EpisodeKey::new(8, 3, 5), 5.0 / f64::from(count).sqrt());
    let others =
        [key.rng(), key.member_rng(1), EpisodeKey::new(8, 4, 5).member_rng(0), EpisodeKey::new(8, 3, 6).member_rng(0)];
    for (number, other) in others.into_iter().enumerate() {
        let found = correlation(key.member_rng(0), other);
        assert!(found.abs() < bound, "generator {number}: {found}");
    }
    assert!(correlation(key.member_rng(0), key.member_rng(0)) > 10.0 * bound, "canary");
}

#[test]
fn a_member_that_is_the_mark_of_all_is_refused() {
    let panic = catch_unwind(|| EpisodeKey::new(1, 0, 0).member_rng(u32::MAX)).expect_err("refused");
    assert_eq!(panic.downcast_ref::<String>().expect("a text"), "a member's generator: members are below 4294967295");
}

/// Bounds of every number of a new state.
fn ranges(name: &str) -> Vec<(f32, f32)> {
    match name {
        "CartPole-v1" => vec![(-0.05, 0.05); 4],
        "Pendulum-v1" => vec![(-PI, PI), (-1.0, 1.0)],
        "Acrobot-v1" => vec![(-0.1, 0.1); 4],
        _ => vec![(-0.6, -0.4), (0.0, 0.0)],
    }
}

/// `√n·D` of numbers against the uniform distribution on `[0, 1]`.
fn kolmogorov_smirnov(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let n = numbers.len() as f64;
    let distance = |(i, u): (usize, &f64)| (u - i as f64 / n).max((i + 1) as f64 / n - u);
    numbers.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt()
}

#[test]
fn new_states_are_uniform_in_gymnasiums_ranges() {
    let device = &devices()[0].0;
    for (environment, _) in classic() {
        let state = values(environment.reset(&keys(4000), device));
        for (column, (low, high)) in ranges(environment.name()).into_iter().enumerate() {
            let numbers: Vec<f32> = state.chunks_exact(environment.state_size()).map(|row| row[column]).collect();
            let what = format!("{}, number {column}", environment.name());
            assert!(numbers.iter().all(|number| (low..=high).contains(number)), "{what}");
            if low < high {
                let unit = |shift: f32| -> Vec<f64> {
                    numbers.iter().map(|number| f64::from((number - low) / (high - low) + shift)).collect()
                };
                assert!(kolmogorov_smirnov(unit(0.0)) < KOLMOGOROV, "{what}");
                assert!(kolmogorov_smirnov(unit(0.05)) > KOLMOGOROV, "{what}: a shift is not seen");
            }
        }
    }
}

/// Columns are drawn apart from each other, and episodes too.
#[test]
fn numbers_are_not_correlated() {
    let (device, count) = (&devices()[0].0, 4000);
    let state = values(CartPole::new().reset(&keys(count), device));
    let column = |column: usize, shift: usize| state.iter().skip(4 * shift + column).step_by(4);
    let correlation = |a: (usize, usize), b: (usize, usize)| {
        let products = column(a.0, a.1).zip(column(b.0, b.1)).map(|(x, y)| f64::from(x * y));
        products.sum::<f64>() / f64::from(count) / (0.05 * 0.05 / 3.0)
    };
    let bound = 5.0 / f64::from(count).sqrt();
    for (a, b) in [((0, 0), (1, 0)), ((0, 0), (2, 0)), ((2, 0), (3, 0)), ((0, 0), (0, 1)), ((3, 0), (0, 1))] {
        assert!(correlation(a, b).abs() < bound, "{a:?} and {b:?}: {}", correlation(a, b));
    }
    assert!(correlation((1, 0), (1, 0)) > 10.0 * bound, "canary");
}

#[test]
fn cues_are_evenly_spread_and_arms_pay_as_they_say() {
    let (device, count) = (&devices()[0].0, 4000);
    let cues = values(Memory::new(5, 3).reset(&keys(count), device));
    for cue in 0..5 {
        let share = cues.iter().step_by(2).filter(|found| **found == cue as f32).count() as f64 / f64::from(count);
        assert!((share - 0.2).abs() < 5.0 * (0.16 / f64::from(count)).sqrt(), "cue {cue}: {share}");
    }
    let bandit = Bandit::new(3, 10);
    // Sum over all pulls of what an arm gives less its probability, a sum of independent numbers of mean 0 and variance p·(1 − p).
    let [mut sum, mut variance] = [0.0; 2];
    for key in keys(count) {
        let mut state = vec![0.0; bandit.state_size()];
        bandit.reset_host(key, &mut state);
        let probability = f64::from(state[4]); // of arm 1
        for _ in 0..10 {
            sum += f64::from(bandit.step_host(&mut state, &[1.0]).reward) - probability;
            variance += probability * (1.0 - probability);
        }
    }
    assert!(sum.abs() < 5.0 * f64::sqrt(variance), "{sum} of a standard deviation of {}", f64::sqrt(variance));
}
