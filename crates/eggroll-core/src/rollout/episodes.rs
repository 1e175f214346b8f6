//! Input and output of a kernel of episodes.

use super::program::{Program, Symbol};
use crate::rollout::layer::ChainLayer;
use burn::module::ParamId;

/// The physics of an environment, as programs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dynamics {
    state: usize,
    action: usize,
    observation: Program,
    transition: Program,
}

/// The result of a step.
#[derive(Clone, Debug)]
pub struct SymbolicStep {
    /// The next state.
    pub state: Vec<Symbol>,
    /// The reward.
    pub reward: Symbol,
    /// 1 if the episode has ended by itself, else 0.
    pub ended: Symbol,
}

impl Dynamics {
    /// The programs of an environment with states of `state` floats and actions of `action` floats: one, the index, for discrete
    /// actions.
    ///
    /// # Panics
    ///
    /// Panics if `step` returns a state of another size.
    #[track_caller]
    pub fn trace(
        [state, action]: [usize; 2],
        observe: impl FnOnce(&[Symbol]) -> Vec<Symbol>,
        step: impl FnOnce(&[Symbol], &[Symbol]) -> SymbolicStep,
    ) -> Self {
        let observation = Program::trace(state, observe);
        let transition = Program::trace(state + action, |inputs| {
            let (now, action) = inputs.split_at(state);
            let SymbolicStep { state: mut outputs, reward, ended } = step(now, action);
            assert!(outputs.len() == state, "dynamics: a state of {} floats after one of {state}", outputs.len());
            outputs.extend([reward, ended]);
            outputs
        });
        Self { state, action, observation, transition }
    }

    /// Floats of a state.
    pub fn state_size(&self) -> usize {
        self.state
    }

    /// Floats of an action.
    pub fn action_size(&self) -> usize {
        self.action
    }

    /// From a state to its observation.
    pub fn observation(&self) -> &Program {
        &self.observation
    }

    /// From a state and an action to the next state, the reward, and 1 if the episode has ended by itself, else 0.
    pub fn transition(&self) -> &Program {
        &self.transition
    }
}

/// How outputs become actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Head {
    /// The index of the highest output, the first of equals.
    Highest,
    /// An index drawn with the probabilities `softmax(outputs)`.
    Sampled,
    /// The outputs, clamped to the bounds.
    Clamped,
    /// `low + (high − low)·(tanh(output) + 1)/2`
    Tanh,
}

/// Episodes that every member runs.
#[derive(Clone, Copy, Debug)]
pub struct DeviceEpisodes<'a> {
    /// The environment.
    pub dynamics: &'a Dynamics,
    /// How outputs become actions.
    pub head: Head,
    /// Outputs of a policy.
    pub outputs: usize,
    /// Bounds of continuous actions.
    pub bounds: [f32; 2],
    /// The states that episodes begin with: `[episodes, state_size]`.
    pub starts: &'a [f32],
    /// For sampled heads, the source of every episode's draws: words `[seed low, seed high, c₂, c₃]`. Both members of pair `q` at step `s`
    /// use the high 24 bits of word `q mod 4` of the Philox block at the counter `(q / 4, s, c₂, c₃)`.
    pub draws: &'a [[u32; 4]],
    /// How observations are normalized, if they are.
    pub scaling: Option<DeviceScaling<'a>>,
    /// Steps that an action lasts.
    pub action_repeat: usize,
    /// Steps after which an episode is cut off.
    pub time_limit: usize,
}

/// Policies see `clamp((o − mean)·scale, −limit, limit)` of an observation `o`.
#[derive(Clone, Copy, Debug)]
pub struct DeviceScaling<'a> {
    /// For every value of an observation.
    pub mean: &'a [f32],
    /// For every value of an observation.
    pub scale: &'a [f32],
    /// For every value of an observation, the origin of the distances that are summed up. It is near the observations, so the sums do not lose
    /// their spread to rounding.
    pub center: &'a [f32],
    /// Bound of the scaled observation.
    pub limit: f32,
    /// Observations with a value farther from the mean, or NaN, are in no sum.
    pub farthest: f32,
}

