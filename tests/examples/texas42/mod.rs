//! Texas 42: rules, what players know, sampled worlds, the solver, and the environment.

mod environment;
mod expected_values;
mod observation;
mod rules;
mod slow;
mod solver;
mod support;
mod tensors;
mod worlds;
