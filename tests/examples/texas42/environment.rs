//! Hands as an environment: both forms, the rules, what the policy sees, new hands, opponents.

use super::support::{SteppedHands, Words, devices, keys, matrix, step_host, step_tensor, unit, values};
use eggroll::rl::{EpisodeKey, TensorEnvironment};
use eggroll_examples::texas42::{
    Bid, Domino, DominoSet, Game, HAND, HAND_POINTS, HandState, Observation, Opponent, Suit, Texas42, Trumps, Worlds,
    columns,
};

const OPPONENTS: [Opponent; 2] = [Opponent::Random, Opponent::Highest];
/// Numbers of a state and of an observation.
const STATE: usize = columns::GAME + 14;
const OBSERVATION: usize = 302;

fn begin(hand: &Texas42, key: EpisodeKey) -> [f32; STATE] {
    let mut state = [f32::NAN; STATE];
    hand.reset_host(key, &mut state);
    state
}

fn game(state: &[f32]) -> Game {
    Game::from_row(state.first_chunk().expect("a game"))
}

/// The same, but for a product by a reciprocal in an observation, which may be the last bit off on a device.
fn is_same((found, ended): &SteppedHands, (expected, due): &SteppedHands) -> bool {
    let seen = found[1].iter().zip(&expected[1]).all(|(found, expected)| (found - expected).abs() <= 1e-6);
    seen && found[0] == expected[0] && found[2] == expected[2] && ended == due
}

/// Scores with ties, and such that no comparison orders.
fn scores(environments: usize, step: u32) -> Vec<f32> {
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN, f32::MAX, 0.0, -0.0, 1.0];
    let score = |index: usize| match unit(index, 300 + step) {
        u if u < 0.5 => odd[(u * 16.0) as usize],
        u => u - 0.75,
    };
    (0..28 * environments).map(score).collect()
}

/// The domino that documented scores choose: descending by score, the lowest index first, NaN below −∞ or equal.
fn chosen(scores: &[f32], legal: DominoSet) -> Domino {
    let finite = |score: f32| if score.is_nan() { f32::MIN } else { score.clamp(f32::MIN, f32::MAX) };
    let mut order: Vec<Domino> = legal.iter().collect();
    order.sort_by(|a, b| finite(scores[b.index()]).partial_cmp(&finite(scores[a.index()])).expect("finite"));
    order[0]
}

/// The domino that an opponent plays by its description.
fn reply(opponent: Opponent, state: &HandState, numbers: &[f32]) -> Domino {
    let legal: Vec<Domino> = state.legal_moves().iter().collect();
    match opponent {
        Opponent::Random => {
            let number = numbers[7 * ((state.mover() - 1) / 2) + state.trick_number()];
            legal[(f64::from(number) * legal.len() as f64) as usize]
        }
        Opponent::Highest => {
            let most = legal.iter().map(|domino| domino.high() + domino.low()).max();
            let tied = legal.into_iter().filter(|domino| Some(domino.high() + domino.low()) == most);
            tied.max_by_key(|domino| domino.high()).expect("a legal domino")
        }
    }
}

#[test]
fn any_scores_are_played_alike_in_both_forms() {
    for device in devices() {
        for opponent in OPPONENTS {
            let (hand, count) = (Texas42::new(opponent), 300);
            let mut state = values(hand.reset(&keys(count as u32), &device));
            // Two steps on states that are terminal.
            for step in 0..16 {
                let scores = scores(count, step);
                let expected = step_host(&hand, &state, &scores);
                let found = step_tensor(&hand, &state, &scores, &device);
                assert!(is_same(&found, &expected), "{opponent:?}, step {step} on {device:?}");
                assert_eq!(found.1, vec![step >= 13; count]);
                let ([next, _, reward], _) = found;
                let is_still = next == state && reward.iter().all(|reward| *reward == 0.0);
                assert_eq!(is_still, step >= 14, "{opponent:?}, step {step}");
                state = next;
            }
        }
    }
}

