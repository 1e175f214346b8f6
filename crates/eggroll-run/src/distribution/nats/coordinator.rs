//! The process that trains: hands out slices, judges results, publishes the fitness of all.

use super::checkpoint;
use super::collection::{Collection, Judgement, Rejection, Rules, same_bits, split};
use super::config::NatsConfig;
use super::connection::{Connection, Failure, PublishFailure, for_now};
use super::counts::Counts;
use super::error::NatsError;
use super::protocol::{ENVELOPE, ScoreRules, Told, ToldPart, Work};
use super::replica::Assembly;
use super::run_id::RunId;
use super::stream_reader::StreamReader;
use crate::digest::portable_digest;
use crate::error::Error;
use crate::replay::Recorded;
use crate::steps::UserError;
use async_nats::jetstream::{ErrorCode, Message};
use burn::module::Module;
use eggroll_train::{EvolutionStrategy, Fitness, Population};
use futures_util::future::try_join_all;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often a coordinator that waits looks about.
const TICK: Duration = Duration::from_millis(250);
/// Workers that are told apart at most.
const WORKERS: usize = 1 << 16;

/// The process that trains, see [the module](super).
pub struct Coordinator {
    link: Connection,
    config: NatsConfig,
    rules: Rules,
    results: StreamReader,
    /// The fitness that was on the server when the coordinator started, up to that place.
    recorded: Option<(StreamReader, u64)>,
    /// Tells what this coordinator publishes from what an earlier one has: the server remembers messages by their ids.
    life: u32,
    /// Place of the last message in the stream of fitness.
    last_fitness: u64,
    /// The same, when the checkpoint before the next was offered.
    before_checkpoint: Option<u64>,
    counts: Counts,
    strikes: BTreeMap<String, u32>,
    random: RandomState,
    draws: u64,
}

impl Coordinator {
    /// Connects, and makes the run's streams or finds those that are there: a coordinator that died goes on with its run.
    ///
    /// # Errors
    ///
    /// [`NatsError`].
    ///
    /// # Panics
    ///
    /// Panics inside an asynchronous runtime, as all methods do.
    pub fn connect(config: NatsConfig, strategy: &EvolutionStrategy) -> Result<Self, NatsError> {
        let run = RunId::of(&config, strategy)?;
        let (population, slice_members) = (strategy.config().population, config.slice_members);
        let bytes = slice_members.min(population).saturating_mul(4).saturating_mul(config.questions);
        let scores = ScoreRules::of(&config, strategy);
        let rules = Rules { run, population, slice_members, scores, limit: bytes.saturating_add(ENVELOPE) };
        let link = Connection::connect(&config)?;
        link.check_limit(slice_members, bytes)?;
        // Names and ids of messages stand in headers, which the stream's limit counts too.
        link.create_streams(&config, &run, rules.limit.saturating_add(2 * ENVELOPE), rules.slices())?;
        let last_fitness = link.wait_for_last(&link.names.fitness)?;
        let tail = |stream: &str| StreamReader::new(link.context.clone(), stream, 1);
        Ok(Self {
            results: tail(&link.names.results),
            recorded: Some((tail(&link.names.fitness), last_fitness)),
            rules,
            life: incarnation(),
            last_fitness,
            before_checkpoint: None,
            counts: Counts::default(),
            strikes: BTreeMap::new(),
            random: RandomState::new(),
            draws: 0,
            link,
            config,
        })
    }

    /// What has arrived.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The fitness of a whole population, evaluated by the workers; at once, if the server has it from before this coordinator started.
    ///
    /// `score` evaluates a slice as workers do: where a result is not finite, where two differ, and for a share of slices
    /// ([`NatsConfig::verify_share`]) the coordinator looks itself, and what it finds counts.
    ///
    /// Waits for workers as long as it takes.
    ///
    /// # Errors
    ///
    /// [`NatsError`]; [`NatsError::Training`] with [`Error::User`] if `score` fails.
    pub fn evaluate<M: Module>(
        &mut self,
        model: &M,
        population: &Population,
        mut score: impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
    ) -> Result<Fitness, NatsError> {
        let generation = population.generation();
        if let Some(scores) = self.recorded(generation)? {
            self.counts.recovered += 1;
            return Ok(scores.into_fitness());
        }
        let rules = self.rules;
        let mut own = |slice: usize| {
            let members = rules.members(slice);
            let fitness = score(model, &population.slice(members.clone())).map_err(Error::User)?;
            rules.scores.pack(&fitness, members.len())
        };
        let digest = self.config.digest_is_due(generation).then(|| portable_digest(model));
        let mut collection = Collection::new(rules, generation, digest, incarnation());
        self.collect(&mut collection, &mut own)?;
        let scores = collection.join();
        self.publish(generation, &scores)?;
        self.link.purge(&self.link.names.results, Some(self.results.position()))?;
        Ok(scores.into_fitness())
    }

