//! Episodes as tensors, for every backend.

use super::config::RolloutConfig;
use super::error::RolloutError;
use super::evaluate::Rollouts;
use super::head::ActionHead;
use super::keys::{MOST_EPISODES, MOST_STEPS, uniform};
use super::normalizer::DeviceScaling;
use super::on_device;
use super::policy::Policy;
use super::runner::{EpisodePlan, Runner};
use crate::{EndOfEpisode, EpisodeKey, Episodes, TensorEnvironment};
use burn::tensor::{DType, Device, Tensor};
use eggroll_core::{counters, profile, scope};
use eggroll_train::{MemberChunk, Population};

impl RolloutConfig {
    /// Rollouts in an environment.
    ///
    /// # Errors
    ///
    /// - [`RolloutError::Zero`] if a count or a size of the environment is 0
    /// - [`RolloutError::TooMany`] for more than 2²⁰ episodes, episodes of more than 2²⁴ steps, or actions that last longer than an episode
    /// - [`RolloutError::Head`], [`RolloutError::Bounds`] or [`RolloutError::Unbounded`] if the head does not fit the environment's actions
    pub fn init<E: TensorEnvironment>(&self, environment: E) -> Result<Rollouts<E>, RolloutError> {
        RolloutError::if_zero(&[
            ("episodes", self.episodes),
            ("action_repeat", self.action_repeat),
            ("check_every", self.check_every),
            ("state_size", environment.state_size()),
            ("observation_size", environment.observation_size()),
            ("time_limit", environment.time_limit()),
            ("the number of actions", environment.actions().outputs()),
        ])?;
        RolloutError::if_above(&[
            ("episodes", self.episodes, MOST_EPISODES),
            ("time_limit", environment.time_limit(), MOST_STEPS),
            ("action_repeat", self.action_repeat, environment.time_limit()),
        ])?;
        RolloutError::unless_fits(self.head, environment.actions())?;
        let size = environment.observation_size();
        Ok(Rollouts::new(self.clone(), environment, self.normalize_observations, size))
    }

    /// On the host without tensors; `population` is `None` for the model as it is.
    #[track_caller]
    fn fused<E: TensorEnvironment, P: Policy>(
        &self,
        plan: &EpisodePlan<'_, E>,
        population: Option<&Population>,
        policy: &P,
    ) -> Option<Vec<f32>> {
        let on_host = population.is_none_or(|population| population.perturbation().table.is_on_host());
        let fused = self.fused && plan.environment.has_host_form() && on_host;
        eggroll_core::with_host_kernels! {
            {
                match population {
                    _ if !fused => None,
                    Some(population) => super::fused::run(self, plan, population, policy),
                    None => super::fused::run_model(self, plan, policy),
                }
            }
            else { let _ = (fused, policy); None }
        }
    }
}

impl<E: TensorEnvironment> Rollouts<E> {
    /// The environment.
    pub fn environment(&self) -> &E {
        &self.environment
    }
}

impl<E: TensorEnvironment> Runner<E> for RolloutConfig {
    fn episodes(&self) -> usize {
        self.episodes
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn action_repeat(&self) -> usize {
        self.action_repeat
    }

    fn first_observation(&self, environment: &E, key: EpisodeKey) -> Vec<f32> {
        let [mut state, mut observation] =
            [environment.state_size(), environment.observation_size()].map(|size| vec![0.0; size]);
        environment.reset_host(key, &mut state);
        environment.observe_host(&state, &mut observation);
        observation
    }

    #[track_caller]
    fn rows<P: Policy>(&self, plan: &EpisodePlan<'_, E>, population: &Population, policy: &P) -> Vec<f32> {
        if let Some(rows) = self.fused(plan, Some(population), policy) {
            return rows;
        }
        if self.fused
            && let Some(rows) = on_device::run(self, plan, Some(population), policy, &population.device())
        {
            return rows;
        }
        let run = TensorRun::new(self, plan, &population.device());
        population.evaluate_with_cached_noise(|members: &MemberChunk| {
            let keys: Vec<EpisodeKey> = (0..members.count()).flat_map(|_| plan.keys.iter().copied()).collect();
            run.run(policy, &keys, members.first(), plan.keys.len())
        })
    }

    #[track_caller]
    fn rows_of_model<P: Policy>(&self, plan: &EpisodePlan<'_, E>, policy: &P, device: &Device) -> Vec<f32> {
        let on_device = || if self.fused { on_device::run(self, plan, None, policy, device) } else { None };
        // A scope perturbs tensors, and nothing else.
        let fused = if scope::is_active() { None } else { self.fused(plan, None, policy).or_else(on_device) };
        fused.unwrap_or_else(|| TensorRun::new(self, plan, device).run(policy, plan.keys, 0, plan.keys.len()))
    }
}

/// What the episodes of a chunk need.
struct TensorRun<'a, E> {
    environment: &'a E,
    config: &'a RolloutConfig,
    scaling: Option<DeviceScaling>,
    device: Device,
}

impl<'a, E: TensorEnvironment> TensorRun<'a, E> {
    fn new(config: &'a RolloutConfig, plan: &EpisodePlan<'a, E>, device: &Device) -> Self {
        let scaling = plan.scaling.map(|scaling| scaling.on_device(device));
        Self { environment: plan.environment, config, scaling, device: device.clone() }
    }

    /// Runs an episode for every key. The keys belong to the members from `first` on, `each` keys a member. Returns the
    /// rows of [`EpisodeStatistics::from_rows`](super::EpisodeStatistics).
    fn run<P: Policy>(&self, policy: &P, keys: &[EpisodeKey], first: usize, each: usize) -> Vec<f32> {
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
                    let (normalized, seen) = scaling.apply(observations, episodes.live());
                    sums = Some(match sums.take() {
                        None => seen,
                        Some(sums) => sums + seen,
                    });
                    normalized
                }
            };
            let (outputs, next) = policy.forward(observations, state);
            state = next;
            self.check_outputs(&outputs, keys.len());
            let pair = |row| (first + row / each) / 2;
            let actions = self.actions(outputs, keys, pair, step);
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
        pair: impl Fn(usize) -> usize,
        step: usize,
    ) -> Tensor<2> {
        let draws = (self.config.head == ActionHead::Sampled).then(|| {
            let draw = |(row, key): (usize, &EpisodeKey)| uniform(*key, pair(row), step);
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
    let rows: Tensor<2> = Tensor::cat(columns.into_iter().chain(sums).collect(), 1); // [rows, 2 + sums of a normalizer]
    let waiting = profile::waiting();
    let data = rows.cast(DType::F32).into_data();
    drop(waiting);
    data.try_to_vec().expect("cast to f32")
}
