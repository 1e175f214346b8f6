//! The trait of games whose worlds are sampled, and where the worlds are written.

use super::world_key::WorldKey;
use burn::tensor::{Bool, Int, Tensor};
use std::error::Error;

/// A game with hidden information, as [`ExpectedValues`](super::ExpectedValues) sees it: worlds that agree with what a
/// player has seen.
///
/// A world is told to the oracle as a position: a row of up to [`position_size`](Self::position_size) integers, from
/// which the oracle builds its tokens on the device. [`sample`](Self::sample) writes positions on the host; all of a
/// step travel in one upload. Shorter positions are filled up with zeros to the longest that passes the oracle with
/// them, which the oracle must ignore: a position is worth the same in every batch.
///
/// # Example
///
/// A coin under one of two cups; the player guesses which, or passes.
///
/// ```
/// use burn::tensor::{Bool, Device, Int, Tensor};
/// use eggroll_rl::{ExpectedValuesConfig, SampledWorlds, WorldKey, WorldSampler};
/// use rand::RngExt;
/// use std::convert::Infallible;
///
/// struct Cups;
///
/// impl WorldSampler for Cups {
///     type Observation = ();
///     type Error = Infallible;
///
///     fn actions(&self) -> usize {
///         3 // left, right, pass
///     }
///
///     fn position_size(&self) -> usize {
///         1
///     }
///
///     fn sample(&self, _: &(), key: WorldKey, worlds: &mut SampledWorlds) -> Result<(), Infallible> {
///         for world in 0..worlds.count() {
///             worlds.push(&[key.rng(world).random_range(0..2)]);
///         }
///         Ok(())
///     }
///
///     fn legal(&self, positions: &Tensor<2, Int>) -> Tensor<2, Bool> {
///         Tensor::<2>::ones([positions.dims()[0], 3], &positions.device()).greater_elem(0.0)
///     }
/// }
///
/// // The oracle sees the coin: 3 for the cup that has it, 1 for passing.
/// let oracle = |positions: Tensor<2, Int>| {
///     let right = positions.float();
///     let pass = right.ones_like();
///     Tensor::cat(vec![(pass.clone() - right.clone()) * 3.0, right * 3.0, pass], 1)
/// };
/// let engine = ExpectedValuesConfig::new(1000).init(&Device::flex())?;
/// let decisions = engine.decide(&Cups, &[(WorldKey::new(0, 0, 0), ())], oracle)?;
/// // Guessing is worth 1.5.
/// assert!(decisions[0].actions.iter().take(2).all(|guess| (guess.value - 1.5).abs() < 4.0 * guess.standard_error));
/// assert_ne!(decisions[0].best(), Some(2));
/// # Ok::<(), eggroll_rl::ExpectedValuesError>(())
/// ```
///
/// # References
///
/// - Ginsberg, "GIB: Imperfect Information in a Computationally Challenging Game", JAIR 14 (2001), section 2
/// - Frank and Basin, "Search in games with incomplete information", Artificial Intelligence 100 (1998): what
///   averages over worlds cannot find
pub trait WorldSampler: Sync {
    /// What a player knows of a game when it decides.
    type Observation: Sync;
    /// Why an observation has no worlds.
    type Error: Error + Send + Sync + 'static;

    /// Actions, numbered from 0: as many in all positions.
    fn actions(&self) -> usize;

    /// Integers of the longest position.
    fn position_size(&self) -> usize;

    /// Samples [`count`](SampledWorlds::count) worlds that agree with an observation, world `w` by the generator
    /// `key.rng(w)`: every one as likely as it is before the moves of other players are weighed. Pushes the position
    /// of each, and where [`weighs_moves`](SampledWorlds::weighs_moves) says so, after it the positions in which other
    /// players moved, with what they did.
    ///
    /// # Errors
    ///
    /// No world agrees with the observation.
    fn sample(
        &self,
        observation: &Self::Observation,
        key: WorldKey,
        worlds: &mut SampledWorlds,
    ) -> Result<(), Self::Error>;

    /// Which actions are legal in positions, for whoever moves there, on the device. A decision leaves out an action
    /// that is illegal in one of its worlds: what a player may do must not depend on what it does not know.
    ///
    /// # Shapes
    ///
    /// - positions: `[rows, longest]`
    /// - output: `[rows, actions]`
    fn legal(&self, positions: &Tensor<2, Int>) -> Tensor<2, Bool>;
}

/// The worlds of one decision, as they are written.
#[derive(Clone, Debug)]
pub struct SampledWorlds {
    size: usize,
    actions: usize,
    count: u32,
    weighs_moves: bool,
    /// Positions of worlds.
    pub(super) worlds: Positions,
    /// Positions in which others moved, world by world.
    pub(super) moved_from: Positions,
    /// What was done there: `[moves]`
    pub(super) moves: Vec<i32>,
    /// Where the moves of each world end.
    pub(super) ends: Vec<usize>,
}

/// Positions one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions {
    pub integers: Vec<i32>,
    pub lengths: Vec<usize>,
}

impl Positions {
    fn push(&mut self, position: &[i32]) {
        self.integers.extend_from_slice(position);
        self.lengths.push(position.len());
    }
}

impl SampledWorlds {
    pub(super) fn new(size: usize, actions: usize, count: u32, weighs_moves: bool) -> Self {
        let (worlds, moved_from) = (Positions::default(), Positions::default());
        Self { size, actions, count, weighs_moves, worlds, moved_from, moves: vec![], ends: vec![] }
    }

    /// How many worlds are due.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether worlds are weighed by the moves that other players made: then these are due too.
    pub fn weighs_moves(&self) -> bool {
        self.weighs_moves
    }

    /// Adds a world: the position in which the observer decides.
    ///
    /// # Panics
    ///
    /// Panics if the position is empty or longer than the longest, or there are enough worlds.
    #[track_caller]
    pub fn push(&mut self, position: &[i32]) {
        self.check(position);
        assert!(self.ends.len() < self.count as usize, "more worlds than the {} that are due", self.count);
        self.worlds.push(position);
        self.ends.push(self.moves.len());
    }

    /// Adds a move of another player to the last world: the position before it in this world, and the action. Moves
    /// without a choice say nothing about a world, and may be left out. A move that is not [legal](WorldSampler::legal)
    /// there makes its world impossible: its weight is 0 next to any world whose moves are legal.
    ///
    /// # Panics
    ///
    /// Panics if moves are not weighed, there is no world, the position is empty or longer than the longest, or there
    /// is no such action.
    #[track_caller]
    pub fn push_move(&mut self, position: &[i32], action: usize) {
        self.check(position);
        assert!(self.weighs_moves, "a move, where moves are not weighed");
        assert!(action < self.actions, "action {action} of {}", self.actions);
        let end = self.ends.last_mut().expect("push a world before its moves");
        self.moved_from.push(position);
        self.moves.push(action as i32);
        *end += 1;
    }

    #[track_caller]
    fn check(&self, position: &[i32]) {
        let (found, most) = (position.len(), self.size);
        assert!((1..=most).contains(&found), "a position of {found} integers, where 1 to {most} are due");
    }
}
