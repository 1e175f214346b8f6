//! Environments in play: a step of all of them, side by side.

use super::moments::{Moments, Scale};
use super::{EpisodeStatistics, HostTask};
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_rl::Environment;
use eggroll_core::{counters, profile};
use eggroll_envs::EpisodeKey;
use rayon::prelude::*;

/// The environments of some members, each in an episode of its own.
pub(super) struct Play<'a, T: HostTask> {
    task: &'a T,
    players: Vec<Player<T::Environment>>,
    /// What the policy sees, row by row.
    observations: Vec<f32>,
    scale: Option<Scale>,
}

/// One environment, and what its episode has come to.
struct Player<E> {
    environment: E,
    total: f64,
    steps: u32,
    end: Option<End>,
    /// Of its observations, if they are normalised.
    moments: Option<Moments>,
}

/// How an episode has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Terminated,
    Truncated,
}

impl<'a, T: HostTask> Play<'a, T> {
    /// Begins the episodes of all keys for each member.
    pub fn begin(task: &'a T, keys: &[EpisodeKey], members: usize, observed: Option<&Moments>) -> Self {
        let size = task.observation_size();
        let scale = observed.and_then(Moments::scale);
        let rows = keys.len() * members;
        let mut observations = vec![0.0; rows * size];
        let players = observations.par_chunks_mut(size).enumerate().map(|(row, observation)| {
            let environment = task.begin(keys[row % keys.len()]);
            let moments = observed.map(|_| Moments::new(size));
            let mut player = Player { environment, total: 0.0, steps: 0, end: None, moments };
            let state = player.environment.state();
            player.see(task, &state, scale.as_ref(), observation);
            player
        });
        Self { task, players: players.collect(), observations, scale }
    }

    pub fn rows(&self) -> usize {
        self.players.len()
    }

    /// What the policy sees: `[rows, observation_size]`. An episode that is over stays at its last observation.
    pub fn observations(&self, device: &Device) -> Tensor<2> {
        let shape = [self.rows(), self.task.observation_size()];
        Tensor::from_data(TensorData::new(self.observations.clone(), shape), device)
    }

    /// A step of all episodes that are not over under the policy's outputs, `[rows, outputs]`. Returns whether all are over now.
    #[track_caller]
    pub fn step(&mut self, outputs: Tensor<2>) -> bool {
        let [rows, width] = outputs.dims();
        assert!(rows == self.rows(), "the policy returned {rows} rows for {} environments", self.rows());
        let outputs = read(outputs);
        let (task, scale) = (self.task, self.scale.as_ref());
        self.players
            .par_iter_mut()
            .zip(self.observations.par_chunks_mut(task.observation_size()))
            .zip(outputs.par_chunks(width))
            .filter(|((player, _), _)| player.end.is_none())
            .for_each(|((player, observation), outputs)| player.step(task, outputs, scale, observation));
        self.players.iter().all(|player| player.end.is_some())
    }

    /// What the episodes have come to, in order. Those that are not over are cut off.
    pub fn end(self) -> EpisodeStatistics {
        let mut statistics = EpisodeStatistics::default();
        for Player { total, steps, end, moments, .. } in self.players {
            statistics.push(total, steps, end == Some(End::Terminated), moments);
        }
        statistics
    }
}

impl<E: Environment> Player<E> {
    fn step<T: HostTask<Environment = E>>(
        &mut self,
        task: &T,
        outputs: &[f32],
        scale: Option<&Scale>,
        observation: &mut [f32],
    ) {
        let result = self.environment.step(task.act(outputs));
        self.total += result.reward;
        self.steps += 1;
        self.end = match (result.done, result.truncated) {
            (true, _) => Some(End::Terminated),
            (false, true) => Some(End::Truncated),
            (false, false) => None,
        };
        if self.end.is_none() {
            self.see(task, &result.next_state, scale, observation);
        }
    }

    /// Writes what the policy sees of a state.
    fn see<T: HostTask<Environment = E>>(
        &mut self,
        task: &T,
        state: &E::State,
        scale: Option<&Scale>,
        observation: &mut [f32],
    ) {
        task.observe(state, observation);
        if let Some(moments) = &mut self.moments {
            moments.add(observation);
        }
        if let Some(scale) = scale {
            scale.apply(observation);
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
    data.try_to_vec::<f32>().expect("cast to f32")
}
