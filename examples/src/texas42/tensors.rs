//! The rules on batches of games: tables that are gathered from, and operations on columns.

use super::columns::{GAME, LEADER, LEADS, LED, LENGTH, NOT_LED, OWNER, POINTS, TRICKS, TRUMPS, VOIDS, leads};
use super::suit::SUITS;
use super::{DOMINOES, Game, HAND, PLAYERS, Suit, Trumps};
use burn::tensor::{Bool, Device, Tensor, TensorData};
use std::sync::LazyLock;

/// Columns of the table of plays.
const FACTS: usize = 4;
/// The tables of [`TensorRules`], computed once: a step of an environment puts them on its device.
static TABLES: LazyLock<[Vec<f32>; 2]> = LazyLock::new(|| {
    let (mut follows, mut plays) = (Vec::new(), Vec::new());
    for (trumps, led, domino) in leads() {
        let is_member = |suit: Suit| f32::from(u8::from(trumps.members(suit).contains(domino)));
        let suit = led.unwrap_or(trumps.led_suit(domino));
        let strength = trumps.strength(suit, domino).into();
        follows.push(led.map_or(0.0, is_member));
        plays.extend([suit.index() as f32, strength, is_member(suit), domino.points().into()]);
    }
    [follows, plays]
});

/// The rules of Texas 42 for a batch of games, as operations on tensors: no read to the host, and as many operations
/// for one game as for a million.
///
/// A game is a row with the columns of [`columns`](super::columns). What depends on the trumps is gathered from
/// constant tables; all else are sums and masks of small integers, which floats hold exactly. So every device computes
/// the row that [`Game`] has.
#[derive(Clone, Debug)]
pub struct TensorRules {
    /// Whether a domino follows, by trumps and lead, `9·trumps + led`: `[81, 28]`. None follows no lead.
    follows: Tensor<2>,
    /// The suit that is led with it, strength, whether it follows, points: by trumps, lead and domino, `28·(9·trumps +
    /// led) + domino`,
    /// `[2268, 4]`. A lead follows itself.
    plays: Tensor<2>,
}

impl TensorRules {
    /// Puts the tables on a device.
    pub fn new(device: &Device) -> Self {
        let rows = Trumps::ALL.len() * LEADS;
        let [follows, plays] = &*TABLES;
        let table =
            |values: &[f32], shape: [usize; 2]| Tensor::from_data(TensorData::new(values.to_vec(), shape), device);
        Self { follows: table(follows, [rows, DOMINOES]), plays: table(plays, [rows * DOMINOES, FACTS]) }
    }

    /// A batch of games: `[games, 73]`.
    pub fn games(games: &[Game], device: &Device) -> Tensor<2> {
        let rows: Vec<f32> = games.iter().flat_map(Game::row).collect();
        Tensor::from_data(TensorData::new(rows, [games.len(), GAME]), device)
    }

    /// Who plays next, or after the last trick who won it: `[games, 1]`.
    pub fn mover(games: Tensor<2>) -> Tensor<2> {
        modulo(column(&games, LEADER) + column(&games, LENGTH), PLAYERS)
    }

    /// Whether all seven tricks are complete: `[games, 1]`.
    pub fn is_over(games: Tensor<2>) -> Tensor<2, Bool> {
        (column(&games, TRICKS) + column(&games, TRICKS + 1)).greater_equal_elem(HAND as f32)
    }

    /// Legal dominoes as 1, all others 0: `[games, 28]`.
    pub fn legal(&self, games: &Tensor<2>) -> Tensor<2> {
        let place = column(games, TRUMPS) * LEADS as f32 + column(games, LED); // [games, 1]
        let owner = games.clone().narrow(1, OWNER, DOMINOES); // [games, 28]
        let held = (owner - Self::mover(games.clone())).equal_elem(0.0).float();
        let following = self.follows.clone().select(0, place.int().squeeze_dim(1)) * held.clone(); // [games, 28]
        let has_none = following.clone().sum_dim(1).equal_elem(0.0).float(); // [games, 1]
        following + held * has_none
    }

