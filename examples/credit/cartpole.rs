//! CartPole-v1: one score for an episode, which no row of a member can be credited with alone, so that this library learns from means too.
//!
//! Backpropagation is REINFORCE (Williams 1992): actions are drawn, and their log-probabilities weighted by what followed. Output noise has the
//! same weights: every layer's outputs are moved in every step, and the best action taken.

use crate::course::Course;
use crate::learn::Method;
use crate::task::Network;
use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Distribution, Int, Tensor};
use eggroll::nn::{Mlp, MlpConfig};
use eggroll::prelude::{
    EggrollConfig, EpisodeKey, EvaluationConfig, EvolutionStrategyConfig, OptimizerConfig, RolloutConfig, Rollouts,
    TensorEnvironment,
};
use eggroll::rl::CartPole;
use eggroll_examples::Failure;

/// Steps of an episode, and the mean return that solves the task.
const STEPS: usize = 500;
const SOLVED: f64 = 475.0;
/// Seeds of episodes that are judged by.
const JUDGED: u64 = 1 << 32;
/// Episodes of a step of the methods that are not evolution.
const EPISODES: usize = 16;
/// What a reward is worth a step earlier.
const DISCOUNT: f32 = 0.99;
/// Of output noise.
const SIGMA: f64 = 0.3;

/// The learning rate, which stays: the best of several with other seeds.
fn rate(method: Method) -> f64 {
    match method {
        Method::Backpropagation | Method::OutputNoise => 0.03,
        Method::Means | Method::Parts => 0.1,
    }
}

/// Trains until the mean return of 100 episodes is 475, or the time is up.
pub fn learn(method: Method, seed: u64, given: Option<f64>, course: &mut Course) -> Result<(), Failure> {
    let device = Device::flex();
    device.seed(seed);
    let rollouts = RolloutConfig::new().with_seed(seed).init(CartPole::new())?;
    let mut policy: Mlp = MlpConfig::new(vec![4, 32, 32, 2]).init(&device);
    let rate = given.unwrap_or_else(|| rate(method));
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_seed(seed);
    let mut strategy = config.with_population_size(128).with_sigma(0.3).with_learning_rate(rate).try_init(&policy)?;
    let mut optimizer = OptimizerConfig::from(AdamConfig::new()).init();
    let mut steps = 0;
    for step in 0.. {
        steps += course.train(|| -> Result<u64, Failure> {
            if method == Method::Means {
                let population = strategy.ask();
                let outcome = rollouts.evaluate(&population, &policy);
                strategy.tell(&mut policy, population, outcome.fitness)?;
                return Ok(outcome.episodes.env_steps());
            }
            let episodes = Episodes::play(&policy, method, seed, step);
            let gradients = episodes.gradients(&policy);
            policy = optimizer.step(rate, policy.clone(), gradients);
            Ok(episodes.steps())
        })?;
        // Evolution is judged after every second generation, as in the example cartpole.
        if step % 2 == 1 || course.is_over() {
            let solved = judge(&rollouts, &policy, JUDGED) >= SOLVED;
            let figure = judge(&rollouts, &policy, 2 * JUDGED);
            if solved && figure >= SOLVED {
                course.end();
            }
            course.judge(steps, figure);
        }
        if course.is_over() {
            return Ok(());
        }
    }
    Ok(())
}

fn judge(rollouts: &Rollouts<CartPole>, policy: &Mlp, seed: u64) -> f64 {
    rollouts.evaluate_model(policy, &EvaluationConfig::new(100).with_seed(seed), &Device::flex()).mean_return()
}

/// Episodes side by side: what every step saw and did.
struct Episodes {
    method: Method,
    /// `[episodes, 4]` of every step.
    observations: Vec<Tensor<2>>,
    choices: Vec<Choice>,
    /// 1 while an episode goes on: `[episodes]` of every step.
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
        let mut played = Self { method, observations: Vec::new(), choices: Vec::new(), going: Vec::new() };
        while played.going.len() < STEPS && alive.contains(&1.0) {
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

    /// What followed each step, discounted, less the mean over all of them, in units of their spread; 0 behind an episode's end.
    fn advantages(&self) -> Tensor<2> {
        let mut returns = vec![vec![0.0; EPISODES]; self.going.len()];
        let mut later = [0.0; EPISODES];
        for (returns, going) in returns.iter_mut().zip(&self.going).rev() {
            for ((later, going), own) in later.iter_mut().zip(going).zip(returns) {
                *later = going * (1.0 + DISCOUNT * *later);
                *own = *later;
            }
        }
        let (going, returns): (Vec<f32>, Vec<f32>) = (self.going.concat(), returns.concat());
        let count: f32 = going.iter().sum();
        let mean = returns.iter().sum::<f32>() / count;
        let square = returns.iter().zip(&going).map(|(value, going)| going * (value - mean).powi(2)).sum::<f32>();
        let spread = (square / count).sqrt().max(1e-6);
        let weights: Vec<f32> =
            returns.iter().zip(&going).map(|(value, going)| going * (value - mean) / spread / count).collect();
        Tensor::<1>::from_floats(weights.as_slice(), &Device::flex()).unsqueeze_dim(1) // [steps · episodes, 1]
    }

    /// Of the mean over steps, downwards.
    fn gradients(&self, policy: &Mlp) -> GradientsParams {
        let advantages = self.advantages();
        if self.method == Method::Backpropagation {
            let tracked = policy.clone().train();
            let x = Tensor::from_inner(Tensor::cat(self.observations.clone(), 0));
            let actions = Tensor::cat(self.choices.iter().map(|choice| choice.actions.clone()).collect(), 0);
            let chances = log_softmax(tracked.forward(x), 1).gather(1, Tensor::from_inner(actions));
            let loss = -(chances * Tensor::from_inner(advantages)).sum();
            return GradientsParams::from_grads(loss.backward(), &tracked);
        }
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
