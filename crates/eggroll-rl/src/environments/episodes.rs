//! Batches of episodes: live environments, returns, and restarts after an end.

use crate::{EpisodeKey, TensorEnvironment};
use burn::tensor::{Bool, Device, Tensor};

/// The behavior of an environment whose episode has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOfEpisode {
    /// Its state, return and length stay as they are: one episode for each environment.
    Freeze,
    /// Another episode begins at once.
    Reset,
}

/// A batch of environments in the midst of their episodes, all of it on the device: no step reads anything to the host.
///
/// An episode ends by itself or at the environment's time limit. [`EndOfEpisode`] says what follows. With `Freeze` an environment
/// stays as it is. With `Reset` it continues from a new state, drawn from its key and the step of the reset, so that the whole run
/// is a function of the keys.
///
/// # Example
///
/// ```
/// use burn::tensor::{Bool, Device, Tensor};
/// use eggroll_rl::{CartPole, EndOfEpisode, EpisodeKey, Episodes};
///
/// let (environment, device) = (CartPole::new(), Device::flex());
/// let keys: Vec<EpisodeKey> = (0..3).map(|episode| EpisodeKey::new(0, 0, episode)).collect();
/// let mut episodes = Episodes::new(&environment, keys, EndOfEpisode::Freeze, &device);
/// while episodes.any_live() {
///     let _observations = episodes.observe(&environment); // [3, 4], for a policy
///     episodes.step(&environment, Tensor::ones([3, 1], &device)); // always to the right
/// }
/// let returns = episodes.returns().into_data().try_to_vec::<f32>().unwrap();
/// assert!(returns.iter().all(|steps| (5.0..15.0).contains(steps)));
/// ```
#[derive(Clone, Debug)]
pub struct Episodes {
    keys: Vec<EpisodeKey>,
    /// Steps so far.
    steps: usize,
    state: Tensor<2>,
    returns: Tensor<1>,
    lengths: Tensor<1>,
    end: End,
}

/// [`EndOfEpisode`] with what it keeps.
#[derive(Clone, Debug)]
enum End {
    /// 1 for who is live, 0 for who has ended: `[environments]`.
    Freeze { live: Tensor<1> },
    /// How many episodes have ended: `[environments]`.
    Reset { ended: Tensor<1> },
}

impl Episodes {
    /// Begins an episode for each key.
    ///
    /// # Panics
    ///
    /// Panics if there are no keys, if episodes have no steps, or states no floats.
    #[track_caller]
    pub fn new(
        environment: &(impl TensorEnvironment + ?Sized),
        keys: Vec<EpisodeKey>,
        end: EndOfEpisode,
        device: &Device,
    ) -> Self {
        assert!(!keys.is_empty(), "{}: an episode needs a key, and there are 0 keys", environment.name());
        assert!(environment.time_limit() > 0, "{}: time_limit must be at least 1, not 0", environment.name());
        let state = environment.reset(&keys, device);
        let zeros = Tensor::zeros([keys.len()], device);
        let end = match end {
            EndOfEpisode::Freeze => End::Freeze { live: zeros.ones_like() },
            EndOfEpisode::Reset => End::Reset { ended: zeros.clone() },
        };
        Self { keys, steps: 0, state, returns: zeros.clone(), lengths: zeros, end }
    }

    /// The observations: `[environments, observation_size]`.
    pub fn observe(&self, environment: &(impl TensorEnvironment + ?Sized)) -> Tensor<2> {
        environment.observe(self.state.clone())
    }

    /// One step of all environments but the frozen ones.
    ///
    /// # Shapes
    ///
    /// - actions: `[environments, action_size]`
    ///
    /// # Panics
    ///
    /// Panics if the shape does not fit, with the state's.
    #[track_caller]
    pub fn step(&mut self, environment: &(impl TensorEnvironment + ?Sized), actions: Tensor<2>) {
        let transition = environment.step(self.state.clone(), actions);
        self.steps += 1;
        let limit = environment.time_limit();
        match &mut self.end {
            End::Freeze { live } => {
                let frozen = live.clone().equal_elem(0.0);
                self.returns = self.returns.clone() + transition.reward.mask_fill(frozen.clone(), 0.0);
                self.lengths = self.lengths.clone() + live.clone();
                self.state = transition.state.mask_where(for_rows(frozen, &self.state), self.state.clone());
                // All have begun together, so the time limit is the same step for all.
                *live = if self.steps < limit {
                    live.clone().mask_fill(transition.terminated, 0.0)
                } else {
                    live.zeros_like()
                };
            }
            End::Reset { ended } => {
                let lengths = self.lengths.clone() + 1.0;
                let over = transition.terminated.bool_or(lengths.clone().greater_equal_elem(limit as f32));
                let keys: Vec<EpisodeKey> = self.keys.iter().map(|key| key.restarted(self.steps as u32)).collect();
                let fresh = environment.reset(&keys, &self.state.device());
                self.returns = self.returns.clone() + transition.reward;
                self.lengths = lengths.mask_fill(over.clone(), 0.0);
                *ended = ended.clone() + over.clone().float();
                self.state = transition.state.mask_where(for_rows(over, &fresh), fresh);
            }
        }
    }

    /// States: `[environments, state_size]`.
    pub fn state(&self) -> Tensor<2> {
        self.state.clone()
    }

    /// The rewards of every environment since [`new`](Self::new), over all its episodes: `[environments]`.
    pub fn returns(&self) -> Tensor<1> {
        self.returns.clone()
    }

    /// Steps of the episode that every environment is in, or of the one that it has ended: `[environments]`.
    pub fn lengths(&self) -> Tensor<1> {
        self.lengths.clone()
    }

    /// 1 for who is in an episode, 0 for who is frozen: `[environments]`.
    pub fn live(&self) -> Tensor<1> {
        match &self.end {
            End::Freeze { live } => live.clone(),
            End::Reset { ended } => ended.ones_like(),
        }
    }

    /// How many episodes have ended: `[environments]`.
    pub fn ended(&self) -> Tensor<1> {
        match &self.end {
            End::Freeze { live } => -live.clone() + 1.0,
            End::Reset { ended } => ended.clone(),
        }
    }

    /// Whether any environment is in an episode: one read to the host.
    pub fn any_live(&self) -> bool {
        self.live().max().into_scalar::<f32>() > 0.0
    }
}

/// A flag of every environment for all floats of its state: `[environments]` to `[environments, state_size]`.
fn for_rows(flags: Tensor<1, Bool>, state: &Tensor<2>) -> Tensor<2, Bool> {
    flags.unsqueeze_dim::<2>(1).expand(state.dims())
}
