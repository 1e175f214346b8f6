//! Worlds against a plain enumeration, and the distribution of samples.

use super::slow;
use super::support::{Words, after, domino, set};
use eggroll::core::rng::PhiloxRng;
use eggroll::rl::WorldKey;
use eggroll_examples::texas42::{
    Bid, Contract, Domino, DominoSet, GameError, Observation, Suit, Trumps, Worlds, uniform_below,
};
use rand::Rng;
use std::collections::{HashMap, HashSet};

type World = [DominoSet; 4];

fn all(worlds: &Worlds) -> impl Iterator<Item = World> {
    (0..worlds.count()).map(move |number| worlds.world(number))
}

/// What a random player sees after random legal plays, with the true hands and who played what.
fn observe(words: &mut Words, plays: usize) -> (Observation, World, Vec<(usize, Domino)>) {
    let trumps = Trumps::ALL[words.below(9)];
    let (state, dominoes) = after(words, trumps, plays);
    let player = words.below(4);
    let plays = slow::players(trumps, state.contract().declarer(), &dominoes);
    let hand = slow::first_hands(state.hands(), &plays)[player];
    let observation = Observation::after(player, state.contract(), hand, dominoes);
    (observation, state.hands(), plays)
}

/// All assignments of dominoes to hands of given sizes.
fn assign(unseen: &[Domino], sizes: [usize; 4], world: World, all: &mut Vec<World>) {
    let Some((&domino, rest)) = unseen.split_first() else {
        all.push(world);
        return;
    };
    for player in 0..4 {
        if world[player].len() < sizes[player] {
            let mut next = world;
            next[player].insert(domino);
            assign(rest, sizes, next, all);
        }
    }
}

/// Assignments in which all plays were legal.
fn enumerate(observation: &Observation, plays: &[(usize, Domino)]) -> HashSet<World> {
    let mut world = [DominoSet::EMPTY; 4];
    world[observation.player()] = observation.hand();
    let mut all = vec![];
    let unseen: Vec<_> = observation.unseen().iter().collect();
    assign(&unseen, observation.counts().map(usize::from), world, &mut all);
    let trumps = observation.progress().contract().trumps();
    all.into_iter().filter(|world| slow::all_legal(trumps, *world, plays)).collect()
}

#[test]
fn worlds_are_those_in_which_all_plays_were_legal() {
    let mut words = Words::new(1);
    for _ in 0..60 {
        let length = 16 + words.below(13);
        let (observation, hands, plays) = observe(&mut words, length);
        let expected = enumerate(&observation, &plays);
        let worlds = Worlds::new(&observation).expect("the true hands agree");
        assert!(expected.contains(&hands));
        assert_eq!(worlds.count(), expected.len() as u64);
        assert_eq!(all(&worlds).collect::<HashSet<_>>(), expected);
    }
}

#[test]
fn worlds_of_longer_hands_are_consistent() {
    let mut words = Words::new(2);
    for _ in 0..400 {
        let length = words.below(20);
        let (observation, hands, plays) = observe(&mut words, length);
        let trumps = observation.progress().contract().trumps();
        let worlds = Worlds::new(&observation).expect("the true hands agree");
        assert!(slow::all_legal(trumps, hands, &plays));
        for _ in 0..20 {
            let world = worlds.sample(&mut || words.next());
            assert!(slow::all_legal(trumps, world, &plays));
        }
    }
}

#[test]
fn before_the_first_lead_all_assignments_are_worlds() {
    let mut words = Words::new(3);
    let (observation, ..) = observe(&mut words, 0);
    let worlds = Worlds::new(&observation).expect("there are no voids");
    assert_eq!(worlds.count(), 399_072_960); // 21!/7!³
    let numbers = (0..worlds.count()).step_by(100_003);
    let distinct: HashSet<_> = numbers.clone().map(|number| worlds.world(number)).collect();
    assert_eq!(distinct.len(), numbers.count());
}

#[test]
fn a_contradiction_has_no_worlds() {
    // Nobody else follows fives, and 5-2 is neither played nor in the own hand.
    let hand = set(&[(5, 5), (5, 4), (4, 4), (1, 0), (1, 1), (2, 0), (6, 6)]);
    let contract = Contract::new(0, Trumps::Suit(Suit::Sixes), Bid::LOWEST);
    let plays = [domino(5, 5), domino(0, 0), domino(2, 2), domino(3, 3)];
    let observation = Observation::after(0, contract, hand, plays);
    assert_eq!(Worlds::new(&observation).err(), Some(GameError::NoWorlds(18)));
}