    /// Plays the domino that is 1 in a row, which must be legal. A game of a row of zeros stays as it is.
    ///
    /// # Shapes
    ///
    /// - games: `[games, 73]`, chosen: `[games, 28]`
    /// - output: `[games, 73]`
    pub fn advance(&self, games: Tensor<2>, chosen: Tensor<2>) -> Tensor<2> {
        let device = games.device();
        let [trumps, declarer, bid, leader, length, led, winner, strength, trick_points] =
            std::array::from_fn(|place| column(&games, TRUMPS + place));
        let [points_0, points_1, tricks_0, tricks_1] = std::array::from_fn(|place| column(&games, POINTS + place));
        let owner = games.clone().narrow(1, OWNER, DOMINOES); // [games, 28]
        let voids = games.clone().narrow(1, VOIDS, PLAYERS * SUITS); // [games, 32]
        let mover = modulo(leader.clone() + length.clone(), PLAYERS);

        // What the domino does.
        let domino = (chosen.clone() * counting(DOMINOES, &device)).sum_dim(1); // [games, 1]
        let place = (trumps.clone() * LEADS as f32 + led) * DOMINOES as f32 + domino;
        let facts = self.plays.clone().select(0, place.int().squeeze_dim(1)); // [games, 4]
        let [suit, its_strength, follows, points] = std::array::from_fn(|fact| column(&facts, fact));
        let is_stronger = its_strength.clone().greater(strength.clone());
        let winner = winner.mask_where(is_stronger.clone(), mover.clone());
        let strength = strength.mask_where(is_stronger, its_strength);
        let (length, trick_points) = (length + 1.0, trick_points + points);

        // What the trick does, if it is complete.
        let is_complete = length.clone().greater_equal_elem(PLAYERS as f32);
        let (complete, open) = (is_complete.clone().float(), is_complete.clone().bool_not().float());
        let side = modulo(winner.clone(), 2);
        let (gain, trick) = ((trick_points.clone() + 1.0) * complete.clone(), complete.clone());
        let (gain_1, trick_1) = (gain.clone() * side.clone(), trick.clone() * side);
        let (gain_0, trick_0) = (gain - gain_1.clone(), trick - trick_1.clone());

        // From the hand into the trick, and from there to those played before.
        let owner = owner + chosen.clone() * PLAYERS as f32;
        let in_trick = (owner.clone() * (1.0 / PLAYERS as f32)).floor().equal_elem(1.0).float();
        let owner = owner + in_trick * complete * PLAYERS as f32;
        let shown = (mover * SUITS as f32 + suit.clone() - counting(PLAYERS * SUITS, &device)).equal_elem(0.0).float();
        let voids = voids.max_pair(shown * (-follows + 1.0)); // [games, 32]
        let next = vec![
            owner,
            trumps,
            declarer,
            bid,
            leader.mask_where(is_complete.clone(), winner.clone()),
            length * open.clone(),
            suit.mask_fill(is_complete, NOT_LED as f32),
            winner,
            strength * open.clone(),
            trick_points * open,
            points_0 + gain_0,
            points_1 + gain_1,
            tricks_0 + trick_0,
            tricks_1 + trick_1,
            voids,
        ];
        let next = Tensor::cat(next, 1); // [games, 73]
        let plays = chosen.sum_dim(1).greater_elem(0.5); // [games, 1]
        let shape = games.dims();
        games.mask_where(plays.expand(shape), next)
    }
}

/// Small integers modulo a power of two, of which the reciprocal is exact.
pub(super) fn modulo(numbers: Tensor<2>, power: usize) -> Tensor<2> {
    numbers.clone() - (numbers * (1.0 / power as f32)).floor() * power as f32
}

/// One column of games: `[games, 1]`.
pub(super) fn column(games: &Tensor<2>, place: usize) -> Tensor<2> {
    games.clone().narrow(1, place, 1)
}

/// `0 .. count` as a row: `[1, count]`.
pub(super) fn counting(count: usize, device: &Device) -> Tensor<2> {
    Tensor::arange(0..count as i64, device).float().unsqueeze()
}
