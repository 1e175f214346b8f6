//! Episodes on CPUs without tensors: a policy that is a chain of layers and the environment's host form, in one loop.
//!
//! A core takes a few pairs at a time, draws their noise once, and steps all their environments together, so that everything it works
//! on stays in its cache. A pair whose episodes are over makes place for the next one: no step is spent on what has ended. Without noise a few
//! episodes stand for a pair.

use super::config::RolloutConfig;
use super::head::ActionHead;
use super::keys::uniform;
use super::policy::{Policy, chain_layers, check_shape, note_layers};
use super::runner::EpisodePlan;
use crate::{ActionSpace, EpisodeKey, TensorEnvironment};
use eggroll_core::chain::{Chain, ChainBuffers, ChainRow};
use eggroll_core::is_on_host;
use eggroll_core::profile::{self, Component};
use eggroll_train::{Population, workers};
use std::ops::Range;
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
    let members = population.range();
    let pairs = (members.start / 2) as u32..(members.end / 2) as u32;
    let rows = run_groups(config, plan, &chain, Group::Pair, pairs);
    note_layers(population, &layers, chain.parameters());
    Some(rows)
}

/// The rows of all episodes of a model as it is, or `None` if the policy cannot be fused.
#[track_caller]
pub(super) fn run_model<E: TensorEnvironment, P: Policy>(
    config: &RolloutConfig,
    plan: &EpisodePlan<'_, E>,
    policy: &P,
) -> Option<Vec<f32>> {
    let layers = policy.layers()?;
    let layers = chain_layers(&layers)?;
    if !layers.iter().all(|layer| is_on_host(&layer.weight.device())) {
        return None;
    }
    let chain = Chain::of_model(&layers)?;
    check_shape(plan.environment, chain.shape());
    // As many groups for each core, none larger than what a core steps together.
    let count = plan.keys.len();
    let groups = count.div_ceil(ROWS).next_multiple_of(workers::pools().len());
    let group = Group::Episodes(count.div_ceil(groups));
    Some(run_groups(config, plan, &chain, group, 0..count.div_ceil(group.rows(count)) as u32))
}

/// The rows of all groups, one after the other.
fn run_groups<E: TensorEnvironment>(
    config: &RolloutConfig,
    plan: &EpisodePlan<'_, E>,
    chain: &Chain,
    group: Group,
    groups: Range<u32>,
) -> Vec<f32> {
    let next = AtomicU32::new(groups.start);
    let pools = workers::pools();
    // No core takes groups that another would have begun with.
    let share = groups.len().div_ceil(pools.len()).max(1);
    let waiting = profile::waiting();
    let parts = workers::map(pools, &vec![(); pools.len()], |()| {
        let _span = profile::span(Component::Fitness, 0);
        Worker::new(config, plan, chain, group, share).run(|| {
            let number = next.fetch_add(1, Relaxed);
            (number < groups.end).then_some(number)
        })
    });
    drop(waiting);
    let mut parts: Vec<(u32, Vec<f32>)> = parts.into_iter().flatten().collect();
    parts.sort_unstable_by_key(|(number, _)| *number);
    parts.into_iter().map(|(_, rows)| rows).collect::<Vec<_>>().concat()
}

/// What takes a slot.
#[derive(Clone, Copy)]
enum Group {
    /// All episodes of both members of a pair.
    Pair,
    /// So many episodes of the model.
    Episodes(usize),
}

impl Group {
    /// Environments, of `keys` episodes in all; the last group of a model may have fewer.
    fn rows(self, keys: usize) -> usize {
        match self {
            Self::Pair => 2 * keys,
            Self::Episodes(count) => count,
        }
    }

    /// The keys of a group's episodes, and whose they are: of a pair, the first member's, then the second's.
    fn keys(self, number: u32, keys: &[EpisodeKey]) -> impl Iterator<Item = (EpisodeKey, bool)> {
        let (keys, members) = match self {
            Self::Pair => (keys, 2),
            Self::Episodes(count) => {
                let first = number as usize * count;
                (&keys[first..keys.len().min(first + count)], 1)
            }
        };
        (0..members).flat_map(move |member| keys.iter().map(move |key| (*key, member == 1)))
    }

    /// The pair whose numbers are drawn for a sampled action.
    fn pair(self, number: u32) -> usize {
        match self {
            Self::Pair => number as usize,
            Self::Episodes(_) => 0,
        }
    }
}

