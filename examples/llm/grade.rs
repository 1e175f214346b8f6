//! The reward of a task as a program, for `eggroll verify --reward`.

use crate::args::LlmArgs;
use crate::task::reward;
use eggroll::lm::reward::Prompt;
use eggroll_examples::Failure;
use serde::Deserialize;
use std::io::{BufRead, Write, stdin, stdout};

/// An answer to be graded, or without `completion` replied to.
#[derive(Deserialize)]
struct Answer {
    prompt: Prompt,
    completion: Option<String>,
    turns: Option<Vec<String>>,
}

/// Reads answers, a line of JSON each, and writes the score of each, or the reply to it, in a line, until there are no more.
pub fn run(args: &LlmArgs) -> Result<(), Failure> {
    let reward = reward(args.settings.task)?;
    for (number, line) in (1..).zip(stdin().lock().lines()) {
        let Answer { prompt, completion, turns } =
            serde_json::from_str(&line?).map_err(|error| format!("line {number} of the input: {error}"))?;
        reward.check(&prompt)?;
        let mut out = stdout().lock();
        match (completion, turns) {
            (Some(completion), None) => writeln!(out, "{}", reward.score(&prompt, &completion))?,
            (Some(_), Some(turns)) => writeln!(out, "{}", reward.score_episode(&prompt, &turns))?,
            (None, Some(turns)) => writeln!(out, "{}", serde_json::to_string(&reward.reply(&prompt, &turns))?)?,
            (None, None) => return Err(format!("line {number} of the input: neither a completion nor turns").into()),
        }
        out.flush()?;
    }
    Ok(())
}
