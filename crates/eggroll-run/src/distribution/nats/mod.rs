//! Elastic runs over a NATS server with JetStream: workers come, die and return, and the run is the same, bit for bit.
//!
//! The process that trains is the [`Coordinator`]. It puts one message for each slice of a generation into a work queue;
//! every [`Worker`] takes one, evaluates the slice, publishes its fitness and only then acknowledges the work, so that a slice
//! whose worker dies is delivered to another. The coordinator publishes the fitness of all members, and every worker makes the same
//! update: no weights travel. A worker that joins late loads the latest checkpoint from the object store, or begins with the first model,
//! and is told the fitness since. What survives which fault, and how to set up a server, is in `docs/nats.md`.
//!
//! Nodes run the same program: the same first model, the same configuration of the strategy, the same score, which is a function of
//! the model, the generation and the members alone. What members [carry](eggroll_train::Population::evaluate_carrying) from one generation
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
//!         model = strategy.tell(model, population, fitness)?;
//!     }
//!     coordinator.finish()?;
//! }
//! # Ok(())
//! # }
//! ```

mod checkpoint;
mod collection;
mod config;
mod connection;
mod coordinator;
mod counts;
mod error;
pub mod protocol;
mod replica;
mod run_id;
mod stream_reader;
mod worker;

pub use collection::Rejection;
pub use config::{NatsAuth, NatsConfig, NatsConnection};
pub use coordinator::{Coordinator, remove_run};
pub use counts::Counts;
pub use error::NatsError;
pub use worker::{Worker, WorkerReport};
