//! Logs next to `log.jsonl`.

#[cfg(feature = "csv")]
use super::csv;
use super::json::Failure;
use super::machinery::Parts;
#[cfg(feature = "tensorboard")]
use super::tensorboard;
use crate::error::Error;
use crate::folder::RunFolder;
use burn::train::metric::ItemLazy;

/// Which of them a run has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Logs {
    #[cfg(feature = "csv")]
    pub csv: bool,
    #[cfg(feature = "tensorboard")]
    pub tensorboard: bool,
}

impl Logs {
    /// Registers them for a run that begins, or continues, at `generation`.
    #[cfg_attr(
        not(any(feature = "csv", feature = "tensorboard")),
        expect(unused_mut, unused_variables, reason = "no such log is in this build")
    )]
    pub fn register<V: ItemLazy + 'static>(
        self,
        mut parts: Parts<V>,
        folder: &RunFolder,
        generation: u64,
        failure: &Failure,
    ) -> Result<Parts<V>, Error> {
        #[cfg(feature = "csv")]
        if self.csv {
            let path = folder.file(csv::FILE);
            parts = parts.with_metric_logger(csv::CsvMetrics::open(path, generation, failure.clone())?);
        }
        #[cfg(feature = "tensorboard")]
        if self.tensorboard {
            let folder = folder.file(tensorboard::FOLDER);
            parts = parts.with_metric_logger(tensorboard::EventFiles::new(folder, generation, failure.clone()));
        }
        Ok(parts)
    }
}