#[test]
fn hands_are_played_by_the_rules() {
    for opponent in OPPONENTS {
        let hand = Texas42::new(opponent);
        for (number, key) in keys(200).into_iter().enumerate() {
            let mut state = begin(&hand, key);
            let mut total = 0.0;
            for step in 0..14 {
                let before = game(&state);
                assert!(before.state().mover().is_multiple_of(2) && !before.state().is_over(), "step {step}");
                let scores: Vec<f32> = (0..28).map(|index| unit(index, (28 * number + step) as u32)).collect();
                let mut expected = before;
                expected.play(chosen(&scores, before.state().legal_moves())).expect("a legal domino");
                while expected.state().mover() % 2 == 1 && !expected.state().is_over() {
                    let domino = reply(opponent, expected.state(), &state[columns::GAME..]);
                    expected.play(domino).expect("a legal domino");
                }
                let transition = hand.step_host(&mut state, &scores);
                assert_eq!(game(&state), expected, "{opponent:?}, step {step}");
                assert_eq!(state[..columns::GAME], expected.row());
                let [own, other] = [0, 1]
                    .map(|side| i32::from(expected.state().points()[side]) - i32::from(before.state().points()[side]));
                assert!((transition.reward - (own - other) as f32).abs() < 1e-6);
                assert_eq!(transition.terminated, step == 13);
                total += transition.reward;
            }
            let [own, other] = game(&state).state().points().map(i32::from);
            assert_eq!(own + other, i32::from(HAND_POINTS));
            assert!((total - (own - other) as f32).abs() < 1e-5);
        }
    }
}

/// What `player` knows, and the plays, of a game of the environment.
fn observation(game: &Game, first: &Game, plays: &[Domino]) -> Observation {
    let player = game.state().mover();
    let hand = first.state().hands()[player] | first.played(player);
    Observation::after(player, game.state().contract(), hand, plays.iter().copied())
}

/// The observation as the table says it, from what the player knows.
fn expected_observation(seen: &Observation) -> Vec<f32> {
    let (me, progress) = (seen.player(), seen.progress());
    let trick: Vec<(usize, Domino)> = progress.trick().plays().collect();
    let set = |dominoes: DominoSet| (0..28).map(move |index| f32::from(dominoes.bits() >> index & 1 == 1));
    let one_hot = |count: usize, place: Option<usize>| (0..count).map(move |index| f32::from(Some(index) == place));
    let mut all: Vec<f32> = set(seen.hand()).collect();
    let of_trick =
        |player: usize| -> DominoSet { trick.iter().filter(|play| play.0 == player).map(|play| play.1).collect() };
    for other in 1..4 {
        all.extend(set(of_trick((me + other) % 4)));
    }
    for other in 0..4 {
        let player = (me + other) % 4;
        let played: DominoSet = seen.plays().filter(|play| play.player == player).map(|play| play.domino).collect();
        all.extend(set(played - of_trick(player)));
    }
    all.extend(set(seen.legal_moves()));
    all.extend(one_hot(8, progress.trick().led().map(Suit::index)));
    all.extend(one_hot(3, progress.trick().winner().map(|winner| (winner + 3 - me) % 4)));
    all.extend(one_hot(9, Some(progress.contract().trumps().index())));
    for other in 1..4 {
        all.extend(Suit::ALL.map(|suit| f32::from(seen.is_void((me + other) % 4, suit))));
    }
    all.extend(progress.points().map(|points| f32::from(points) * (1.0 / 42.0)));
    all.extend(one_hot(4, Some((progress.contract().declarer() + 4 - me) % 4)));
    all
}

/// The same game with other hands of the players that are not to move.
fn in_world(state: &[f32; STATE], world: [DominoSet; 4]) -> [f32; STATE] {
    let mut state = *state;
    for (player, hand) in world.into_iter().enumerate() {
        hand.iter().for_each(|domino| state[columns::OWNER + domino.index()] = player as f32);
    }
    state
}

