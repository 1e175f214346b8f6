//! The methods: four ways to a gradient, and one optimizer behind all of them.

use crate::course::Course;
use crate::output_noise::OutputNoise;
use crate::task::{Batch, CreditTask, Network};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use clap::ValueEnum;
use eggroll::prelude::{Credit, EvolutionStrategy, MemberChunk, cross_entropy};
use eggroll_examples::Failure;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a step finds its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The gradient, by Burn's automatic differentiation.
    Backpropagation,
    /// Noise on every layer's outputs, and a loss for every part.
    OutputNoise,
    /// EGGROLL as in its paper: noise on weights, and the members' mean losses.
    Means,
    /// This library: noise on weights, and a loss for every part.
    Parts,
}

impl Method {
    pub const ALL: [Self; 4] = [Self::Backpropagation, Self::OutputNoise, Self::Means, Self::Parts];
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Backpropagation => "backpropagation",
            Self::OutputNoise => "output noise",
            Self::Means => "means",
            Self::Parts => "parts",
        })
    }
}

/// Trains a network until its time is up.
pub fn learn<T: CreditTask>(
    mut task: T,
    method: Method,
    seed: u64,
    rate: Option<f64>,
    course: &mut Course,
) -> Result<(), Failure> {
    let mut network = task.network();
    let rate = rate.unwrap_or_else(|| task.rate(method));
    let mut optimizer = task.optimizer().init();
    let credit = if method == Method::Means { Credit::Mean } else { Credit::Auto };
    let evolution = task.evolution().with_credit(credit).with_seed(seed);
    let members = evolution.population_size;
    let noise = (method == Method::OutputNoise).then(|| OutputNoise::new(members / 2, seed));
    let mut strategy = evolution.try_init(&network)?;
    course.judge(0, task.judge(&network)?)?;
    let (mut step, mut evaluations) = (0, 0);
    while !course.is_over() {
        let rate = rate * (1.0 - course.done());
        let rows = course.train(|| -> Result<usize, Failure> {
            let batch = task.batch(step);
            let rows = batch.labels.dims()[0];
            let gradients = match (method, &noise) {
                (Method::Means | Method::Parts, _) => {
                    evolve::<T>(&mut strategy, &mut network, &batch, rate)?;
                    return Ok(rows);
                }
                (_, Some(noise)) => noise.gradients(&network, &batch, step),
                (_, None) => backpropagated(&network, batch),
            };
            network = optimizer.step(rate, network.clone(), gradients);
            Ok(rows)
        })?;
        step += 1;
        evaluations += (rows * if method == Method::Backpropagation { 1 } else { members }) as u64;
        if course.is_due() {
            course.judge(evaluations, task.judge(&network)?)?;
        }
    }
    Ok(())
}

/// The gradient of the mean loss.
fn backpropagated<N: Network>(network: &N, batch: Batch) -> GradientsParams {
    let tracked = network.clone().train();
    let (inputs, labels) = (Tensor::from_inner(batch.inputs), Tensor::from_inner(batch.labels));
    let loss = cross_entropy(tracked.forward(inputs), labels).mean();
    GradientsParams::from_grads(loss.backward(), &tracked)
}

/// One generation.
fn evolve<T: CreditTask>(
    strategy: &mut EvolutionStrategy,
    network: &mut T::Network,
    batch: &Batch,
    rate: f64,
) -> Result<(), Failure> {
    strategy.set_learning_rate(rate)?;
    let population = strategy.ask();
    let fitness = population.evaluate(|members: &MemberChunk| {
        let logits = network.forward(batch.inputs.clone()); // [members · rows, classes]
        let losses = members.row_cross_entropy(logits, batch.labels.clone());
        let [count, rows] = losses.dims();
        -losses.reshape([count, rows / T::STEPS, T::STEPS])
    });
    strategy.tell(network, population, fitness)?;
    Ok(())
}
