//! A process that evaluates slices.

use super::checkpoint;
use super::config::NatsConfig;
use super::connection::{AttemptFailure, Connection, Stored};
use super::desk::Desk;
use super::error::NatsError;
use super::gather::evaluated;
use super::key_files::find_key;
use super::keys::{MAC, WorkerKey};
use super::notice::Notice;
use super::protocol::{Failed, SliceResult, Told, Work};
use super::replica::Replica;
use super::run_id::RunId;
use super::score_rules::ScoreRules;
use super::streams::Label;
use crate::digest::hex;
use crate::error::{Error, UserError};
use burn::module::Module;
use burn::train::Interrupter;
use eggroll_train::{EvolutionStrategy, Fitness, Population};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a worker that waits looks whether there is more fitness.
const TICK: Duration = Duration::from_millis(500);
/// How often a worker looks whether the fitness is there that work needs.
const SOON: Duration = Duration::from_millis(20);
/// How often a worker looks whether the coordinator has made its key.
const KEY: Duration = Duration::from_millis(100);

/// Counts of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerReport {
    /// Slices that it has evaluated and published.
    pub slices: u64,
    /// Slices at which the score has failed.
    pub failures: u64,
    /// Generations whose update it has made.
    pub generations: u64,
    /// Checkpoints that it has loaded.
    pub checkpoints: u64,
}

/// A process that evaluates slices, see [the module](super).
pub struct Worker {
    link: Connection,
    config: NatsConfig,
    key: Arc<WorkerKey>,
    interrupter: Interrupter,
    report: WorkerReport,
}

impl Worker {
    /// Reads this node's key ([`NatsConfig::keys`]) and connects to the server. Waits for a key that the coordinator has not made yet, if
    /// `keys` is a folder.
    ///
    /// # Errors
    ///
    /// [`NatsError`].
    ///
    /// # Panics
    ///
    /// Panics inside an asynchronous runtime, as [`run`](Self::run) does.
    pub fn connect(mut config: NatsConfig) -> Result<Self, NatsError> {
        config.validate()?;
        config.connection.addresses()?;
        let key = wait_for_key(&config)?;
        if let Some(node) = key.node() {
            config.node = node.to_owned();
        }
        let link = Connection::connect(&config)?;
        let (interrupter, report) = (Interrupter::new(), WorkerReport::default());
        Ok(Self { link, config, key: Arc::new(key), interrupter, report })
    }

    /// Stops between two slices when the interrupter says so.
    pub fn with_interrupter(mut self, interrupter: Interrupter) -> Self {
        self.interrupter = interrupter;
        self
    }

    /// Reports to `tell`, instead of standard error, why this worker waits, every [`NatsConfig::report_every`].
    pub fn with_notices(mut self, tell: impl FnMut(&Notice) + Send + 'static) -> Self {
        self.link.notices.set(tell);
        self
    }

    /// Its counts so far.
    pub fn report(&self) -> WorkerReport {
        self.report
    }

    /// Evaluates slices with `score` until the run is over or this worker is interrupted, and returns strategy and model as they are then.
    /// Begins with `strategy` and `model`, the first of the run or those of a checkpoint, or with the latest checkpoint on the server
    /// if that is later. Waits for the run to begin.
    ///
    /// Where `score` fails or panics, the coordinator is told, another worker gets the slice, and this one continues with others.
    ///
    /// # Errors
    ///
    /// [`NatsError`]; [`NatsError::Diverged`] if the parameters here are not the coordinator's.
    pub fn run<M: Module>(
        &mut self,
        strategy: EvolutionStrategy,
        model: M,
        score: impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
    ) -> Result<(EvolutionStrategy, M), NatsError> {
        let run = RunId::of(&self.config, &strategy)?;
        self.link.find_label(&self.config, &self.key, &Label { run, key: self.key.fingerprint() })?;
        // Three signs of life in the time after which this worker counts as gone.
        let (node, pause) = (self.config.node.clone(), self.config.ack_wait / 3);
        let desk = Desk::open(&self.link, &node, self.key.clone(), run, pause, self.config.longest_slice)?;
        let rules = ScoreRules::of(&self.config, &strategy);
        let scores = strategy.config().population_size.saturating_mul(self.config.tasks);
        let mut replica = Replica::new(strategy, model, scores);
        let worked = self.work(&run, &rules, &desk, &mut replica, score);
        self.link.runtime.block_on(desk.leave());
        worked.map(|()| replica.into_parts())
    }

