//! What a score for every part is worth: `cargo run --release --example credit` trains by backpropagation, by noise on outputs, by EGGROLL's
//! means, and by this library's parts.
//!
//! Tasks are MNIST, Shakespeare, CartPole, and with `--features lm` a language model on words. Results are tables, RESULT lines, and pictures in
//! `--out`. Each run is a separate process, so that its peak memory can be read.

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
use eggroll_examples::interrupt::{Signals, on_signals};
use eggroll_examples::options::Given;
use eggroll_examples::{Ending, Failure, main_of, options};
use learn::Method;
use mnist::Mnist;
use report::{CreditRun, Report};
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
    /// Whether this method is run on this task: CartPole's parts are means, and layers of a language model have no hooks.
    fn has(self, method: Method) -> bool {
        match self {
            Self::Cartpole => method != Method::Parts,
            #[cfg(feature = "lm")]
            Self::Words => method != Method::OutputNoise,
            _ => true,
        }
    }
}

/// Compares scores by part with means, output noise and backpropagation.
#[derive(Parser, Debug)]
#[command(after_help = "Signals end the current run; credit.json has the finished ones.")]
struct CreditArgs {
    /// Folder for credit.json and the pictures.
    #[arg(long, default_value = "runs/credit")]
    out: PathBuf,
    /// Tasks, by commas. Default: mnist,shakespeare,cartpole; words with --features lm.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [TaskName::Mnist, TaskName::Shakespeare, TaskName::Cartpole], hide_possible_values = true, hide_default_value = true)]
    tasks: Vec<TaskName>,
    /// Methods, by commas. Default: backpropagation,output-noise,means,parts.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Method::ALL, hide_possible_values = true, hide_default_value = true)]
    methods: Vec<Method>,
    /// Training seconds of each run, without judging.
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Seeds: one run for each task, method and seed.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1, 2])]
    seeds: Vec<u64>,
    /// Hold out training data and judge by it, to choose settings.
    #[arg(long)]
    dev: bool,
    /// Learning rate at the beginning. Default: by task and method.
    #[arg(long)]
    rate: Option<f64>,
    /// Folder of MNIST's files. Default: data/mnist.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/mnist"), hide_default_value = true)]
    mnist: PathBuf,
    /// Text of the task shakespeare. Default: data/text/shakespeare.txt.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/text/shakespeare.txt"), hide_default_value = true)]
    text: PathBuf,
    /// Makes one run in this process, and writes its outcome to this file.
    #[arg(long, hide = true)]
    only: Option<PathBuf>,
}

pub(crate) fn main() -> ExitCode {
    let (args, given) = options::parse::<CreditArgs>();
    main_of(|| match &args.only {
        // The parent process handles signals; this one ends at once.
        Some(path) => train(&args, path),
        None => {
            let kept = args.out.join("credit.json");
            run(&args, &given, &on_signals("this run", move || format!("finished runs are in {}", kept.display())))
        }
    })
}

/// All runs, each in a separate process.
fn run(args: &CreditArgs, given: &Given, signals: &Signals) -> Result<Ending, Failure> {
    if !(args.seconds > 0.0 && args.seconds.is_finite()) {
        return Err(format!("--seconds must be above 0, not {}", args.seconds).into());
    }
    args.rate.map_or(Ok(()), |rate| learning_rate("rate", rate))?;
    if args.tasks == [TaskName::Cartpole] {
        given.refuse(&["dev"], "with cartpole alone, which has no data")?;
    }
    let pairs = args.tasks.iter().flat_map(|task| args.methods.iter().map(move |method| (*task, *method)));
    let (made, left_out): (Vec<_>, Vec<_>) = pairs.partition(|(task, method)| task.has(*method));
    left_out.iter().for_each(|(task, method)| print_note!("{task} has no {method}"));
    if made.is_empty() {
        return Err("nothing is left to run".into());
    }
    // What is missing is told before the first run, not after hours.
    args.tasks.iter().try_for_each(|task| args.check(*task))?;
    fs::create_dir_all(&args.out).map_err(|error| format!("{}: {error}", args.out.display()))?;
    let mut report = Report::default();
    for task in &args.tasks {
        let ending = run_task(args, *task, &made, &mut report, signals)?;
        if report.has(*task) {
            print_line!("{}\n", report.table(*task));
            report.draw(*task, &args.out)?;
        }
        if ending.is_stopped() {
            return Ok(ending);
        }
    }
    Ok(Ending::Finished)
}

fn run_task(
    args: &CreditArgs,
    task: TaskName,
    made: &[(TaskName, Method)],
    report: &mut Report,
    signals: &Signals,
) -> Result<Ending, Failure> {
    for (_, method) in made.iter().filter(|(of, _)| *of == task) {
        for seed in &args.seeds {
            print_note!("{task}, {method}, seed {seed} …");
            let Some(outcome) = in_child(args, task, *method, *seed, signals)? else { return Ok(Ending::Stopped) };
            report.add(CreditRun { task, method: *method, seed: *seed, outcome }, &args.out)?;
        }
    }
    Ok(Ending::Finished)
}

impl CreditArgs {
    /// Opens the data of a task.
    fn check(&self, task: TaskName) -> Result<(), Failure> {
        match task {
            TaskName::Mnist => Mnist::new(&self.mnist, 0, self.dev).map(drop),
            TaskName::Shakespeare => Shakespeare::new(&self.text, 0, self.dev).map(drop),
            TaskName::Cartpole => Ok(()),
            #[cfg(feature = "lm")]
            TaskName::Words => words::check(),
        }
    }
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
