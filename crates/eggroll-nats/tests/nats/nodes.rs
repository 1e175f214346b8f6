//! Coordinators and workers: in this process, or in others that can be killed.

use crate::parts::ByRow;
use crate::support::{self, IntegerNet, LearningModel, Net};
use burn::optim::AdamConfig;
use eggroll_core::EggrollConfig;
use eggroll_core::sync::locked;
use eggroll_nats::{Coordinator, Counts, NatsConfig, NatsError, Worker, WorkerReport};
use eggroll_run::distribution::Distribution;
use eggroll_run::{Checkpoints, Error, TrainingLoop, UserError, parameter_digest};
use eggroll_train::*;
use std::env;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than any of these runs takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(180);
pub const RUN: &str = "run";
pub const GENERATIONS: u64 = 12;
/// Twelve slices.
pub const POPULATION: usize = 48;
/// Generations between two checkpoints.
pub const CHECKPOINT_EVERY: u64 = 3;

/// Variables of a process that is a node.
const ROLE: &str = "EGGROLL_NATS_ROLE";
const URL: &str = "EGGROLL_NATS_URL";
const NAME: &str = "EGGROLL_NATS_NODE";
const FOLDER: &str = "EGGROLL_NATS_FOLDER";
const DELAY: &str = "EGGROLL_NATS_DELAY";
const TASK: &str = "EGGROLL_NATS_TASK";

/// Models of these tests, and what a run of them is.
pub trait NatsTask: LearningModel + 'static {
    const NAME: &str;

    fn strategy() -> EvolutionStrategyConfig;
}

impl NatsTask for Net {
    const NAME: &str = "net";

    fn strategy() -> EvolutionStrategyConfig {
        // Both act for the whole run: workers that load a checkpoint have to have them too.
        support::config(EggrollConfig::new().with_rank(2), AdamConfig::new())
            .with_population_size(POPULATION)
            .with_noise_scale(NoiseScale::RelativeToSpread)
            .with_anchor_decay(0.5)
    }
}

impl NatsTask for IntegerNet {
    const NAME: &str = "integers";

    fn strategy() -> EvolutionStrategyConfig {
        support::integer_config().with_population_size(POPULATION)
    }
}

/// [`Net`] with so many scores of each member that a slice is larger than a message.
#[derive(burn::module::Module, Debug)]
pub struct Wide {
    net: Net,
}

impl LearningModel for Wide {
    fn start() -> Self {
        Self { net: Net::start() }
    }

    fn fitness(&self, population: &Population) -> Fitness {
        let one = self.net.fitness(population);
        Fitness::from(one.values().repeat(5)).with_tasks(5)
    }
}

impl NatsTask for Wide {
    const NAME: &str = "wide";

    fn strategy() -> EvolutionStrategyConfig {
        Net::strategy().with_credit(Credit::Mean)
    }
}

/// Settings with which dead workers are noticed soon.
pub fn config(url: &str, node: &str) -> NatsConfig {
    NatsConfig {
        slice_members: 4,
        digest_every: 2,
        node: node.to_owned(),
        ack_wait: Duration::from_secs(1),
        offer_again_after: Duration::from_secs(20),
        patience: LIMIT,
        ..NatsConfig::new(url, RUN)
    }
}

/// The digest of the parameters after the same run in one process.
pub fn expected<T: NatsTask>() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut digests = support::digests::<T>(&T::strategy(), GENERATIONS as usize, &folder.path().join("log"));
    // Canary: generations differ, so that comparisons can fail.
    digests.dedup();
    assert!(digests.len() > GENERATIONS as usize / 2);
    digests.pop().expect("the last")
}

fn score<T: LearningModel>(delay: Duration) -> impl FnMut(&T, &Population) -> Result<Fitness, UserError> {
    move |model, members| {
        println!("evaluating {}", members.generation());
        std::thread::sleep(delay);
        Ok(model.fitness(members))
    }
}

/// The result of a coordinator.
pub struct CoordinatorResult {
    pub digest: String,
    pub counts: Counts,
}

