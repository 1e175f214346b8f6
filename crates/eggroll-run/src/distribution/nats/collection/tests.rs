//! What is taken, what is not, and why.

use super::*;
use crate::distribution::nats::NatsConfig;
use burn::optim::SgdConfig;
use burn::tensor::Device;
use eggroll_core::EggrollConfig;
use eggroll_nn::LinearConfig;
use eggroll_train::{EvolutionStrategyConfig, Fitness};
use proptest::prelude::*;

const RUN: RunId = RunId(*b"the run!");
const GENERATION: u64 = 7;
/// Ten members in slices of four: the last has two.
const POPULATION: usize = 10;

fn rules(tasks: usize) -> Rules {
    let model = LinearConfig::new(2, 1).init(&Device::flex());
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(POPULATION);
    let settings = NatsConfig { slice_members: 4, tasks, ..NatsConfig::new("", "run") };
    let scores = ScoreRules::of(&settings, &config.init(&model));
    Rules { run: RUN, population: POPULATION, slice_members: 4, scores, limit: 400, plausible: settings.plausible() }
}

fn digest() -> Option<String> {
    Some("0f".repeat(32))
}

fn collection() -> Collection {
    Collection::new(rules(1), GENERATION, digest(), 0)
}

fn work(generation: u64, slice: u32) -> Work {
    Work { generation, slice, first: 0, members: 0, attempt: 0, digest: None }
}

fn result(slice: u32, scores: &[f32]) -> Vec<u8> {
    let fitness = Fitness::from(scores.to_vec());
    SliceResult::new(&work(GENERATION, slice), digest(), &fitness).encode(&RUN)
}

