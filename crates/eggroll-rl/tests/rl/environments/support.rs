//! Environments, devices, random numbers, and one step in either form.

use burn::tensor::{Device, Tensor, TensorData};
use eggroll_core::rng::philox::philox4x32;
use eggroll_rl::{
    Acrobot, ActionSpace, Bandit, CartPole, EpisodeKey, Memory, MountainCar, MountainCarContinuous, Pendulum,
    TensorEnvironment,
};

/// An environment of any kind.
pub type Environment = Box<dyn TensorEnvironment>;

/// Those of Gymnasium, with a bound of each number of states to try.
pub fn classic() -> Vec<(Environment, Vec<f32>)> {
    use std::f32::consts::PI;
    vec![
        (Box::new(CartPole::new()), vec![3.0, 3.0, 0.5, 3.0]),
        (Box::new(Pendulum::new()), vec![20.0, 8.0]),
        (Box::new(Acrobot::new()), vec![PI, PI, 4.0 * PI, 9.0 * PI]),
        (Box::new(MountainCar::new()), vec![1.2, 0.07]),
        (Box::new(MountainCarContinuous::new()), vec![1.2, 0.07]),
    ]
}

/// Those that only policies with a memory solve.
pub fn recurrent() -> Vec<Environment> {
    vec![
        Box::new(Bandit::new(2, 20)),
        Box::new(Bandit::new(5, 7)),
        Box::new(Memory::new(2, 1)),
        Box::new(Memory::new(4, 6)),
    ]
}

/// All of them.
pub fn all() -> Vec<Environment> {
    classic().into_iter().map(|(environment, _)| environment).chain(recurrent()).collect()
}

/// Keys of one stream.
pub fn keys(count: u32) -> Vec<EpisodeKey> {
    (0..count).map(|episode| EpisodeKey::new(11, 4, episode)).collect()
}

/// A number in `[0, 1)` that looks random.
pub fn unit(index: usize, stream: u32) -> f32 {
    (philox4x32([index as u32, stream, 0, u32::MAX], [5; 2])[0] >> 8) as f32 / (1 << 24) as f32
}

/// A random action for every environment, row by row; of continuous ones some out of bounds.
pub fn random_actions(environment: &dyn TensorEnvironment, environments: usize, stream: u32) -> Vec<f32> {
    let action = |index: usize| match environment.actions() {
        ActionSpace::Discrete(actions) => (unit(index, stream) * actions as f32).floor(),
        ActionSpace::Continuous { low, high, .. } => (low + (high - low) * unit(index, stream)) * 1.2,
    };
    (0..environments * environment.actions().size()).map(action).collect()
}

/// What follows a step of some environments, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Stepped {
    pub state: Vec<f32>,
    pub observation: Vec<f32>,
    pub reward: Vec<f32>,
    pub terminated: Vec<bool>,
}

/// A step in the form for hosts.
pub fn step_host(environment: &dyn TensorEnvironment, state: &[f32], actions: &[f32]) -> Stepped {
    let (mut state, mut observation, mut reward, mut terminated) = (state.to_vec(), vec![], vec![], vec![]);
    let actions = actions.chunks_exact(environment.actions().size());
    for (state, action) in state.chunks_exact_mut(environment.state_size()).zip(actions) {
        let transition = environment.step_host(state, action);
        let mut seen = vec![f32::NAN; environment.observation_size()];
        environment.observe_host(state, &mut seen);
        observation.extend(seen);
        reward.push(transition.reward);
        terminated.push(transition.terminated);
    }
    Stepped { state, observation, reward, terminated }
}

/// A step in the form for tensors.
pub fn step_tensor(environment: &dyn TensorEnvironment, state: &[f32], actions: &[f32], device: &Device) -> Stepped {
    let environments = state.len() / environment.state_size();
    let state = matrix(state, environments, device);
    let transition = environment.step(state, matrix(actions, environments, device));
    assert_eq!(transition.reward.dims(), [environments]);
    let observation = environment.observe(transition.state.clone());
    assert_eq!(observation.dims(), [environments, environment.observation_size()]);
    Stepped {
        state: values(transition.state),
        observation: values(observation),
        reward: values(transition.reward),
        terminated: transition.terminated.into_data().iter::<bool>().collect(),
    }
}

/// Rows as a tensor.
pub fn matrix(values: &[f32], rows: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [rows, values.len() / rows]), device)
}

/// The values of a tensor in row-major order.
pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("an f32 tensor")
}

/// Every device that can be tested, with the largest difference in sines and cosines from the host's, relative to 1 and the
/// value: none on Flex; one rounding of a number on a CPU; what Vulkan allows on a device.
pub fn devices() -> Vec<(Device, f64)> {
    vec![
        #[cfg(feature = "flex")]
        (Device::flex(), 0.0),
        #[cfg(feature = "ndarray")]
        (ndarray(), 1e-6),
        #[cfg(feature = "wgpu")]
        (Device::wgpu(burn::tensor::DeviceKind::DefaultDevice), 2e-3),
    ]
}

#[cfg(feature = "ndarray")]
#[expect(deprecated, reason = "Burn deprecates the backend; users still ask for it")]
fn ndarray() -> Device {
    Device::ndarray()
}
