//! What the next player knows, as floats.

use super::super::columns::{BEFORE, DECLARER, IN_TRICK, LED, OWNER, POINTS, TRUMPS, VOIDS, WINNER};
use super::super::suit::SUITS;
use super::super::tensors::{column, counting, modulo};
use super::super::{DOMINOES, DominoSet, Game, HAND_POINTS, PLAYERS, Suit, TensorRules, Trumps};
use burn::tensor::Tensor;

/// Players other than the next.
const OTHERS: usize = PLAYERS - 1;
/// Of dominoes: the hand, the trick by the others, and complete tricks by all.
const PLACES: usize = 1 + OTHERS + PLAYERS;
/// Floats of an observation.
pub(super) const OBSERVATION: usize =
    DOMINOES * (PLACES + 1) + SUITS + OTHERS + Trumps::ALL.len() + OTHERS * SUITS + 2 + PLAYERS;
/// Columns of voids.
const VOID_COLUMNS: usize = PLAYERS * SUITS;
/// All points of a hand are 1.
const SHARE: f32 = 1.0 / HAND_POINTS as f32;

/// The observation of all games.
///
/// # Shapes
///
/// - games: `[games, 73]`
/// - output: `[games, 302]`
pub(super) fn observe_all(rules: &TensorRules, games: &Tensor<2>) -> Tensor<2> {
    let (count, device) = (games.dims()[0], games.device());
    let mover = TensorRules::mover(games.clone()); // [games, 1]
    let one_hot = |number: Tensor<2>, first: usize, last: usize| {
        (number - counting(last, &device).narrow(1, first, last - first)).equal_elem(0.0).float() // [games, last − first]
    };
    let relative = |player: usize| modulo(column(games, player) - mover.clone(), PLAYERS);

    // Owners relative to the next player.
    let owner = games.clone().narrow(1, OWNER, DOMINOES); // [games, 28]
    let place = (owner.clone() * (1.0 / PLAYERS as f32)).floor() * PLAYERS as f32;
    let owner = modulo(owner - mover.clone(), PLAYERS) + place;
    let codes = counting(BEFORE + PLAYERS, &device).transpose().unsqueeze::<3>(); // [1, 12, 1]
    let places = (owner.unsqueeze_dim::<3>(1) - codes).equal_elem(0.0).float(); // [games, 12, 28]
    let hand = places.clone().narrow(1, 0, 1).squeeze_dim::<2>(1); // [games, 28]
    let shown = places.narrow(1, IN_TRICK + 1, PLACES - 1).reshape([count, (PLACES - 1) * DOMINOES]); // [games, 7·28]

    let first = (mover.clone() + 1.0) * SUITS as f32 + counting(OTHERS * SUITS, &device); // [games, 24]
    let voids = games.clone().narrow(1, VOIDS, VOID_COLUMNS).gather(1, modulo(first, VOID_COLUMNS).int());
    let parts = vec![
        hand,
        shown,
        rules.legal(games),
        one_hot(column(games, LED), 0, SUITS),
        one_hot(relative(WINNER), 1, PLAYERS),
        one_hot(column(games, TRUMPS), 0, Trumps::ALL.len()),
        voids,
        games.clone().narrow(1, POINTS, 2) * SHARE,
        one_hot(relative(DECLARER), 0, PLAYERS),
    ];
    Tensor::cat(parts, 1) // [games, 302]
}

/// The observation of one game.
pub(super) fn observe(game: &Game, observation: &mut [f32]) {
    observation.fill(0.0);
    let (state, trick) = (game.state(), game.state().trick());
    let (mover, contract) = (state.mover(), state.contract());
    let relative = |player: usize| (player + PLAYERS - mover) % PLAYERS;
    let in_trick = |player: usize| trick.plays().find(|play| play.0 == player).map(|(_, domino)| DominoSet::of(domino));
    let mut left = observation;
    let mut next = |floats: usize| left.split_off_mut(..floats).expect("an observation has 302 floats");

    mark(next(DOMINOES), state.hands()[mover]);
    for other in 1..PLAYERS {
        mark(next(DOMINOES), in_trick((mover + other) % PLAYERS).unwrap_or_default());
    }
    for other in 0..PLAYERS {
        let player = (mover + other) % PLAYERS;
        mark(next(DOMINOES), game.played(player) - in_trick(player).unwrap_or_default());
    }
    mark(next(DOMINOES), state.legal_moves());
    let led = next(SUITS);
    trick.led().into_iter().for_each(|suit| led[suit.index()] = 1.0);
    let winner = next(OTHERS);
    trick.winner().into_iter().for_each(|player| winner[(relative(player) + OTHERS - 1) % OTHERS] = 1.0);
    next(Trumps::ALL.len())[contract.trumps().index()] = 1.0;
    for other in 1..PLAYERS {
        let player = (mover + other) % PLAYERS;
        for (float, suit) in next(SUITS).iter_mut().zip(Suit::ALL) {
            *float = f32::from(u8::from(game.is_void(player, suit)));
        }
    }
    for (float, points) in next(2).iter_mut().zip(state.points()) {
        *float = f32::from(points) * SHARE;
    }
    next(PLAYERS)[relative(contract.declarer())] = 1.0;
}

/// Marks the dominoes of a set.
fn mark(floats: &mut [f32], dominoes: DominoSet) {
    dominoes.iter().for_each(|domino| floats[domino.index()] = 1.0);
}
