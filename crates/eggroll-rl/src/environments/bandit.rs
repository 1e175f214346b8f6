//! Arms of unknown worth: a task for policies that remember.

use super::states::{check, columns, counting, flat};
use crate::{ActionSpace, EpisodeKey, HostTransition, TensorEnvironment, Transition};
use burn::tensor::Tensor;

// Where a state holds how often was pulled, the last arm, what it gave, and the arms' probabilities; behind these is a number for every
// pull.
const PULLED: usize = 0;
const LAST: usize = 1;
const GAIN: usize = 2;
const ARMS: usize = 3;
/// The last arm before the first pull.
const NONE: f32 = -1.0;

/// A bandit whose arms change from episode to episode: which arm is best has to be found out, and remembered, within the episode.
///
/// At the reset every arm `k` draws the probability `p_k` of a reward, and every pull `t` a number `u_t`, all uniform in `[0, 1)`. Pulling arm
/// `a` gives `1` if `u_t < p_a`, else `0`. So nothing is drawn later, and members that see the same episode differ by their choices only.
///
/// The observation is the last arm as one-hot, all 0 before the first pull, the last reward, and the share of pulls that are done: `arms + 2`
/// numbers. An episode ends after `pulls` steps. Pulling at random gains `pulls/2` on average, knowing the best arm
/// `pulls·arms/(arms + 1)`.
///
/// # Example
///
/// ```
/// use eggroll_rl::{Bandit, EpisodeKey, TensorEnvironment};
///
/// let bandit = Bandit::new(2, 10);
/// let mut state = vec![0.0; bandit.state_size()];
/// bandit.reset_host(EpisodeKey::new(0, 0, 0), &mut state);
/// let gained: f32 = (0..10).map(|_| bandit.step_host(&mut state, &[1.0]).reward).sum();
/// let mut observation = [0.0; 4];
/// bandit.observe_host(&state, &mut observation);
/// assert_eq!(observation[..2], [0.0, 1.0]);
/// assert!((0.0..=10.0).contains(&gained) && observation[3] == 1.0);
/// ```
///
/// # References
///
/// Wang et al., "Learning to reinforcement learn", arXiv 1611.05763; Duan et al., "RL²", arXiv 1611.02779.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandit {
    arms: usize,
    pulls: usize,
}

impl Bandit {
    /// A bandit with a number of arms, pulled a number of times.
    ///
    /// # Panics
    ///
    /// Panics if there are fewer than two arms or no pulls.
    #[track_caller]
    pub fn new(arms: usize, pulls: usize) -> Self {
        assert!(arms >= 2 && pulls >= 1, "a bandit of {arms} arms and {pulls} pulls");
        Self { arms, pulls }
    }

    /// Where the numbers of pulls begin.
    fn numbers(&self) -> usize {
        ARMS + self.arms
    }
}

impl TensorEnvironment for Bandit {
    fn name(&self) -> &'static str {
        "Bandit"
    }

    fn state_size(&self) -> usize {
        self.numbers() + self.pulls
    }

    fn observation_size(&self) -> usize {
        self.arms + 2
    }

    fn actions(&self) -> ActionSpace {
        ActionSpace::Discrete(self.arms)
    }

    fn time_limit(&self) -> usize {
        self.pulls
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        let [pulled, last, gain] = columns(&state);
        let last = (last - counting(self.arms, &state.device())).equal_elem(0.0).float(); // [environments, arms]
        Tensor::cat(vec![last, gain, pulled * (1.0 / self.pulls as f32)], 1)
    }

    #[track_caller]
    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        check(self, &state, &actions);
        let [pulled] = columns(&state);
        // A step after the end gets the last number again.
        let number = pulled.clone().clamp_max(self.pulls as f32 - 1.0) + self.numbers() as f32;
        let places = Tensor::cat(vec![actions.clone() + ARMS as f32, number], 1).int();
        let [probability, number] = columns(&state.clone().gather(1, places)); // from [environments, 2]
        let reward = number.lower(probability).float();
        let pulled = pulled + 1.0;
        let ended = pulled.clone().greater_equal_elem(self.pulls as f32);
        let drawn = state.narrow(1, ARMS, self.arms + self.pulls);
        let state = Tensor::cat(vec![pulled, actions, reward.clone(), drawn], 1); // [environments, state_size]
        Transition { state, reward: flat(reward), terminated: flat(ended) }
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        (state[PULLED], state[LAST], state[GAIN]) = (0.0, NONE, 0.0);
        key.fill_uniform(0.0, 1.0, &mut state[ARMS..]);
    }

    #[inline]
    fn has_host_form(&self) -> bool {
        true
    }

    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        let (arms, rest) = observation.split_at_mut(self.arms);
        for (arm, one) in arms.iter_mut().enumerate() {
            *one = if state[LAST] == arm as f32 { 1.0 } else { 0.0 };
        }
        rest.copy_from_slice(&[state[GAIN], state[PULLED] * (1.0 / self.pulls as f32)]);
    }

    #[inline]
    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        let number = state[self.numbers() + (state[PULLED] as usize).min(self.pulls - 1)];
        let reward = if number < state[ARMS + action[0] as usize] { 1.0 } else { 0.0 };
        (state[PULLED], state[LAST], state[GAIN]) = (state[PULLED] + 1.0, action[0], reward);
        HostTransition { reward, terminated: state[PULLED] >= self.pulls as f32 }
    }
}
