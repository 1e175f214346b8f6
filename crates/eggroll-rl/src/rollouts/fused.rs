//! Episodes on CPUs without tensors: a policy that is a chain of layers and the environment's host form, in one loop.
//!
//! A core takes a few pairs at a time, draws their noise once, and steps all their environments together, so that everything it works
//! on stays in its cache. A pair whose episodes are over makes place for the next one: no step is spent on what has ended.

use super::config::RolloutConfig;
use super::head::ActionHead;
use super::keys::uniform;
use super::policy::{Policy, chain_layers, check_shape, note_layers};
use super::runner::EpisodePlan;
use crate::{ActionSpace, TensorEnvironment};
use eggroll_core::chain::{Chain, ChainBuffers, ChainRow};
use eggroll_core::profile::{self, Component};
use eggroll_train::{Population, workers};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Environments that a core steps together: some register tiles of the product.
const ROWS: usize = 56;

/// The rows of all episodes, or `None` if the policy cannot be fused.
#[track_caller]
pub(super) fn run<E: TensorEnvironment, P: Policy>(
    config: &RolloutConfig,
    plan: &EpisodePlan<'_, E>,
    population: &Population,
    policy: &P,
) -> Option<Vec<f32>> {
    let layers = policy.layers()?;
    let layers = chain_layers(&layers)?;
    population.perturbation().refuse_nesting();
    let chain = Chain::new(population.perturbation(), &layers)?;
    check_shape(plan.environment, chain.shape());
    let each = plan.keys.len() * plan.row_width; // floats of a member's rows
    let members = population.range();
    let pairs = (members.start / 2) as u32..(members.end / 2) as u32;
    let next = AtomicU32::new(pairs.start);
    let pools = workers::pools();
    let waiting = profile::waiting();
    let parts = workers::map(pools, &vec![(); pools.len()], |()| {
        let _span = profile::span(Component::Fitness, 0);
        Worker::new(config, plan, &chain).run(|| {
            let pair = next.fetch_add(1, Relaxed);
            (pair < pairs.end).then_some(pair)
        })
    });
    drop(waiting);
    note_layers(population, &layers, chain.parameters());
    let mut rows = vec![0.0; population.count() * each];
    for (pair, part) in parts.into_iter().flatten() {
        rows[(pair - pairs.start) as usize * 2 * each..][..2 * each].copy_from_slice(&part);
    }
    Some(rows)
}

/// An environment that is still running.
#[derive(Clone, Copy)]
struct Live {
    row: ChainRow,
    /// Its place among the environments of all slots.
    place: u32,
    /// Steps of the policy so far.
    step: u32,
}

/// A pair that is being run.
struct Slot {
    pair: u32,
    live: usize,
    /// The rows of its episodes: of the first member, then of the second.
    rows: Vec<f32>,
}

/// What one core works with.
struct Worker<'a, E> {
    config: &'a RolloutConfig,
    plan: &'a EpisodePlan<'a, E>,
    chain: &'a Chain,
    buffers: ChainBuffers,
    slots: Vec<Slot>,
    live: Vec<Live>,
    /// `[places, state_size]`
    states: Vec<f32>,
    rows: Vec<ChainRow>,
    x: Vec<f32>,
    y: Vec<f32>,
    action: Vec<f32>,
    done: Vec<(u32, Vec<f32>)>,
}

impl<'a, E: TensorEnvironment> Worker<'a, E> {
    fn new(config: &'a RolloutConfig, plan: &'a EpisodePlan<'a, E>, chain: &'a Chain) -> Self {
        let (environment, each) = (plan.environment, plan.keys.len());
        let slots = (ROWS / (2 * each)).max(1);
        let places = slots * 2 * each;
        let [observation, outputs] = chain.shape();
        Self {
            config,
            plan,
            chain,
            buffers: chain.buffers(slots, places),
            slots: Vec::with_capacity(slots),
            live: Vec::with_capacity(places),
            states: vec![0.0; places * environment.state_size()],
            rows: Vec::with_capacity(places),
            x: vec![0.0; places * observation],
            y: vec![0.0; places * outputs],
            action: vec![0.0; environment.actions().size()],
            done: Vec::new(),
        }
    }

    /// Runs the pairs that `next` gives; returns the rows of each.
    fn run(mut self, mut next: impl FnMut() -> Option<u32>) -> Vec<(u32, Vec<f32>)> {
        while self.slots.len() < self.slots.capacity() {
            let Some(pair) = next() else { break };
            self.slots.push(Slot { pair, live: 0, rows: Vec::new() });
            self.begin(self.slots.len() - 1, pair);
        }
        while !self.live.is_empty() {
            self.forward();
            self.step();
            for slot in 0..self.slots.len() {
                if self.slots[slot].live == 0 && !self.slots[slot].rows.is_empty() {
                    let finished = (self.slots[slot].pair, std::mem::take(&mut self.slots[slot].rows));
                    self.done.push(finished);
                    if let Some(pair) = next() {
                        self.begin(slot, pair);
                    }
                }
            }
        }
        self.done
    }

