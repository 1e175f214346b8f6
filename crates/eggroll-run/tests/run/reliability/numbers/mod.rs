//! Every number of every configuration is replaced by numbers that cannot be: each is refused by name or value, or harmless.

mod modules;
mod optimizers;
mod rollouts;
mod schedules;
mod strategies;
mod walk;
