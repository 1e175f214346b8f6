//! Clones of a policy, fused and on tensors.

use crate::rollouts::{MEMBERS, mlp, outcome, strategy};
use burn::module::Module;
use burn::nn::activation::ActivationConfig;
use eggroll_core::EggrollConfig;
use eggroll_rl::{CartPole, RolloutConfig};
use eggroll_train::{Error, TellError};

#[test]
fn clones_of_a_policy_are_not_trained() {
    for fused in [true, false] {
        let rollouts = RolloutConfig::new().with_fused(fused).init(CartPole::new()).expect("valid");
        let mut policy = mlp(&CartPole::new(), ActivationConfig::Tanh);
        let clone = policy.clone();
        let mut strategy = strategy(EggrollConfig::new(), &policy, None);
        let population = strategy.ask();
        let found = rollouts.evaluate(&population, &clone);
        strategy.tell(&mut policy, population, found.fitness).expect("the clone has the values of the policy");
        // By now it has not.
        let population = strategy.ask();
        let found = rollouts.evaluate(&population, &clone);
        let told = strategy.tell(&mut policy, population, found.fitness);
        assert!(matches!(told, Err(Error::Tell(TellError::OtherValues(_)))), "{fused}: {told:?}");

        let found = outcome(&rollouts, &mut strategy, &clone.no_grad());
        assert!(found.episodes.returns().windows(2).all(|pair| pair[0] == pair[1]), "{fused}: no noise");
        assert_eq!(found.episodes.returns().len(), MEMBERS);
    }
}
