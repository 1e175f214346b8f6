//! Random hands, devices, and one step in either form.

use burn::tensor::{Device, Tensor, TensorData};
use eggroll::core::rng::{PhiloxRng, philox::philox4x32};
use eggroll::rl::{EpisodeKey, TensorEnvironment};
use eggroll_examples::texas42::{Bid, Contract, Deal, Domino, DominoSet, HandState, Texas42, Trumps};
use rand::{Rng, RngExt, SeedableRng};

/// Random words, and what is chosen by them.
pub struct Words(PhiloxRng);

impl Words {
    pub fn new(seed: u64) -> Self {
        Self(PhiloxRng::seed_from_u64(seed))
    }

    pub fn next(&mut self) -> u32 {
        self.0.next_u32()
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    pub fn pick(&mut self, set: DominoSet) -> Domino {
        let number = self.below(set.len());
        set.iter().nth(number).expect("a set that is not empty")
    }
}

pub fn domino(high: u8, low: u8) -> Domino {
    Domino::new(high, low).expect("pips up to 6")
}

pub fn set(dominoes: &[(u8, u8)]) -> DominoSet {
    dominoes.iter().map(|&(high, low)| domino(high, low)).collect()
}

/// A random deal with a random declarer and one of the nine trumps.
pub fn start(words: &mut Words, trumps: Trumps) -> HandState {
    let contract = Contract::new(words.below(4), trumps, Bid::LOWEST);
    HandState::new(Deal::random(&mut || words.next()), contract)
}

/// A state after random legal plays, with the plays.
pub fn after(words: &mut Words, trumps: Trumps, plays: usize) -> (HandState, Vec<Domino>) {
    let mut state = start(words, trumps);
    let mut played = Vec::new();
    for _ in 0..plays {
        let domino = words.pick(state.legal_moves());
        state.play(domino).expect("a legal domino");
        played.push(domino);
    }
    (state, played)
}

/// Keys of one stream.
pub fn keys(count: u32) -> Vec<EpisodeKey> {
    (0..count).map(|episode| EpisodeKey::new(11, 4, episode)).collect()
}

/// A number in `[0, 1)` that looks random.
pub fn unit(index: usize, stream: u32) -> f32 {
    (philox4x32([index as u32, stream, 0, u32::MAX], [5; 2])[0] >> 8) as f32 / (1 << 24) as f32
}

/// State, observation and reward after a step of some hands, row by row, and which are over.
pub type SteppedHands = ([Vec<f32>; 3], Vec<bool>);

/// A step in the form for hosts.
pub fn step_host(hands: &Texas42, state: &[f32], actions: &[f32]) -> SteppedHands {
    let (mut state, mut observation, mut reward, mut terminated) = (state.to_vec(), vec![], vec![], vec![]);
    let actions = actions.chunks_exact(hands.actions().size());
    for (state, action) in state.chunks_exact_mut(hands.state_size()).zip(actions) {
        let transition = hands.step_host(state, action);
        let mut seen = vec![f32::NAN; hands.observation_size()];
        hands.observe_host(state, &mut seen);
        observation.extend(seen);
        reward.push(transition.reward);
        terminated.push(transition.terminated);
    }
    ([state, observation, reward], terminated)
}

/// A step in the form for tensors.
pub fn step_tensor(hands: &Texas42, state: &[f32], actions: &[f32], device: &Device) -> SteppedHands {
    let count = state.len() / hands.state_size();
    let transition = hands.step(matrix(state, count, device), matrix(actions, count, device));
    let observation = hands.observe(transition.state.clone());
    let terminated = transition.terminated.into_data().iter::<bool>().collect();
    ([values(transition.state), values(observation), values(transition.reward)], terminated)
}

/// Rows as a tensor.
pub fn matrix(values: &[f32], rows: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [rows, values.len() / rows]), device)
}

/// The values of a tensor in row-major order.
pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("an f32 tensor")
}

/// Every device that can be tested.
pub fn devices() -> Vec<Device> {
    vec![
        Device::flex(),
        #[cfg(feature = "wgpu")]
        Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
    ]
}
