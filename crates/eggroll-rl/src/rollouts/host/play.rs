//! Environments in play: a step of all of them, side by side.

use super::task::HostTask;
use crate::EpisodeKey;
use crate::rollouts::normalizer::Scaling;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_rl::Environment;
use eggroll_core::{counters, profile, scope};
use rayon::prelude::*;

/// The environments of some members, each in a separate episode.
pub(super) struct Play<'a, T: HostTask> {
    table: PlayContext<'a, T>,
    players: Vec<Player<T::Environment>>,
    /// What the policy sees, row by row. An episode that is over stays at its last observation.
    observations: Vec<f32>,
}

/// What all players share.
struct PlayContext<'a, T> {
    task: &'a T,
    scaling: Option<&'a Scaling>,
    /// Steps of an episode.
    limit: usize,
}

/// One environment, and the result of its episode so far.
struct Player<E> {
    environment: E,
    total: f64,
    steps: usize,
    over: bool,
    /// Of its observations, for a normalizer.
    sums: Vec<f32>,
}

impl<'a, T: HostTask> Play<'a, T> {
    /// Begins the episodes of all keys for each member.
    pub(super) fn begin(
        task: &'a T,
        keys: &[EpisodeKey],
        members: usize,
        scaling: Option<&'a Scaling>,
        limit: usize,
    ) -> Self {
        let table = PlayContext { task, scaling, limit };
        let size = task.observation_size();
        let mut observations = vec![0.0; keys.len() * members * size];
        let begin = |(row, observation): (usize, &mut [f32])| {
            let environment = task.begin(keys[row % keys.len()]);
            let sums = vec![0.0; scaling.map_or(0, |_| Scaling::sums(size))];
            let mut player = Player { environment, total: 0.0, steps: 0, over: limit == 0, sums };
            let state = player.environment.state();
            table.show(&state, observation, &mut player.sums);
            player
        };
        let players = scope::suspended(|| observations.par_chunks_mut(size).enumerate().map(begin).collect());
        Self { table, players, observations }
    }

    pub(super) fn rows(&self) -> usize {
        self.players.len()
    }

    /// Whether any episode is not over.
    pub(super) fn is_on(&self) -> bool {
        self.players.iter().any(|player| !player.over)
    }

    /// What the policy sees: `[rows, observation_size]`.
    pub(super) fn observations(&self, device: &Device) -> Tensor<2> {
        let shape = [self.rows(), self.table.task.observation_size()];
        Tensor::from_data(TensorData::new(self.observations.clone(), shape), device)
    }

    /// A step of all episodes that are not over, under what the policy answered: `[rows, outputs]`.
    #[track_caller]
    pub(super) fn step(&mut self, outputs: Tensor<2>) {
        let [rows, width] = outputs.dims();
        assert!(rows == self.rows(), "rollout: the policy returned {rows} rows for {} environments", self.rows());
        let outputs = read(outputs);
        let table = &self.table;
        let rows = self
            .players
            .par_iter_mut()
            .zip(self.observations.par_chunks_mut(table.task.observation_size()))
            .zip(outputs.par_chunks(width));
        scope::suspended(|| {
            rows.filter(|((player, _), _)| !player.over)
                .for_each(|((player, observation), outputs)| table.step(player, outputs, observation));
        });
    }

    /// `[return, length, sums]` of every episode, one after the other.
    pub(super) fn into_rows(self) -> Vec<f32> {
        let row = |player: Player<_>| [player.total as f32, player.steps as f32].into_iter().chain(player.sums);
        self.players.into_iter().flat_map(row).collect()
    }
}

impl<T: HostTask> PlayContext<'_, T> {
    fn step(&self, player: &mut Player<T::Environment>, outputs: &[f32], observation: &mut [f32]) {
        let result = player.environment.step(self.task.act(outputs));
        player.total += self.task.reward(&result);
        player.steps += 1;
        player.over = result.done || result.truncated || player.steps >= self.limit;
        if !player.over {
            self.show(&result.next_state, observation, &mut player.sums);
        }
    }

    /// Writes what the policy sees of a state.
    fn show(&self, state: &<T::Environment as Environment>::State, observation: &mut [f32], sums: &mut [f32]) {
        self.task.observe(state, observation);
        if let Some(scaling) = self.scaling {
            scaling.apply(observation, sums);
        }
    }
}

/// The one read of a step.
fn read(outputs: Tensor<2>) -> Vec<f32> {
    counters::add_host_read();
    let outputs = outputs.cast(DType::F32);
    let waiting = profile::waiting();
    let data = outputs.into_data();
    drop(waiting);
    data.try_to_vec().expect("cast to f32")
}
