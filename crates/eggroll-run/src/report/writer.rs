//! Writes the page of a run while it runs.

use super::facts::{self, Facts, Session, Statistics};
use crate::diagnostics::Diagnosis;
use crate::durable;
use crate::error::Error;
use crate::print_note;
use eggroll_core::ParameterTable;
use eggroll_train::{Credits, Forecast};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Shortest time between two pages.
const PAUSE: Duration = Duration::from_secs(2);
/// How much longer a run trains than its pages take.
const SHARE: u32 = 50;

/// Keeps the page of a run up to date: `report.html`, and `report.json` with facts that other files do not have. If a page cannot be
/// written, there is one warning, never an error of the run.
///
/// # Example
///
/// ```
/// use eggroll_run::report::Writer;
///
/// # let place = tempfile::tempdir().expect("a folder");
/// # let folder = place.path();
/// std::fs::write(folder.join("settings.json"), "{}").unwrap();
/// let mut report = Writer::new(folder, "flex", 0);
/// for generation in 1..=10 {
///     report.update(generation); // every generation: it writes when it is time to
/// }
/// report.finish();
/// assert!(folder.join("report.html").exists());
/// ```
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    session: Session,
    facts: Option<Facts>,
    parameters: Vec<Vec<String>>,
    statistics: Option<Statistics>,
    forecast: Option<Forecast>,
    /// When the next page is due.
    due: Instant,
    failed: bool,
}

impl Writer {
    /// A writer of the run in `folder`, which begins or continues after `generation` generations on a device of this name. Writes nothing.
    pub fn new(folder: impl Into<PathBuf>, device: impl Into<String>, generation: u64) -> Self {
        Self {
            folder: folder.into(),
            session: Session::now(device, generation),
            facts: None,
            parameters: Vec::new(),
            statistics: None,
            forecast: None,
            due: Instant::now(),
            failed: false,
        }
    }

    /// Adds the parameter table.
    pub fn with_parameters(mut self, table: &ParameterTable) -> Self {
        self.parameters = facts::parameters(table);
        self
    }

    /// Adds to the parameter table what each parameter learns from.
    pub fn set_credits(&mut self, credits: &Credits) {
        for (path, credit) in &credits.parameters {
            if let Some(row) = self.parameters.iter_mut().find(|row| row[0] == *path) {
                row.truncate(facts::PARAMETERS.len() - 1);
                row.push(credit.to_string());
            }
        }
    }

    /// Sets the forecast of estimates.
    pub fn set_forecast(&mut self, forecast: Forecast) {
        self.forecast = Some(forecast);
    }

    /// Sets the statistics of the model after `generation` generations.
    pub fn set_statistics(&mut self, generation: u64, diagnosis: Diagnosis) {
        self.session.until = generation;
        self.statistics = Some(Statistics { generation, diagnosis });
    }

    /// Records the number of generations done, and writes the page if the last one is old enough.
    pub fn update(&mut self, generation: u64) {
        self.session.until = generation;
        if Instant::now() >= self.due {
            self.write_or_warn(false);
        }
    }

    /// Writes the page of a run that has ended. A run that has done nothing keeps the earlier page, if there is one.
    pub fn finish(&mut self) {
        if self.session.until > self.session.from || !self.folder.join(super::FILE).exists() {
            self.write_or_warn(true);
        }
    }

    fn write_or_warn(&mut self, ended: bool) {
        let begun = Instant::now();
        if let Err(error) = self.write(ended)
            && !std::mem::replace(&mut self.failed, true)
        {
            print_note!("warning: the run's page is not written: {error}");
        }
        self.due = Instant::now() + PAUSE.max(begun.elapsed() * SHARE);
    }

    fn write(&mut self, ended: bool) -> Result<(), Error> {
        let earlier = self.facts.get_or_insert_with(|| Facts::read(&self.folder));
        self.session.write(self.session.until, ended);
        let mut facts = earlier.clone();
        facts.sessions.push(self.session.clone());
        facts.parameters = self.parameters.clone();
        facts.statistics = self.statistics.clone().or(facts.statistics);
        facts.forecast = self.forecast.clone().or(facts.forecast);
        let path = self.folder.join(facts::FILE);
        let text = serde_json::to_vec(&facts).map_err(|error| Error::io(&path)(error.into()))?;
        durable::replace(&path, &text)?;
        super::write(&self.folder).map(drop)
    }
}
