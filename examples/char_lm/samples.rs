//! A sample of text at every validation: how the model learns to write.

use eggroll::prelude::*;
use eggroll::run::text::{Alphabet, ByteModel, Sampler, printable};
use eggroll::run::{JsonLines, durable};
use eggroll_examples::Failure;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::PathBuf;

/// Bytes of a sample.
const BYTES: usize = 80;
/// Pixels from a line to the next.
const LINE: usize = 20;

/// Draws samples, logs them and makes a picture of all.
pub struct Samples {
    sampler: Sampler,
    prompt: Vec<u8>,
    alphabet: Alphabet,
    log: JsonLines,
    lines: Vec<Sample>,
    picture: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Sample {
    /// Generations done, from which lines of a log are told apart.
    generation: u64,
    bits_per_byte: f64,
    text: String,
}

impl Samples {
    /// Continues the log of `folder` after `generation` generations.
    pub fn open(
        folder: &RunFolder,
        (sampler, prompt, alphabet): (Sampler, &[u8], Alphabet),
        generation: u64,
    ) -> Result<Self, Failure> {
        let log = JsonLines::open(folder.file("samples.jsonl"), generation + 1)?;
        let lines = JsonLines::read(folder.file("samples.jsonl"))?;
        Ok(Self { sampler, prompt: prompt.to_vec(), alphabet, log, lines, picture: folder.file("samples.svg") })
    }

    /// Adds a sample of the model after `generation` generations.
    pub fn add(&mut self, generation: u64, bits_per_byte: f64, model: &impl ByteModel) -> Result<(), Failure> {
        let tokens = self.sampler.sample(model, &self.alphabet.encode(&self.prompt), BYTES);
        let text = printable(&self.alphabet.decode(&tokens)).replace('\n', "⏎");
        let sample = Sample { generation, bits_per_byte, text };
        self.log.write(&sample)?;
        self.lines.push(sample);
        Ok(durable::replace(&self.picture, self.svg().as_bytes())?)
    }

    fn svg(&self) -> String {
        let height = (self.lines.len() + 2) * LINE;
        let mut svg = format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 940 {height}" width="940" height="{height}">
<rect width="940" height="{height}" fill="#fff"/>
<g font-family="monospace" font-size="13">
"##
        );
        // Spaces that stay where they are.
        let line = |text: String| text.replace(' ', "\u{a0}").replace('&', "&amp;").replace('<', "&lt;");
        let title = line("generation   bits   what the model writes".to_owned());
        writeln!(svg, r#"<text x="8" y="{LINE}">{title}</text>"#).expect("text");
        for (number, Sample { generation, bits_per_byte, text }) in self.lines.iter().enumerate() {
            let text = line(format!("{generation:>10}  {bits_per_byte:>5.2}   {text}"));
            writeln!(svg, r#"<text x="8" y="{}">{text}</text>"#, (number + 2) * LINE).expect("text");
        }
        svg.push_str("</g>\n</svg>\n");
        svg
    }
}
