//! The engine: games in, decisions out, with one host read.

use super::decision::{ActionValue, Decision};
use super::error::ExpectedValuesError;
use super::reduce;
use super::rows::{self, PositionRows};
use super::sampler::WorldSampler;
use super::world_key::WorldKey;
use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use eggroll_core::counters;
use eggroll_core::is_on_host;
use eggroll_core::profile::{self, Component};
use eggroll_core::scope;
use rayon::prelude::*;

/// Positions that pass the oracle together on CPUs: what it computes of them stays in a core's cache.
const ROWS: usize = 128;

/// Decides games with hidden information by sampled worlds: every legal action `a` is worth
///
/// ```text
/// E[Q(a)] = Σ_w p_w·Q(w, a)     p_w ∝ Π_t π(a_t | w)     π(· | w) = softmax(Q(w, ·)/τ)
/// ```
///
/// A [`WorldSampler`] samples the worlds `w`; an oracle that sees the world gives the values `Q`. The moves `a_t` that
/// other players made so far give the weights `p_w`. Without a temperature `τ` all `p_w` are `1/W`.
///
/// All games, worlds and moves pass the oracle together, and everything after it stays on the device: a step of all
/// games is one host read. On a device the number of operations does not depend on how many games and worlds there
/// are, nor on the length of the games. How many kernels Burn's Fusion makes of them may differ by a few with the
/// shapes; [`LaunchCount`](eggroll_core::LaunchCount) counts them.
///
/// Averages over worlds in which everything is known cannot value information, nor what hides it (strategy fusion,
/// non-locality); for what they can do see Long et al. 2010.
///
/// Created by [`ExpectedValuesConfig`](super::ExpectedValuesConfig). An example is at [`WorldSampler`].
///
/// # References
///
/// - Ginsberg, "GIB: Imperfect Information in a Computationally Challenging Game", JAIR 14 (2001)
/// - Long, Sturtevant, Buro and Furtak, "Understanding the Success of Perfect Information Monte Carlo Sampling in Game
///   Tree Search", AAAI 2010
/// - the weights: Owen, "Monte Carlo theory, methods and examples" (2013), equations 9.7 to 9.13
#[derive(Clone, Debug)]
pub struct ExpectedValues {
    worlds: u32,
    temperature: Option<f64>,
    device: Device,
}

impl ExpectedValues {
    pub(super) fn new(worlds: u32, temperature: Option<f64>, device: &Device) -> Self {
        Self { worlds, temperature, device: device.clone() }
    }

    /// Worlds that are sampled for a decision.
    pub fn worlds(&self) -> usize {
        self.worlds as usize
    }

    /// Decides one step of games. The oracle gives values to whoever moves in a position, larger is better: of illegal
    /// actions any number.
    ///
    /// On devices the oracle is called once. On CPUs it is called for 128 positions of similar length at a time, by all
    /// threads. Inside an evaluation, where the oracle may be a member, only the evaluation's thread calls it.
    ///
    /// # Shapes
    ///
    /// - the oracle's positions: `[rows, longest]`, values: `[rows, actions]`
    ///
    /// # Errors
    ///
    /// A game without worlds, more than 2²⁴ positions, or expected values that are not finite.
    ///
    /// # Panics
    ///
    /// Panics if the values of the oracle or the sampler's legal actions have another shape.
    #[track_caller]
    pub fn decide<S: WorldSampler>(
        &self,
        sampler: &S,
        games: &[(WorldKey, S::Observation)],
        oracle: impl Fn(Tensor<2, Int>) -> Tensor<2> + Sync,
    ) -> Result<Vec<Decision>, ExpectedValuesError> {
        if games.is_empty() {
            return Ok(vec![]);
        }
        let rows = {
            let _span = profile::span(Component::Worlds, 0);
            rows::sample(sampler, games, self.worlds, self.temperature.is_some())?
        };
        let _span = profile::span(Component::Fitness, 0);
        let (values, legal) = self.values(sampler, &rows, oracle);
        let decided = games.len() * self.worlds();
        let likelihood = match self.temperature {
            None => Tensor::zeros([decided], (&self.device, values.dtype())),
            Some(temperature) => {
                let moves = rows.moves.len();
                let (values, legal) =
                    (values.clone().narrow(0, decided, moves), legal.clone().narrow(0, decided, moves));
                let (moves, index) = self.upload_moves(&rows);
                reduce::log_likelihood(values, legal, moves, index, temperature)
            }
        };
        let weights = reduce::weights(likelihood, [games.len(), self.worlds()]);
        let (values, legal) = (values.narrow(0, 0, decided), legal.narrow(0, 0, decided));
        self.read(reduce::expectation(values, legal, weights), sampler.actions())
    }

