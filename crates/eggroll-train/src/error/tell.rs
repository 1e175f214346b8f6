//! A generation whose parts do not belong together.

use eggroll_core::messages::listed;

/// Why [`tell`](crate::EvolutionStrategy::tell) makes no update.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TellError {
    /// A number of fitness values that is not one, or several tasks, for each member.
    #[error(
        "expected a fitness value for each task (here {tasks}: Fitness::with_tasks) and every member of a population of {population}, found {found} values"
    )]
    FitnessLength {
        /// Values given.
        found: usize,
        /// Tasks that they are said to have.
        tasks: usize,
        /// Members of the generation.
        population: usize,
    },
    /// A population that is not the one the strategy made last.
    #[error("tell got the population of generation {found}, but generation {expected} is due")]
    Generation {
        /// Generation of the population given.
        found: u64,
        /// Generation that is due.
        expected: u64,
    },
    /// A model with other parameters than the one the strategy was made for.
    #[error("this is not the model that the strategy was made for: {0}")]
    OtherModel(String),
    /// A model whose values differ from the evaluated ones.
    #[error(
        "\"{0}\" had other values in evaluate than in tell: evaluate got another model with the same identifiers, \
         such as an older clone. Evaluate the model that tell is given. Call no_grad() on clones that are frozen \
         teachers"
    )]
    OtherValues(String),
    /// Integer parameters, which only `tell` updates.
    #[error(
        "\"{0}\" is a trained integer parameter: votes update it in tell, but advance would leave it unchanged. \
         Freeze it"
    )]
    Votes(String),
    /// Parameters that no forward of the evaluation perturbed.
    #[error(
        "never perturbed in evaluate: {}. Layers of burn::nn are not perturbed: build them from eggroll::nn, trace the model with \
         PopulationGraph, or evaluate it with evaluate_each. Otherwise call their forward inside the closure, on its thread, on the model and not \
         on a clone with no_grad(), or freeze them with with_frozen", listed(.0)
    )]
    NeverPerturbed(Vec<String>),
    /// A noise scale below the range of f32, with which nothing would move, or so large that squares of estimates are infinite.
    #[error(
        "sigma of generation {generation} is {sigma:?}, too small or too large for estimates in f32: choose a schedule that stays from 1.2e-38 to 1e15"
    )]
    Sigma {
        /// The generation.
        generation: u64,
        /// Its noise scale.
        sigma: f64,
    },
    /// A noise scale, times the factors of a parameter, outside the same range.
    #[error(
        "sigma of generation {generation} is {sigma:?}, times {factor:?} for the spread and scale of \"{path}\". \
         Estimates in f32 need a product from 1.2e-38 to 1e15: choose a schedule that stays in this range"
    )]
    RelativeSigma {
        /// The generation.
        generation: u64,
        /// Its noise scale.
        sigma: f64,
        /// The parameter.
        path: String,
        /// Product of its spread and its scale, 1 for each that it lacks.
        factor: f64,
    },
    /// A learning rate that a schedule has made NaN, infinite or negative.
    #[error(
        "the learning rate of generation {generation} is {rate:?}: expected a schedule of numbers from 0 to 3.4e38"
    )]
    LearningRate {
        /// The generation.
        generation: u64,
        /// Its learning rate.
        rate: f64,
    },
    /// Credit by part, where no parameter can learn from the scores of parts.
    #[error(
        "credit parts: nothing can learn from the scores of {parts} parts: \"{path}\" learns from the mean: {because}. Return a score for \
         every row, as row_cross_entropy and token_cross_entropy do, or set credit to auto"
    )]
    Parts {
        /// Parts that every member has a score of.
        parts: usize,
        /// A parameter.
        path: String,
        /// Why it learns from the mean.
        because: String,
    },
    /// A [transform](crate::GradientTransform) that has changed more than the values of gradients and of its state.
    #[error("transform {0}: only values may change")]
    Transform(String),
    /// A [transform](crate::GradientTransform) with state, where the program makes the step.
    #[error("transform \"{0}\" has state, which only tell updates: use tell instead of advance")]
    Remembers(String),
    /// A weight of a pair in the estimate that f32, or a parameter's half precision, cannot hold.
    #[error(
        "the weight of pair {pair} in the estimate of generation {generation} is {weight}, with sigma {sigma}. Scale \
         the fitness, shape it, or choose another scale of the estimate"
    )]
    PairWeight {
        /// The generation.
        generation: u64,
        /// The pair.
        pair: usize,
        /// Its weight.
        weight: f32,
        /// Noise scale of the generation.
        sigma: f64,
    },
}

eggroll_core::debug_is_message!(TellError);
