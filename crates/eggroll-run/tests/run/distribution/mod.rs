//! Replicas of one run: any number of them gives the bits of one process, and none continues when something is wrong.

mod devices;
mod faults;
mod integers;
mod learner;
mod rollouts;
mod slices;
mod support;
mod worlds;