    /// Values and legal actions in all positions: `[rows, actions]` each.
    #[track_caller]
    fn values<S: WorldSampler>(
        &self,
        sampler: &S,
        rows: &PositionRows,
        oracle: impl Fn(Tensor<2, Int>) -> Tensor<2> + Sync,
    ) -> (Tensor<2>, Tensor<2, Bool>) {
        let actions = sampler.actions();
        let call = |numbers: &[usize]| {
            let (shape, filled) = rows.filled(numbers);
            let positions = self.upload(shape, &filled);
            let (legal, shape) = (sampler.legal(&positions), [numbers.len(), actions]);
            assert!(legal.dims() == shape, "legal actions of shape {:?}, where {shape:?} is due", legal.dims());
            let values = oracle(positions);
            assert!(values.dims() == shape, "an oracle's values of shape {:?}, where {shape:?} is due", values.dims());
            (values, legal)
        };
        if !is_on_host(&self.device) {
            return call(&(0..rows.len()).collect::<Vec<_>>());
        }
        let numbers = rows.by_length();
        // Inside an evaluation the oracle may be one of its members, which other threads do not know.
        let parts: Vec<_> = match scope::is_active() {
            true => numbers.chunks(ROWS).map(call).collect(),
            false => numbers.par_chunks(ROWS).map(call).collect(),
        };
        let (values, legal): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let mut places = vec![0; numbers.len()];
        numbers.iter().zip(0..).for_each(|(&number, place)| places[number] = place);
        let places = self.upload([places.len()], &places);
        // As floats: Flex cannot negate flags that it has selected.
        let legal = Tensor::cat(legal.into_iter().map(|legal| legal.float()).collect(), 0).select(0, places.clone());
        (Tensor::cat(values, 0).select(0, places), legal.greater_elem(0.5))
    }

    fn upload<const D: usize>(&self, shape: [usize; D], integers: &[i32]) -> Tensor<D, Int> {
        Tensor::from_data(TensorData::new(integers.to_vec(), shape), &self.device)
    }

    /// Moves and the index of each world's moves, in one upload.
    fn upload_moves(&self, rows: &PositionRows) -> (Tensor<1, Int>, Tensor<2, Int>) {
        let both = [rows.moves.as_slice(), &rows.index].concat();
        let (moves, index) = (rows.moves.len(), rows.index.len());
        let both = self.upload([moves + index], &both);
        let index = both.clone().narrow(0, moves, index).reshape([index / rows.most, rows.most]);
        (both.narrow(0, 0, moves), index)
    }

    /// The one host read.
    fn read(&self, reduced: Tensor<2>, actions: usize) -> Result<Vec<Decision>, ExpectedValuesError> {
        let width = 3 * actions + 1;
        let reduced: Vec<f32> = reduced.cast(DType::F32).into_data().try_to_vec().expect("cast to f32");
        counters::add_host_read();
        let worlds = f64::from(self.worlds);
        let correction = worlds / (worlds - 1.0); // infinite for one world
        let decision = |(game, row): (usize, &[f32])| {
            let (expected, rest) = row.split_at(actions);
            let (spread, rest) = rest.split_at(actions);
            let mut decided = Decision { actions: vec![], effective_sample_size: rest[actions] };
            for action in (0..actions).filter(|&action| rest[action] > 0.5) {
                let value = expected[action];
                if !value.is_finite() {
                    return Err(ExpectedValuesError::NotFinite { game, action, value });
                }
                let standard_error = match self.worlds {
                    1 => f32::INFINITY,
                    _ => (f64::from(spread[action]) * correction).sqrt() as f32,
                };
                decided.actions.push(ActionValue { action, value, standard_error });
            }
            Ok(decided)
        };
        reduced.chunks_exact(width).enumerate().map(decision).collect()
    }
}
