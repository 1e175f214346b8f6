//! A cue to be remembered: a task for policies that remember.

use super::states::{check, columns, counting, flat, row};
use crate::{ActionSpace, EpisodeKey, HostTransition, TensorEnvironment, Transition};
use burn::tensor::Tensor;

/// A cue is shown at the first step and asked for `delay` steps later: who forgets it can only guess.
///
/// The observation has a number for each of the `cues` and one more, which asks. At step 0 the cue's is 1, at step `delay` the asking one; all
/// others are 0. The action at step `delay` is the answer, which is worth 1 if it is the cue; it ends the episode, and actions before it
/// change nothing. Guessing gains `1/cues` on average.
///
/// The state is the cue and the step.
///
/// # Example
///
/// ```
/// use eggroll_rl::{Memory, TensorEnvironment};
///
/// let memory = Memory::new(2, 3);
/// let mut state = [1.0, 0.0]; // cue 1
/// let rewards: Vec<f32> = (0..4).map(|_| memory.step_host(&mut state, &[1.0]).reward).collect();
/// assert_eq!(rewards, [0.0, 0.0, 0.0, 1.0]);
/// ```
///
/// # References
///
/// Bakker, "Reinforcement learning with long short-term memory", 2001, whose corridor asks in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    cues: usize,
    delay: usize,
}

impl Memory {
    /// One of a number of cues, asked for after a number of steps.
    ///
    /// # Panics
    ///
    /// Panics if there are fewer than two cues or no delay.
    #[track_caller]
    pub fn new(cues: usize, delay: usize) -> Self {
        assert!(cues >= 2 && delay >= 1, "a memory task of {cues} cues and a delay of {delay}");
        Self { cues, delay }
    }
}

impl TensorEnvironment for Memory {
    fn name(&self) -> &'static str {
        "Memory"
    }

    fn state_size(&self) -> usize {
        2
    }

    fn observation_size(&self) -> usize {
        self.cues + 1
    }

    fn actions(&self) -> ActionSpace {
        ActionSpace::Discrete(self.cues)
    }

    fn time_limit(&self) -> usize {
        self.delay + 1
    }

    /// Nearly every cue is remembered.
    fn solved_at(&self) -> Option<f32> {
        Some(0.95)
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        let [cue, step] = columns(&state);
        // Which number is 1: the cue's, none, or the one that asks.
        let shown = cue.mask_fill(step.clone().greater_elem(0.0), -1.0);
        let shown = shown.mask_fill(step.equal_elem(self.delay as f32), self.cues as f32);
        (shown - counting(self.cues + 1, &state.device())).equal_elem(0.0).float() // [environments, cues + 1]
    }

    #[track_caller]
    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        check(self, &state, &actions);
        let [cue, step] = columns(&state);
        let asked = step.clone().equal_elem(self.delay as f32);
        let reward = actions.equal(cue.clone()).bool_and(asked).float();
        let ended = step.clone().greater_equal_elem(self.delay as f32);
        let state = Tensor::cat(vec![cue, step + 1.0], 1); // [environments, 2]
        Transition { state, reward: flat(reward), terminated: flat(ended) }
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        // The high half of a product is uniform below its factor.
        let cue = (u64::from(key.word(0, 0)) * self.cues as u64) >> 32;
        *row(state) = [cue as f32, 0.0];
    }

    #[inline]
    fn has_host_form(&self) -> bool {
        true
    }

    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        observation.fill(0.0);
        if state[1] <= 0.0 {
            observation[state[0] as usize] = 1.0;
        } else if state[1] == self.delay as f32 {
            observation[self.cues] = 1.0;
        }
    }

    #[inline]
    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        let [cue, step] = row(state);
        let delay = self.delay as f32;
        let reward = if *step == delay && action[0] == *cue { 1.0 } else { 0.0 };
        let terminated = *step >= delay;
        *step += 1.0;
        HostTransition { reward, terminated }
    }
}