    /// The scores of a generation, if the server has had them since before this coordinator started.
    fn recorded(&mut self, generation: u64) -> Result<Option<Recorded>, NatsError> {
        let mut assembly = Assembly::new(generation);
        while let Some((tail, last)) = &mut self.recorded {
            if tail.position() > *last {
                self.recorded = None;
                break;
            }
            // The last messages may have been dropped meanwhile.
            let Some(message) = self.link.wait(tail.next(), self.link.patience) else {
                self.recorded = None;
                break;
            };
            if let Ok(Told::Part(part)) = Told::decode(&message.payload, &self.rules.run)
                && let Some(scores) = assembly.take(part)?
            {
                return Ok(Some(scores));
            }
        }
        Ok(None)
    }

    /// Collects all slices: first those whose results are on the server, then those that are missing.
    fn collect(
        &mut self,
        collection: &mut Collection,
        own: &mut impl FnMut(usize) -> Result<Recorded, NatsError>,
    ) -> Result<(), NatsError> {
        self.check_alone(collection.generation())?;
        let last = self.link.wait_for_last(&self.link.names.results)?;
        while self.results.position() <= last {
            // What was dropped meanwhile never comes.
            let Some(message) = self.link.wait(self.results.next(), 4 * TICK) else { break };
            self.hear(collection, &message, own)?;
        }
        self.link.purge(&self.link.names.work, None)?;
        collection.want_missing();
        let (mut offered, mut progress) = (None, Instant::now());
        while collection.missing() > 0 {
            // Not more often, whatever workers send.
            if offered.is_none_or(|offered: Instant| offered.elapsed() >= TICK) {
                self.offer(collection, offered.is_some())?;
                offered = Some(Instant::now());
            }
            let (missing, message) = (collection.missing(), self.link.wait(self.results.next(), TICK));
            let is_quiet = message.is_none();
            if let Some(message) = message {
                self.hear(collection, &message, own)?;
            }
            if collection.missing() < missing {
                progress = Instant::now();
            } else if progress.elapsed() >= self.config.offer_again_after || is_quiet && self.nothing_is_out() {
                self.check_alone(collection.generation())?;
                collection.want_missing();
                progress = Instant::now();
            }
        }
        Ok(())
    }

    /// Refuses to go on beside another coordinator, before it takes away the other's work.
    fn check_alone(&self, generation: u64) -> Result<(), NatsError> {
        let last = self.link.wait_for_last(&self.link.names.fitness)?;
        if last == self.last_fitness { Ok(()) } else { Err(NatsError::SecondCoordinator { generation }) }
    }

    /// Publishes the offers that are due.
    fn offer(&mut self, collection: &mut Collection, again: bool) -> Result<(), NatsError> {
        let (offers, subject) = (collection.offers(), self.link.names.work_subject());
        self.counts.offered_again += if again { offers.len() as u64 } else { 0 };
        let (link, run, subject) = (&self.link, &self.rules.run, &subject);
        let publish = |work: &Work| {
            let id = format!("{}.{}.{}", work.generation, work.slice, work.attempt);
            let bytes = work.encode(run);
            async move { link.publish(subject, &id, &bytes, None).await }
        };
        link.persist("offering slices", async || {
            try_join_all(offers.iter().map(publish)).await.map(drop).map_err(Failure::from)
        })
    }

    /// Whether all work is acknowledged and all results are heard, so that what is missing is lost. If the server does not say, it is
    /// not.
    fn nothing_is_out(&self) -> bool {
        let out = async {
            let workers = self.link.workers().await?;
            let info = workers.cached_info();
            if info.num_pending > 0 || info.num_ack_pending > 0 {
                return Ok(true);
            }
            // Results are published before work is acknowledged.
            let last = self.link.last_sequence(&self.link.names.results).await?;
            Ok::<_, Failure>(last >= self.results.position())
        };
        matches!(self.link.wait(out, 4 * TICK), Some(Ok(false)))
    }

    /// Takes a result, or says why not.
    fn hear(
        &mut self,
        collection: &mut Collection,
        message: &Message,
        own: &mut impl FnMut(usize) -> Result<Recorded, NatsError>,
    ) -> Result<(), NatsError> {
        let node = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
        let is_new = !self.strikes.contains_key(&node);
        if self.counts.ignored.contains(&node) || is_new && self.strikes.len() >= WORKERS {
            self.reject(collection, &node, Rejection::Ignored);
            return Ok(());
        }
        self.strikes.entry(node.clone()).or_default();
        match collection.judge(&node, &message.payload) {
            Judgement::Accepted(slice) => {
                self.accept(&node);
                if self.draw() < self.config.verify_share {
                    self.look(collection, slice, None, own)?;
                }
            }
            Judgement::Duplicate => self.counts.duplicates += 1,
            Judgement::Doubtful(slice, scores) => self.look(collection, slice, Some((node, scores)), own)?,
            Judgement::Rejected(reason) => self.reject(collection, &node, reason),
        }
        Ok(())
    }