    fn work<M: Module>(
        &mut self,
        run: &RunId,
        rules: &ScoreRules,
        desk: &Desk,
        replica: &mut Replica<M>,
        mut score: impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
    ) -> Result<(), NatsError> {
        self.catch_up(replica)?;
        // Place of the next message with fitness, and whether the last one was the run's end.
        let (mut next, mut ended) = (1, false);
        while !self.interrupter.should_stop() {
            if let Some(message) = self.fitness(next)? {
                next = message.sequence + 1;
                let sealed = self.key.open(&message.payload);
                // What the coordinator has not signed says nothing.
                let Some((told, origin)) = sealed.and_then(|bytes| Told::decode(bytes, run).ok()) else { continue };
                ended = matches!(told, Told::End { generation } if generation == replica.generation());
                let Told::Part(part) = told else { continue };
                match replica.assembly.take(part, origin.life) {
                    Ok(Some(scores)) => {
                        replica.tell(scores)?;
                        self.report.generations += 1;
                    }
                    Ok(None) => {}
                    Err(gap) if !self.catch_up(replica)? => return Err(gap),
                    Err(_) => next = 1,
                }
                continue;
            }
            if ended {
                break;
            }
            match desk.take(replica.generation()) {
                Some(work) => {
                    // Older work is of a generation that is over.
                    match work.generation == replica.generation() && self.fits(&work, replica) {
                        true => self.evaluate(replica, &work, rules, run, &mut score)?,
                        false => self.check_fitness(next, work.generation)?,
                    }
                    desk.done();
                    self.link.runtime.block_on(desk.say(self.config.longest_slice));
                }
                None if desk.has_later(replica.generation()) => std::thread::sleep(SOON),
                None => self.link.runtime.block_on(desk.wait(TICK)),
            }
        }
        Ok(())
    }

    /// The first message with fitness from a place on, if there is one.
    fn fitness(&self, from: u64) -> Result<Option<Stored>, NatsError> {
        self.link.persist("reading the fitness", async || self.link.next(&self.link.names.fitness, from).await)
    }

    /// Refuses to follow a server that has not got any more what was read from it.
    fn check_fitness(&self, next: u64, generation: u64) -> Result<(), NatsError> {
        let names = &self.link.names;
        let last = self.link.persist("reading the fitness", async || {
            self.link.last_of(&names.fitness, &names.fitness_subject()).await
        })?;
        match last {
            Some(last) if last.sequence + 1 < next => Err(NatsError::Lost { generation }),
            _ => Ok(()),
        }
    }

    /// Continues with the latest checkpoint on the server, if there is a later one than here.
    fn catch_up<M: Module>(&mut self, replica: &mut Replica<M>) -> Result<bool, NatsError> {
        let later = checkpoint::load(
            &self.link,
            &self.config,
            |sealed| self.key.open(sealed),
            &replica.strategy,
            replica.model(),
        )?;
        let found = later.is_some();
        if let Some((strategy, model)) = later {
            let scores = strategy.config().population_size.saturating_mul(self.config.tasks);
            *replica = Replica::new(strategy, model, scores);
            self.report.checkpoints += 1;
        }
        Ok(found)
    }

    /// Whether work is a slice of the population.
    fn fits<M: Module>(&self, work: &Work, replica: &Replica<M>) -> bool {
        let population = replica.strategy.config().population_size;
        let (first, members) = (work.first as usize, work.members as usize);
        let pairs = first.is_multiple_of(2) && members.is_multiple_of(2);
        pairs && (2..=self.config.slice_members).contains(&members) && first + members <= population
    }

    /// Evaluates a slice and publishes its fitness, or what went wrong.
    fn evaluate<M: Module>(
        &mut self,
        replica: &mut Replica<M>,
        work: &Work,
        rules: &ScoreRules,
        run: &RunId,
        score: &mut impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
    ) -> Result<(), NatsError> {
        if let Some(expected) = &work.digest {
            let found = replica.digest();
            if found != *expected {
                return Err(NatsError::Diverged { generation: work.generation, expected: expected.clone(), found });
            }
        }
        let (first, members) = (work.first as usize, work.members as usize);
        let slice = replica.population().slice(first..first + members);
        let scores = evaluated(|| rules.pack(&score(replica.model(), &slice).map_err(Error::User)?, members));
        let message = match scores {
            Ok(scores) => {
                self.report.slices += 1;
                let digest = work.digest.is_some().then(|| replica.digest());
                SliceResult::of_scores(work, digest, scores).encode(run)
            }
            Err(error) => {
                self.report.failures += 1;
                Failed::new(work.held(), &error).encode(run)
            }
        };
        let (node, link) = (&self.config.node, &self.link);
        let (subject, sealed) = (link.names.result_subject(node), self.key.seal(node, message));
        // The server drops a second message of the same id, whoever has sent the first: nobody without this key knows the id before.
        let id = hex(&sealed[sealed.len() - MAC..]);
        link.persist("publishing a result", async || {
            link.publish(&subject, &id, &sealed, None).await.map(drop).map_err(AttemptFailure::from)
        })
    }
}

/// The key of this node, when it is there.
fn wait_for_key(config: &NatsConfig) -> Result<WorkerKey, NatsError> {
    let start = Instant::now();
    loop {
        if let Some(key) = find_key(config)? {
            return Ok(key);
        }
        if start.elapsed() >= config.patience {
            let reason = format!(
                "no {0}.workers.key or {0}.{1}.key: the coordinator makes them in its folder; copy one here, or give the file itself",
                config.run, config.node
            );
            return Err(NatsError::Key { path: config.keys.clone(), reason });
        }
        std::thread::sleep(KEY.min(config.patience));
    }
}
