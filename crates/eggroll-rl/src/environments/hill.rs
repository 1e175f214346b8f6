//! The car in the valley, which both mountain cars drive.

use super::number::{Flag, Number};
use crate::EpisodeKey;

const WALL: f32 = -1.2;
const END: f32 = 0.6;
const SPEED: f32 = 0.07;
const GRAVITY: f32 = 0.0025;
/// The hill is `sin(3·x)`.
const HILLS: f32 = 3.0;

/// The state after a step and whether the car has arrived at `goal`, not rolling back. At the wall a car stops.
#[inline]
pub fn drive<N: Number>([place, speed]: [N; 2], push: N, goal: f32) -> ([N; 2], N::Flag) {
    let speed = (speed + (push - (place.clone() * HILLS).cos() * GRAVITY)).clamp(-SPEED, SPEED);
    let place = (place + speed.clone()).clamp(WALL, END);
    let speed = place.less_equal(WALL).select(speed.clone().clamp(0.0, SPEED), speed);
    let arrived = place.greater_equal(goal).and(speed.greater_equal(0.0));
    ([place, speed], arrived)
}

/// A car at rest, somewhere near the bottom.
pub fn start(key: EpisodeKey) -> [f32; 2] {
    [key.uniform_in(-0.6, -0.4, 0, 0), 0.0]
}
