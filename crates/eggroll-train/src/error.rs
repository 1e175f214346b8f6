//! Everything that can go wrong in training, with the values in it.

use crate::distribution::DistributionError;
use crate::input_projection::InputProjection;
use crate::optimizer::IntegerAdamWConfig;
use crate::rollout::RolloutError;
use burn::optim::AdafactorConfig;
use burn::store::RecordError;
use eggroll_core::{NoiseSourceError, NoiserError, TableError};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Antithetic pairs need an even, positive population.
    #[error("the population must be even and at least 2, not {0}")]
    Population(usize),
    /// A noise scale that is not positive and finite.
    #[error("sigma must be positive and finite, not {0}")]
    Sigma(f64),
    /// A decay that is not in (0, 1].
    #[error("the decay of sigma must be in (0, 1], not {0}")]
    SigmaDecay(f64),
    /// A longest gradient that is not positive and finite.
    #[error("gradients must be clipped to a norm that is positive and finite, not {0}")]
    ClipNorm(f64),
    /// Baselines that the shaping rule finds elsewhere than the noiser makes them.
    #[error("the shaping rule finds baselines in groups of {shaping}, but the noiser's groups are {noiser:?}")]
    Baselines {
        /// Members of a group in the shaping rule.
        shaping: usize,
        /// Members of the noiser's groups, if it has any.
        noiser: Option<usize>,
    },
    /// An optimizer of integer parameters for a model that trains others.
    #[error(
        "the optimizer integer_adam_w is for integer parameters only, and \"{0}\" is a float parameter that is trained"
    )]
    FloatParameter(String),
    /// A name that no optimizer has: what was given, and the names there are.
    #[error("no such optimizer: {0}")]
    OptimizerName(String),
    /// A name that no shaping rule has: what was given, and the names there are.
    #[error("no such fitness shaping: {0}")]
    ShapingName(String),
    /// A name that no input projection has: what was given, and the names there are.
    #[error("no such input projection: {0}")]
    ProjectionName(String),
    /// Settings that Adafactor cannot have.
    #[error(
        "Adafactor needs positive epsilons and clip_threshold, a negative decay_rate and no negative weight_decay, all \
         finite, not {0}"
    )]
    Adafactor(AdafactorConfig),
    /// Iterations of Muon that would not end.
    #[error("Muon makes at most {most} Newton-Schulz steps, not {steps}")]
    NewtonSchulz {
        /// Steps that are asked for.
        steps: f64,
        /// The most there are.
        most: f64,
    },
    /// Settings that ClipUp cannot have.
    #[error(
        "ClipUp needs a momentum from 0 to below 1 and a positive, finite max_speed, not {momentum} and {max_speed}"
    )]
    ClipUp {
        /// Share of the velocity that is kept.
        momentum: f64,
        /// The longest step.
        max_speed: f64,
    },
    /// Settings that integer AdamW cannot have.
    #[error("integer AdamW needs betas from 0 to below 1, a positive epsilon and no negative weight decay, not {0}")]
    IntegerAdamW(IntegerAdamWConfig),
    /// A group of members that does not divide the population.
    #[error("fitness groups of {group} do not divide a population of {population}")]
    Group {
        /// Size of a group.
        group: usize,
        /// Members of a generation.
        population: usize,
    },
    /// A constant learning rate that is not a number, infinite or negative.
    #[error("the learning rate must be finite and not negative, not {0}")]
    LearningRate(f64),
    /// A chunk of members that holds no pair.
    #[error("a chunk must hold at least one pair of members, not {0} members")]
    Chunk(usize),
    /// An episode without a generation.
    #[error("an episode lasts at least 1 generation, not {0}")]
    EpisodeLength(u64),
    /// An episode that would begin or end within a noise generation.
    #[error(
        "noise that {noise_reuse} generations share does not divide an episode of {episode}: with 1 it is fresh in every \
         generation, with {episode} it stays for the episode"
    )]
    EpisodeNoise {
        /// Generations of an episode.
        episode: u64,
        /// Generations that share one draw.
        noise_reuse: u64,
    },
    /// A projection onto the rows of one generation of an estimate that earlier ones are part of.
    #[error(
        "estimates cannot be projected ({projection:?}) onto a generation's input rows: in an episode of {episode} generations the \
         fitness depends on earlier rows too"
    )]
    EpisodeProjection {
        /// Generations of an episode.
        episode: u64,
        /// The projection.
        projection: InputProjection,
    },
    /// Votes that would have to count the noise of several noise generations.
    #[error(
        "\"{path}\" is updated by votes, which count the noise of one noise generation: an episode of {episode} \
         generations needs noise that all of them share, not {noise_reuse} of them"
    )]
    EpisodeVotes {
        /// Generations of an episode.
        episode: u64,
        /// Generations that share one draw.
        noise_reuse: u64,
        /// The parameter.
        path: String,
    },
    /// Settings of rollouts.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// A learning-rate schedule that burn refuses.
    #[error("the learning-rate schedule is invalid: {0}")]
    Schedule(String),
    /// The noiser's settings.
    #[error(transparent)]
    Noiser(#[from] NoiserError),
    /// The model's parameters.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The noise source.
    #[error(transparent)]
    NoiseSource(#[from] NoiseSourceError),
    /// A fitness of the wrong length: not that of whole questions to all members.
    #[error("{found} fitness values for a population of {population}")]
    FitnessLength {
        /// Values given.
        found: usize,
        /// Members of the generation.
        population: usize,
    },
    /// A population that the strategy did not ask for last.
    #[error("tell got the population of generation {found}, but generation {expected} is due")]
    Generation {
        /// Generation of the population given.
        found: u64,
        /// Generation that is due.
        expected: u64,
    },
    /// A model with other parameters than the one the strategy was made for.
    #[error("the model is not the one that the strategy was made for: {0}")]
    OtherModel(String),
    /// Parameters that no forward of the evaluation perturbed.
    #[error(
        "never perturbed in evaluate: {0:?}. Use eggroll's modules for them, call forward on the thread that \
         evaluates, or freeze them by name"
    )]
    NeverPerturbed(Vec<String>),
    /// More generations than noise addresses.
    #[error("noise generation {0} is beyond 2^32")]
    NoiseGeneration(u64),
    /// A file or folder.
    #[error("{path}: {source}")]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A checkpoint that cannot be used.
    #[error("checkpoint {path}: {reason}")]
    Checkpoint {
        /// The checkpoint.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
    /// A checkpoint or a replay log of another format than this version writes.
    #[error("{path}: of format {found}, and this version reads format {known}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format that is read.
        known: u32,
    },
    /// A checkpoint or a replay log of another noise.
    #[error(
        "{path}: of version {found} of the noise stream, and this version draws {known}: it would not go on bit for bit"
    )]
    NoiseStream {
        /// The file.
        path: PathBuf,
        /// Version of the stream when it was written.
        found: u32,
        /// Version of the stream that is drawn now.
        known: u32,
    },
    /// A file that is not what was written.
    #[error("{path}: damaged: its checksum is {found}, and was {expected} when it was written")]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The checksum when it was written.
        expected: String,
        /// The checksum now.
        found: String,
    },
    /// A file of another length than was written.
    #[error("{path}: truncated or added to: {found} bytes long, and {expected} when it was written")]
    FileLength {
        /// The file.
        path: PathBuf,
        /// Bytes when it was written.
        expected: u64,
        /// Bytes now.
        found: u64,
    },
    /// A checkpoint or a replay log of another model than the one given.
    #[error("{path}: saved of another model: {difference}")]
    SavedModel {
        /// The file.
        path: PathBuf,
        /// The first difference.
        difference: String,
    },
    /// A replay log with a damaged record, which is not one that was cut off while it was written.
    #[error(
        "{path}: the record of generation {generation}, at byte {offset}, is damaged, and there are others behind it"
    )]
    ReplayRecord {
        /// The log.
        path: PathBuf,
        /// Generation of the record.
        generation: u64,
        /// Where the record begins.
        offset: usize,
    },
    /// A generation that cannot be made of a replay log.
    #[error("{path}: the models of generations {first} to {last} can be made of it here, not that of {asked}")]
    ReplayRange {
        /// The log.
        path: PathBuf,
        /// First generation that can be made.
        first: u64,
        /// Last generation that can be made.
        last: u64,
        /// The generation asked for.
        asked: u64,
    },
    /// A fitness of another generation than a replay log goes on with.
    #[error("{path}: the record of generation {expected} is due, and the strategy was told {}", told(.found))]
    ReplayOrder {
        /// The log.
        path: PathBuf,
        /// The generation that the strategy was told last, if any.
        found: Option<u64>,
        /// The generation that is due.
        expected: u64,
    },
    /// A strategy of another configuration than the one that was logged.
    #[error("{path}: logged under the configuration {logged}, and the strategy's is {given}")]
    ReplayConfig {
        /// The log.
        path: PathBuf,
        /// The configuration of the log.
        logged: String,
        /// The configuration of the strategy.
        given: String,
    },
    /// A strategy whose updates depend on more than the fitness.
    #[error("a replay log holds fitness, and with input_projection {0:?} the estimate depends on input rows too")]
    ReplayProjection(InputProjection),
    /// A chunk of members that would take too much memory.
    #[error(
        "a chunk of {members} members takes about {needed} bytes{}, more than the {limit} that may be used: {}",
        at_once(.side_by_side), chunk_advice(.fits)
    )]
    ChunkMemory {
        /// Members of the chunk.
        members: usize,
        /// Chunks that are evaluated side by side.
        side_by_side: usize,
        /// Bytes that they would take.
        needed: u64,
        /// Bytes that may be used.
        limit: u64,
        /// Members of a chunk that fits: 0 if no pair does.
        fits: usize,
    },
    /// Noise that would take too much memory.
    #[error("{what} takes {needed} bytes, more than the {limit} that may be used: {advice}")]
    NoiseMemory {
        /// Which noise.
        what: String,
        /// Bytes of it.
        needed: u64,
        /// Bytes that may be used.
        limit: u64,
        /// What would fit.
        advice: String,
    },
    /// A weight of a pair in the estimate that f32, or a parameter's half precision, cannot hold.
    #[error(
        "the weight of pair {pair} in the estimate of generation {generation} is {weight}, with sigma {sigma}: \
         scale the fitness, shape it, or choose another scale of the estimate"
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
    /// A trace of no generations.
    #[error("a trace holds at least 1 generation, not {0}")]
    TraceGenerations(u64),
    /// A second trace at a time.
    #[error("a trace is running already: finish it first")]
    TraceRunning,
    /// A trace that has ended before.
    #[error("the trace has ended already")]
    TraceNotRunning,
    /// A process that has another subscriber.
    #[error("a trace needs to be the process's tracing subscriber, and there is another one: it sees the same spans")]
    Subscriber,
    /// Replicas of a distributed run.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// A text that cannot be used as asked.
    #[error("{path}: a text of {len} bytes cannot be used: {reason}")]
    Text {
        /// The file.
        path: PathBuf,
        /// Bytes of it, or of the part in question.
        len: usize,
        /// Why it cannot be used.
        reason: String,
    },
    /// A share for validation that leaves nothing for it, or nothing for training.
    #[error("the share for validation must be between 0 and 1, not {0}")]
    ValidationShare(f64),
    /// Streams over a text that read nothing.
    #[error("streams over a text must read something, not {streams} sequences of {steps} bytes")]
    Streams {
        /// Streams side by side.
        streams: usize,
        /// Bytes of a generation.
        steps: usize,
    },
    /// A temperature that samples cannot have.
    #[error("a temperature must be at least 0 and finite, not {0}")]
    Temperature(f64),
    /// A configuration of a run that cannot be read.
    #[error("{path}: {reason}")]
    Configuration {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        reason: String,
    },
    /// A program's settings, in the configuration of a run, that it cannot read.
    #[error("the settings of the run are not this program's: {0}")]
    Settings(String),
    /// An interval of no generations.
    #[error("{0} must be at least 1 generation, not 0")]
    Interval(&'static str),
    /// A folder that holds another run.
    #[error("{path} is that of another run: `{field}` differs")]
    OtherRun {
        /// The configuration of the run that is there.
        path: PathBuf,
        /// A field in which the configurations differ.
        field: String,
    },
    /// A number or a choice of a metric that has not been registered.
    #[error("no metric is named {name:?}; there are {known:?}")]
    UnknownMetric {
        /// The name.
        name: String,
        /// Names of metrics of that kind.
        known: Vec<String>,
    },
    /// A failure inside burn-train.
    #[error("{0}")]
    Training(Arc<burn::train::TrainingError>),
    /// A failure of the user's own code in the training loop.
    #[error(transparent)]
    User(Box<dyn std::error::Error + Send + Sync>),
}

fn told(generation: &Option<u64>) -> String {
    generation.map_or_else(|| "nothing yet".to_owned(), |generation| format!("generation {generation} last"))
}

fn at_once(side_by_side: &usize) -> String {
    if *side_by_side > 1 { format!(", {side_by_side} of them side by side") } else { String::new() }
}

fn chunk_advice(fits: &usize) -> String {
    match fits {
        0 => "not even a chunk of 2 members fits".to_owned(),
        _ => format!("a chunk of {fits} members fits"),
    }
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn record(path: impl Into<PathBuf>) -> impl FnOnce(RecordError) -> Self {
        let path = path.into();
        move |error| Self::Checkpoint { path, reason: error.to_string() }
    }
}
