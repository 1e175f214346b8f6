//! The page of a run, from its folder alone.

use super::curves::{self, LogLine};
use super::facts::{self, Facts, Session, Statistics};
use super::page::{Page, short};
use super::plot::Plot;
use super::settings;
use crate::diagnostics::{FloatStatistics, IntegerStatistics, ParameterStatistics};
use crate::error::Error;
use crate::log::JsonLines;
use eggroll_core::messages::shown;
use eggroll_train::{ExpectedCosine, Forecast};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Files that a run has one of at least.
const FILES: [&str; 4] = ["training.json", "settings.json", "log.jsonl", "curve.jsonl"];

/// Largest file that becomes part of a page, in bytes.
const LARGEST_PICTURE: u64 = 4 << 20;
const CURVE: &str = "curve.svg";

/// Writes `report.html` in the folder of a run, in its current state, and returns its path. Missing files are left out: a run of
/// another version, or one whose program writes its own `curve.jsonl`, has a page too. SVG files in the folder are on the page, up to 4 MiB each.
///
/// # Example
///
/// ```
/// # fn main() -> Result<(), eggroll_run::Error> {
/// # let place = tempfile::tempdir().expect("a folder");
/// # let folder = place.path();
/// std::fs::write(folder.join("log.jsonl"), r#"{"generation":0,"epoch":1,"split":"valid","accuracy":0.9}"#).unwrap();
/// let page = eggroll_run::report::write(folder)?;
/// assert!(std::fs::read_to_string(page).unwrap().contains("Accuracy (validation)"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Io`] with the folder if it holds nothing of a run, or with the file that cannot be read or written.
pub fn write(folder: impl AsRef<Path>) -> Result<PathBuf, Error> {
    let folder = folder.as_ref();
    let path = folder.join(super::FILE);
    page(folder)?.write(&path)?;
    Ok(path)
}

/// The page of [`write()`], to add to it.
///
/// # Errors
///
/// As [`write()`].
pub fn page(folder: impl AsRef<Path>) -> Result<Page, Error> {
    let folder = folder.as_ref();
    if !FILES.iter().any(|name| folder.join(name).is_file()) {
        return Err(Error::io(folder)(ErrorKind::NotFound.into()));
    }
    let log: Vec<LogLine> = JsonLines::read(folder.join("log.jsonl"))?;
    let facts = Facts::read(folder);
    let [mut training, own] = ["training.json", "settings.json"].map(|name| json(&folder.join(name)));
    if !own.is_null() {
        // The same again.
        training.as_object_mut().map(|fields| fields.remove("settings"));
    }
    let plots = match log.is_empty() {
        true => curves::tables(&JsonLines::read::<LogLine>(folder.join("curve.jsonl"))?),
        false => curves::plots(&log),
    };
    let mut page = Page::new(title(folder)).with_text(&state(&facts.sessions));
    page = page.with_figures(&figures(&log, &facts, &training)).with_warnings(&warnings(&log, &facts));
    if !plots.is_empty() {
        page = page.with_heading("Curves").with_pictures(&plots.iter().map(Plot::svg).collect::<Vec<_>>());
    }
    let pictures = pictures(folder)?;
    if !pictures.is_empty() {
        page = page.with_heading("Pictures").with_images(&pictures);
    }
    page = with_sessions(with_parameters(page, &facts), &facts.sessions);
    for (heading, settings) in [("Settings of the run", &training), ("Settings of the program", &own)] {
        let settings = settings::flat(settings);
        if !settings.is_empty() {
            page = page.with_facts(heading, &settings);
        }
    }
    Ok(page)
}

/// The SVG files that the program has drawn, by name, without the curve, which the page draws itself.
fn pictures(folder: &Path) -> Result<Vec<(String, String)>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::io(folder))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_picture = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "svg")
            && path.file_name().is_some_and(|name| name != CURVE)
            && fs::metadata(path).is_ok_and(|file| file.len() <= LARGEST_PICTURE)
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_picture).collect();
    paths.sort();
    let read =
        |path: PathBuf| Some((path.file_stem()?.to_string_lossy().into_owned(), fs::read_to_string(&path).ok()?));
    Ok(paths.into_iter().filter_map(read).collect())
}

/// A file of JSON; null if it is none.
fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_default()).unwrap_or_default()
}

/// The folder's name, with parent folders if it says little.
fn title(folder: &Path) -> String {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    folder.file_name().map_or("run".to_owned(), |name| format!("Run {}", name.to_string_lossy()))
}

fn state(sessions: &[Session]) -> String {
    match sessions.last() {
        Some(session) if session.ended => format!("Ended at {}.", facts::date(session.written)),
        Some(session) => format!("Written at {}, while the run was going on.", facts::date(session.written)),
        None => "Made from the files of the run.".to_owned(),
    }
}

