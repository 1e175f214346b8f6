//! How a coordinator gets the fitness of a generation: offers, answers, and what to think of them.

use super::collection::{Collection, Judgement, Rejection, same_bits};
use super::coordinator::Coordinator;
use super::error::NatsError;
use super::notice::Notice;
use super::protocol::{Failed, Held, SliceResult, Status, Work};
use crate::replay::Recorded;
use async_nats::Message;
use futures_util::{FutureExt, StreamExt};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How often a coordinator that waits looks about.
const TICK: Duration = Duration::from_millis(250);

/// Messages of a kind that are read before anything else is looked at.
const ROUND: usize = 256;

/// Who has failed at a slice, and the last error.
#[derive(Default)]
struct Failures {
    nodes: BTreeSet<String>,
    count: u32,
    error: String,
}

/// A generation that is being evaluated.
struct Round<'a, F> {
    collection: &'a mut Collection,
    /// The coordinator's own evaluation.
    own: F,
    /// Offers for which no worker was free.
    pending: VecDeque<Work>,
    failures: BTreeMap<usize, Failures>,
}

impl Coordinator {
    /// Collects all slices: first those whose results are on the server, then those that are missing.
    pub(super) fn collect(
        &mut self,
        collection: &mut Collection,
        own: impl FnMut(usize) -> Result<Recorded, NatsError>,
    ) -> Result<(), NatsError> {
        self.check_alone(collection.generation())?;
        self.peers.forget_leases();
        let (pending, failures) = (VecDeque::new(), BTreeMap::new());
        let mut round = Round { collection, own, pending, failures };
        self.read_results(&mut round)?;
        round.collection.want_missing();
        let (mut offered, mut progress) = (None::<Instant>, Instant::now());
        let (mut told, mut deserted) = (0, false);
        while round.collection.missing() > 0 {
            let now = Instant::now();
            for held in self.peers.lost(now) {
                self.want(&mut round, held);
            }
            // Not more often, whatever workers send.
            if offered.is_none_or(|offered| offered.elapsed() >= TICK) {
                let offers = round.collection.offers();
                self.counts.offered_again += if offered.is_some() { offers.len() as u64 } else { 0 };
                round.pending.extend(offers);
                offered = Some(now);
            }
            self.assign(&mut round, now)?;
            let missing = round.collection.missing();
            if self.is_deserted(now) {
                if !deserted {
                    self.tell_missing(&round, progress.elapsed());
                }
                self.evaluate_failed(&mut round)?;
                deserted = true;
            } else {
                deserted = false;
            }
            // Workers say what they have left when a result is on the server.
            if let Some(message) = self.listen() {
                self.status(&mut round, &message);
                for _ in 0..ROUND {
                    let Some(Some(message)) = self.status.next().now_or_never() else { break };
                    self.status(&mut round, &message);
                }
            }
            self.read_results(&mut round)?;
            if round.collection.missing() < missing {
                (progress, told) = (Instant::now(), 0);
            } else if progress.elapsed() >= self.config.offer_again_after && round.pending.is_empty() {
                self.check_alone(round.collection.generation())?;
                self.peers.forget_leases();
                round.collection.want_missing();
                progress = Instant::now();
            }
            self.say_what_is_missing(&round, progress, &mut told);
        }
        Ok(())
    }

    fn say_what_is_missing<F>(&self, round: &Round<'_, F>, progress: Instant, told: &mut u128) {
        let since = progress.elapsed();
        let periods = since.as_nanos() / self.config.report_every.as_nanos();
        if periods > *told {
            *told = periods;
            self.tell_missing(round, since);
        }
    }

    fn tell_missing<F>(&self, round: &Round<'_, F>, since: Duration) {
        let (generation, missing) = (round.collection.generation(), round.collection.missing_slices());
        let workers = self.peers.heard_of(Instant::now(), |node| !self.counts.ignored.contains(node));
        let ignored = self.counts.ignored.iter().cloned().collect();
        self.link.notices.tell(&Notice::Slices { generation, missing, since, workers, ignored });
    }

    /// Whether workers were ignored, and no other one is there.
    fn is_deserted(&self, now: Instant) -> bool {
        let ignored = &self.counts.ignored;
        !ignored.is_empty() && self.peers.heard_of(now, |node| !ignored.contains(node)) == 0
    }

    /// Evaluates the slices that have failed, where nobody else is left to try them.
    fn evaluate_failed<F: FnMut(usize) -> Result<Recorded, NatsError>>(
        &mut self,
        round: &mut Round<'_, F>,
    ) -> Result<(), NatsError> {
        let slices: Vec<usize> = round.failures.keys().copied().collect();
        for slice in slices {
            if round.collection.is_missing(slice) {
                self.evaluate_slice(round, slice)?;
            }
        }
        Ok(())
    }

