//! Trials side by side.

use super::plan::Plan;
use super::store::{Store, tail};
use super::template::with_folder;
use super::trial::{Outcome, Record, Trial, number};
use crate::child::{self, End};
use crate::{Ending, Failure};
use eggroll::run::print_line;
use std::fs::File;
#[cfg(unix)]
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Instant;

/// Bytes of standard output in which the `RESULT` line is looked for.
const OUTPUT_BYTES: u64 = 1 << 20;
/// Bytes of standard error that are kept of a trial without a result.
const ERROR_BYTES: u64 = 2000;

/// HUP, INT and TERM.
const SIGNALS: [Option<i32>; 3] = [Some(1), Some(2), Some(15)];
/// Exit statuses of programs that were stopped: to be tried again, and 128 + those signals.
const STOPPED: [i32; 4] = [75, 129, 130, 143];

/// What trials are run with.
pub struct Runner<'a> {
    pub plan: &'a Plan,
    pub program: &'a Path,
    pub store: &'a Store,
    pub jobs: usize,
    pub begun: Instant,
    pub stop: &'a AtomicBool,
}

/// What became of a trial: nothing if it was stopped.
type Attempt<'a> = (&'a Trial, Result<Option<Record>, Failure>);

impl Runner<'_> {
    /// Runs the trials that have no record yet, and with `retry_failed` those without a result, until all have one, the time is
    /// spent, or the sweep is stopped. A trial that fails is a record; only what is wrong with the sweep itself is an error. A trial that
    /// was stopped has none, and the sweep counts as stopped.
    pub fn run(&self, trials: &[Trial], retry_failed: bool) -> Result<Ending, Failure> {
        let mut due = Vec::new();
        for trial in trials {
            let record = self.store.load(trial)?;
            if record.is_none_or(|record| retry_failed && record.outcome != Outcome::Finished) {
                due.push(trial);
            }
        }
        print_line!("{} trials, {} of them to run, {} in parallel", trials.len(), due.len(), self.jobs);
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..self.jobs.min(due.len()) {
                let (sender, due, next, failed) = (sender.clone(), &due, &next, &failed);
                scope.spawn(move || self.work(due, next, failed, &sender));
            }
            drop(sender);
            let mut done = trials.len() - due.len();
            let mut result = Ok(Ending::Finished);
            for (trial, attempt) in receiver {
                match attempt.and_then(|record| self.keep(record)) {
                    Ok(None) => {
                        result = result.map(|_| Ending::Stopped);
                        print_line!("{}: stopped, the next call runs it again", trial.label());
                    }
                    Ok(Some(record)) => {
                        done += 1;
                        print_line!("[{done}/{}] {}: {}", trials.len(), trial.label(), self.describe(&record));
                    }
                    Err(error) => {
                        failed.store(true, Ordering::Relaxed);
                        result = Err(error);
                    }
                }
            }
            let stopped = self.stop.load(Ordering::Relaxed);
            result.map(|ending| if stopped { Ending::Stopped } else { ending })
        })
    }

    /// Takes trials one after the other.
    fn work<'t>(&self, due: &[&'t Trial], next: &AtomicUsize, failed: &AtomicBool, sender: &Sender<Attempt<'t>>) {
        let spent = || self.plan.budget.limit().is_some_and(|limit| self.begun.elapsed() >= limit);
        while !self.stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) && !spent() {
            let Some(trial) = due.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            if sender.send((*trial, self.attempt(trial))).is_err() {
                return;
            }
        }
    }

    fn keep(&self, record: Option<Record>) -> Result<Option<Record>, Failure> {
        record.iter().try_for_each(|record| self.store.save(record))?;
        Ok(record)
    }

    fn attempt(&self, trial: &Trial) -> Result<Option<Record>, Failure> {
        let folder = self.store.begin(trial)?;
        let [output, errors] = ["stdout.txt", "stderr.txt"].map(|name| folder.join(name));
        let words: Vec<String> = trial.words.iter().map(|word| with_folder(word, &folder.join("out"))).collect();
        let environment = trial.environment.iter().map(|(name, word)| (name, with_folder(word, &folder.join("out"))));
        let mut command = Command::new(self.program);
        command.args(&words[1..]).envs(environment).stdin(Stdio::null());
        command.stdout(File::create(&output)?).stderr(File::create(&errors)?);
        let begun = Instant::now();
        let end = child::run(&mut command, self.plan.budget.trial_limit(), self.stop);
        let seconds = begun.elapsed().as_secs_f64();
        let result = result_line(&tail(&output, OUTPUT_BYTES)?);
        let objective = result.as_ref().and_then(|result| number(result, &self.plan.objective));
        let (outcome, status) = match end {
            Ok(End::Interrupted) => return Ok(None),
            Ok(End::Exited(status)) if was_stopped(status, result.as_ref()) => return Ok(None),
            Ok(End::TimedOut) => (Outcome::TimedOut, format!("ended after {seconds:.1} s")),
            Err(error) => (Outcome::Failed, format!("not started: {error}")),
            Ok(End::Exited(status)) if !status.success() => (Outcome::Failed, status.to_string()),
            Ok(End::Exited(status)) => match (&result, objective) {
                (_, Some(_)) => (Outcome::Finished, status.to_string()),
                (Some(_), None) => (Outcome::Failed, format!("RESULT has no number {:?}", self.plan.objective)),
                (None, None) => (Outcome::Failed, "no line RESULT {…}".to_owned()),
            },
        };
        let finished = outcome == Outcome::Finished;
        Ok(Some(Record {
            key: trial.key.clone(),
            command: words,
            settings: trial.settings.clone(),
            seed: trial.seed,
            outcome,
            status,
            seconds,
            objective: objective.filter(|_| finished),
            result,
            stderr: if finished { String::new() } else { tail(&errors, ERROR_BYTES)? },
        }))
    }

    fn describe(&self, record: &Record) -> String {
        match record.objective {
            Some(objective) => format!("{} {objective} in {:.1} s", self.plan.objective, record.seconds),
            None => {
                let error = record.stderr.lines().last().unwrap_or_default();
                format!("{:?}, {} {error}", record.outcome, record.status)
            }
        }
    }
}

/// The object of the last `RESULT` line.
fn result_line(output: &str) -> Option<serde_json::Value> {
    let line = output.lines().rev().find_map(|line| line.strip_prefix("RESULT "))?;
    serde_json::from_str(line).ok()
}

/// Whether somebody stopped a trial, who will have it run again: by its exit status, by what it says, or by the signal that ended it or a
/// shell around it.
fn was_stopped(status: ExitStatus, result: Option<&serde_json::Value>) -> bool {
    let says_so = result.is_some_and(|result| result["stopped"] == true);
    says_so || status.code().is_some_and(|code| STOPPED.contains(&code)) || SIGNALS.contains(&signal(status))
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}
