//! Who plays against the policy, and which domino a score or a random number names.

use super::super::tensors::counting;
use super::super::{DOMINOES, Domino, DominoSet, HAND};
use burn::tensor::{Tensor, TensorData};

/// Random numbers of a hand: one for each play of the opponents.
pub(super) const NUMBERS: usize = 2 * HAND;

/// How players 1 and 3 play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Opponent {
    /// Each legal domino with the same probability.
    #[default]
    Random,
    /// The legal domino with most pips on both ends together; of those with equally many the one with the higher number
    /// on one end.
    Highest,
}

impl Opponent {
    /// Its domino, given a uniform number in `[0, 1)`. `None` if none is legal, or the number is 1 or more.
    pub fn choose(self, legal: DominoSet, number: f32) -> Option<Domino> {
        match self {
            // The product is below the count: 24 bits of the number, and at most seven dominoes.
            Self::Random => legal.iter().nth((number * legal.len() as f32) as usize),
            Self::Highest => legal.iter().max_by_key(|&domino| height(domino)),
        }
    }

    /// The same of all games, its domino as 1 in a row.
    ///
    /// # Shapes
    ///
    /// - legal: `[games, 28]` of 0 and 1, numbers: `[games, 1]`
    /// - output: `[games, 28]`
    pub(super) fn choose_all(self, legal: Tensor<2>, numbers: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Random => {
                let place = (numbers * legal.clone().sum_dim(1)).floor() + 1.0; // [games, 1]
                (legal.clone().cumsum(1) - place).equal_elem(0.0).float() * legal
            }
            Self::Highest => {
                let heights: Vec<f32> = DominoSet::ALL.iter().map(|domino| height(domino).into()).collect();
                let heights = Tensor::<2>::from_data(TensorData::new(heights, [1, DOMINOES]), &legal.device());
                best_of_all(heights.expand(legal.dims()), legal)
            }
        }
    }
}

/// Orders dominoes by the sum of their pips, then by the higher end, which is by the index.
fn height(domino: Domino) -> u16 {
    u16::from(domino.high() + domino.low()) * DOMINOES as u16 + domino.index() as u16
}

/// The legal domino with the highest score, the first of equals. `None` if none is legal.
///
/// NaN and −∞ count as the lowest finite number, ∞ as the highest.
pub(super) fn best(scores: &[f32], legal: DominoSet) -> Option<Domino> {
    let mut best: Option<(f32, Domino)> = None;
    for domino in legal {
        let score = scores[domino.index()];
        let score = if score.is_nan() { f32::MIN } else { score.clamp(f32::MIN, f32::MAX) };
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, domino));
        }
    }
    best.map(|(_, domino)| domino)
}

/// The same of all games, the domino as 1 in a row.
///
/// # Shapes
///
/// - scores: `[games, 28]`, legal: `[games, 28]` of 0 and 1
/// - output: `[games, 28]`
pub(super) fn best_of_all(scores: Tensor<2>, legal: Tensor<2>) -> Tensor<2> {
    let is_nan = scores.clone().is_nan();
    let scores = scores.mask_fill(is_nan, f32::MIN).clamp(f32::MIN, f32::MAX);
    let scores = scores.mask_fill(legal.clone().equal_elem(0.0), f32::NEG_INFINITY);
    let highest = scores.clone().max_dim(1).expand(legal.dims()); // from [games, 1]
    let places = scores.equal(highest).float() * legal; // 1 for each of the best
    // The first has the largest distance to the end.
    let distances = places.clone() * (-counting(DOMINOES, &places.device()) + DOMINOES as f32); // [games, 28]
    let first = distances.clone().max_dim(1).expand(places.dims());
    distances.equal(first).float() * places
}