#[test]
fn the_policy_sees_what_the_player_knows_and_nothing_else() {
    let (hand, device) = (Texas42::default(), &devices()[0]);
    let (mut words, mut other_worlds) = (Words::new(31), 0);
    for key in keys(40) {
        let mut state = begin(&hand, key);
        let first = game(&state);
        let mut plays: Vec<Domino> = first.state().trick().plays().map(|play| play.1).collect();
        for step in 0..14 {
            let now = game(&state);
            let seen = observation(&now, &first, &plays);
            let expected = expected_observation(&seen);
            let mut observed = [f32::NAN; OBSERVATION];
            hand.observe_host(&state, &mut observed);
            assert_eq!(observed.to_vec(), expected, "step {step}");
            assert_eq!(values(hand.observe(matrix(&state, 1, device))), expected, "step {step}");
            let world = Worlds::new(&seen).expect("the true hands agree").sample(&mut || words.next());
            let other = in_world(&state, world);
            other_worlds += usize::from(other != state);
            hand.observe_host(&other, &mut observed);
            assert_eq!(observed.to_vec(), expected, "step {step}");

            // In the order of the plays: that of the policy, and those of the opponents.
            let scores: Vec<f32> = (0..28).map(|_| words.below(1000) as f32).collect();
            let mut next = now;
            let mut domino = chosen(&scores, now.state().legal_moves());
            loop {
                next.play(domino).expect("a legal domino");
                plays.push(domino);
                if next.state().mover().is_multiple_of(2) || next.state().is_over() {
                    break;
                }
                domino = reply(Opponent::Random, next.state(), &state[columns::GAME..]);
            }
            hand.step_host(&mut state, &scores);
            assert_eq!(game(&state), next);
        }
        assert_eq!(plays.len(), 28);
    }
    assert!(other_worlds > 400, "{other_worlds} other worlds");
}

#[test]
fn new_hands_are_random_deals_of_random_declarers() {
    let hand = Texas42::default();
    let (mut declarers, mut leads, mut owners) = ([0; 4], [0; HAND], [[0; 4]; 28]);
    let count = 4000;
    for key in keys(count) {
        let state = begin(&hand, key);
        let game = game(&state);
        let (contract, trick) = (game.state().contract(), game.state().trick());
        let dealt: [DominoSet; 4] = std::array::from_fn(|player| game.state().hands()[player] | game.played(player));
        assert!(dealt.iter().all(|hand| hand.len() == HAND));
        assert_eq!(dealt.into_iter().fold(DominoSet::EMPTY, |all, hand| all | hand), DominoSet::ALL);
        assert_eq!((contract.bid(), contract.trumps()), (Bid::LOWEST, Trumps::longest(dealt[contract.declarer()])));
        assert_eq!((trick.leader(), trick.len()), (contract.declarer(), contract.declarer() % 2));
        assert!(state[columns::GAME..].iter().all(|number| (0.0..1.0).contains(number)));
        declarers[contract.declarer()] += 1;
        if let Some((player, lead)) = trick.plays().next() {
            leads[dealt[player].iter().position(|domino| domino == lead).expect("dealt")] += 1;
        }
        for (player, hand) in dealt.into_iter().enumerate() {
            hand.iter().for_each(|domino| owners[domino.index()][player] += 1);
        }
    }
    // Each count is within five standard deviations √(n·p·(1 − p)).
    let even = |counts: &[usize], total: usize| {
        let (n, p) = (total as f64, 1.0 / counts.len() as f64);
        counts.iter().all(|&count| (count as f64 - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt())
    };
    assert!(even(&declarers, count as usize), "{declarers:?}");
    assert!(even(&leads, leads.iter().sum()), "{leads:?}");
    assert!(owners.iter().all(|counts| even(counts, count as usize)), "{owners:?}");
    assert!(!even(&[count as usize / 2, 0, 0, count as usize / 2], count as usize), "canary");
}

/// Whoever changes these makes other episodes of all seeds. Computed by a second implementation.
#[test]
fn new_hands_are_stable() {
    let state = begin(&Texas42::default(), EpisodeKey::new(0x0123_4567_89ab_cdef, 2, 3));
    let (hands, contract) = (game(&state).state().hands(), game(&state).state().contract());
    assert_eq!(hands.map(DominoSet::bits), [75_506_884, 184_881_664, 2_244_635, 5_802_272]);
    assert_eq!((contract.declarer(), contract.trumps()), (2, Trumps::Suit(Suit::Blanks)));
    assert_eq!(
        state[columns::GAME..][..2].iter().map(|number| number.to_bits()).collect::<Vec<_>>(),
        [0x3f5a_c013, 0x3f5c_9eab]
    );
}