/// Trains to the end, from the latest checkpoint in `folder` or on the server; says which generations are done.
pub fn coordinate<T: NatsTask>(
    config: &NatsConfig,
    folder: &Path,
    done: impl FnMut(u64),
) -> Result<CoordinatorResult, NatsError> {
    coordinate_scored(config, folder, |model: &T, members: &Population| Ok(model.fitness(members)), done)
}

pub fn coordinate_scored<T: NatsTask>(
    config: &NatsConfig,
    folder: &Path,
    score: impl FnMut(&T, &Population) -> Result<Fitness, UserError>,
    mut done: impl FnMut(u64),
) -> Result<CoordinatorResult, NatsError> {
    let checkpoints = Checkpoints::new(folder.join("checkpoints"));
    let start = T::start();
    let (mut strategy, model) =
        checkpoints.load_latest(T::start())?.unwrap_or_else(|| (T::strategy().init(&start), start));
    let coordinator = Coordinator::connect(config)?;
    let counts = coordinator.counts();
    let model = TrainingLoop::new(GENERATIONS)
        .with_checkpoints(checkpoints, CHECKPOINT_EVERY)
        .run_distributed(&mut Distribution::of(coordinator), &mut strategy, model, score, |_, report| {
            done(report.generation + 1);
            Ok(ControlFlow::Continue(()))
        })
        .map_err(of_nats)?;
    let counts = locked(&counts).clone();
    Ok(CoordinatorResult { digest: parameter_digest(&model), counts })
}

/// The error that a loop ended with, as it is matched.
pub fn of_nats(error: Error) -> NatsError {
    match error {
        Error::Two { first, .. } => of_nats(*first),
        Error::Engine(error) => *error.downcast().expect("of this engine"),
        error => error.into(),
    }
}

/// A coordinator on a thread of this process.
pub struct Local {
    thread: JoinHandle<Result<CoordinatorResult, NatsError>>,
    done: Receiver<u64>,
    resume: Sender<()>,
    folder: tempfile::TempDir,
}

impl Local {
    pub fn start<T: NatsTask>(config: NatsConfig) -> Self {
        Self::start_with_pause::<T>(config, None)
    }

    /// One that waits after a generation, until [`resume`](Self::resume).
    pub fn start_with_pause<T: NatsTask>(config: NatsConfig, pause: Option<u64>) -> Self {
        Self::start_with_pauses::<T>(config, pause.as_slice())
    }

    pub fn start_with_pauses<T: NatsTask>(config: NatsConfig, pauses: &[u64]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (sender, done) = mpsc::channel();
        let (resume, resumed) = mpsc::channel();
        let (path, pauses) = (folder.path().to_owned(), pauses.to_vec());
        let tell = move |generation| {
            let _ = sender.send(generation);
            if pauses.contains(&generation) {
                let _ = resumed.recv_timeout(LIMIT);
            }
        };
        let thread = std::thread::spawn(move || {
            coordinate::<T>(&config, &path, tell).inspect_err(|error| println!("the coordinator ended: {error}"))
        });
        Self { thread, done, resume, folder }
    }

    pub fn resume(&self) {
        self.resume.send(()).expect("waits");
    }

    /// Waits until so many generations are done.
    pub fn wait(&self, generation: u64) {
        let start = Instant::now();
        while self.done.recv_timeout(LIMIT.saturating_sub(start.elapsed())).expect("goes on") < generation {}
    }

    pub fn finish(self) -> CoordinatorResult {
        self.end().expect("no error")
    }

    pub fn end(self) -> Result<CoordinatorResult, NatsError> {
        self.end_with_folder().0
    }