fn rejected(judgement: Judgement) -> Rejection {
    match judgement {
        Judgement::Rejected(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn slices_are_offered_and_joined_in_order() {
    let mut collection = collection();
    assert!(collection.offers().is_empty());
    collection.want_missing();
    let offers = collection.offers();
    let members: Vec<_> = offers.iter().map(|work| (work.first, work.members, work.attempt)).collect();
    assert_eq!(members, [(0, 4, 0), (4, 4, 0), (8, 2, 0)]);
    assert!(offers.iter().all(|work| work.digest == digest() && work.generation == GENERATION));
    assert!(collection.offers().is_empty(), "once");
    for (slice, scores) in [(2, &[8.0, 9.0][..]), (0, &[0.0, 1.0, 2.0, 3.0])] {
        assert!(
            matches!(collection.judge("a", &result(slice, scores)), Judgement::Accepted(found) if found == slice as usize)
        );
    }
    collection.want_missing();
    let missing: Vec<_> = collection.offers().iter().map(|work| (work.slice, work.attempt)).collect();
    assert_eq!(missing, [(1, 1)]);
    assert!(matches!(collection.judge("b", &result(1, &[4.0, 5.0, 6.0, 7.0])), Judgement::Accepted(1)));
    assert_eq!(collection.missing(), 0);
    assert_eq!(collection.join(), Recorded::Floats((0..10).map(|member| member as f32).collect()));
}

#[test]
fn what_is_wrong_is_rejected_by_reason() {
    let good = [0.5, 1.0, 1.5, 2.0];
    let of = |work: Work, digest, fitness: Fitness| SliceResult::new(&work, digest, &fitness).encode(&RUN);
    let floats = || Fitness::from(good.to_vec());
    let cases = [
        (vec![0; 401], Rejection::TooLarge),
        (b"garbage".to_vec(), Rejection::Garbage),
        (Vec::new(), Rejection::Garbage),
        (SliceResult::new(&work(GENERATION, 0), digest(), &floats()).encode(&RunId(*b"another!")), Rejection::OtherRun),
        (of(work(GENERATION - 1, 0), digest(), floats()), Rejection::Stale),
        (of(work(GENERATION + 1, 0), digest(), floats()), Rejection::Early),
        (of(work(GENERATION, 3), digest(), floats()), Rejection::UnknownSlice),
        (of(work(GENERATION, u32::MAX), digest(), floats()), Rejection::UnknownSlice),
        (of(work(GENERATION, 0), Some("00".repeat(32)), floats()), Rejection::WrongDigest),
        (of(work(GENERATION, 0), None, floats()), Rejection::WrongDigest),
        (of(work(GENERATION, 0), digest(), Fitness::from(vec![1i32, 2, 3, 4])), Rejection::WrongKind),
        (of(work(GENERATION, 0), digest(), Fitness::from(vec![1.0f32; 2])), Rejection::WrongLength),
        (of(work(GENERATION, 2), digest(), floats()), Rejection::WrongLength),
        (of(work(GENERATION, 0), digest(), Fitness::from(Vec::<f32>::new())), Rejection::WrongLength),
    ];
    let mut collection = collection();
    for (bytes, reason) in cases {
        assert_eq!(rejected(collection.judge("liar", &bytes)), reason);
    }
    assert_eq!(collection.missing(), 3);
    // Slices that were answered wrongly are offered again.
    let offered: Vec<_> = collection.offers().iter().map(|work| work.slice).collect();
    assert_eq!(offered, [0, 2]);
    assert!(
        matches!(collection.judge("a", &result(0, &good)), Judgement::Accepted(0)),
        "canary: what is right is taken"
    );
    assert!(
        !Rejection::Stale.is_a_strike()
            && !Rejection::Early.is_a_strike()
            && !Rejection::Forged.is_a_strike()
            && Rejection::WrongDigest.is_a_strike()
    );
}

#[test]
fn what_cannot_be_trusted_is_left_to_the_coordinator() {
    let mut collection = collection();
    for value in [f32::NAN, f32::INFINITY] {
        let judgement = collection.judge("a", &result(0, &[1.0, value, 2.0, 3.0]));
        assert!(matches!(judgement, Judgement::Doubtful(0, _)), "{judgement:?}");
    }
    assert_eq!(collection.missing(), 3, "not taken");
    let first = [1.0, 2.0, 3.0, 4.0];
    assert!(matches!(collection.judge("a", &result(0, &first)), Judgement::Accepted(0)));
    assert!(matches!(collection.judge("b", &result(0, &first)), Judgement::Duplicate));
    // One bit of one score.
    let other = [1.0, 2.0, 3.0, f32::from_bits(4.0f32.to_bits() + 1)];
    assert!(matches!(collection.judge("b", &result(0, &other)), Judgement::Doubtful(0, _)));
    let own = Recorded::Floats(other.to_vec());
    let (node, scores) = collection.settle(0, own).expect("was held");
    assert_eq!((node.as_str(), scores), ("a", Recorded::Floats(first.to_vec())));
    // From then on nobody is asked.
    assert_eq!(rejected(collection.judge("a", &result(0, &first))), Rejection::Disagreement);
    assert!(matches!(collection.judge("b", &result(0, &other)), Judgement::Duplicate));
}

/// The bounds of floats, and those of the configuration in integers too.
#[test]
fn scores_out_of_range_are_left_to_the_coordinator() {
    let mut collection = collection();
    for value in [1.1e18, -1.1e18, f32::MAX] {
        let judgement = collection.judge("a", &result(0, &[1.0, value, 2.0, 3.0]));
        assert!(matches!(judgement, Judgement::Doubtful(0, _)), "{judgement:?}");
    }
    let bounded = Rules { plausible: (0.0, 2.0), ..rules(1) };
    let mut collection = Collection::new(bounded, GENERATION, digest(), 0);
    for value in [-0.1, 2.1] {
        let judgement = collection.judge("a", &result(0, &[1.0, value, 2.0, 0.0]));
        assert!(matches!(judgement, Judgement::Doubtful(0, _)), "{judgement:?}");
    }
    assert!(matches!(collection.judge("a", &result(0, &[1.0, 0.5, 2.0, 0.0])), Judgement::Accepted(0)), "canary");
}

#[test]
fn what_a_liar_has_sent_is_given_up() {
    let mut collection = collection();
    collection.judge("liar", &result(0, &[1.0; 4]));
    collection.judge("a", &result(1, &[2.0; 4]));
    collection.settle(2, Recorded::Floats(vec![3.0; 2]));
    collection.forget("liar");
    assert_eq!(collection.missing(), 1);
    assert_eq!(collection.offers().iter().map(|work| work.slice).collect::<Vec<_>>(), [0]);
}

#[test]
fn nan_is_nan_and_zero_has_a_sign() {
    let floats = |values: &[f32]| Recorded::Floats(values.to_vec());
    assert!(same_bits(&floats(&[f32::NAN, 1.0]), &floats(&[-f32::NAN, 1.0])));
    assert!(!same_bits(&floats(&[0.0]), &floats(&[-0.0])));
    assert!(!same_bits(&floats(&[1.0]), &Recorded::Integers(vec![1])));
}

#[test]
fn tasks_are_joined_row_by_row() {
    let parts = vec![Recorded::Floats(vec![0.0, 1.0, 10.0, 11.0]), Recorded::Floats(vec![2.0, 12.0])];
    assert_eq!(join(parts, 2), Recorded::Floats(vec![0.0, 1.0, 2.0, 10.0, 11.0, 12.0]));
    assert!(rules(2).scores.fits(&Recorded::Floats(vec![0.0; 8]), 4));
    assert!(!rules(2).scores.fits(&Recorded::Floats(vec![0.0; 4]), 4));
    let mixed = vec![Recorded::Signs(vec![1, 0]), Recorded::Integers(vec![5, -7])];
    assert_eq!(join(mixed, 1), Recorded::Integers(vec![1, 0, 0, 0, 5, -7]));
}

proptest! {
    #[test]
    fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        let mut collection = collection();
        let reason = rejected(collection.judge("a", &bytes));
        prop_assert!(matches!(reason, Rejection::Garbage | Rejection::TooLarge));
        prop_assert_eq!(collection.missing(), 3);
    }

    #[test]
    fn parts_are_the_whole(signs in proptest::collection::vec(-1i8..=1, 1..300), bytes in 1usize..50) {
        let count = signs.len();
        let all = [
            Recorded::Floats(signs.iter().map(|sign| f32::from(*sign)).collect()),
            Recorded::Integers(signs.iter().map(|sign| i32::from(*sign)).collect()),
            Recorded::Signs(signs),
        ];
        for scores in all {
            let parts = split(&scores, bytes);
            prop_assert!(parts.iter().all(|part| part.len() > 0 && part.len() <= count));
            prop_assert_eq!(join(parts, 1), scores);
        }
    }
}
