//! The process that trains: what it keeps of a run, and what it tells all replicas.

use super::checkpoint;
use super::collection::{Collection, Rules, split};
use super::config::NatsConfig;
use super::connection::{Connection, PublishFailure, Stored};
use super::counts::Counts;
use super::error::NatsError;
use super::key_files::make_keys;
use super::keys::{CoordinatorKey, SIGNATURE};
use super::notice::Notice;
use super::peers::Peers;
use super::protocol::{ENVELOPE, Origin, Told, ToldPart};
use super::replica::Assembly;
use super::run_id::RunId;
use super::score_rules::ScoreRules;
use super::streams::Label;
use crate::digest::portable_digest;
use crate::error::{Error, UserError};
use crate::replay::Recorded;
use async_nats::Subscriber;
use burn::module::Module;
use eggroll_train::{EvolutionStrategy, Fitness, Population, RunningSettings};
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;

/// Longest error of a worker, with what is around it.
const FAILURE: usize = 2048;
/// Messages at the end of the fitness among which the last generation is looked for.
const LAST: u64 = 16;

/// The process that trains, see [the module](super).
pub struct Coordinator {
    pub(super) link: Connection,
    pub(super) config: NatsConfig,
    pub(super) rules: Rules,
    pub(super) key: CoordinatorKey,
    /// Place of the next result.
    pub(super) next_result: u64,
    pub(super) status: Subscriber,
    pub(super) peers: Peers,
    pub(super) counts: Counts,
    /// Places of the fitness that was on the server when the coordinator started: the next one, and the last.
    recorded: Option<(u64, u64)>,
    /// Whose last words have which number: a message that is heard again is no other coordinator's.
    lives: BTreeMap<u64, u64>,
    origin: Origin,
    /// The generation after the last that is known.
    generation: u64,
    /// Place of the last message in the stream of fitness.
    last_fitness: u64,
    /// The same, when the checkpoint before the next was offered.
    before_checkpoint: Option<u64>,
    /// Bytes of a checkpoint at most.
    checkpoint_limit: u64,
    random: RandomState,
    draws: u64,
}

