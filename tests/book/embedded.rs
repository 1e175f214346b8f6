//! Programs in pages: a comment `<!-- file:part -->` stands above a block of code that is a part of a file which is compiled and run.
//!
//! `EGGROLL_BLESS=1 scripts/test --test book` writes the blocks; without it the test compares them. A part lies between the
//! comments `ANCHOR: part` and `ANCHOR_END: part`; without a part it is the whole file, without the documentation at its head.

use std::fs;
use std::ops::Range;
use std::path::Path;

/// A comment, and the block of code below it.
struct Block<'a> {
    source: &'a str,
    /// The lines between the fences, as bytes of the page; `None` if the next line is no fence.
    code: Option<Range<usize>>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let marks = text.match_indices("<!-- ").filter_map(|(at, mark)| {
        let (source, _) = text[at + mark.len()..].split_once(" -->\n")?;
        let is_file = source.contains('/') && !source.contains([' ', '\n']);
        is_file.then_some((source, at + mark.len() + source.len() + " -->\n".len()))
    });
    marks.map(|(source, below)| Block { source, code: code(text, below) }).collect()
}

/// The lines of the block that begins at a byte of the page.
fn code(text: &str, start: usize) -> Option<Range<usize>> {
    let (fence, _) = text[start..].split_once('\n').filter(|(fence, _)| fence.starts_with("```"))?;
    let first = start + fence.len() + 1;
    // An empty block closes at once.
    let length = if text[first..].starts_with("```") { 0 } else { text[first..].find("\n```")? + 1 };
    Some(first..first + length)
}

/// The part of a file that a source names.
fn part(source: &str) -> Result<String, String> {
    let (path, name) = source.split_once(':').map_or((source, None), |(path, name)| (path, Some(name)));
    let file =
        fs::read_to_string(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)).map_err(|_| format!("no file {path}"))?;
    let Some(name) = name else {
        return Ok(without_head(&file));
    };
    let between = || {
        let (_, below) = file.split_once(&format!("// ANCHOR: {name}\n"))?;
        let (part, _) = below.split_once(&format!("// ANCHOR_END: {name}\n"))?;
        Some(part.trim_end_matches(' ')).filter(|part| !part.trim().is_empty())
    };
    between().map(unindented).ok_or_else(|| format!("no part {name} in {path}"))
}

/// A file without the documentation at its head.
fn without_head(file: &str) -> String {
    let lines = file.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Lines moved left, as far as all can be.
fn unindented(text: &str) -> String {
    let indents = text.lines().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len());
    let indent = indents.min().unwrap_or_default();
    text.lines().flat_map(|line| [line.get(indent..).unwrap_or_default(), "\n"]).collect()
}

/// What a page shows, as `file:part`.
pub fn sources(text: &str) -> Vec<&str> {
    blocks(text).into_iter().map(|block| block.source).collect()
}

/// Blocks that differ from their files, and what cannot be shown.
pub fn problems(text: &str) -> Vec<String> {
    let problem = |block: Block<'_>| match (part(block.source), block.code) {
        (Err(error), _) => Some(error),
        (Ok(_), None) => Some(format!("no block of code below {}", block.source)),
        (Ok(part), Some(code)) if part == text[code.clone()] => None,
        (Ok(_), Some(_)) => {
            Some(format!("{} is not what the page shows: run the test with EGGROLL_BLESS=1", block.source))
        }
    };
    let mut problems: Vec<String> = blocks(text).into_iter().filter_map(problem).collect();
    if text.contains("{{#include") {
        problems.push("{{#include}} cannot be read on GitHub: use a comment <!-- file:part -->".into());
    }
    problems
}

/// The page with the blocks that their files give.
pub fn rewritten(text: &str) -> String {
    let mut rewritten = text.to_owned();
    // From the end, so that earlier places stay.
    for block in blocks(text).into_iter().rev() {
        if let (Ok(part), Some(code)) = (part(block.source), block.code) {
            rewritten.replace_range(code, &part);
        }
    }
    rewritten
}
