//! Slices of a population: the bits that their members have among all others, however they are evaluated.

use crate::distribution::support::*;
use burn::tensor::{Int, Tensor};
use eggroll_run::distribution::shard;
use eggroll_train::*;
use std::ops::Range;

/// Uneven ones.
const SLICES: [Range<usize>; 3] = [0..6, 6..8, 8..20];

/// The slices' fitness, one after the other for each task, is the population's.
fn assert_slices(name: &str, evaluate: impl Fn(&ReplicaNet, &Population) -> Fitness) {
    let net = ReplicaNet::new(0.4);
    let population = config().init(&net).ask();
    let whole = evaluate(&net, &population);
    let tasks = whole.values().len() / MEMBERS;
    let parts = SLICES.map(|members| evaluate(&net, &population.slice(members)));
    for task in 0..tasks {
        let row = |part: &Fitness| {
            let len = part.values().len() / tasks;
            part.values()[task * len..][..len].to_vec()
        };
        let joined: Vec<f32> = parts.iter().flat_map(row).collect();
        assert_eq!(joined, whole.values()[task * MEMBERS..][..MEMBERS], "{name}");
    }
    let integers: Option<Vec<i32>> =
        parts.iter().map(|part| part.integers()).collect::<Option<Vec<_>>>().map(|p| p.concat());
    assert_eq!(integers.as_deref(), whole.integers(), "{name}");
    let swapped = evaluate(&net, &population.slice(8..14));
    assert_ne!(swapped.values(), parts[0].values(), "canary: {name}");
}

fn integers(net: &ReplicaNet, members: &MemberChunk) -> Tensor<1, Int> {
    (score(net, members) * 1e6).int()
}

fn tasks(net: &ReplicaNet, members: &MemberChunk) -> Tensor<2> {
    let scores = score(net, members);
    Tensor::stack(vec![scores.clone(), scores.square()], 1) // [members, tasks]
}

#[test]
fn every_evaluation() {
    assert_slices("evaluate", |net, population| population.evaluate(|members| score(net, members)));
    assert_slices("parallel", |net, population| population.evaluate(|members| score(net, members)));
    assert_slices("tasks", |net, population| population.evaluate(|members| tasks(net, members)));
    assert_slices("integers", |net, population| population.evaluate(|members| integers(net, members)));
    let alone = |net: ReplicaNet| -(net.forward(sines(12).reshape([3, 4])) - 0.5).square().mean();
    assert_slices("members", |net, population| population.evaluate_each(net, alone));
    assert_slices("members in parallel", |net, population| population.evaluate_each(net, alone));
    let offset = |members: &MemberChunk| members.rows(sines(MEMBERS));
    assert_slices("rows", |net, population| population.evaluate(|members| score(net, members) + offset(members)));
}

/// What members carry has rows for the slice's members only.
#[test]
fn carried_state() {
    let net = ReplicaNet::new(0.4);
    let population = config().init(&net).ask();
    let evaluate = |population: &Population, state: Tensor<1>| {
        population.evaluate_with_state(state, |members, state| {
            let scores = score(&net, members) + state;
            (scores.clone(), scores)
        })
    };
    let (whole, carried) = evaluate(&population, sines(MEMBERS));
    for slice in SLICES {
        let (part, state) = evaluate(&population.slice(slice.clone()), sines(MEMBERS).slice_dim(0, slice.clone()));
        assert_eq!(part.values(), &whole.values()[slice.clone()]);
        assert_eq!(state.into_data(), carried.clone().slice_dim(0, slice).into_data());
    }
}

/// A slice notes the use of parameters in the whole population: what no member uses is missed.
#[test]
fn uses_are_noted() {
    let net = ReplicaNet::new(0.4);
    let mut strategy = config().init(&net);
    let population = strategy.ask();
    let part = population.slice(0..2).evaluate(|members| members.mean(net.forward(sines(12).reshape([3, 4]))));
    assert_eq!(part.values().len(), 2);
    let told =
        strategy.tell(&mut net.clone(), population, Fitness::from((0..MEMBERS).map(|m| m as f32).collect::<Vec<_>>()));
    assert!(told.is_ok(), "all parameters were used");
    let population = strategy.ask();
    population.slice(4..6).evaluate(|members| Tensor::<1>::ones([members.count()], &Default::default()));
    let told =
        strategy.tell(&mut net.clone(), population, Fitness::from((0..MEMBERS).map(|m| m as f32).collect::<Vec<_>>()));
    assert!(matches!(told, Err(Error::Tell(TellError::NeverPerturbed(_)))));
}

/// The fitness of a slice is not that of two tasks to half of the members.
#[test]
fn a_slice_is_not_told_alone() {
    let net = ReplicaNet::new(0.4);
    let mut strategy = config().init(&net);
    let slice = strategy.ask().slice(0..10);
    let fitness = slice.evaluate(|members| score(&net, members));
    let told = strategy.tell(&mut net.clone(), slice, fitness);
    assert!(
        matches!(told, Err(Error::Tell(TellError::FitnessLength { found: 10, tasks: 1, population: MEMBERS }))),
        "{told:?}"
    );
}

#[test]
fn slices_are_whole_pairs() {
    let net = ReplicaNet::new(0.4);
    let population = config().init(&net).ask();
    for members in [0..0, 1..4, 2..5, 18..22] {
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| population.slice(members.clone())));
        let message = *refused.expect_err("no slice").downcast::<String>().expect("a message");
        let expected = format!("members {}..{} are not whole pairs of members 0..20", members.start, members.end);
        assert!(message.contains(&expected), "{message}");
    }
    assert_eq!(population.slice(4..16).slice(6..8).range(), 6..8);
}

#[test]
fn shards_are_all_members_in_order() {
    for (members, size) in [(2, 1), (20, 1), (20, 2), (20, 3), (20, 4), (4, 7), (65_536, 1_000)] {
        let shards: Vec<Range<usize>> = (0..size).map(|rank| shard(members, rank, size)).collect();
        let ends: Vec<usize> = shards.iter().map(|shard| shard.end).collect();
        let starts: Vec<usize> = [0].into_iter().chain(ends.iter().copied()).take(size).collect();
        assert_eq!(shards.iter().map(|shard| shard.start).collect::<Vec<_>>(), starts);
        assert_eq!(ends.last(), Some(&members));
        let lengths = || shards.iter().map(Range::len);
        assert!(lengths().all(|len| len.is_multiple_of(2)));
        assert!(lengths().max().unwrap() - lengths().min().unwrap() <= 2, "{members} over {size}");
    }
}