/// `Σ (n − e)²/e` of samples of each world, of which `e = samples/count` are expected.
fn chi_squared(worlds: &Worlds, samples: usize, mut sample: impl FnMut() -> World) -> f64 {
    let mut counts: HashMap<World, f64> = all(worlds).map(|world| (world, 0.0)).collect();
    for _ in 0..samples {
        *counts.get_mut(&sample()).expect("a sample is a world") += 1.0;
    }
    let expected = samples as f64 / counts.len() as f64;
    counts.values().map(|count| (count - expected).powi(2) / expected).sum()
}

/// Deals greedily: each player in turn gets random dominoes of those that are possible, from the start again where
/// these do not suffice.
fn greedy(words: &mut Words, observation: &Observation) -> World {
    'again: loop {
        let mut world = [DominoSet::EMPTY; 4];
        world[observation.player()] = observation.hand();
        let mut left = observation.unseen();
        for (player, hand) in world.iter_mut().enumerate() {
            while hand.len() < usize::from(observation.counts()[player]) {
                let possible = observation.may_hold(player) & left;
                if possible.is_empty() {
                    continue 'again;
                }
                let domino = words.pick(possible);
                hand.insert(domino);
                left.remove(domino);
            }
        }
        return world;
    }
}

/// How much more probable the most probable world of the greedy sampler is than the least.
fn greedy_bias(observation: &Observation, worlds: &Worlds) -> f64 {
    // ln of Πₚ C(possible, size), the product over players in turn.
    let choices = all(worlds).map(|world| {
        let mut left = observation.unseen();
        let mut choices = 0.0;
        for player in (0..4).filter(|&player| player != observation.player()) {
            let (possible, size) = ((observation.may_hold(player) & left).len(), world[player].len());
            choices += (0..size).map(|i| ((possible - i) as f64 / (i + 1) as f64).ln()).sum::<f64>();
            left = left - world[player];
        }
        choices
    });
    let (least, most) = choices.fold((f64::MAX, f64::MIN), |(least, most), c| (least.min(c), most.max(c)));
    (most - least).exp()
}

/// Samples are uniform: chi-squared stays near its mean `n − 1`, within five standard deviations `√(2·(n − 1))`. The
/// greedy sampler, also always consistent, must not pass where it is biased by a half.
#[test]
fn samples_are_uniform_and_a_greedy_sampler_is_found_out() {
    let mut words = Words::new(4);
    let mut tested = 0;
    for attempt in 0.. {
        assert!(attempt < 20_000, "{tested} of 12 positions found in which the greedy sampler is biased");
        if tested == 12 {
            break;
        }
        let length = 10 + words.below(8);
        let (observation, ..) = observe(&mut words, length);
        let worlds = Worlds::new(&observation).expect("the true hands agree");
        if !(100..=600).contains(&worlds.count()) || greedy_bias(&observation, &worlds) < 1.5 {
            continue;
        }
        tested += 1;
        let freedom = worlds.count() as f64 - 1.0;
        let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
        let samples = 200 * worlds.count() as usize;
        let exact = chi_squared(&worlds, samples, || worlds.sample(&mut || words.next()));
        assert!(exact < limit, "{exact}, expected below {limit}");
        // As decisions sample: world by world, game by game, decision by decision of a key.
        let mut next = 0;
        let by_key = |rng: fn(u32) -> PhiloxRng| {
            let sample = || {
                let mut rng = rng(next);
                next += 1;
                worlds.sample(&mut || rng.next_u32())
            };
            chi_squared(&worlds, samples, sample)
        };
        let streams: [fn(u32) -> PhiloxRng; 3] = [
            |number| WorldKey::new(7, 1, 2).rng(number),
            |number| WorldKey::new(7, number, 2).rng(0),
            |number| WorldKey::new(7, 1, number).rng(0),
        ];
        let by_key = streams.map(by_key);
        assert!(by_key.iter().all(|found| *found < limit), "{by_key:?}, expected below {limit}");
        let biased = chi_squared(&worlds, samples, || greedy(&mut words, &observation));
        assert!(biased > limit, "{biased} of the greedy sampler, expected above {limit}");
    }
}

#[test]
fn integers_below_a_bound_use_words_as_they_should() {
    let draw = |bound: u64, list: &[u32]| {
        let mut words = list.iter().copied();
        let result = uniform_below(bound, &mut || words.next().expect("enough words"));
        (result, words.len())
    };
    assert_eq!(draw(1, &[7]), (0, 0));
    // 2³² mod 3 = 1: the word 0 is drawn again.
    assert_eq!(draw(3, &[0, u32::MAX]), (2, 0));
    assert_eq!(draw(3, &[1, 9]), (0, 1));
    assert_eq!(draw(1 << 32, &[u32::MAX, 9]), (u64::from(u32::MAX), 1));
    assert_eq!(draw(u64::MAX, &[0, 0, u32::MAX, u32::MAX]), (u64::MAX - 1, 0));
}
