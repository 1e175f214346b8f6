//! A hand as a task for policies: an environment in both forms.

mod observation;
mod opponent;
mod reset;

use super::columns::{GAME, POINTS, TRICKS};
use super::tensors::{column, modulo};
use super::{DOMINOES, Game, HAND, HandState, TensorRules};
use burn::tensor::Tensor;
use eggroll::rl::{ActionSpace, EpisodeKey, HostTransition, TensorEnvironment, Transition};
use observation::OBSERVATION;
pub use opponent::Opponent;
use opponent::{NUMBERS, best, best_of_all};

/// Plays of the opponents between two of the policy, at most: one that completes a trick, and the next lead.
const RESPONSES: usize = 2;
/// Floats of a state.
const STATE: usize = GAME + NUMBERS;
/// Scores beyond are cut: far above what networks put out, so that the order of their scores stays.
const LARGEST_SCORE: f32 = 1e6;

/// A hand of [Texas 42](super) as an environment: the policy plays both partners of side 0, each with what that player
/// knows, against a fixed [`Opponent`].
///
/// A new hand is a random deal. The declarer is any of the four players with the same probability, and names the trumps
/// [`Trumps::longest`](super::Trumps::longest); the bid is 30. An action is a score for each domino, and the legal
/// domino with the highest score is played, the first of equals; NaN counts as the lowest score. Then the opponents
/// play, until it is the turn of side 0 again. A hand is 14 steps, and the reward of a step is
///
/// ```text
/// points that side 0 gained − points that side 1 gained
/// ```
///
/// which sums over the hand to a number from −42 to 42. It does not depend on the bid.
///
/// The observation has 302 floats, with players counted from the one whose turn it is:
///
/// | floats | what |
/// |---|---|
/// | 28 | the own hand |
/// | 3 × 28 | the domino in the current trick of players 1, 2 and 3 |
/// | 4 × 28 | dominoes of complete tricks, by who played them, 0 to 3 |
/// | 28 | legal dominoes |
/// | 8 | the suit that was led, none before the lead |
/// | 3 | who has the strongest domino of the trick, none before the lead |
/// | 9 | trumps |
/// | 3 × 8 | suits that players 1, 2 and 3 did not follow |
/// | 2 | points of side 0 and of side 1, divided by 42 |
/// | 4 | the declarer |
///
/// The state is the game, with the columns of [`columns`](super::columns), and a uniform number for each play of the
/// opponents: that of player `p` in trick `t` is number `7·((p − 1)/2) + t`. All are drawn at the reset, so that
/// members which see the same episode differ by their own plays only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Texas42 {
    opponent: Opponent,
}

impl Texas42 {
    /// Hands against an opponent.
    pub const fn new(opponent: Opponent) -> Self {
        Self { opponent }
    }

    /// The opponents play until it is the turn of side 0, or the hand is over.
    fn respond(self, game: &mut Game, numbers: &[f32]) {
        for _ in 0..RESPONSES {
            let state = game.state();
            if !is_turn_of(1, state) {
                return;
            }
            let number = numbers[HAND * (state.mover() / 2) + state.trick_number()];
            if let Some(domino) = self.opponent.choose(state.legal_moves(), number) {
                game.play(domino).expect("a legal domino");
            }
        }
    }
}

impl TensorEnvironment for Texas42 {
    fn name(&self) -> &'static str {
        "Texas42"
    }

    fn state_size(&self) -> usize {
        STATE
    }

    fn observation_size(&self) -> usize {
        OBSERVATION
    }

    fn actions(&self) -> ActionSpace {
        ActionSpace::Continuous { size: DOMINOES, low: -LARGEST_SCORE, high: LARGEST_SCORE }
    }

    /// The dominoes of side 0.
    fn time_limit(&self) -> usize {
        DOMINOES / 2
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        let rules = TensorRules::new(&state.device());
        observation::observe_all(&rules, &state.narrow(1, 0, GAME))
    }

    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        let rules = TensorRules::new(&state.device());
        let before = state.clone().narrow(1, 0, GAME); // [environments, 73]
        let numbers = state.narrow(1, GAME, NUMBERS); // [environments, 14]
        let turns_of = |side: f32, games: &Tensor<2>| side_of_mover(games).equal_elem(side).float(); // [environments, 1]

        let chosen = best_of_all(actions, rules.legal(&before)) * turns_of(0.0, &before);
        let mut games = rules.advance(before.clone(), chosen);
        for _ in 0..RESPONSES {
            let number = numbers.clone().gather(1, number_places(&games).int()); // [environments, 1]
            let chosen = self.opponent.choose_all(rules.legal(&games), number) * turns_of(1.0, &games);
            games = rules.advance(games, chosen);
        }
        let [gain_0, gain_1] = [POINTS, POINTS + 1].map(|points| column(&games, points) - column(&before, points));
        let ended = TensorRules::is_over(games.clone());
        let state = Tensor::cat(vec![games, numbers], 1); // [environments, 87]
        Transition { state, reward: (gain_0 - gain_1).squeeze_dim(1), terminated: ended.squeeze_dim(1) }
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        let (row, numbers) = split(state);
        let mut game = reset::hand(key, numbers);
        self.respond(&mut game, numbers);
        *row = game.row();
    }

    fn has_host_form(&self) -> bool {
        true
    }

    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        let row = state.first_chunk().expect("a state begins with a game");
        observation::observe(&Game::from_row(row), observation);
    }

    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        let (row, numbers) = split(state);
        let mut game = Game::from_row(row);
        let before = game.state().points();
        if is_turn_of(0, game.state())
            && let Some(domino) = best(action, game.state().legal_moves())
        {
            game.play(domino).expect("a legal domino");
        }
        self.respond(&mut game, numbers);
        *row = game.row();
        let [gain_0, gain_1] = std::array::from_fn(|side| f32::from(game.state().points()[side] - before[side]));
        HostTransition { reward: gain_0 - gain_1, terminated: game.state().is_over() }
    }
}

/// The game and the numbers of a state.
fn split(state: &mut [f32]) -> (&mut [f32; GAME], &mut [f32]) {
    state.split_first_chunk_mut().expect("a state begins with a game")
}

fn is_turn_of(side: usize, state: &HandState) -> bool {
    state.mover() % 2 == side && !state.is_over()
}

/// The side of the next player: `[games, 1]`.
fn side_of_mover(games: &Tensor<2>) -> Tensor<2> {
    modulo(TensorRules::mover(games.clone()), 2)
}

/// Which number decides the next play, if it is one of the opponents': `[games, 1]`.
fn number_places(games: &Tensor<2>) -> Tensor<2> {
    let trick = column(games, TRICKS) + column(games, TRICKS + 1);
    let player = (TensorRules::mover(games.clone()) * 0.5).floor(); // 0 or 1
    // There are none after the last trick.
    (player * HAND as f32 + trick).clamp_max(NUMBERS as f32 - 1.0)
}