fn figures(log: &[LogLine], facts: &Facts, training: &Value) -> Vec<(String, String)> {
    let mut figures = Vec::new();
    let of_session = facts.sessions.last().map(|session| session.until);
    let of_log = log.iter().filter_map(|line| line.get("generation")?.as_u64()).max().map(|last| last + 1);
    if let Some(done) = of_session.or(of_log) {
        let total = training["generations"].as_u64().filter(|total| *total < 1 << 40);
        figures.push(("generations".to_owned(), total.map_or(done.to_string(), |total| format!("{done} of {total}"))));
    }
    let mut named: Vec<(String, f64)> = curves::last(log, "valid");
    let train = curves::last(log, "train");
    let shown = ["Fitness mean", "Sigma", "Signal to noise", "Evaluations per second"];
    named.extend(train.into_iter().filter(|(name, _)| shown.contains(&name.as_str())));
    figures.extend(named.into_iter().map(|(name, value)| (name.to_lowercase(), short(value))));
    if !facts.sessions.is_empty() {
        let seconds: u64 = facts.sessions.iter().map(Session::seconds).sum();
        figures.push(("time".to_owned(), duration(seconds)));
    }
    figures
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Warnings of diagnoses, each subject once, and of the parameters in the latest checkpoint.
fn warnings(log: &[LogLine], facts: &Facts) -> Vec<String> {
    let logged = log.iter().filter_map(|line| line.get("warnings")?.as_str()).flat_map(|text| text.split("; "));
    let found = facts.statistics.iter().flat_map(|statistics| statistics.diagnosis.warnings());
    let mut subjects = BTreeSet::new();
    let mut all: Vec<String> = found.collect();
    let logged: Vec<&str> = logged.filter(|text| !text.is_empty()).collect();
    // The latest of a subject.
    all.extend(logged.into_iter().rev().map(str::to_owned));
    all.retain(|warning| subjects.insert(warning.split(':').next().unwrap_or_default().to_owned()));
    all
}

fn of_forecast(forecast: &Forecast) -> Vec<Vec<String>> {
    let row = |path: &str, expected: &ExpectedCosine| {
        let members =
            expected.members_to_double(forecast.population).map_or_else(String::new, |count| count.to_string());
        let cosine = |number: f64| format!("{:.3}", shown(number, 3));
        vec![path.to_owned(), cosine(expected.cosine), cosine(expected.by_mean), members]
    };
    let parameters = forecast.parameters.iter().map(|parameter| row(&parameter.path, &parameter.expected));
    parameters.chain([row("all", &forecast.all)]).collect()
}

fn with_parameters(mut page: Page, facts: &Facts) -> Page {
    if !facts.parameters.is_empty() {
        page = page.with_table("Parameters", &facts::PARAMETERS, &facts.parameters);
    }
    if let Some(forecast) = &facts.forecast {
        let heading =
            format!("Cosine of an estimate with the gradient, to be expected from {} members", forecast.population);
        let titles = ["parameter", "cosine", "by mean scores", "members for twice the cosine"];
        page = page.with_table(&heading, &titles, &of_forecast(forecast));
    }
    match &facts.statistics {
        Some(statistics) => with_statistics(page, statistics),
        None => page,
    }
}

fn with_statistics(mut page: Page, statistics: &Statistics) -> Page {
    let (mut floats, mut integers) = (Vec::new(), Vec::new());
    for parameter in &statistics.diagnosis.parameters {
        let warnings = parameter.warnings().join("; ");
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        match parameter {
            ParameterStatistics::Float(of) => {
                let FloatStatistics { path, mean, deviation, min, max, zeros, non_finite, .. } = of;
                let numbers = [mean, deviation, min, max].map(|number| short(*number));
                let last = [percent(*zeros), non_finite.to_string(), warnings];
                floats.push([vec![path.clone()], numbers.into(), last.into()].concat());
            }
            ParameterStatistics::Integer(of) => {
                let IntegerStatistics { path, mean, deviation, entropy, saturated, zeros, min, max, .. } = of;
                let numbers = [mean, deviation, entropy].map(|number| short(*number));
                let last = [percent(*saturated), percent(*zeros), min.to_string(), max.to_string(), warnings];
                integers.push([vec![path.clone()], numbers.into(), last.into()].concat());
            }
        }
    }
    let after = format!("after generation {}", statistics.generation);
    if !floats.is_empty() {
        let titles = ["parameter", "mean", "sd", "min", "max", "zeros", "not finite", "warnings"];
        page = page.with_table(&format!("Statistics of float parameters {after}"), &titles, &floats);
    }
    if !integers.is_empty() {
        let titles = ["parameter", "mean", "sd", "entropy (bits)", "saturated", "zeros", "min", "max", "warnings"];
        page = page.with_table(&format!("Statistics of int8 parameters {after}"), &titles, &integers);
    }
    page
}

fn with_sessions(mut page: Page, sessions: &[Session]) -> Page {
    if let Some(session) = sessions.last() {
        page = page.with_facts("Machine, commit, time", &session.facts());
    }
    if sessions.len() > 1 {
        let row = |session: &Session| {
            let Session { began, written, from, until, device, commit, .. } = session;
            let commit = commit.as_deref().unwrap_or("-");
            let commit = format!(
                "{}{}",
                &commit[..commit.len().min(12)],
                if commit.ends_with(facts::CHANGED) { facts::CHANGED } else { "" }
            );
            vec![facts::date(*began), facts::date(*written), format!("{from} to {until}"), device.clone(), commit]
        };
        let titles = ["began", "written", "generations", "device", "commit"];
        page = page.with_table("Parts of the run", &titles, &sessions.iter().map(row).collect::<Vec<_>>());
    }
    page
}
