//! The table, and the headline figures.

use super::args::ThroughputArgs;
use eggroll_examples::Ending;
use eggroll_examples::throughput::{Cell, Column, GridPlace};
use serde_json::{Map, Value, json};

/// Populations whose ratios are headline figures.
const LARGE_ENOUGH: usize = 512;

/// Prints our cells next to the peer's, of which some may have had too little memory.
pub fn print(args: &ThroughputArgs, hardware: &str, cells: &[Cell], out_of_memory: &[GridPlace], ending: Ending) {
    println!(
        "size         population rank column               median ms   (quartiles)   model ms      ratio  samples/s  noise held    JAX"
    );
    for cell in cells.iter().filter(|cell| !cell.peer) {
        let rank = cell.place.rank.map_or("-".into(), |rank| rank.to_string());
        let ratio = cell.ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let peer = match speedup(cells, cell) {
            Some(speedup) => format!("{speedup:.1} x"),
            None if out_of_memory.contains(&cell.place) => "out of memory".into(),
            None => "-".into(),
        };
        println!(
            "{:<12} {:>10} {rank:>4} {:<18} {:>11.3}   ({:.3} - {:.3}) {:>8.3} {ratio:>10} {:>10.0} {:>9.1}MiB {peer:>8}",
            cell.place.size,
            cell.place.population,
            cell.place.column.name(),
            cell.median_ms,
            cell.q1_ms,
            cell.q3_ms,
            cell.modelled_ms.unwrap_or_default(),
            cell.samples_per_second(),
            cell.materialized_bytes.unwrap_or(0) as f64 / (1 << 20) as f64,
        );
    }
    let result = json!({
        "worst_ratio_fly": worst_ratios(args, cells, Column::Fly),
        "worst_ratio_fly_rademacher": worst_ratios(args, cells, Column::FlyRademacher),
        "worst_ratio_cached": worst_ratios(args, cells, Column::Cached),
        "worst_ratio_table": worst_ratios(args, cells, Column::Table),
        "min_speedup_fly_vs_jax": min_speedup(cells, Column::Fly),
        "min_speedup_inference_vs_jax": min_speedup(cells, Column::Inference),
        "min_speedup_estimate_vs_jax": min_speedup(cells, Column::Estimate),
        "min_speedup_open_es_vs_jax": min_speedup(cells, Column::OpenEsFly),
        "peer_out_of_memory": out_of_memory,
        "backend": args.backend.to_string(),
        "hardware": hardware,
        "cells": cells,
        "stopped": ending.is_stopped(),
    });
    println!("RESULT {result}");
}

/// How many times as fast as the peer a cell of ours is.
fn speedup(cells: &[Cell], ours: &Cell) -> Option<f64> {
    let same = |cell: &&Cell| cell.peer && cell.place == ours.place;
    cells.iter().find(same).map(|peer| peer.median_ms / ours.median_ms)
}

/// The largest ratio to inference of each size, at rank 1 and large enough populations.
fn worst_ratios(args: &ThroughputArgs, cells: &[Cell], column: Column) -> Value {
    let mut worst = Map::new();
    for size in &args.sizes {
        let of_size = |cell: &&Cell| {
            let GridPlace { size: found, population, rank, column: of } = cell.place;
            !cell.peer && found == *size && of == column && rank == Some(1) && population >= LARGE_ENOUGH
        };
        let ratio = cells.iter().filter(of_size).filter_map(|cell| cell.ratio).reduce(f64::max);
        worst.insert(size.to_string(), json!(ratio));
    }
    Value::Object(worst)
}

/// The smallest advantage over the peer at large enough populations.
fn min_speedup(cells: &[Cell], column: Column) -> Option<f64> {
    let is_ours = |cell: &&Cell| !cell.peer && cell.place.column == column && cell.place.population >= LARGE_ENOUGH;
    let ours = cells.iter().filter(is_ours);
    ours.filter_map(|cell| speedup(cells, cell)).reduce(f64::min)
}
