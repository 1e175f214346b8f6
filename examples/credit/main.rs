//! What a score for every part is worth: the same network, data and optimizer with four ways to a gradient.
//!
//! `cargo run --release --example credit` trains on MNIST, Shakespeare and CartPole by backpropagation, by noise on outputs, by EGGROLL's means,
//! and by this library's parts; with `--features lm` also a language model on words. A table, RESULT lines, and pictures in `--out`.
//! Every run is a process of its own, which knows what memory it took.

mod cartpole;
mod course;
mod learn;
mod mnist;
mod output_noise;
mod report;
mod shakespeare;
mod task;
#[cfg(feature = "lm")]
mod words;

use clap::{Parser, ValueEnum};
use course::{Course, Outcome};
use eggroll::run::{print_line, print_note};
use eggroll_examples::bounds::learning_rate;
use eggroll_examples::child::{self, End};
use eggroll_examples::interrupt::{self, Signals, nothing, on_signals};
use eggroll_examples::{Ending, Failure, main_of, options};
use learn::Method;
use mnist::Mnist;
use report::{Report, Run};
use serde::{Deserialize, Serialize};
use shakespeare::Shakespeare;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Tensors come and go with every pass: an allocator that gives their pages back each time costs a part of it.
#[cfg(not(feature = "gpu-pack"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskName {
    /// Digits, by a perceptron.
    Mnist,
    /// A text byte by byte, by a recurrent network.
    Shakespeare,
    /// A pole that is balanced, by a perceptron.
    Cartpole,
    /// Whether words are positive or negative, by a language model.
    #[cfg(feature = "lm")]
    Words,
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mnist => "MNIST",
            Self::Shakespeare => "Shakespeare",
            Self::Cartpole => "CartPole",
            #[cfg(feature = "lm")]
            Self::Words => "words",
        })
    }
}

impl TaskName {
    /// Whether there is such a run: an episode is one part, so that parts are means, and a language model's layers have no hooks.
    fn is_learned_by(self, method: Method) -> bool {
        match self {
            Self::Cartpole => method != Method::Parts,
            #[cfg(feature = "lm")]
            Self::Words => method != Method::OutputNoise,
            _ => true,
        }
    }
}

/// Compares scores by part with means, output noise and backpropagation.
#[derive(Parser, Debug, Clone)]
#[command(after_help = interrupt::HELP)]
struct CreditArgs {
    /// Folder for credit.json and the pictures.
    #[arg(long, default_value = "runs/credit")]
    out: PathBuf,
    /// What is learned.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [TaskName::Mnist, TaskName::Shakespeare, TaskName::Cartpole])]
    tasks: Vec<TaskName>,
    /// By which methods.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Method::ALL)]
    methods: Vec<Method>,
    /// Seconds of training of each run, judging left out.
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Seeds of each task and method.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1, 2])]
    seeds: Vec<u64>,
    /// Judge by a part of the training data, which is then not learned from: for choosing settings.
    #[arg(long)]
    dev: bool,
    /// Learning rate at the beginning. Default: the task's and method's own.
    #[arg(long)]
    rate: Option<f64>,
    /// Folder of MNIST's files.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/mnist"))]
    mnist: PathBuf,
    /// The text.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/text/shakespeare.txt"))]
    text: PathBuf,
    /// Makes the only run that is asked for in this process, and writes its outcome to this file.
    #[arg(long, hide = true)]
    only: Option<PathBuf>,
}

pub(crate) fn main() -> ExitCode {
    let (args, _) = options::parse::<CreditArgs>();
    main_of(|| match &args.only {
        // A signal ends it at once: it is another process that knows what to do then.
        Some(path) => train(&args, path),
        None => run(&args, &on_signals("this run", nothing)),
    })
}

/// All runs, each in a process of its own.
fn run(args: &CreditArgs, signals: &Signals) -> Result<Ending, Failure> {
    if !(args.seconds > 0.0 && args.seconds.is_finite()) {
        return Err(format!("--seconds must be above 0, not {}", args.seconds).into());
    }
    args.rate.map_or(Ok(()), |rate| learning_rate("rate", rate))?;
    fs::create_dir_all(&args.out)?;
    let mut report = Report::default();
    for task in &args.tasks {
        for method in args.methods.iter().filter(|method| task.is_learned_by(**method)) {
            for seed in &args.seeds {
                print_note!("{task}, {method}, seed {seed} …");
                let Some(outcome) = in_child(args, *task, *method, *seed, signals)? else { return Ok(Ending::Stopped) };
                report.add(Run { task: *task, method: *method, seed: *seed, outcome }, &args.out)?;
            }
        }
        if report.has(*task) {
            print_line!("{}\n", report.table(*task));
            report.draw(*task, &args.out)?;
        }
    }
    Ok(Ending::Finished)
}

/// One run; nothing if a signal came.
fn in_child(
    args: &CreditArgs,
    task: TaskName,
    method: Method,
    seed: u64,
    signals: &Signals,
) -> Result<Option<Outcome>, Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("outcome.json");
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--tasks", &word(&task), "--methods", &word(&method)]);
    command.args(["--seeds", &seed.to_string(), "--seconds", &args.seconds.to_string()]);
    command.arg("--mnist").arg(&args.mnist).arg("--text").arg(&args.text).arg("--only").arg(&path);
    command.args(args.dev.then_some("--dev"));
    if let Some(rate) = args.rate {
        command.args(["--rate", &rate.to_string()]);
    }
    match child::run(&mut command, None, signals.flag())? {
        End::Exited(status) if status.success() => Ok(Some(serde_json::from_slice(&fs::read(&path)?)?)),
        End::Exited(status) => Err(format!("{task} by {method} with seed {seed} ended with {status}").into()),
        End::Interrupted | End::TimedOut => Ok(None),
    }
}

/// A value as the command line has it.
fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The run that is asked for.
fn train(args: &CreditArgs, path: &Path) -> Result<Ending, Failure> {
    let ([task], [method], [seed]) = (&args.tasks[..], &args.methods[..], &args.seeds[..]) else {
        return Err("--only is for one task, one method and one seed".into());
    };
    let (mut course, rate) = (Course::new(args.seconds), args.rate);
    match task {
        TaskName::Mnist => learn::learn(Mnist::new(&args.mnist, *seed, args.dev)?, *method, *seed, rate, &mut course)?,
        TaskName::Shakespeare => {
            learn::learn(Shakespeare::new(&args.text, *seed, args.dev)?, *method, *seed, rate, &mut course)?;
        }
        TaskName::Cartpole => cartpole::learn(*method, *seed, rate, &mut course)?,
        #[cfg(feature = "lm")]
        TaskName::Words => words::learn(*method, *seed, args.dev, rate, &mut course)?,
    }
    fs::write(path, serde_json::to_vec(&course.outcome())?)?;
    Ok(Ending::Finished)
}