    /// The next sign of life.
    fn listen(&mut self) -> Option<Message> {
        let heard = async { tokio::time::timeout(TICK, self.status.next()).await };
        match self.link.runtime.block_on(heard) {
            Ok(Some(message)) => Some(message),
            // The subscription is over for good; results are read all the same.
            Ok(None) => {
                std::thread::sleep(TICK);
                None
            }
            Err(_) => None,
        }
    }

    /// Takes all results and failures that are on the server, until no slice is missing.
    fn read_results<F: FnMut(usize) -> Result<Recorded, NatsError>>(
        &mut self,
        round: &mut Round<'_, F>,
    ) -> Result<(), NatsError> {
        // A flood does not keep the coordinator from its other duties.
        for _ in 0..ROUND {
            let (link, from) = (&self.link, self.next_result);
            let found = link.persist("reading results", async || link.next(&link.names.results, from).await)?;
            let Some(message) = found else { break };
            self.next_result = message.sequence + 1;
            self.answer(round, node_of(&message.subject).to_owned(), &message.payload)?;
            if round.collection.missing() == 0 {
                break;
            }
        }
        Ok(())
    }

    /// A slice is to be offered again, if it is of this generation and nobody else has it.
    fn want<F>(&self, round: &mut Round<'_, F>, held: Held) {
        if held.generation == round.collection.generation() && !self.peers.has(held.slice) {
            round.collection.want(held.slice as usize);
        }
    }

    /// Hands pending offers to workers that have nothing to do.
    fn assign<F>(&mut self, round: &mut Round<'_, F>, now: Instant) -> Result<(), NatsError> {
        let Round { collection, pending, failures, .. } = round;
        let ignored = &self.counts.ignored;
        let mut waiting = VecDeque::new();
        while let Some(work) = pending.pop_front() {
            let slice = work.slice as usize;
            if !collection.is_missing(slice) {
                continue;
            }
            let failed = |node: &str| failures.get(&slice).is_some_and(|failed| failed.nodes.contains(node));
            let may = |node: &str| !ignored.contains(node) && !failed(node);
            let may_again = |node: &str| !ignored.contains(node);
            let free = match self.peers.out() < self.config.in_flight {
                false => None,
                // One that has failed there gets it again only if there is nobody else.
                true if self.peers.any_alive(now, may) => self.peers.idle(now, may),
                true => self.peers.idle(now, may_again),
            };
            let Some(node) = free else {
                waiting.push_back(work);
                if waiting.len() > self.config.in_flight || self.peers.idle(now, may_again).is_none() {
                    break;
                }
                continue;
            };
            self.peers.lease(&node, work.held(), now);
            let sealed = self.key.seal_work(&node, work.encode(&self.rules.run));
            self.link.say(&self.link.names.work_subject(&node), sealed)?;
        }
        waiting.extend(pending.drain(..));
        *pending = waiting;
        Ok(())
    }

    /// A worker's sign of life.
    fn status<F>(&mut self, round: &mut Round<'_, F>, message: &Message) {
        let node = node_of(&message.subject);
        let Some(status) = self.key.open(node, &message.payload) else {
            return self.count(Rejection::Forged);
        };
        // Of another run of the same name, or damaged: nothing depends on it.
        let Ok(status) = Status::decode(status, &self.rules.run) else { return };
        let now = Instant::now();
        if self.peers.hear(node, now)
            && let Some(lost) = self.peers.status(node, &status, now)
        {
            self.want(round, lost);
        }
    }

    /// Takes a result or a failure, or says why not.
    fn answer<F: FnMut(usize) -> Result<Recorded, NatsError>>(
        &mut self,
        round: &mut Round<'_, F>,
        node: String,
        sealed: &[u8],
    ) -> Result<(), NatsError> {
        // Who has no key of that node does not speak for it.
        let Some(bytes) = self.key.open(&node, sealed) else {
            self.count(Rejection::Forged);
            return Ok(());
        };
        if self.counts.ignored.contains(&node) || !self.peers.hear(&node, Instant::now()) {
            self.count(Rejection::Ignored);
            return Ok(());
        }
        if let Ok(failed) = Failed::decode(bytes, &self.rules.run) {
            let was_offered = self.peers.answered(&node, failed.held);
            return self.failed(round, &node, failed, was_offered);
        }
        match SliceResult::decode(bytes, &self.rules.run).map(|result| result.held()) {
            Ok(held) => drop(self.peers.answered(&node, held)),
            Err(_) => {
                if let Some(held) = self.peers.release(&node) {
                    self.want(round, held);
                }
            }
        }
        match round.collection.judge(&node, bytes) {
            Judgement::Accepted(slice) => {
                self.accept(&node);
                if self.draw() < self.config.verify_share() {
                    self.look(round, slice, None)?;
                }
            }
            Judgement::Duplicate => self.counts.duplicates += 1,
            Judgement::Doubtful(slice, scores) => self.look(round, slice, Some((node, scores)))?,
            Judgement::Rejected(reason) => self.reject(round.collection, &node, reason),
        }
        Ok(())
    }

