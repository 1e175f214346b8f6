//! What a run asks and judges, and how long it has taken.

use crate::args::{LlmLimits, LlmSettings};
use crate::task::{LlmBatch, LlmTask, Score};
use crate::train::{ACCURACY, SCORE};
use eggroll::lm::{CausalModel, Finetune, Lesson, Lessons, StepReport, WrittenLesson};
use eggroll::prelude::*;
use eggroll::run::diagnostics::step_statistics;
use eggroll::run::{Interrupter, JsonLines, Scalars, print_line};
use eggroll::train::GenerationReport;
use eggroll_examples::Failure;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Accuracy on dev data, one line for each evaluation.
const POINTS: &str = "curve.jsonl";
/// What training has taken, one line for each step.
const COSTS: &str = "costs.jsonl";

/// An evaluation on dev data.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LlmPoint {
    /// The step after which it was made: `generation`, as in all logs of a run.
    pub generation: u64,
    pub seconds: f64,
    pub accuracy: f64,
    pub mean: f64,
    pub tokens: usize,
}

/// What training has taken, up to a step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Cost {
    generation: u64,
    seconds: f64,
    tokens: usize,
}

/// Seconds of training: from before a step to behind it, so that evaluations are left out.
#[derive(Default)]
pub struct Clock {
    /// Of steps that are done.
    done: f64,
    /// When the step began that is being made.
    step: Option<Instant>,
}

impl Clock {
    fn begin_step(&mut self) {
        self.step = Some(Instant::now());
    }

    fn end_step(&mut self) {
        self.done += self.step.take().map_or(0.0, |start| start.elapsed().as_secs_f64());
    }

    pub fn seconds(&self) -> f64 {
        self.done
    }
}

/// The task of the command line as the lessons of a run.
pub struct TaskLessons<'a, M> {
    settings: &'a LlmSettings,
    limits: &'a LlmLimits,
    task: &'a LlmTask,
    /// Of the run, which one replica writes.
    folder: Option<&'a RunFolder>,
    interrupter: Interrupter,
    logs: Option<LlmLogs>,
    pub points: Vec<LlmPoint>,
    pub clock: Clock,
    pub tokens: usize,
    /// The model before the step that ends with an evaluation.
    before: Option<M>,
    /// What the step learns from.
    batch: LlmBatch,
}

struct LlmLogs {
    points: JsonLines,
    costs: JsonLines,
    /// What members were asked, one line for each step: `eggroll verify` asks some again.
    lessons: JsonLines,
}

impl<'a, M> TaskLessons<'a, M> {
    pub fn new(
        settings: &'a LlmSettings,
        limits: &'a LlmLimits,
        task: &'a LlmTask,
        folder: Option<&'a RunFolder>,
        interrupter: Interrupter,
    ) -> Self {
        let (points, clock, batch) = (Vec::new(), Clock::default(), LlmBatch::Completions(Vec::new()));
        Self { settings, limits, task, folder, interrupter, logs: None, points, clock, tokens: 0, before: None, batch }
    }

    fn add(&mut self, generation: u64, Score { accuracy, mean, .. }: Score) -> Result<(), Failure> {
        let point = LlmPoint { generation, seconds: self.clock.seconds(), accuracy, mean, tokens: self.tokens };
        self.logs().points.write(&point)?;
        self.points.push(point);
        Ok(())
    }

    fn logs(&mut self) -> &mut LlmLogs {
        self.logs.as_mut().expect("opened when the run began")
    }

    fn stop_in_time(&self) {
        if self.clock.seconds() >= self.limits.seconds() {
            self.interrupter.stop(Some("out of time"));
        }
    }
}

impl<M: CausalModel> Lessons<M> for TaskLessons<'_, M> {
    fn begin(&mut self, finetune: &Finetune<M>, strategy: &EvolutionStrategy) -> Result<(), Failure> {
        let done = strategy.generation();
        let Some(folder) = self.folder else { return Ok(()) };
        let [points, costs] = [POINTS, COSTS].map(|name| folder.file(name));
        self.logs = Some(LlmLogs {
            points: JsonLines::open(&points, done + 1)?,
            costs: JsonLines::open(&costs, done + 1)?,
            lessons: JsonLines::open(folder.file(WrittenLesson::FILE), done)?,
        });
        self.points = JsonLines::read(&points)?;
        if let Some(Cost { seconds, tokens, .. }) = JsonLines::read(&costs)?.pop() {
            (self.clock.done, self.tokens) = (seconds, tokens);
        }
        if done > 0 {
            print_line!("continuing after step {done}");
        }
        if self.points.is_empty() {
            self.add(done, self.task.dev(finetune)?)?;
        }
        self.stop_in_time();
        Ok(())
    }

    fn before_generation(&mut self, finetune: &Finetune<M>, strategy: &mut EvolutionStrategy) -> Result<(), Failure> {
        self.clock.begin_step();
        let step = strategy.generation();
        self.before = (step + 1).is_multiple_of(self.settings.evaluate_every).then(|| finetune.model().clone());
        let rate = self.settings.learning_rate(self.limits.done(step, self.clock.seconds()));
        Ok(strategy.set_learning_rate(rate)?)
    }

    fn lesson(&mut self, generation: u64) -> Result<Lesson<'_>, Failure> {
        self.batch = self.task.batch(generation, self.settings);
        Ok(self.task.lesson(&self.batch))
    }

    fn after_generation(&mut self, report: &StepReport) -> Result<(), Failure> {
        self.clock.end_step();
        self.tokens += report.tokens;
        let generation = report.generation.generation;
        // Others may have asked all members.
        let batch = self.task.batch(generation, self.settings);
        let asked = WrittenLesson::new(generation, &self.task.lesson(&batch));
        self.logs().lessons.write(&asked)?;
        let generation = generation + 1;
        let cost = Cost { generation, seconds: self.clock.seconds(), tokens: self.tokens };
        self.logs().costs.write(&cost)?;
        self.stop_in_time();
        Ok(())
    }

    fn validate(&mut self, finetune: &Finetune<M>, report: &GenerationReport) -> Result<Scalars, Failure> {
        let (step, seconds) = (report.generation + 1, self.clock.seconds());
        let (before, dev) = (self.before.take(), self.task.dev(finetune)?);
        self.add(step, dev)?;
        let name = self.settings.task.dev_name();
        let moved = before.map(|before| step_statistics(finetune.strategy(), &before, finetune.model()).total.to_noise);
        let moved = moved.map_or_else(String::new, |moved| format!("; a step is {moved:.2} x the noise"));
        print_line!("step {step}, {seconds:.0} s: {name} {dev}{moved}");
        Ok(Scalars::from([(ACCURACY, dev.accuracy), (SCORE, dev.mean)]))
    }
}