    /// Evaluates a slice here, and holds it against what workers say: the one whose scores are held, and `other`.
    fn look(
        &mut self,
        collection: &mut Collection,
        slice: usize,
        other: Option<(String, Recorded)>,
        own: &mut impl FnMut(usize) -> Result<Recorded, NatsError>,
    ) -> Result<(), NatsError> {
        let scores = own(slice)?;
        self.counts.evaluated += 1;
        let held = collection.settle(slice, scores.clone());
        for (node, claimed) in [held, other.clone()].into_iter().flatten() {
            let is_other = other.as_ref().is_some_and(|(other, _)| *other == node);
            match &claimed {
                claimed if same_bits(claimed, &scores) && is_other => self.accept(&node),
                claimed if same_bits(claimed, &scores) => {}
                Recorded::Floats(values) if !values.iter().all(|value| value.is_finite()) => {
                    self.reject(collection, &node, Rejection::NotFinite);
                }
                _ => self.reject(collection, &node, Rejection::Disagreement),
            }
        }
        Ok(())
    }

    fn accept(&mut self, node: &str) {
        self.counts.accepted += 1;
        *self.counts.by_node.entry(node.to_owned()).or_default() += 1;
    }

    fn reject(&mut self, collection: &mut Collection, node: &str, reason: Rejection) {
        *self.counts.rejected.entry(reason).or_default() += 1;
        if !reason.is_a_strike() {
            return;
        }
        let strikes = self.strikes.entry(node.to_owned()).or_default();
        *strikes += 1;
        if *strikes >= self.config.strikes && self.counts.ignored.insert(node.to_owned()) {
            // What it has sent before may be wrong where nobody looked.
            collection.forget(node);
        }
    }

    /// A number from 0 to 1 that no worker knows before.
    fn draw(&mut self) -> f64 {
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.draws);
        self.draws += 1;
        hasher.finish() as f64 / u64::MAX as f64
    }

    /// Publishes the fitness of a generation for all replicas, and for a coordinator after this one.
    fn publish(&mut self, generation: u64, scores: &Recorded) -> Result<(), NatsError> {
        let parts = split(scores, self.link.message_bytes());
        let count = parts.len() as u32;
        for (part, scores) in (0..count).zip(parts) {
            let told = Told::Part(ToldPart { generation, part, parts: count, scores });
            self.tell(&format!("{}.{generation}.{part}", self.life), &told, generation)?;
        }
        Ok(())
    }

    /// Publishes to all replicas, if nobody else has published.
    fn tell(&mut self, id: &str, told: &Told, generation: u64) -> Result<(), NatsError> {
        let (subject, bytes) = (self.link.names.fitness_subject(), told.encode(&self.rules.run));
        let (link, after) = (&self.link, self.last_fitness);
        let place =
            link.persist("publishing fitness", async || match link.publish(&subject, id, &bytes, Some(after)).await {
                Err(PublishFailure::NotLast) => Err(Failure::ForGood(NatsError::SecondCoordinator { generation })),
                published => Ok(published?),
            })?;
        // A repetition has the place of the first.
        self.last_fitness = after.max(place);
        Ok(())
    }

    /// Puts a checkpoint that [`Checkpoints::save`](crate::Checkpoints::save) has made of the strategy as it is now into the object store,
    /// where workers that join late find it, and drops fitness that is older than the checkpoint before.
    ///
    /// # Errors
    ///
    /// [`NatsError`].
    pub fn offer_checkpoint(&mut self, folder: &Path) -> Result<(), NatsError> {
        checkpoint::offer(&self.link, &self.config, folder)?;
        if let Some(place) = self.before_checkpoint.replace(self.last_fitness) {
            self.link.purge(&self.link.names.fitness, Some(place + 1))?;
        }
        Ok(())
    }

    /// The latest checkpoint in the object store, if it is of a later generation than `strategy`: for a coordinator that has lost its own.
    /// The values of `model` do not matter.
    ///
    /// # Errors
    ///
    /// [`NatsError`].
    pub fn load_checkpoint<M: Module>(
        &self,
        strategy: &EvolutionStrategy,
        model: &M,
    ) -> Result<Option<(EvolutionStrategy, M)>, NatsError> {
        checkpoint::load(&self.link, &self.config, strategy, model)
    }

    /// Tells the workers that the run is over. The streams stay, for workers that come later; [`remove_run`] removes them.
    ///
    /// # Errors
    ///
    /// [`NatsError`].
    pub fn finish(mut self) -> Result<Counts, NatsError> {
        self.tell(&format!("{}.end", self.life), &Told::End, 0)?;
        self.link.purge(&self.link.names.work, None)?;
        Ok(self.counts)
    }
}

/// Removes everything that the server has of a run.
///
/// # Errors
///
/// [`NatsError`].
pub fn remove_run(config: &NatsConfig) -> Result<(), NatsError> {
    use async_nats::jetstream::context::GetStreamErrorKind::JetStream;
    let link = Connection::connect(config)?;
    let bucket = format!("OBJ_{}", link.names.bucket);
    // The store first: its checkpoints would be later than what a run of the same name begins with.
    for name in [&bucket, &link.names.work, &link.names.results, &link.names.fitness] {
        link.persist(&format!("removing {name}"), async || match link.context.delete_stream(name).await {
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(()),
                _ => Err(for_now(error)),
            },
        })?;
    }
    Ok(())
}

/// A number that an earlier coordinator of the run has not begun with.
fn incarnation() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u32
}