    pub fn end_with_folder(self) -> (Result<CoordinatorResult, NatsError>, tempfile::TempDir) {
        let start = Instant::now();
        while !self.thread.is_finished() {
            assert!(start.elapsed() < LIMIT, "the run does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        (self.thread.join().expect("no panic"), self.folder)
    }
}

/// A worker on a thread of this process: the digest of its parameters at the end, and what it has done.
pub fn work<T: NatsTask>(
    config: NatsConfig,
    score: impl FnMut(&T, &Population) -> Result<Fitness, UserError> + Send + 'static,
) -> JoinHandle<Result<(String, WorkerReport), NatsError>> {
    work_with(config, T::strategy(), score)
}

/// A worker of another strategy.
pub fn work_with<T: NatsTask>(
    config: NatsConfig,
    strategy: EvolutionStrategyConfig,
    score: impl FnMut(&T, &Population) -> Result<Fitness, UserError> + Send + 'static,
) -> JoinHandle<Result<(String, WorkerReport), NatsError>> {
    std::thread::spawn(move || work_from(&config, T::start(), strategy, score))
}

/// A worker to the end.
pub fn work_from<T: NatsTask>(
    config: &NatsConfig,
    model: T,
    strategy: EvolutionStrategyConfig,
    score: impl FnMut(&T, &Population) -> Result<Fitness, UserError>,
) -> Result<(String, WorkerReport), NatsError> {
    let worker = Worker::connect(config)?;
    let report = worker.report();
    let mut strategy = strategy.init(&model);
    let model = TrainingLoop::new(GENERATIONS)
        .run_distributed(&mut Distribution::of(worker), &mut strategy, model, score, |_, _| {
            unreachable!("of who leads")
        })
        .map_err(of_nats)?;
    let report = *locked(&report);
    Ok((parameter_digest(&model), report))
}

/// A process that is a node; killed when dropped.
pub struct Node {
    process: Child,
    lines: Receiver<String>,
}

/// How to start a node.
pub struct Start<'a> {
    pub role: &'a str,
    pub name: &'a str,
    pub url: &'a str,
    pub folder: &'a Path,
    pub delay: Duration,
    pub task: &'a str,
    /// What the command begins with, as for a namespace.
    pub inside: &'a [&'a str],
}

impl<'a> Start<'a> {
    pub fn worker(name: &'a str, url: &'a str) -> Self {
        let delay = Duration::from_millis(5);
        Self { role: "worker", name, url, folder: Path::new("."), delay, task: Net::NAME, inside: &[] }
    }

    pub fn node(&self) -> Node {
        let program = env::current_exe().expect("this program");
        let mut command = match self.inside {
            [] => Command::new(program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        command
            .args(["--exact", "nodes::child", "--nocapture", "--test-threads=1"])
            .env(ROLE, self.role)
            .env(NAME, self.name)
            .env(URL, self.url)
            .env(FOLDER, self.folder)
            .env(DELAY, self.delay.as_millis().to_string())
            .env(TASK, self.task)
            .stdout(Stdio::piped());
        let mut process = command.spawn().expect("starts");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Node { process, lines }
    }
}

impl Node {
    /// The rest of the next line that begins with `word`.
    pub fn hear(&self, word: &str) -> String {
        let start = Instant::now();
        loop {
            let line = self.lines.recv_timeout(LIMIT.saturating_sub(start.elapsed()));
            let line = line.unwrap_or_else(|error| panic!("waiting for {word:?}: {error}"));
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.process.kill().expect("SIGKILL");
        self.process.wait().expect("is gone");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The other process.
#[test]
fn child() {
    let Ok(role) = env::var(ROLE) else {
        return;
    };
    // What the test harness has begun is no line of ours.
    println!();
    match env::var(TASK).expect("is set").as_str() {
        IntegerNet::NAME => run_as::<IntegerNet>(&role),
        ByRow::NAME => run_as::<ByRow>(&role),
        _ => run_as::<Net>(&role),
    }
}

fn run_as<T: NatsTask>(role: &str) {
    let [url, name, delay] = [URL, NAME, DELAY].map(|variable| env::var(variable).expect("is set"));
    let delay = Duration::from_millis(delay.parse().expect("a number"));
    let config = config(&url, &name);
    match role {
        "coordinator" => {
            let folder = env::var_os(FOLDER).expect("is set");
            let done = |generation| println!("done {generation}");
            let outcome = coordinate::<T>(&config, Path::new(&folder), done).expect("trains");
            println!("recovered {}", outcome.counts.recovered);
            println!("digest {}", outcome.digest);
        }
        "worker" => {
            println!("here");
            let (digest, report) = work_from(&config, T::start(), T::strategy(), score(delay)).expect("works");
            println!("slices {}", report.slices);
            println!("checkpoints {}", report.checkpoints);
            println!("digest {digest}");
        }
        other => panic!("{other}"),
    }
}
