//! CartPole-v1: an episode has one score, so parts equal means.
//!
//! Backpropagation is REINFORCE (Williams 1992): actions are drawn, and their log-probabilities weighted by discounted returns. Output noise has the
//! same weights: every layer's outputs are moved in every step, and the best action is taken.

use crate::course::Course;
use crate::learn::Method;
use crate::task::Network;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Distribution, Int, Tensor};
use eggroll::nn::Mlp;
use eggroll::prelude::{EpisodeKey, EvaluationConfig, OptimizerConfig, Rollouts, TensorEnvironment};
use eggroll::rl::CartPole;
use eggroll_examples::Failure;
use eggroll_examples::control::{ControlSettings, perceptron};

/// The mean return that solves the task.
pub const SOLVED: f64 = 475.0;
/// Seeds of episodes that are judged by.
const JUDGED: u64 = 1 << 32;
/// Episodes of a step of the methods that are not evolution.
const EPISODES: usize = 16;
/// What a reward is worth a step earlier.
const DISCOUNT: f32 = 0.99;
/// Of output noise.
const SIGMA: f64 = 0.3;

/// The learning rate of the methods that are not evolution, which stays: the best of several with other seeds.
const RATE: f64 = 0.03;

/// Trains until the mean return of 100 episodes is 475, and of 100 others too, or the time is up. Network and evolution are as in the
/// example cartpole.
pub fn learn(method: Method, seed: u64, given: Option<f64>, course: &mut Course) -> Result<(), Failure> {
    let (device, environment) = (Device::flex(), CartPole::new());
    let own = ControlSettings::of(environment.name());
    let settings = ControlSettings { seed, lr: given.unwrap_or(own.lr), ..own };
    let rate = given.unwrap_or(RATE);
    device.seed(seed);
    let mut policy = perceptron(&environment, &settings, &device);
    let rollouts = settings.rollouts(environment.actions()).init(environment)?;
    let mut strategy = settings.strategy().try_init(&policy)?;
    let mut optimizer = OptimizerConfig::default().init();
    let (mut step, mut steps) = (0, 0);
    course.judge(0, judge(&rollouts, &policy, JUDGED))?;
    while !course.is_over() {
        steps += course.train(|| -> Result<u64, Failure> {
            if method == Method::Means {
                let population = strategy.ask();
                let outcome = rollouts.evaluate(&population, &policy);
                strategy.tell(&mut policy, population, outcome.fitness)?;
                return Ok(outcome.episodes.env_steps());
            }
            let episodes = Episodes::play(&policy, method, seed, step);
            let gradients = match method {
                Method::OutputNoise => episodes.noise_gradients(&policy),
                _ => episodes.policy_gradients(&policy),
            };
            policy = optimizer.step(rate, policy.clone(), gradients);
            Ok(episodes.steps())
        })?;
        step += 1;
        let mut figure = judge(&rollouts, &policy, JUDGED + u64::from(step));
        if figure >= SOLVED {
            // Of many tests of an almost good policy one would pass by luck.
            figure = figure.min(judge(&rollouts, &policy, 2 * JUDGED));
        }
        if figure >= SOLVED {
            course.end();
        }
        course.judge(steps, figure)?;
    }
    Ok(())
}

fn judge(rollouts: &Rollouts<CartPole>, policy: &Mlp, seed: u64) -> f64 {
    rollouts.evaluate_model(policy, &EvaluationConfig::new(100).with_seed(seed), &Device::flex()).mean_return()
}

/// Episodes side by side: what every step saw and did.
struct Episodes {
    /// `[episodes, 4]` of every step.
    observations: Vec<Tensor<2>>,
    choices: Vec<Choice>,
    /// 1 while an episode runs: `[episodes]` of every step.
    going: Vec<Vec<f32>>,
}

struct Choice {
    /// `[episodes, 1]`
    actions: Tensor<2, Int>,
    /// Every layer's input, and the noise that its outputs were moved by.
    moved: Vec<(Tensor<2>, Tensor<2>)>,
}

