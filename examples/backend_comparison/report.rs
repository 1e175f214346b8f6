//! The table, the page, and the result line.

use super::chart;
use super::rows::{BackendOutcome, BackendRow, Comparison, Figures, Machine};
use eggroll::core::messages::shown;
use eggroll::run::report::{Page, Session};
use eggroll_examples::Ending;
use eggroll_examples::chart::Picture;
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::path::PathBuf;

/// Titles in two lines, so that columns stay narrow.
const TITLES: [[&str; 2]; 17] = [
    ["", "backend"],
    ["", "work"],
    ["inference", "ms"],
    ["forward", "ms"],
    ["", "ratio"],
    ["estimate", "ms"],
    ["", "ratio"],
    ["MNIST", "gen/s"],
    ["final", "fitness"],
    ["max", "error"],
    ["laun-", "ches"],
    ["ker-", "nels"],
    ["host", "reads"],
    ["drawn", "MiB"],
    ["held", "MiB"],
    ["RSS", "MiB"],
    ["device", "MiB"],
];
/// Columns of words, aligned to the left.
const WORDS: usize = 2;
/// What a terminal shows one below the other, to fit 80 columns: times, and behind these what they took.
const TIMES: Range<usize> = 0..8;

pub fn print(comparison: &Comparison, files: &[PathBuf], ending: Ending) {
    for machine in &comparison.machines {
        let Machine { label, os, arch, cpus, eggroll, profile } = machine;
        println!("machine {label}: {os} {arch}, {cpus} CPUs, eggroll {eggroll}, {profile} profile");
    }
    for (name, row, _) in comparison.ran() {
        println!("device  {name}: {}", row.hardware.as_ref().or(row.device.as_ref()).map_or("unknown", String::as_str));
    }
    let cells: Vec<_> = comparison.named().map(|(name, row)| cells(name, row)).collect();
    let titles = [0, 1].map(|line| TITLES.map(|title| title[line].to_owned()));
    print_table(&[&titles[..], &cells].concat(), TIMES);
    if comparison.ran().next().is_some() {
        println!();
        let ran = cells.iter().filter(|cells| cells[TIMES.end] != "-").cloned().collect::<Vec<_>>();
        print_table(&[&titles[..], &ran].concat(), TIMES.end..TITLES.len());
    }
    comparison.absent().for_each(|(name, reason)| println!("absent  {name}: {reason}"));
    comparison.failed().for_each(|(name, reason)| println!("failed  {name}: {reason}"));
    files.iter().for_each(|file| println!("wrote {}", file.display()));
    println!("RESULT {}", result(comparison, files, ending));
}

/// The page: the table with whole titles, the bars, and what did not run.
pub fn page(comparison: &Comparison) -> Page {
    let titles = TITLES.map(|[above, below]| match above.strip_suffix('-') {
        Some(above) => format!("{above}{below}"),
        None => format!("{above} {below}"),
    });
    let mut group = "";
    // A ratio or a size stands below the title of the column before.
    let titles = titles.each_ref().map(|title| match title.trim() {
        "ratio" => format!("{group} ratio"),
        title => {
            group = title.split(' ').next().unwrap_or_default();
            title.to_owned()
        }
    });
    let rows: Vec<_> = comparison.named().map(|(name, row)| cells(name, row).to_vec()).collect();
    let failed: Vec<String> = comparison.failed().map(|(name, reason)| format!("{name} failed: {reason}")).collect();
    let mut page = Page::new("Backends compared").with_warnings(&failed);
    page = page.with_table("Measurements", &titles.each_ref().map(String::as_str), &rows);
    if comparison.ran().next().is_some() {
        page = page.with_heading("Figures").with_pictures(&[chart::chart(comparison).svg().unwrap_or_default()]);
    }
    let absent: Vec<_> = comparison.absent().map(|(name, reason)| vec![name, reason.to_owned()]).collect();
    if !absent.is_empty() {
        page = page.with_table("Not here", &["backend", "reason"], &absent);
    }
    let machine = |machine: &Machine| {
        let Machine { label, os, arch, cpus, eggroll, profile } = machine;
        vec![label.clone(), format!("{os} {arch}"), cpus.to_string(), eggroll.clone(), profile.clone()]
    };
    let machines: Vec<_> = comparison.machines.iter().map(machine).collect();
    page.with_table("Machines", &["label", "system", "CPUs", "eggroll", "profile"], &machines)
        .with_facts("Where this page was made", &Session::now("all above", 0).facts())
}

/// A line of the table. One without figures says why in its column of the work.
fn cells(name: String, row: &BackendRow) -> [String; TITLES.len()] {
    let without = |word: &str| {
        let mut cells = TITLES.map(|_| "-".to_owned());
        (cells[0], cells[1]) = (name.clone(), word.to_owned());
        cells
    };
    let Figures { max_error, times, training, work, memory } = match &row.outcome {
        BackendOutcome::Ran(figures) => figures.as_ref(),
        BackendOutcome::Absent { .. } => return without("absent"),
        BackendOutcome::Failed { .. } => return without("failed"),
    };
    let mib = |bytes: Option<u64>| bytes.map_or("-".into(), |bytes| format!("{:.1}", bytes as f64 / (1 << 20) as f64));
    [
        name,
        format!("{} N{} r{}", row.size, row.population, row.rank),
        format!("{:.3}", times.inference_ms),
        format!("{:.3}", times.forward_ms),
        format!("{:.2}", times.forward_ratio),
        format!("{:.3}", times.estimate_ms),
        format!("{:.2}", times.estimate_ratio),
        format!("{:.1}", training.generations_per_second),
        format!("{:.5}", shown(training.final_fitness, 5)),
        format!("{max_error:.1e}"),
        work.launches.to_string(),
        work.kernels.to_string(),
        work.host_reads.to_string(),
        mib(Some(work.noise_bytes)),
        mib(Some(memory.noise_materialized_bytes)),
        mib(memory.peak_rss_bytes),
        mib(memory.device_reserved_bytes),
    ]
}

/// Prints some columns, behind the first.
fn print_table(lines: &[[String; TITLES.len()]], columns: Range<usize>) {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; TITLES.len()] = std::array::from_fn(width);
    for line in lines {
        let cells = std::iter::once(0).chain(columns.start.max(1)..columns.end).map(|column| {
            let (cell, width) = (&line[column], widths[column]);
            match column < WORDS {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            }
        });
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn result(comparison: &Comparison, files: &[PathBuf], ending: Ending) -> Value {
    let figure = |get: fn(&Figures) -> f64| -> Map<String, Value> {
        comparison.ran().map(|(name, _, figures)| (name, json!(get(figures)))).collect()
    };
    let reasons = |rows: Vec<(String, &str)>| -> Map<String, Value> {
        rows.into_iter().map(|(name, reason)| (name, json!(reason))).collect()
    };
    json!({
        "backends": comparison.ran().map(|(name, ..)| name).collect::<Vec<_>>(),
        "absent": reasons(comparison.absent().collect()),
        "failed": reasons(comparison.failed().collect()),
        "forward_ratio": figure(|figures| figures.times.forward_ratio),
        "max_error": figure(|figures| figures.max_error),
        "files": files,
        "stopped": ending.is_stopped(),
    })
}