/// An environment that is still running.
#[derive(Clone, Copy)]
struct Live {
    row: ChainRow,
    key: EpisodeKey,
    /// Its place among the environments of all slots.
    place: u32,
    /// Steps of the policy so far.
    step: u32,
}

/// A group that is being run.
struct Slot {
    number: u32,
    live: usize,
    /// The rows of its episodes.
    rows: Vec<f32>,
}

/// What one core works with.
struct Worker<'a, E> {
    config: &'a RolloutConfig,
    plan: &'a EpisodePlan<'a, E>,
    chain: &'a Chain,
    group: Group,
    /// Environments of a group.
    each: usize,
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
    /// With slots for at most `most` groups.
    fn new(
        config: &'a RolloutConfig,
        plan: &'a EpisodePlan<'a, E>,
        chain: &'a Chain,
        group: Group,
        most: usize,
    ) -> Self {
        let (environment, each) = (plan.environment, group.rows(plan.keys.len()));
        let slots = (ROWS / each).clamp(1, most);
        let places = slots * each;
        let [observation, outputs] = chain.shape();
        Self {
            config,
            plan,
            chain,
            group,
            each,
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

    /// Runs the groups that `next` gives; returns the rows of each.
    fn run(mut self, mut next: impl FnMut() -> Option<u32>) -> Vec<(u32, Vec<f32>)> {
        while self.slots.len() < self.slots.capacity() {
            let Some(number) = next() else { break };
            self.slots.push(Slot { number, live: 0, rows: Vec::new() });
            self.begin(self.slots.len() - 1, number);
        }
        while !self.live.is_empty() {
            self.forward();
            self.step();
            for slot in 0..self.slots.len() {
                if self.slots[slot].live == 0 && !self.slots[slot].rows.is_empty() {
                    let finished = (self.slots[slot].number, std::mem::take(&mut self.slots[slot].rows));
                    self.done.push(finished);
                    if let Some(number) = next() {
                        self.begin(slot, number);
                    }
                }
            }
        }
        self.done
    }

    /// Begins the episodes of a group.
    fn begin(&mut self, slot: usize, number: u32) {
        let environment = self.plan.environment;
        let size = environment.state_size();
        self.chain.draw(number, slot as u32, &mut self.buffers);
        let before = self.live.len();
        for (index, (key, minus)) in self.group.keys(number, self.plan.keys).enumerate() {
            let row = ChainRow { slot: slot as u32, minus };
            let place = slot * self.each + index;
            environment.reset_host(key, &mut self.states[place * size..][..size]);
            self.live.push(Live { row, key, place: place as u32, step: 0 });
        }
        let live = self.live.len() - before;
        self.slots[slot] = Slot { number, live, rows: vec![0.0; live * self.plan.row_width] };
    }

    /// Asks the policy for all that are running.
    fn forward(&mut self) {
        let EpisodePlan { environment, scaling, row_width, .. } = *self.plan;
        let (size, width) = (environment.state_size(), environment.observation_size());
        self.rows.clear();
        self.rows.extend(self.live.iter().map(|live| live.row));
        for (live, x) in self.live.iter().zip(self.x.chunks_exact_mut(width)) {
            let place = live.place as usize;
            environment.observe_host(&self.states[place * size..][..size], x);
            if let Some(scaling) = scaling {
                scaling.apply(x, &mut row_of(&mut self.slots, live, row_width, self.each)[2..]);
            }
        }
        self.chain.forward(&self.rows, &self.x, &mut self.buffers, &mut self.y);
    }

    /// Steps all running episodes; an episode that ends leaves.
    fn step(&mut self) {
        let Self { config, plan, group, each, slots, live, states, y, action, .. } = self;
        let EpisodePlan { environment, row_width: width, .. } = **plan;
        let (space, size, each) = (environment.actions(), environment.state_size(), *each);
        let (outputs, limit) = (space.outputs(), environment.time_limit() as f32);
        let mut kept = 0;
        for index in 0..live.len() {
            let mut running = live[index];
            let place = running.place as usize;
            let draw = match config.head {
                ActionHead::Sampled => {
                    let pair = group.pair(slots[running.row.slot as usize].number);
                    uniform(running.key, pair, running.step as usize)
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
    let place = live.place as usize - slot * each;
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
