//! How outputs become actions, and what is drawn for them.

use crate::rollouts::{MEMBERS, mlp, outcome, strategy};
use burn::nn::activation::ActivationConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_rl::{
    ActionHead, Bandit, CartPole, EvaluationConfig, Pendulum, Policy, RolloutConfig, TensorEnvironment, feed_forward,
};

#[test]
fn sampled_actions_follow_their_probabilities() {
    // A bandit-like check on the head itself: outputs ln 1, ln 2, ln 5 for every row.
    let outputs = Tensor::<2>::from_floats([[1.0f32.ln(), 2.0f32.ln(), 5.0f32.ln()]], &Device::flex());
    let environment = Bandit::new(3, 200);
    let policy = feed_forward(|x: Tensor<2>| outputs.clone().repeat_dim(0, x.dims()[0]) + x.sum_dim(1) * 0.0);
    let counts = std::sync::Mutex::new([0usize; 3]);
    let rollouts = RolloutConfig::new().with_head(ActionHead::Sampled).init(environment).expect("valid");
    let watching = feed_forward(|x: Tensor<2>| {
        // The observation begins with the last action, one-hot.
        let rows: Vec<f32> = x.clone().into_data().try_to_vec().expect("f32");
        for row in rows.chunks_exact(environment.observation_size()) {
            (0..3).filter(|arm| row[*arm] == 1.0).for_each(|arm| counts.lock().expect("no panic")[arm] += 1);
        }
        Policy::forward(&policy, x, ()).0
    });
    rollouts.evaluate_model(&watching, &EvaluationConfig::new(20), &Device::flex());
    let counts = counts.into_inner().expect("no panic");
    let total = counts.iter().sum::<usize>() as f64;
    for (count, probability) in counts.into_iter().zip([0.125, 0.25, 0.625]) {
        let deviation = (probability * (1.0 - probability) * total).sqrt();
        assert!((count as f64 - probability * total).abs() < 4.0 * deviation, "{count} of {total}: {probability}");
    }
}

/// The returns of all members under noise that is too small to change an action.
fn still<E: TensorEnvironment>(environment: E, config: &RolloutConfig) -> Vec<f32> {
    let policy = mlp(&environment, ActivationConfig::Tanh);
    let config_of_strategy = strategy(EggrollConfig::new(), &policy, None).config().clone().with_sigma(1e-30);
    let rollouts = config.init(environment).expect("valid");
    outcome(&rollouts, &mut config_of_strategy.init(&policy), &policy).episodes.returns().to_vec()
}

/// Common random numbers: members of a pair that do not differ run the same episodes, whatever makes their actions.
#[test]
fn members_of_a_pair_draw_the_same_actions() {
    for fused in [true, false] {
        let config = RolloutConfig::new().with_fused(fused);
        let with = |head| config.clone().with_head(head);
        let greedy = still(CartPole::new(), &config);
        let sampled = still(CartPole::new(), &with(ActionHead::Sampled));
        let clamped = still(Pendulum::new(), &config);
        let tanh = still(Pendulum::new(), &with(ActionHead::Tanh));
        for (head, returns) in [("greedy", &greedy), ("sampled", &sampled), ("clamped", &clamped), ("tanh", &tanh)] {
            assert_eq!(returns.len(), MEMBERS);
            assert!(returns.chunks(2).all(|pair| pair[0] == pair[1]), "{head}, fused {fused}: {returns:?}");
        }
        let differ = |returns: &[f32]| returns.iter().any(|other| *other != returns[0]);
        assert!(differ(&sampled), "canary: pairs draw for themselves");
        assert!(!differ(&greedy), "nothing is drawn");
    }
}
