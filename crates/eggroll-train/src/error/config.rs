//! Settings that cannot be used.

use eggroll_core::numbers::NumberError;

/// Members of the largest number of pairs in u32.
pub(crate) const MOST_MEMBERS: usize = (u32::MAX as usize).saturating_mul(2);

/// Why a configuration is refused.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Antithetic pairs need an even, positive population, with a number of pairs in u32.
    #[error("the population must be even, at least 2 and at most {most}, not {0}", most = MOST_MEMBERS)]
    Population(usize),
    /// A number that f32 cannot hold, or outside the range of its field.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// A noise scale that is not positive and finite.
    #[error("sigma must be positive and finite, not {0}")]
    Sigma(f64),
    /// A function of the program that a file only names.
    #[error("the {field} \"{name}\" is a function of the program that saved this: give the configuration that has it")]
    NotGiven {
        /// Its purpose.
        field: &'static str,
        /// The name that it was saved under.
        name: String,
    },
    /// A noise scale that would change while members keep their state.
    #[error(
        "sigma cannot be set in generation {generation}: it is constant within an unroll horizon of {horizon} generations; set it \
         where `generation() % {horizon}` is 0"
    )]
    SigmaWithinHorizon {
        /// The coming generation.
        generation: u64,
        /// Generations of the horizon.
        horizon: u64,
    },
    /// Votes of two with noise whose double does not fit int8.
    #[error(
        "votes in five levels do not work with a noise table, whose doubled entries may not fit int8. Take \
         VoteLevels::Three, or noise that is drawn"
    )]
    LevelsOfTable,
    /// A probe of no noise scale.
    #[error("probe_sigma needs at least one sigma, and a trained float parameter that sigma acts on; {0}")]
    Probe(&'static str),
    /// A decay that is not in (0, 1].
    #[error("the decay of sigma must be in (0, 1], not {0}")]
    SigmaDecay(f64),
    /// A gradient norm that is not positive and finite.
    #[error("the norm that gradients are clipped to must be positive and finite, not {0}")]
    ClipNorm(f64),
    /// The shaping rule and the noiser disagree about baselines.
    #[error(
        "the shaping rule expects a baseline in every group of {shaping} members, but the noiser makes {}",
        groups(.noiser)
    )]
    Baselines {
        /// Members of a group in the shaping rule.
        shaping: usize,
        /// Members of the noiser's groups, if it has any.
        noiser: Option<usize>,
    },
    /// An optimizer of integer parameters for a model with trained float parameters.
    #[error(
        "integer_adam_w and integer_muon update integer parameters only, but \"{0}\" is a trained float parameter: freeze it or \
         choose another optimizer"
    )]
    FloatParameter(String),
    /// Clipping that would leave out matrices.
    #[error("muon: grad_clipping of `others` would not clip matrices: clip all gradients by with_clip_norm")]
    MuonClipping,
    /// An unknown optimizer, with the known names.
    #[error("unknown optimizer {0}")]
    OptimizerName(String),
    /// An unknown fitness shaping, with the known names.
    #[error("fitness shaping: {0}")]
    ShapingName(String),
    /// An unknown credit, with the known names.
    #[error("credit: {0}")]
    CreditName(String),
    /// An unknown noise scale, with the known names.
    #[error("noise scale: {0}")]
    NoiseScaleName(String),
    /// A rate for each parameter, with an optimizer that has one for all.
    #[error(
        "rate_scale {0} gives each parameter its own learning rate, but clip_up, integer_adam_w and integer_muon \
         have a single one. Take another optimizer, or the rate scale absolute"
    )]
    RateScale(String),
    /// A setting for float parameters, with a trained integer parameter.
    #[error(
        "{setting} is for float parameters, but \"{path}\" is a trained integer parameter: freeze it, or leave the setting out"
    )]
    IntegerParameter {
        /// The setting.
        setting: &'static str,
        /// The parameter.
        path: String,
    },
    /// An anchor that does not have the parameters of the model.
    #[error("the anchor of the decay is another model: {0}")]
    Anchor(String),
    /// Settings that Adafactor cannot have.
    #[error(
        "Adafactor needs positive epsilons and clip_threshold, a negative decay_rate and a weight_decay that is not negative, all \
         finite, not {0}"
    )]
    Adafactor(String),
    /// Iterations of Muon that would not end.
    #[error("ns_steps, the Newton-Schulz steps of Muon, must be at most {most}, not {steps}")]
    NewtonSchulz {
        /// Requested steps.
        steps: i128,
        /// Largest number of steps.
        most: i128,
    },
    /// Coefficients of Muon's iterations that make NaN of matrices.
    #[error("ns_coefficients, the Newton-Schulz polynomial of Muon, diverge after {steps} steps: {coefficients:?}")]
    NewtonSchulzCoefficients {
        /// The coefficients of `s`, `s³` and `s⁵`.
        coefficients: Vec<f64>,
        /// Steps of the iteration.
        steps: i128,
    },
    /// Settings that ClipUp cannot have.
    #[error("ClipUp needs a momentum in [0, 1) and a positive, finite max_speed, not {momentum} and {max_speed}")]
    ClipUp {
        /// Share of the velocity that is kept.
        momentum: f64,
        /// Longest step.
        max_speed: f64,
    },
    /// Settings that integer AdamW cannot have.
    #[error("integer AdamW needs betas in [0, 1), a positive epsilon and a weight decay that is not negative, not {0}")]
    IntegerAdamW(String),
    /// A group of members that is not of whole pairs.
    #[error(
        "groups of a fitness shaping must have an even number of members, at least 2, not {0}: other groups split \
         mirrored pairs. Take an even number that divides the population"
    )]
    SplitPair(usize),
    /// A group of members that does not divide the population.
    #[error("a population of {population} cannot be divided into groups of {group} members")]
    Group {
        /// Size of a group.
        group: usize,
        /// Members of a generation.
        population: usize,
    },
    /// More pairs that count than there are, or none.
    #[error("top_pairs must be from 1 to the {} pairs of a population of {population}, not {pairs}", .population / 2)]
    TopPairs {
        /// Pairs that count.
        pairs: usize,
        /// Members of a generation.
        population: usize,
    },
    /// A constant learning rate that is not a number, infinite or negative.
    #[error("the learning rate must be finite and not negative, not {0}")]
    LearningRate(f64),
    /// A chunk of members that holds no pair.
    #[error("a chunk must hold at least one pair of members, not {0} members")]
    Chunk(usize),
    /// A horizon without a generation.
    #[error("an unroll horizon must be at least 1 generation, not {0}")]
    UnrollHorizon(u64),
    /// A horizon that begins or ends between two draws of the noise.
    #[error(
        "noise_reuse {noise_reuse} does not divide an unroll horizon of {horizon} generations. Use 1 for fresh noise \
         in every generation, or {horizon} for one draw per horizon"
    )]
    UnrollNoise {
        /// Generations of the horizon.
        horizon: u64,
        /// Generations that share one draw.
        noise_reuse: u64,
    },
    /// Credit by the parts of one generation, of an estimate that depends on earlier generations.
    #[error(
        "credit parts does not work with an unroll horizon of {horizon} generations: fitness depends on what layers \
         were given in earlier generations. Set credit to auto or mean"
    )]
    UnrollCredit {
        /// Generations of the horizon.
        horizon: u64,
    },
    /// Votes that would have to count the noise of several noise epochs.
    #[error(
        "\"{path}\" is updated by votes, which count the noise of one draw. An unroll horizon of {horizon} \
         generations needs a noise_reuse of {horizon}, not {noise_reuse}"
    )]
    UnrollVotes {
        /// Generations of the horizon.
        horizon: u64,
        /// Generations that share one draw.
        noise_reuse: u64,
        /// The parameter.
        path: String,
    },
    /// A learning-rate schedule that Burn refuses: why, and the schedule.
    #[error("invalid learning-rate schedule: {reason}, in {schedule}")]
    Schedule {
        /// Why.
        reason: String,
        /// The schedule.
        schedule: String,
    },
    /// A count of steps in a learning-rate schedule that f64 cannot hold.
    #[error("{field} must be at most 2^53, not {steps}")]
    ScheduleSteps {
        /// The field.
        field: String,
        /// Its value.
        steps: i128,
    },
    /// More generations than noise addresses.
    #[error("noise epoch {0} is beyond 2^32: raise noise_reuse or start a run with another seed")]
    NoiseGeneration(u64),
}

eggroll_core::debug_is_message!(ConfigError);

fn groups(noiser: &Option<usize>) -> String {
    noiser.map_or_else(|| "no groups".to_owned(), |members| format!("groups of {members}"))
}