impl Coordinator {
    /// Connects, and makes the run's streams or finds those that are there: a coordinator that died continues its run. Makes the run's keys, if
    /// they are not there ([`make_keys`]).
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
        config.check_shaping(strategy.config())?;
        let key = make_keys(&config)?;
        let (population, slice_members) = (strategy.config().population_size, config.slice_members);
        let bytes = slice_members.min(population).saturating_mul(4).saturating_mul(config.tasks);
        let (scores, plausible) = (ScoreRules::of(&config, strategy), config.plausible());
        let limit = bytes.saturating_add(ENVELOPE);
        let rules = Rules { run, population, slice_members, scores, limit, plausible };
        let link = Connection::connect(&config)?;
        link.check_limit(slice_members, bytes)?;
        // Names and ids of messages stand in headers, which the stream's limit counts too.
        let largest = limit.saturating_add(2 * ENVELOPE).max(FAILURE);
        let label = Label { run, key: key.fingerprint() };
        link.create_streams(&config, &label, largest, rules.slices())?;
        let random = RandomState::new();
        let origin = Origin { life: random.build_hasher().finish(), number: 0 };
        link.publish_label(&key, &label, origin.life)?;
        let last_fitness = link.wait_for_last(&link.names.fitness)?;
        let coordinator = Self {
            next_result: 1,
            status: link.subscribe(&link.names.status_subject("*"))?,
            peers: Peers::new(config.ack_wait, config.longest_slice),
            recorded: Some((1, last_fitness)),
            rules,
            key,
            lives: BTreeMap::new(),
            origin,
            generation: strategy.generation(),
            last_fitness,
            before_checkpoint: None,
            checkpoint_limit: checkpoint::limit(&config, strategy),
            counts: Counts::default(),
            random,
            draws: 0,
            link,
            config,
        };
        coordinator.with_recorded(strategy.generation())
    }

    /// Says how much of the run is on the server already: what is evaluated from `first` on.
    fn with_recorded(mut self, first: u64) -> Result<Self, NatsError> {
        let last = self.last_fitness;
        let near_end = self.generation_among((last.saturating_sub(LAST) + 1..=last).rev())?;
        let near_begin = self.fitness_at(1)?.map_or(1, |message| message.sequence);
        self.generation = self.generation.max(near_end.map_or(0, |last| last + 1));
        let begin = self.generation_among(near_begin..=last.min(near_begin + LAST))?;
        if let (Some(begin), Some(last)) = (begin, near_end)
            && last >= first
        {
            let first = begin.max(first);
            self.counts.found = last - first + 1;
            self.link.notices.tell(&Notice::Recorded { first, last });
        }
        Ok(self)
    }

    /// The generation of the first of these places in the stream of fitness that has one.
    fn generation_among(&self, places: impl Iterator<Item = u64>) -> Result<Option<u64>, NatsError> {
        for place in places {
            let found = self.fitness_at(place)?.filter(|message| message.sequence == place);
            if let Some((Told::Part(part), _)) = found.and_then(|message| self.genuine(&message.payload)) {
                return Ok(Some(part.generation));
            }
        }
        Ok(None)
    }

    /// Tells `tell` in place of standard error what this coordinator waits for, every [`NatsConfig::report_every`].
    pub fn with_notices(mut self, tell: impl FnMut(&Notice) + Send + 'static) -> Self {
        self.link.notices.set(tell);
        self
    }

    /// What has arrived.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The fitness of a whole population, evaluated by the workers; at once, if the server has it from before this coordinator started.
    ///
    /// `score` evaluates a slice as workers do: where a result cannot be taken on trust, where two differ, for a share of slices
    /// ([`verify_share`](field@NatsConfig::verify_share)), and where workers fail, the coordinator looks itself, and what it finds counts.
    ///
    /// Waits for workers as long as it takes, and says so ([`with_notices`](Self::with_notices)).
    ///
    /// # Errors
    ///
    /// [`NatsError`]; [`NatsError::SliceFailed`] if `score` fails at workers and here, [`NatsError::Training`] with
    /// [`Error::User`] if it fails here alone.
    pub fn evaluate<M: Module>(
        &mut self,
        model: &M,
        population: &Population,
        mut score: impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
    ) -> Result<Fitness, NatsError> {
        let (generation, settings) = (population.generation(), population.settings());
        if settings != RunningSettings::default() {
            return Err(NatsError::Settings { generation, settings });
        }
        self.generation = self.generation.max(generation + 1);
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
        let mut collection = Collection::new(rules, generation, digest, self.origin.life as u32);
        self.collect(&mut collection, &mut own)?;
        let scores = collection.join();
        self.publish(generation, &scores)?;
        self.link.purge(&self.link.names.results, Some(self.next_result))?;
        Ok(scores.into_fitness())
    }

    /// The scores of a generation, if the server has had them since before this coordinator started.
    fn recorded(&mut self, generation: u64) -> Result<Option<Recorded>, NatsError> {
        let mut assembly = Assembly::new(generation, self.rules.scores_of_all());
        while let Some((next, last)) = self.recorded {
            // The last messages may have been dropped meanwhile.
            let Some(message) = self.fitness_at(next)?.filter(|message| message.sequence <= last) else {
                self.recorded = None;
                break;
            };
            self.recorded = Some((message.sequence + 1, last));
            let Some((told, origin)) = self.genuine(&message.payload) else { continue };
            self.is_news(origin);
            if let Told::Part(part) = told
                && let Some(scores) = assembly.take(part, origin.life)?
            {
                return Ok(Some(scores));
            }
        }
        Ok(None)
    }

    /// What a coordinator of this run has told.
    fn genuine(&self, sealed: &[u8]) -> Option<(Told, Origin)> {
        Told::decode(self.key.open_own(sealed)?, &self.rules.run).ok()
    }

    /// Whether this was not heard before; notes it.
    fn is_news(&mut self, origin: Origin) -> bool {
        let known = self.lives.get(&origin.life).copied();
        self.lives.insert(origin.life, known.unwrap_or(0).max(origin.number));
        known.is_none_or(|known| origin.number > known)
    }

    fn fitness_at(&self, place: u64) -> Result<Option<Stored>, NatsError> {
        self.link.persist("reading the fitness", async || self.link.next(&self.link.names.fitness, place).await)
    }

    /// Refuses to run next to another coordinator, before it takes away the other's work. Messages in the stream that no coordinator has
    /// made, or that are heard again, are let alone.
    pub(super) fn check_alone(&mut self, generation: u64) -> Result<(), NatsError> {
        let last = self.link.wait_for_last(&self.link.names.fitness)?;
        if last < self.last_fitness {
            return Err(NatsError::SecondCoordinator { generation });
        }
        while self.last_fitness < last {
            let place = self.last_fitness + 1;
            let Some(message) = self.fitness_at(place)?.filter(|message| message.sequence <= last) else { break };
            if let Some((_, origin)) = self.genuine(&message.payload)
                && origin.life != self.origin.life
                && self.is_news(origin)
            {
                return Err(NatsError::SecondCoordinator { generation });
            }
            self.counts.foreign += 1;
            self.last_fitness = message.sequence;
        }
        self.last_fitness = last;
        Ok(())
    }

    /// A number from 0 to 1 that no worker knows before.
    pub(super) fn draw(&mut self) -> f64 {
        let mut hasher = self.random.build_hasher();
        self.draws += 1;
        hasher.write_u64(self.draws);
        hasher.finish() as f64 / u64::MAX as f64
    }

    /// Publishes the fitness of a generation for all replicas, and for a coordinator after this one.
    fn publish(&mut self, generation: u64, scores: &Recorded) -> Result<(), NatsError> {
        let parts = split(scores, self.link.message_bytes().saturating_sub(SIGNATURE));
        let count = parts.len() as u32;
        for (part, scores) in (0..count).zip(parts) {
            self.tell(&Told::Part(ToldPart { generation, part, parts: count, scores }), generation)?;
        }
        Ok(())
    }

    /// Publishes to all replicas, if no other coordinator has published.
    fn tell(&mut self, told: &Told, generation: u64) -> Result<(), NatsError> {
        self.origin.number += 1;
        let subject = self.link.names.fitness_subject();
        let id = format!("{:016x}.{}", self.origin.life, self.origin.number);
        let bytes = self.key.seal(told.encode(&self.rules.run, self.origin));
        loop {
            let (link, after) = (&self.link, self.last_fitness);
            let place = link.persist("publishing fitness", async || {
                match link.publish(&subject, &id, &bytes, Some(after)).await {
                    Err(PublishFailure::NotLast) => Ok(None),
                    published => Ok(Some(published?)),
                }
            })?;
            if let Some(place) = place {
                // A repetition has the place of the first.
                self.last_fitness = after.max(place);
                return Ok(());
            }
            self.check_alone(generation)?;
            if self.last_fitness == after {
                return Err(NatsError::SecondCoordinator { generation });
            }
        }
    }

    /// Puts a checkpoint that [`Checkpoints::save`](crate::Checkpoints::save) has made of the strategy as it is now on the server,
    /// where workers that join late find it, and drops fitness that is older than the checkpoint before.
    ///
    /// # Errors
    ///
    /// [`NatsError`].
    pub fn offer_checkpoint(&mut self, folder: &Path) -> Result<(), NatsError> {
        self.draws += 1;
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.draws);
        let label = Label { run: self.rules.run, key: self.key.fingerprint() };
        let limit = self.checkpoint_limit;
        checkpoint::offer(&self.link, &self.config, &self.key, &label, hasher.finish(), limit, folder)?;
        if let Some(place) = self.before_checkpoint.replace(self.last_fitness) {
            self.link.purge(&self.link.names.fitness, Some(place + 1))?;
        }
        Ok(())
    }

    /// The latest checkpoint on the server, if it is of a later generation than `strategy`: for a coordinator that has lost its own.
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
        checkpoint::load(&self.link, &self.config, |sealed| self.key.open_own(sealed), strategy, model)
    }

    /// Tells the workers that the run is over. The streams stay, for workers that come later; [`remove_run`](super::remove_run) removes them.
    ///
    /// # Errors
    ///
    /// [`NatsError`].
    pub fn finish(mut self) -> Result<Counts, NatsError> {
        let generation = self.generation;
        self.tell(&Told::End { generation }, generation)?;
        Ok(self.counts)
    }
}
