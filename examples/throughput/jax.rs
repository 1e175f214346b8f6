//! The same arithmetic in JAX: runs the peer script and reads its cells.

use crate::args::Args;
use crate::cells::Cell;
use crate::columns::Column;
use crate::network::Size;
use clap::ValueEnum;
use serde::Deserialize;
use std::error::Error;
use std::path::Path;
use std::process::Command;

#[derive(Deserialize)]
struct Line {
    size: String,
    population: usize,
    rank: Option<usize>,
    column: Column,
    #[serde(default)]
    median_ms: Option<f64>,
    #[serde(default)]
    q1_ms: f64,
    #[serde(default)]
    q3_ms: f64,
}

/// Runs the peer script for the same cells.
pub fn measure(args: &Args) -> Result<Vec<Cell>, Box<dyn Error>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/jax_forward.py");
    let list = |values: &[usize]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let sizes: Vec<_> = args.sizes.iter().map(|size| size.name()).collect();
    let mut command = Command::new(&args.python);
    command.arg(&script).args(["--sizes", &sizes.join(",")]);
    command.args(["--populations", &list(&args.populations), "--ranks", &list(&args.ranks)]);
    if !args.jax_tuned {
        command.arg("--untuned");
    }
    if args.no_open_es {
        command.args(["--columns", "inference,fly,cached,estimate"]);
    }
    let output = command.output().map_err(|error| format!("{}: {error}", args.python.display()))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", script.display(), words.trim()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut lines = text.lines();
    println!("peer: {}", lines.next().unwrap_or_default());
    let mut cells = Vec::new();
    for line in lines {
        let line: Line = serde_json::from_str(line).map_err(|error| format!("the peer's line {line:?}: {error}"))?;
        let Some(median_ms) = line.median_ms else {
            continue; // left out, with the reason on its line
        };
        cells.push(Cell {
            peer: true,
            size: Size::from_str(&line.size, false)?,
            population: line.population,
            rank: line.rank,
            column: line.column,
            median_ms,
            q1_ms: line.q1_ms,
            q3_ms: line.q3_ms,
            ratio: None,
            held_bytes: None,
            passes: None,
        });
    }
    Ok(with_ratios(cells))
}

fn with_ratios(mut cells: Vec<Cell>) -> Vec<Cell> {
    let inference: Vec<_> = cells.iter().filter(|cell| cell.column == Column::Inference).cloned().collect();
    for cell in cells.iter_mut().filter(|cell| cell.column != Column::Inference) {
        let base = inference.iter().find(|base| base.size == cell.size && base.population == cell.population);
        cell.ratio = base.map(|base| cell.median_ms / base.median_ms);
    }
    cells
}
