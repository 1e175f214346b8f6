//! The kernel of a rollout: a cube steps the environments of some pairs, from observation to action, as long as any is running.
//!
//! Every row, which is an environment, has a unit that keeps its state in registers; the outputs of a layer are shared among all units.

use super::layer::forward;
use super::plan::{HEADER, Launch, RolloutPlan};
use super::program::run_program;
use super::row::{UnitRow, act, observe};
use cubecl::prelude::*;

/// Makes `steps` steps of all environments that are running; `records : [environments, record]` keep them from launch to launch.
///
/// `parameters : [all]`, `deviations : [pairs, all]`, `starts : [episodes, state]`, `scaling : [3, seen]`, `draws : [episodes, 4]`.
#[cube(launch)]
pub(crate) fn rollout_kernel(
    parameters: &[f32],
    deviations: &[f32],
    starts: &[f32],
    scaling: &[f32],
    draws: &[u32],
    records: &mut [f32],
    launch: Launch,
    #[comptime] plan: RolloutPlan,
) {
    let rows = comptime!(plan.rows());
    let first_lot = CUBE_POS * comptime!(plan.lots);
    if first_lot >= launch.lots {
        terminate!();
    }
    let mut from = Shared::<[f32]>::new_slice(comptime!(plan.rows() * plan.width()));
    let mut to = Shared::<[f32]>::new_slice(comptime!(plan.rows() * plan.width()));
    let mut running = Shared::<[f32]>::new_slice(rows);

    let unit = UNIT_POS as usize;
    let lot = first_lot + unit % comptime!(plan.lots);
    let own = unit < rows && lot < launch.lots;
    let episode = lot % launch.episodes;
    let pair = lot / launch.episodes;
    let second = (unit / comptime!(plan.lots)) as u32;
    let member = 2u32 * pair as u32 + second;
    let row = UnitRow { unit, episode, pair: launch.first_pair + pair as u32 };
    let record = (member as usize * launch.episodes + episode) * comptime!(plan.record());

    let mut state = Array::<f32>::new(comptime!(plan.dynamics.state_size()));
    let mut sums = Array::<f32>::new(comptime!(plan.sums().max(1)));
    let mut gained = 0.0f32;
    let mut length = 0.0f32;
    let mut live = select(own, 1.0f32, 0.0f32);
    if launch.first_step == 0u32 {
        begin(starts, episode, &mut state, &mut sums, comptime!(plan.clone()));
    } else if own {
        gained = records[record];
        length = records[record + 1usize];
        live = records[record + 2usize];
        load(&*records, record, &mut state, &mut sums, comptime!(plan.clone()));
    }

    let mut step = 0u32.runtime();
    let mut any = true.runtime();
    while step < launch.steps && any {
        if live > 0.0f32 {
            observe(&mut from, scaling, &state, &mut sums, &row, &launch, comptime!(plan.clone()));
        }
        if unit < rows {
            running[unit] = live;
        }
        sync_cube();
        any = any_of(&running, rows);
        if any {
            forward(&mut from, &mut to, parameters, deviations, first_lot, &launch, comptime!(plan.clone()));
            if live > 0.0f32 {
                let outputs = if comptime!(plan.layers.len().is_multiple_of(2)) { &from } else { &to };
                let action = act(outputs, draws, &row, launch.first_step + step, &launch, comptime!(plan.clone()));
                let mut turn = 0u32.runtime();
                while turn < launch.repeat && live > 0.0f32 {
                    let (reward, ended) = transition(&mut state, &action, comptime!(plan.clone()));
                    gained += reward;
                    length += 1.0f32;
                    if ended || length >= launch.time_limit {
                        live = 0.0f32;
                    }
                    turn += 1u32;
                }
            }
        }
        step += 1u32;
    }
    if own {
        records[record] = gained;
        records[record + 1usize] = length;
        records[record + 2usize] = live;
        store(records, record, &state, &sums, plan);
    }
}

/// One step of a unit's environment: its reward, and whether the episode has ended by itself.
#[cube]
fn transition(state: &mut Array<f32>, action: &Sequence<f32>, #[comptime] plan: RolloutPlan) -> (f32, bool) {
    let size = comptime!(plan.dynamics.state_size());
    let mut inputs = Sequence::<f32>::new();
    #[unroll]
    for i in 0..size {
        inputs.push(state[i]);
    }
    #[unroll]
    for i in 0..comptime!(plan.dynamics.action_size()) {
        inputs.push(action[i]);
    }
    let outputs = run_program(&inputs, comptime!(plan.dynamics.transition().clone()));
    #[unroll]
    for i in 0..size {
        state[i] = outputs[i];
    }
    (outputs[size], outputs[comptime!(size + 1)] > 0.5f32)
}

/// Whether any row is running: the same for all units.
#[cube]
fn any_of(running: &Shared<[f32]>, #[comptime] rows: usize) -> bool {
    let mut sum = 0.0f32;
    #[unroll]
    for row in 0..rows {
        sum += running[row];
    }
    sum > 0.0f32
}

/// A new episode.
#[cube]
fn begin(starts: &[f32], episode: usize, state: &mut Array<f32>, sums: &mut Array<f32>, #[comptime] plan: RolloutPlan) {
    let size = comptime!(plan.dynamics.state_size());
    #[unroll]
    for i in 0..size {
        state[i] = starts[episode * size + i];
    }
    #[unroll]
    for i in 0..comptime!(plan.sums()) {
        sums[i] = 0.0f32;
    }
}

/// The episode that the last launch has left.
#[cube]
fn load(records: &[f32], record: usize, state: &mut Array<f32>, sums: &mut Array<f32>, #[comptime] plan: RolloutPlan) {
    #[unroll]
    for i in 0..comptime!(plan.sums()) {
        sums[i] = records[record + comptime!(HEADER + i)];
    }
    #[unroll]
    for i in 0..comptime!(plan.dynamics.state_size()) {
        state[i] = records[record + comptime!(HEADER + plan.sums() + i)];
    }
}

/// For the next launch, or the host.
#[cube]
fn store(records: &mut [f32], record: usize, state: &Array<f32>, sums: &Array<f32>, #[comptime] plan: RolloutPlan) {
    #[unroll]
    for i in 0..comptime!(plan.sums()) {
        records[record + comptime!(HEADER + i)] = sums[i];
    }
    #[unroll]
    for i in 0..comptime!(plan.dynamics.state_size()) {
        records[record + comptime!(HEADER + plan.sums() + i)] = state[i];
    }
}
