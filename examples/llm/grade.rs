//! The reward of a task as a program, for `eggroll verify --reward`.

use crate::args::LlmArgs;
use crate::task::reward;
use eggroll::lm::reward::Prompt;
use eggroll_examples::Failure;
use serde::Deserialize;
use std::io::{BufRead, Write, stdin, stdout};

/// An answer to be graded.
#[derive(Deserialize)]
struct Answer {
    prompt: Prompt,
    completion: String,
}

/// Reads answers, a line of JSON each, and writes the score of each in a line, until there are no more.
pub fn run(args: &LlmArgs) -> Result<(), Failure> {
    let reward = reward(args.settings.task)?;
    for (number, line) in (1..).zip(stdin().lock().lines()) {
        let Answer { prompt, completion } =
            serde_json::from_str(&line?).map_err(|error| format!("line {number} of the input: {error}"))?;
        reward.check(&prompt)?;
        let mut out = stdout().lock();
        writeln!(out, "{}", reward.score(&prompt, &completion))?;
        out.flush()?;
    }
    Ok(())
}
