//! Elastic runs over a NATS server with JetStream: workers come, die and return, and the run is the same, bit for bit.
//!
//! The process that trains is the [`Coordinator`]. It offers each slice of a generation to a [`Worker`] that has nothing to do; the worker
//! evaluates it and publishes its fitness. A slice whose worker dies, fails or is silent is offered to another. The coordinator publishes
//! the fitness of all members, and every worker makes the same update: no weights travel. A worker that joins late loads the latest
//! checkpoint from the server, or begins with the first model, and reads the fitness since. `docs/nats.md` explains faults and outcomes, how to set up
//! a server, and the powers of a hostile worker.
//!
//! The coordinator signs its messages, and workers authenticate with a key: [`NatsConfig::keys`], [`make_keys`].
//!
//! Nodes run the same program: the same first model, the same configuration of the strategy, the same score, which is a function of
//! the model, the generation and the members alone. What members [carry](eggroll_train::Population::evaluate_with_state) from one generation
//! to the next stays on one node, and cannot be used here.
//!
//! # Example
//!
//! ```no_run
//! use burn::optim::AdamConfig;
//! use burn::tensor::{Device, Tensor};
//! use eggroll_core::EggrollConfig;
//! use eggroll_nn::{Linear, LinearConfig};
//! use eggroll_run::distribution::nats::{Coordinator, NatsConfig, Worker};
//! use eggroll_run::UserError;
//! use eggroll_train::{EvolutionStrategyConfig, Fitness, Population};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let device = Device::flex();
//! device.seed(7);
//! let mut model = LinearConfig::new(2, 1).init(&device);
//! let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).try_init(&model)?;
//! let x = Tensor::<2>::ones([1, 2], &device);
//! let score = |model: &Linear, members: &Population| -> Result<Fitness, UserError> {
//!     Ok(members.evaluate(|members| members.mean(model.forward_shared(x.clone()))))
//! };
//!
//! let config = NatsConfig::new("nats://localhost:4222", "first-run");
//! if std::env::args().any(|argument| argument == "worker") {
//!     Worker::connect(config)?.run(strategy, model, score)?;
//! } else {
//!     let mut coordinator = Coordinator::connect(config, &strategy)?;
//!     while strategy.generation() < 100 {
//!         let population = strategy.ask();
//!         let fitness = coordinator.evaluate(&model, &population, score)?;
//!         strategy.tell(&mut model, population, fitness)?;
//!     }
//!     coordinator.finish()?;
//! }
//! # Ok(())
//! # }
//! ```

mod auth;
mod checkpoint;
mod collection;
mod config;
mod connection;
mod coordinator;
mod counts;
mod desk;
mod error;
mod gather;
mod key_files;
mod keys;
mod names;
mod notice;
mod peers;
pub mod protocol;
mod replica;
mod run_id;
mod score_rules;
mod secret_files;
mod streams;
mod worker;

pub use auth::{NatsAuth, NatsConnection};
pub use collection::Rejection;
pub use config::{NatsConfig, Trust};
pub use coordinator::Coordinator;
pub use counts::Counts;
pub use error::NatsError;
pub use key_files::make_keys;
pub use keys::{CoordinatorKey, WorkerKey};
pub use notice::Notice;
pub use streams::remove_run;
pub use worker::{Worker, WorkerReport};
