//! Decisions in games with hidden information, by the expected values of actions over sampled worlds
//! (determinizations).

mod config;
mod decision;
mod engine;
mod error;
mod reduce;
mod rows;
mod sampler;
mod world_key;

pub use config::ExpectedValuesConfig;
pub use decision::{ActionValue, Decision};
pub use engine::ExpectedValues;
pub use error::ExpectedValuesError;
pub use sampler::{SampledWorlds, WorldSampler};
pub use world_key::WorldKey;