/// The outcome of episodes.
#[derive(Clone, Debug)]
pub struct DeviceRows {
    /// For every episode, member after member: its return and its length. With a scaling, the sums of `d = o − center` follow for
    /// every value of an observation, then the sums of `d²`, then the number of observations left out of them.
    pub rows: Vec<f32>,
    /// The parameters of the policy.
    pub parameters: Vec<ParamId>,
}

impl DeviceEpisodes<'_> {
    /// Episodes of a member.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() / self.dynamics.state.max(1)
    }

    /// Refuses layers that do not fit the environment, and parts of wrong sizes.
    #[track_caller]
    pub(crate) fn check(&self, layers: &[ChainLayer]) {
        let seen = self.dynamics.observation.outputs().len();
        let mut width = seen;
        for layer in layers {
            let [d_input, d_output] = layer.weight.shape().dims();
            let bias = layer.bias.map_or(d_output, |bias| bias.shape()[0]);
            assert!(
                d_input == width && bias == d_output,
                "rollout: a layer of shape [{d_input}, {d_output}] with {bias} biases for {width} values"
            );
            width = d_output;
        }
        let (episodes, outputs) = (self.count(), self.outputs);
        assert!(!layers.is_empty() && width == outputs, "rollout: {width} outputs where {outputs} are needed");
        let lengths = |scaling: DeviceScaling| [scaling.mean.len(), scaling.scale.len(), scaling.center.len()];
        let scaling = self.scaling.is_none_or(|scaling| lengths(scaling) == [seen; 3]);
        let draws = self.head != Head::Sampled || self.draws.len() == episodes;
        assert!(
            scaling && draws && self.starts.len() == episodes * self.dynamics.state && episodes > 0,
            "rollout: episodes of other sizes than the environment's: {self:?}"
        );
        assert!(self.action_repeat > 0 && self.time_limit > 0, "rollout: episodes without steps: {self:?}");
        let action = if matches!(self.head, Head::Highest | Head::Sampled) { 1 } else { outputs };
        assert!(
            action == self.dynamics.action,
            "rollout: actions of {action} where the environment takes {}",
            self.dynamics.action
        );
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::rollout::layer::ChainActivation;
    use burn::module::Param;
    use burn::tensor::{Device, Tensor, TensorData};

    /// Checks episodes of an environment with one number and one action, for a policy of one layer.
    fn check(head: Head, time_limit: usize, starts: &[f32]) {
        let step = |state: &[Symbol], action: &[Symbol]| SymbolicStep {
            state: vec![state[0].clone()],
            reward: action[0].clone(),
            ended: action[0].clone(),
        };
        let dynamics = Dynamics::trace([1, 1], |state| state.to_vec(), step);
        let weight = Param::from_tensor(Tensor::from_data(TensorData::zeros::<f32, _>([1, 2]), &Device::flex()));
        let layer = ChainLayer { weight: &weight, bias: None, activation: ChainActivation::Identity };
        let (bounds, draws) = ([0.0; 2], vec![[0; 4]; starts.len()]);
        let episodes = DeviceEpisodes {
            dynamics: &dynamics,
            head,
            outputs: 2,
            bounds,
            starts,
            draws: &draws,
            scaling: None,
            action_repeat: 1,
            time_limit,
        };
        episodes.check(&[layer]);
    }

    #[test]
    fn takes_what_fits() {
        check(Head::Highest, 5, &[0.0, 1.0]);
    }

    #[test]
    #[should_panic(expected = "rollout: episodes without steps")]
    fn refuses_no_steps() {
        check(Head::Highest, 0, &[0.0]);
    }

    #[test]
    #[should_panic(expected = "rollout: episodes of other sizes than the environment's")]
    fn refuses_no_episodes() {
        check(Head::Sampled, 5, &[]);
    }

    #[test]
    #[should_panic(expected = "rollout: actions of 2 where the environment takes 1")]
    fn refuses_other_actions() {
        check(Head::Clamped, 5, &[0.0]);
    }
}
