//! What is printed, logged and drawn of a run.

use super::args::{CharLmSettings, ModelSettings};
use super::chart;
use super::language_model::LanguageModel;
use super::timing::Timing;
use eggroll::prelude::*;
use eggroll::run::JsonLines;
use eggroll::run::diagnostics::{ActivationStatistics, IntegerStatistics};
use eggroll::run::print_line;
use eggroll::run::text::{Alphabet, BitsPerByte, ByteStatistics, Text, bits_per_byte};
use eggroll_examples::{Ending, Failure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

/// Sequences that validation reads side by side.
const VALIDATION_SEQUENCES: usize = 64;
/// Bytes of the training text that are counted.
const COUNTED: usize = 1 << 28;

/// The unigram and bigram baselines on the bytes that validation reads, in bits for each byte.
#[derive(Clone, Copy, Debug)]
pub struct Baselines {
    /// By the frequencies of the training text.
    pub unigram_bits: f64,
    pub bigram_bits: f64,
    /// By their own: no model of that order can do better.
    pub unigram_entropy: f64,
    pub bigram_entropy: f64,
}

impl Baselines {
    pub fn new(train: &Text, held_out: &Text) -> Self {
        let (counts, own) = (ByteStatistics::new(&train.head(COUNTED)), ByteStatistics::new(held_out));
        Self {
            unigram_bits: counts.unigram_bits(held_out),
            bigram_bits: counts.bigram_bits(held_out),
            unigram_entropy: own.unigram_entropy(),
            bigram_entropy: own.bigram_entropy(),
        }
    }
}

/// What validation reads, as tokens of the model.
#[derive(Clone)]
pub struct HeldOut {
    text: Text,
    /// For each byte, what telling bytes apart that the training text has not would cost.
    bits_of_others: f64,
}

impl HeldOut {
    pub fn new(text: &Text, alphabet: &Alphabet) -> Result<Self, Failure> {
        let bits_of_others = alphabet.bits_of_others(text) / text.len() as f64;
        Ok(Self { text: alphabet.encode_text(text)?, bits_of_others })
    }

    fn bits_per_byte<M: LanguageModel>(&self, model: &M) -> BitsPerByte {
        let found = bits_per_byte(model, &self.text, VALIDATION_SEQUENCES);
        let [exact, integer] = [found.exact, found.integer].map(|bits| bits + self.bits_of_others);
        BitsPerByte { exact, integer, ..found }
    }
}

/// The generations between two lines of the table.
pub struct Interval<M> {
    fitness: f64,
    tied_pairs: f64,
    generations: u64,
    /// The model before the last of them.
    pub before: Option<M>,
}

impl<M> Default for Interval<M> {
    fn default() -> Self {
        Self { fitness: 0.0, tied_pairs: 0.0, generations: 0, before: None }
    }
}

impl<M> Interval<M> {
    pub fn add(&mut self, fitness: &Fitness) {
        let values = fitness.values();
        self.fitness += values.iter().map(|value| f64::from(*value)).sum::<f64>() / values.len() as f64;
        self.tied_pairs += fitness.tied_pairs();
        self.generations += 1;
    }

    /// The mean over the generations, if there are any.
    fn mean(&self, sum: f64) -> Option<f64> {
        (self.generations > 0).then(|| sum / self.generations as f64)
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CharLmPoint {
    /// Generations done, from which lines of a log are told apart.
    pub generation: u64,
    pub seconds: f64,
    pub tokens: u64,
    pub tokens_per_second: f64,
    /// Mean of the members since the line before, by the arithmetic of training.
    pub train_bits_per_byte: Option<f64>,
    pub valid_bits_per_byte: f64,
    pub valid_bits_per_byte_integer: f64,
    /// Share of weights that the last generation moved.
    pub changed: Option<f64>,
    /// Share of pairs with equal scores, mean since the line before.
    pub tied_pairs: Option<f64>,
}

/// The table: printed, logged and drawn.
pub struct Report<'a> {
    settings: &'a CharLmSettings,
    /// Bytes that all members read in a generation, and that a score is of.
    tokens: usize,
    scored: usize,
    baselines: Baselines,
    held_out: HeldOut,
    curve: PathBuf,
    log: JsonLines,
    diagnostics: JsonLines,
    points: Vec<CharLmPoint>,
    /// Parameters that there was a warning for.
    warned: BTreeSet<String>,
    /// Whether the titles are printed.
    titled: bool,
    /// Seconds that the run took before it was continued.
    before: f64,
    start: Instant,
}

impl<'a> Report<'a> {
    pub fn open(
        folder: &RunFolder,
        (settings, own): (&'a CharLmSettings, &ModelSettings),
        baselines: Baselines,
        held_out: HeldOut,
        generation: u64,
    ) -> Result<Self, Failure> {
        let log = JsonLines::open(folder.file("curve.jsonl"), generation + 1)?;
        let diagnostics = JsonLines::open(folder.file("diagnostics.jsonl"), generation + 1)?;
        let points: Vec<CharLmPoint> = JsonLines::read(folder.file("curve.jsonl"))?;
        let before = points.last().map_or(0.0, |point| point.seconds);
        let Baselines { unigram_bits, bigram_bits, unigram_entropy, bigram_entropy } = baselines;
        print_line!(
            "bits per byte for validation ({} bytes): unigram {unigram_bits:.3}, bigram {bigram_bits:.3} by the\n  \
             training text's frequencies; {unigram_entropy:.3}, {bigram_entropy:.3} by their own (entropies)",
            held_out.text.len()
        );
        print_line!(
            "a token is one byte read by one member; seconds are of the whole run,\n  tokens per second of training alone"
        );
        let start = Instant::now();
        let curve = folder.file("curve.svg");
        let [read, scored] = if own.by_token() { [own.sequences * settings.seq, 1] } else { [settings.seq; 2] };
        Ok(Self {
            settings,
            tokens: settings.population * read,
            scored,
            baselines,
            held_out,
            curve,
            log,
            diagnostics,
            points,
            warned: BTreeSet::new(),
            titled: false,
            before,
            start,
        })
    }

    /// Seconds of the whole run.
    pub fn seconds(&self) -> f64 {
        self.before + self.start.elapsed().as_secs_f64()
    }

    /// Generation of the last line.
    pub fn generation(&self) -> Option<u64> {
        self.points.last().map(|point| point.generation)
    }

    /// Validates, adds a line and returns the bits per byte of validation, and what the activations are like if that is known.
    pub fn add<M: LanguageModel>(
        &mut self,
        generation: u64,
        model: &M,
        interval: Interval<M>,
        timing: &Timing,
    ) -> Result<(f64, Option<ActivationStatistics>), Failure> {
        let valid = self.held_out.bits_per_byte(model);
        let point = CharLmPoint {
            generation,
            seconds: self.seconds(),
            tokens: generation * self.tokens as u64,
            tokens_per_second: timing.tokens_per_second(self.tokens),
            train_bits_per_byte: interval.mean(-interval.fitness * M::LOGIT_BITS / self.scored as f64),
            valid_bits_per_byte: valid.exact,
            valid_bits_per_byte_integer: valid.integer,
            changed: interval.before.as_ref().and_then(|before| M::changed_share(before, model)),
            tied_pairs: interval.mean(interval.tied_pairs),
        };
        // With the first line: what the learner says of the first generation stands above.
        if !std::mem::replace(&mut self.titled, true) {
            print_line!("generation  seconds    tokens   tokens/s train bits valid bits changed   tied");
        }
        point.print();
        self.log.write(&point)?;
        let (tensors, activations) = (model.statistics(), model.activations(&self.held_out.text));
        for tensor in &tensors {
            self.warn(&tensor.path, &tensor.warnings());
        }
        if let Some(activations) = &activations {
            for tensor in &activations.tensors {
                self.warn(&tensor.path, &tensor.activation_warnings());
            }
            for block in &activations.attention {
                self.warn(&block.path, &block.warnings());
            }
        }
        self.diagnostics.write(&json!({ "generation": generation, "tensors": tensors, "activations": activations }))?;
        self.points.push(point);
        chart::draw(&self.curve, &self.points, self.baselines)?;
        Ok((valid.exact, activations))
    }

    /// Warns of each tensor once.
    fn warn(&mut self, path: &str, warnings: &[String]) {
        if !warnings.is_empty() && self.warned.insert(path.to_owned()) {
            print_line!("warning: {}", warnings.join("; "));
        }
    }

    /// Prints the model's statistics and the result.
    pub fn finish<M: LanguageModel>(
        self,
        model: &M,
        state: &M::State,
        timing: &Timing,
        hardware: &str,
        ending: Ending,
    ) -> Result<(), Failure> {
        let last = self.points.last().expect("training ends with a line");
        let tensors = model.statistics();
        print_table("parameter", &tensors);
        let activations = model.activations(&self.held_out.text);
        if let Some(ActivationStatistics { tensors, attention }) = &activations {
            print_table("activation", tensors);
            for block in attention {
                print_line!("{block}");
            }
        }
        let share = |part| format!("{:.1} %", 100.0 * timing.share(part));
        print_line!(
            "a generation: noise {}, evaluate {}, update {}",
            share(timing.noise),
            share(timing.evaluate),
            share(timing.update)
        );
        print_line!("curve: {}", self.curve.display());
        let result = json!({
            "tokens_per_second": timing.tokens_per_second(self.tokens),
            "valid_bits_per_byte": last.valid_bits_per_byte,
            "valid_bits_per_byte_integer": last.valid_bits_per_byte_integer,
            "unigram_bits": self.baselines.unigram_bits,
            "bigram_bits": self.baselines.bigram_bits,
            "unigram_entropy": self.baselines.unigram_entropy,
            "bigram_entropy": self.baselines.bigram_entropy,
            "update_share": timing.share(timing.update),
            "noise_share": timing.share(timing.noise),
            "generations": last.generation,
            "tokens": last.tokens,
            "train_seconds": last.seconds,
            "model": M::NAME,
            "hardware": hardware,
            "attention_entropy": activations.map(|activations| activations.attention_entropy()),
            "seed": self.settings.seed,
            "stopped": ending.is_stopped(),
            "state_digest": parameter_digest(&M::Saved::from(state.clone())),
            "parameter_digest": parameter_digest(model),
        });
        print_line!("RESULT {result}");
        Ok(())
    }
}

fn print_table(of: &str, tensors: &[IntegerStatistics]) {
    if !tensors.is_empty() {
        print_line!("{of:<30}   mean     sd entropy saturated  zeros   min  max");
    }
    for tensor in tensors {
        print_line!("{tensor}");
    }
}

impl CharLmPoint {
    fn print(&self) {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
        let percent = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{:.1} %", 100.0 * value));
        print_line!(
            "{:>10} {:>8.1} {:>8.2}M {:>10.0} {:>10} {:>10.4} {:>7} {:>6}",
            self.generation,
            self.seconds,
            self.tokens as f64 / 1e6,
            self.tokens_per_second,
            number(self.train_bits_per_byte),
            self.valid_bits_per_byte,
            percent(self.changed),
            percent(self.tied_pairs)
        );
    }
}