impl Episodes {
    fn play(policy: &Mlp, method: Method, seed: u64, step: u32) -> Self {
        let (environment, device) = (CartPole::new(), Device::flex());
        let keys: Vec<EpisodeKey> = (0..EPISODES).map(|episode| EpisodeKey::new(seed, step, episode as u32)).collect();
        let mut state = environment.reset(&keys, &device);
        let mut alive = vec![1.0; EPISODES];
        let mut played = Self { observations: Vec::new(), choices: Vec::new(), going: Vec::new() };
        while played.going.len() < environment.time_limit() && alive.contains(&1.0) {
            let x = environment.observe(state.clone());
            let choice = match method {
                Method::OutputNoise => Choice::moved(policy, x.clone()),
                _ => Choice::drawn(policy, x.clone()),
            };
            let next = environment.step(state, choice.actions.clone().float());
            let ended: Vec<bool> = next.terminated.into_data().iter().collect();
            state = next.state;
            played.observations.push(x);
            played.choices.push(choice);
            played.going.push(alive.clone());
            alive.iter_mut().zip(ended).filter(|(_, ended)| *ended).for_each(|(alive, _)| *alive = 0.0);
        }
        played
    }

    fn steps(&self) -> u64 {
        self.going.iter().flatten().sum::<f32>() as u64
    }

    /// Discounted returns, less the mean of the episodes that run at the same step, in units of their spread and divided by the number of
    /// steps. The shape is `[steps · episodes, 1]`; values after an episode's end are 0.
    fn advantages(&self) -> Tensor<2> {
        let mut weights = vec![[0.0; EPISODES]; self.going.len()];
        let mut later = [0.0; EPISODES];
        for (weights, going) in weights.iter_mut().zip(&self.going).rev() {
            for (later, going) in later.iter_mut().zip(going) {
                *later = going * (1.0 + DISCOUNT * *later);
            }
            let mean = later.iter().sum::<f32>() / going.iter().sum::<f32>();
            for ((weight, later), going) in weights.iter_mut().zip(later).zip(going) {
                *weight = going * (later - mean);
            }
        }
        let weights = weights.concat();
        let count = self.steps() as f32;
        let spread = (weights.iter().map(|weight| weight * weight).sum::<f32>() / count).sqrt().max(1e-6);
        Tensor::<1>::from_floats(weights.as_slice(), &Device::flex()).unsqueeze_dim(1) / (spread * count)
    }

    /// Gradients of REINFORCE, downwards.
    fn policy_gradients(&self, policy: &Mlp) -> GradientsParams {
        let tracked = policy.clone().train();
        let x = Tensor::from_inner(Tensor::cat(self.observations.clone(), 0));
        let actions = Tensor::cat(self.choices.iter().map(|choice| choice.actions.clone()).collect(), 0);
        let chances = log_softmax(tracked.forward(x), 1).gather(1, Tensor::from_inner(actions));
        let loss = -(chances * Tensor::from_inner(self.advantages())).sum();
        GradientsParams::from_grads(loss.backward(), &tracked)
    }

    /// Gradients of noise on outputs, downwards.
    fn noise_gradients(&self, policy: &Mlp) -> GradientsParams {
        let advantages = self.advantages();
        let mut gradients = GradientsParams::new();
        for (index, layer) in policy.layers.iter().enumerate() {
            let (x, noise): (Vec<_>, Vec<_>) = self.choices.iter().map(|choice| choice.moved[index].clone()).unzip();
            let y = Tensor::cat(noise, 0) * advantages.clone() * -(1.0 / SIGMA);
            if let Some(bias) = &layer.bias {
                gradients.register(bias.id, y.clone().sum_dim(0).flatten::<1>(0, 1));
            }
            gradients.register(layer.weight.id, Tensor::cat(x, 0).transpose().matmul(y));
        }
        gradients
    }
}

impl Choice {
    /// Drawn by their probabilities: the largest of the logits with Gumbel noise.
    fn drawn(policy: &Mlp, x: Tensor<2>) -> Self {
        let logits = policy.forward(x);
        let uniform = Tensor::random(logits.dims(), Distribution::Uniform(1e-6, 1.0 - 1e-6), &logits.device());
        Self { actions: (logits - uniform.log().neg().log()).argmax(1), moved: Vec::new() }
    }

    /// The best ones of a network whose layers' outputs are moved.
    fn moved(policy: &Mlp, x: Tensor<2>) -> Self {
        let mut moved = Vec::new();
        let logits = policy.logits(x, &mut |_, x, y| {
            let noise = Tensor::random(y.dims(), Distribution::Normal(0.0, 1.0), &y.device());
            moved.push((x, noise.clone()));
            y + noise * SIGMA
        });
        Self { actions: logits.argmax(1), moved }
    }
}
