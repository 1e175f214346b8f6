//! Episodes as tensors, for every backend.

use super::config::{RolloutConfig, uniform};
use super::head::ActionHead;
use super::normaliser::DeviceScaling;
use super::policy::Policy;
use burn::tensor::{DType, Device, Tensor};
use eggroll_core::{counters, profile};
use eggroll_envs::{EndOfEpisode, EpisodeKey, Episodes, TensorEnvironment};

/// What the episodes of a chunk need.
pub(super) struct TensorRun<'a, E> {
    pub(super) environment: &'a E,
    pub(super) config: &'a RolloutConfig,
    pub(super) scaling: Option<DeviceScaling>,
    pub(super) device: Device,
}

impl<E: TensorEnvironment> TensorRun<'_, E> {
    /// Runs an episode for every key; the keys are those of members from `first` on, `each` for each. Returns the rows of
    /// [`EpisodeStatistics::from_rows`](super::EpisodeStatistics).
    pub(super) fn run<P: Policy>(&self, policy: &P, keys: &[EpisodeKey], first: usize, each: usize) -> Vec<f32> {
        let repeat = self.config.action_repeat;
        let mut episodes = Episodes::new(self.environment, keys.to_vec(), EndOfEpisode::Freeze, &self.device);
        let mut state = policy.initial_state(keys.len(), &self.device);
        let mut sums: Option<Tensor<2>> = None;
        for step in 0..self.environment.time_limit().div_ceil(repeat) {
            if step > 0 && step % self.config.check_every == 0 && !any_live(&episodes) {
                break;
            }
            let observations = episodes.observe(self.environment); // [rows, observation_size]
            let observations = match &self.scaling {
                None => observations,
                Some(scaling) => {
                    let (normalised, seen) = scaling.apply(observations, episodes.live());
                    sums = Some(match sums.take() {
                        None => seen,
                        Some(sums) => sums + seen,
                    });
                    normalised
                }
            };
            let (outputs, next) = policy.forward(observations, state);
            state = next;
            self.check_outputs(&outputs, keys.len());
            let member = |row| first + row / each;
            let actions = self.actions(outputs, keys, member, step);
            for _ in 0..repeat {
                episodes.step(self.environment, actions.clone());
            }
        }
        read_rows(&episodes, sums)
    }

    fn actions(
        &self,
        outputs: Tensor<2>,
        keys: &[EpisodeKey],
        member: impl Fn(usize) -> usize,
        step: usize,
    ) -> Tensor<2> {
        let draws = (self.config.head == ActionHead::Sampled).then(|| {
            let draw = |(row, key): (usize, &EpisodeKey)| uniform(*key, member(row), step);
            let draws: Vec<f32> = keys.iter().enumerate().map(draw).collect();
            Tensor::<1>::from_floats(draws.as_slice(), &self.device)
        });
        self.config.head.actions(outputs, draws, self.environment.actions())
    }

    #[track_caller]
    fn check_outputs(&self, outputs: &Tensor<2>, rows: usize) {
        let (found, expected) = (outputs.dims(), [rows, self.environment.actions().outputs()]);
        let name = self.environment.name();
        assert!(found == expected, "rollout: the policy returned {found:?} where {name} needs {expected:?}");
    }
}

fn any_live(episodes: &Episodes) -> bool {
    counters::add_host_read();
    let waiting = profile::waiting();
    let live = episodes.any_live();
    drop(waiting);
    live
}

/// Reads `[return, length, sums]` of all episodes at once.
fn read_rows(episodes: &Episodes, sums: Option<Tensor<2>>) -> Vec<f32> {
    counters::add_host_read();
    let columns = [episodes.returns(), episodes.lengths()].map(|column| column.unsqueeze_dim::<2>(1));
    let rows: Tensor<2> = Tensor::cat(columns.into_iter().chain(sums).collect(), 1); // [rows, 2 + 2 · observation_size]
    let waiting = profile::waiting();
    let data = rows.cast(DType::F32).into_data();
    drop(waiting);
    data.try_to_vec().expect("cast to f32")
}
