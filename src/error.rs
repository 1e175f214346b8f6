//! One error for programs that use several of the crates.

#[cfg(feature = "graph")]
use eggroll_nn::graph::GraphError;
use eggroll_nn::weights::WeightsError;
#[cfg(feature = "rl")]
use eggroll_rl::RolloutError;

/// Any error of eggroll: `?` converts the errors of all crates into it, from tracing a model to training, checkpoints and logs.
///
/// # Example
///
/// ```
/// use eggroll::prelude::*;
///
/// fn train(mut model: nn::Linear, x: Tensor<2>) -> Result<nn::Linear, eggroll::Error> {
///     let graph = PopulationGraph::trace(&model, x.clone(), |model: &nn::Linear, x| model.forward(x))?; // GraphError
///     let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).try_init(&model)?; // train::Error
///     let population = strategy.ask();
///     let fitness = population.evaluate(|members| members.mean(graph.forward_shared(&model, x.clone())));
///     strategy.tell(&mut model, population, fitness)?;
///     Checkpoints::new(std::env::temp_dir().join("eggroll-doc")).save(&strategy, &model)?; // run::Error
///     Ok(model)
/// }
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model that cannot be traced.
    #[cfg(feature = "graph")]
    #[error(transparent)]
    Graph(Box<GraphError>),
    /// Configurations, strategies and generations.
    #[error(transparent)]
    Train(Box<eggroll_train::Error>),
    /// Weights that do not fit a model.
    #[error(transparent)]
    Weights(Box<WeightsError>),
    /// Runs: files, checkpoints, logs, replay, distribution.
    #[cfg(feature = "run")]
    #[error(transparent)]
    Run(Box<eggroll_run::Error>),
    /// Environments and rollouts.
    #[cfg(feature = "rl")]
    #[error(transparent)]
    Rollouts(Box<RolloutError>),
    /// Pretrained language models: files, prompts, generation.
    #[cfg(feature = "lm")]
    #[error(transparent)]
    Lm(Box<eggroll_lm::Error>),
    /// Distributed evaluation over NATS.
    #[cfg(feature = "nats")]
    #[error(transparent)]
    Nats(Box<eggroll_nats::NatsError>),
}

eggroll_core::debug_is_message!(Error);

/// Boxed, so that a `Result` stays small.
macro_rules! from {
    ($($(#[$cfg:meta])* $error:ty => $variant:ident),* $(,)?) => {$(
        $(#[$cfg])*
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::$variant(Box::new(error.into()))
            }
        }
    )*};
}

from! {
    #[cfg(feature = "graph")]
    GraphError => Graph,
    eggroll_train::Error => Train,
    WeightsError => Weights,
    #[cfg(feature = "run")]
    eggroll_run::Error => Run,
    #[cfg(feature = "run")]
    eggroll_run::distribution::DistributionError => Run,
    #[cfg(feature = "rl")]
    RolloutError => Rollouts,
    #[cfg(feature = "lm")]
    eggroll_lm::Error => Lm,
    #[cfg(feature = "lm")]
    eggroll_lm::load::LoadError => Lm,
    #[cfg(feature = "lm")]
    eggroll_lm::reward::PatternError => Lm,
    #[cfg(feature = "lm")]
    eggroll_lm::ItemsError => Lm,
    #[cfg(feature = "lm")]
    eggroll_lm::GenerateError => Lm,
    #[cfg(feature = "nats")]
    eggroll_nats::NatsError => Nats,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program whose `main` returns the error, or any that it holds, shows what to do.
    #[test]
    fn what_main_prints_is_the_message() {
        let known = (0..40).map(|layer| format!("layers.{layer}")).collect();
        let error = eggroll_core::TableError::Unmatched { setting: "frozen", name: "tokens".to_owned(), known };
        let message = error.to_string();
        assert!(message.ends_with("\"layers.9\"] and 30 more"), "{message}");
        let error = eggroll_train::Error::from(error);
        let boxed: Box<dyn std::error::Error> = eggroll_train::Error::from(eggroll_train::ConfigError::Chunk(1)).into();
        assert_eq!(format!("{boxed:?}"), boxed.to_string());
        assert_eq!(format!("{error:?}"), message);
        assert_eq!(format!("{:?}", Error::from(error)), message);
    }
}
