//! The car in the valley, which both mountain cars drive.

use super::number::Number;
use super::states::{columns, flat, row};
use crate::EpisodeKey;
use burn::tensor::{Bool, Tensor};

const WALL: f32 = -1.2;
const END: f32 = 0.6;
const SPEED: f32 = 0.07;
const GRAVITY: f32 = 0.0025;
/// The hill is `sin(3·x)`.
const HILLS: f32 = 3.0;

/// Place and speed after a step, but for the wall, at which a car stops.
#[inline]
fn advance<N: Number>(place: N, speed: N, push: N) -> [N; 2] {
    let speed = (speed + (push - (place.clone() * HILLS).cos() * GRAVITY)).clamp(-SPEED, SPEED);
    [(place + speed.clone()).clamp(WALL, END), speed]
}

/// The state after a step and who has arrived at `goal`, not rolling back: `[environments, 2]`, `[environments]`.
pub fn drive(state: &Tensor<2>, push: Tensor<2>, goal: f32) -> (Tensor<2>, Tensor<1, Bool>) {
    let [place, speed] = columns(state);
    let [place, speed] = advance(place, speed, push);
    let stopped = speed.clone().clamp_min(0.0);
    let speed = speed.mask_where(place.clone().lower_equal_elem(WALL), stopped);
    let arrived = place.clone().greater_equal_elem(goal).bool_and(speed.clone().greater_equal_elem(0.0));
    (Tensor::cat(vec![place, speed], 1), flat(arrived))
}

/// [`drive`] for one car.
#[inline]
pub fn drive_host(state: &mut [f32], push: f32, goal: f32) -> bool {
    let [place, speed] = row(state);
    let [new_place, new_speed] = advance(*place, *speed, push);
    let at_wall = new_place <= WALL && new_speed <= 0.0;
    (*place, *speed) = (new_place, if at_wall { 0.0 } else { new_speed });
    *place >= goal && *speed >= 0.0
}

/// A car at rest, somewhere near the bottom.
pub fn reset(key: EpisodeKey, state: &mut [f32]) {
    *row(state) = [key.uniform_in(-0.6, -0.4, 0, 0), 0.0];
}
