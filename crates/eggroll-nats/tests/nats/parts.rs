//! Learning by part: the scores of all parts travel, and every node has been given the rows that go with them.

use crate::faults::survives;
use crate::nodes::*;
use crate::server::Server;
use crate::support::{self, LearningModel};
use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::activation::tanh;
use eggroll_core::EggrollConfig;
use eggroll_nn::Linear;
use eggroll_train::*;

/// A network with a score for each of 50 rows: more than a message takes in the test below.
#[derive(Module, Debug)]
pub struct ByRow {
    first: Linear,
    second: Linear,
}

impl LearningModel for ByRow {
    fn start() -> Self {
        Self { first: support::layer(4, 6), second: support::layer(6, 2) }
    }

    fn fitness(&self, population: &Population) -> Fitness {
        let x = support::sines(200, 0.1 + population.generation() as f32).reshape([50, 4]);
        population.evaluate(|members| {
            let y = self.second.forward(tanh(self.first.forward_shared(x.clone())));
            -(y - 0.5).square().mean_dim(1).reshape([members.count(), 50])
        })
    }
}

impl NatsTask for ByRow {
    const NAME: &str = "by-row";

    fn strategy() -> EvolutionStrategyConfig {
        support::config(EggrollConfig::new(), AdamConfig::new()).with_population_size(POPULATION)
    }
}

#[test]
fn learning_by_part_survives_workers_that_die_lag_and_join_late() {
    survives::<ByRow>();
}

#[test]
fn scores_of_parts_are_cut_into_messages_and_weights_learn_from_them() {
    let Some(server) = Server::with("127.0.0.1", |_| "max_payload: 4096\n".to_owned()) else { return };
    let coordinator = Local::start::<ByRow>(config(&server.url(), "coordinator"));
    let workers = ["w1", "w2"]
        .map(|node| work::<ByRow>(config(&server.url(), node), |model, members| Ok(model.fitness(members))));
    let digest = coordinator.finish().digest;
    assert_eq!(digest, expected::<ByRow>());
    for worker in workers {
        assert_eq!(worker.join().expect("no panic").expect("works").0, digest);
    }
    // Canary: from means the parameters are others.
    let folder = tempfile::tempdir().expect("a folder");
    let mean = ByRow::strategy().with_credit(Credit::Mean);
    let means = support::digests::<ByRow>(&mean, GENERATIONS as usize, &folder.path().join("log"));
    assert_ne!(means.last(), Some(&digest));
}