    /// A slice has failed at a worker: others try, then the coordinator itself.
    fn failed<F: FnMut(usize) -> Result<Recorded, NatsError>>(
        &mut self,
        round: &mut Round<'_, F>,
        node: &str,
        failed: Failed,
        was_offered: bool,
    ) -> Result<(), NatsError> {
        let (generation, slice) = (round.collection.generation(), failed.held.slice as usize);
        if failed.held.generation != generation || !round.collection.is_missing(slice) {
            return Ok(());
        }
        self.counts.failed += 1;
        // A worker fails once at what it was offered once.
        if !was_offered {
            return Ok(());
        }
        let failures = round.failures.entry(slice).or_default();
        failures.nodes.insert(node.to_owned());
        failures.count += 1;
        failures.error = format!("{node} says: {}", failed.error);
        if failures.count < self.config.slice_failures {
            round.collection.want(slice);
            return Ok(());
        }
        self.evaluate_slice(round, slice)
    }

    /// Evaluates a slice at which workers have failed.
    fn evaluate_slice<F: FnMut(usize) -> Result<Recorded, NatsError>>(
        &mut self,
        round: &mut Round<'_, F>,
        slice: usize,
    ) -> Result<(), NatsError> {
        let generation = round.collection.generation();
        let Failures { nodes, count, error } = round.failures.remove(&slice).unwrap_or_default();
        match evaluated(|| (round.own)(slice)) {
            Ok(scores) => {
                self.counts.evaluated += 1;
                round.collection.settle(slice, scores);
                // Whoever cannot do what the coordinator can is of no use, or lies: a strike for each slice, however often it failed.
                nodes.iter().for_each(|node| self.reject(round.collection, node, Rejection::Failed));
                Ok(())
            }
            Err(own) => {
                let error = format!("{own}; {error}");
                Err(NatsError::SliceFailed { generation, slice, failures: count as usize, error })
            }
        }
    }

    /// Evaluates a slice here, and compares it with what workers say: the one whose scores are held, and `other`.
    fn look<F: FnMut(usize) -> Result<Recorded, NatsError>>(
        &mut self,
        round: &mut Round<'_, F>,
        slice: usize,
        other: Option<(String, Recorded)>,
    ) -> Result<(), NatsError> {
        let scores = (round.own)(slice)?;
        self.counts.evaluated += 1;
        let held = round.collection.settle(slice, scores.clone());
        for (node, claimed) in [held, other.clone()].into_iter().flatten() {
            let is_other = other.as_ref().is_some_and(|(other, _)| *other == node);
            match &claimed {
                claimed if same_bits(claimed, &scores) && is_other => self.accept(&node),
                claimed if same_bits(claimed, &scores) => {}
                Recorded::Floats(values) if !values.iter().all(|value| value.is_finite()) => {
                    self.reject(round.collection, &node, Rejection::NotFinite);
                }
                _ => self.reject(round.collection, &node, Rejection::Disagreement),
            }
        }
        Ok(())
    }

    fn accept(&mut self, node: &str) {
        self.counts.accepted += 1;
        *self.counts.by_node.entry(node.to_owned()).or_default() += 1;
    }

    fn count(&mut self, reason: Rejection) {
        *self.counts.rejected.entry(reason).or_default() += 1;
    }

    /// Counts against a node what it has shown its key for.
    fn reject(&mut self, collection: &mut Collection, node: &str, reason: Rejection) {
        self.count(reason);
        if !reason.is_a_strike() {
            return;
        }
        let strikes = self.counts.strikes.entry(node.to_owned()).or_default();
        *strikes += 1;
        if *strikes >= self.config.strikes && self.counts.ignored.insert(node.to_owned()) {
            // What it has sent before may be wrong where nobody looked.
            collection.forget(node);
            if let Some(held) = self.peers.release(node) {
                collection.want(held.slice as usize);
            }
        }
    }
}

/// The node of a subject.
fn node_of(subject: &str) -> &str {
    subject.rsplit('.').next().unwrap_or_default()
}

/// The result of an evaluation, or the text of its error or panic.
pub(super) fn evaluated<T>(evaluate: impl FnOnce() -> Result<T, NatsError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(evaluate)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("panic: {}", words(&*panic))),
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a message").to_owned()
}
