//! Environments of no size, no steps, and actions between bounds that cannot be: refused before an episode begins, with the values.

use burn::tensor::{Bool, Device, Tensor};
use eggroll_nn::{Linear, LinearConfig};
use eggroll_rl::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An environment whose episodes end at their limit, and whose reward is the action.
#[derive(Clone, Copy, Debug)]
struct Odd {
    state: usize,
    observation: usize,
    limit: usize,
    actions: ActionSpace,
}

impl Odd {
    const fn new(actions: ActionSpace) -> Self {
        Self { state: 2, observation: 2, limit: 3, actions }
    }
}

impl TensorEnvironment for Odd {
    fn name(&self) -> &'static str {
        "Odd"
    }

    fn state_size(&self) -> usize {
        self.state
    }

    fn observation_size(&self) -> usize {
        self.observation
    }

    fn actions(&self) -> ActionSpace {
        self.actions
    }

    fn time_limit(&self) -> usize {
        self.limit
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        state
    }

    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        let terminated: Tensor<1, Bool> = actions.clone().squeeze_dim::<1>(1).greater_elem(f32::INFINITY);
        Transition { state, reward: actions.squeeze_dim(1), terminated }
    }

    fn reset_host(&self, _key: EpisodeKey, state: &mut [f32]) {
        state.fill(0.5);
    }
}

const TWO: ActionSpace = ActionSpace::Discrete(2);

fn refusal(environment: Odd, head: ActionHead) -> RolloutError {
    RolloutConfig::new().with_head(head).init(environment).expect_err("refused")
}

fn policy(outputs: usize) -> Linear {
    LinearConfig::new(2, outputs).init(&Device::flex())
}

fn episodes(environment: Odd, head: ActionHead, count: usize) -> EpisodeStatistics {
    let policy = policy(environment.actions.outputs());
    let rollouts = RolloutConfig::new().with_head(head).init(environment).expect("valid");
    rollouts.evaluate_model(&feed_forward(|x| policy.forward(x)), &EvaluationConfig::new(count), &Device::flex())
}

#[test]
fn sizes_and_limits_of_nothing_are_refused() {
    let odd = Odd::new(TWO);
    let none = |size| ActionSpace::Continuous { size, low: -1.0, high: 1.0 };
    for (environment, setting) in [
        (Odd { state: 0, ..odd }, "state_size"),
        (Odd { observation: 0, ..odd }, "observation_size"),
        (Odd { limit: 0, ..odd }, "time_limit"),
        (Odd::new(ActionSpace::Discrete(0)), "the number of actions"),
        (Odd::new(none(0)), "the number of actions"),
    ] {
        assert_eq!(refusal(environment, ActionHead::Greedy), RolloutError::Zero { setting });
    }
    let most = 1 << 24;
    let long = RolloutError::TooMany { setting: "time_limit", found: most + 1, most };
    assert_eq!(refusal(Odd { limit: most + 1, ..odd }, ActionHead::Greedy), long);
    // Without rollouts, too.
    let begin = |environment: Odd, keys: usize| {
        let keys = (0..keys as u32).map(|episode| EpisodeKey::new(0, 0, episode)).collect();
        let begin = || Episodes::new(&environment, keys, EndOfEpisode::Freeze, &Device::flex());
        let panic = catch_unwind(AssertUnwindSafe(begin)).expect_err("refused");
        panic.downcast_ref::<String>().expect("a text").clone()
    };
    assert_eq!(begin(Odd { state: 0, ..odd }, 1), "Odd: state_size must be at least 1, not 0");
    assert_eq!(begin(Odd { limit: 0, ..odd }, 1), "Odd: time_limit must be at least 1, not 0");
    assert_eq!(begin(odd, 0), "Odd: an episode needs a key, and there are 0 keys");
}

#[test]
fn no_episodes_have_no_mean() {
    for normalize in [false, true] {
        let config = RolloutConfig::new().with_normalize_observations(normalize);
        let mut rollouts = config.init(Odd::new(TWO)).expect("valid");
        let policy = policy(2);
        let none = EvaluationConfig::new(0);
        let episodes = rollouts.evaluate_model(&feed_forward(|x| policy.forward(x)), &none, &Device::flex());
        assert!(episodes.mean_return().is_nan() && episodes.returns().is_empty());
        rollouts.update_normalizer(&episodes);
        assert_eq!(rollouts.normalizer().map(ObservationNormalizer::count), normalize.then_some(0.0));
    }
}

#[test]
fn bounds_without_actions_are_refused() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let from = |low, high| Odd::new(ActionSpace::Continuous { size: 1, low, high });
    for (low, high) in [(1.0, -1.0), (nan, 1.0), (-1.0, nan), (inf, inf), (-inf, -inf), (inf, -inf)] {
        for head in [ActionHead::Greedy, ActionHead::Tanh] {
            let error = refusal(from(low, high), head).to_string();
            assert_eq!(
                error,
                format!(
                    "rollouts: there are no actions from {low} to {high}: the lower bound must be a number up to the upper one"
                )
            );
        }
    }
    for (low, high) in [(-inf, inf), (0.0, inf), (-inf, 0.0), (f32::MIN, f32::MAX), (3e38, 3.1e38)] {
        let error = refusal(from(low, high), ActionHead::Tanh);
        assert_eq!(error, RolloutError::Unbounded { head: ActionHead::Tanh, low, high });
        assert!(error.to_string().contains(&format!("from {low:e} to {high:e}")), "{error}");
        assert!(!ActionHead::Tanh.fits(from(low, high).actions));
        // Outputs as they are.
        let returns = episodes(from(low, high), ActionHead::Greedy, 2).returns().to_vec();
        assert!(low == 3e38 || returns.iter().all(|value| value.is_finite()), "{low} {high}: {returns:?}");
    }
    let narrow = episodes(from(0.25, 0.25), ActionHead::Tanh, 2);
    assert_eq!(narrow.returns(), [0.75, 0.75]);
}

/// One action is all that a policy can choose, and needs no draw.
#[test]
fn a_single_action_is_taken() {
    for head in [ActionHead::Greedy, ActionHead::Sampled] {
        let episodes = episodes(Odd::new(ActionSpace::Discrete(1)), head, 2);
        assert_eq!((episodes.returns(), episodes.lengths()), (&[0.0; 2][..], &[3; 2][..]));
    }
}