    /// Begins the episodes of a pair.
    fn begin(&mut self, slot: usize, pair: u32) {
        let (environment, keys) = (self.plan.environment, self.plan.keys);
        let each = keys.len();
        let size = environment.state_size();
        self.chain.draw(pair, slot as u32, &mut self.buffers);
        self.slots[slot] = Slot { pair, live: 2 * each, rows: vec![0.0; 2 * each * self.plan.row_width] };
        for place in 0..2 * each {
            let row = ChainRow { slot: slot as u32, minus: place >= each };
            let place = slot * 2 * each + place;
            environment.reset_host(keys[place % each], &mut self.states[place * size..][..size]);
            self.live.push(Live { row, place: place as u32, step: 0 });
        }
    }

    /// Asks the policy for all that are running.
    fn forward(&mut self) {
        let EpisodePlan { environment, keys, scaling, row_width } = *self.plan;
        let (size, width) = (environment.state_size(), environment.observation_size());
        self.rows.clear();
        self.rows.extend(self.live.iter().map(|live| live.row));
        for (live, x) in self.live.iter().zip(self.x.chunks_exact_mut(width)) {
            let place = live.place as usize;
            environment.observe_host(&self.states[place * size..][..size], x);
            if let Some(scaling) = scaling {
                scaling.apply(x, &mut row_of(&mut self.slots, live, row_width, keys.len())[2..]);
            }
        }
        self.chain.forward(&self.rows, &self.x, &mut self.buffers, &mut self.y);
    }

    /// Steps all running episodes; an episode that ends leaves.
    fn step(&mut self) {
        let Self { config, plan, slots, live, states, y, action, .. } = self;
        let EpisodePlan { environment, keys, row_width: width, .. } = **plan;
        let (space, size, each) = (environment.actions(), environment.state_size(), keys.len());
        let (outputs, limit) = (space.outputs(), environment.time_limit() as f32);
        let mut kept = 0;
        for index in 0..live.len() {
            let mut running = live[index];
            let place = running.place as usize;
            let draw = match config.head {
                ActionHead::Sampled => {
                    let pair = slots[running.row.slot as usize].pair as usize;
                    uniform(keys[place % each], pair, running.step as usize)
                }
                _ => 0.0,
            };
            config.head.action(&y[index * outputs..][..outputs], draw, space, action);
            let row = row_of(slots, &running, width, each);
            let mut ended = false;
            for _ in 0..config.action_repeat {
                let transition = environment.step_host(&mut states[place * size..][..size], action);
                row[0] += transition.reward;
                row[1] += 1.0;
                ended = transition.terminated || row[1] >= limit;
                if ended {
                    break;
                }
            }
            if ended {
                slots[running.row.slot as usize].live -= 1;
            } else {
                running.step += 1;
                live[kept] = running;
                kept += 1;
            }
        }
        live.truncate(kept);
    }
}

/// The row of an environment's episode.
#[inline]
fn row_of<'a>(slots: &'a mut [Slot], live: &Live, width: usize, each: usize) -> &'a mut [f32] {
    let slot = live.row.slot as usize;
    let place = live.place as usize - slot * 2 * each;
    &mut slots[slot].rows[place * width..][..width]
}

impl ActionHead {
    /// The action of one row.
    #[inline]
    fn action(&self, outputs: &[f32], uniform: f32, space: ActionSpace, action: &mut [f32]) {
        match (self, space) {
            (Self::Sampled, ActionSpace::Discrete(count)) => {
                let best = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let weight = |output: &f32| (output - best).exp();
                let limit = uniform * outputs.iter().map(weight).fold(0.0, |sum, weight| sum + weight);
                let mut sum = 0.0;
                let below = outputs[..count - 1].iter().filter(|output| {
                    sum += weight(output);
                    sum <= limit
                });
                action[0] = below.count() as f32;
            }
            (_, ActionSpace::Discrete(_)) => action[0] = first_of_highest(outputs) as f32,
            (Self::Tanh, ActionSpace::Continuous { low, high, .. }) => {
                let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
                action.iter_mut().zip(outputs).for_each(|(action, output)| *action = output.tanh() * half + middle);
            }
            (_, ActionSpace::Continuous { low, high, .. }) => {
                action.iter_mut().zip(outputs).for_each(|(action, output)| *action = output.clamp(low, high));
            }
        }
    }
}

fn first_of_highest(outputs: &[f32]) -> usize {
    let mut best = 0;
    for (index, output) in outputs.iter().enumerate() {
        if *output > outputs[best] {
            best = index;
        }
    }
    best
}
