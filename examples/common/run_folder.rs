//! The folder of a run: settings and curve, beside what the learner writes. Shared by the examples that train.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

type Failure = Box<dyn Error + Send + Sync>;

/// Files of a run.
pub struct Folder {
    pub path: PathBuf,
}

impl Folder {
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Moves an earlier run aside, so that nothing is lost, and saves the settings.
    pub fn begin(&self, settings: &impl Serialize) -> Result<(), Failure> {
        if self.path.exists() {
            let aside = self.path.with_extension("previous");
            if aside.exists() {
                fs::remove_dir_all(&aside)?;
            }
            fs::rename(&self.path, &aside)?;
            println!("the earlier run is now in {}", aside.display());
        }
        fs::create_dir_all(&self.path).map_err(|error| format!("{}: {error}", self.path.display()))?;
        fs::write(self.file("settings.json"), serde_json::to_vec_pretty(settings)?)?;
        Ok(())
    }

    /// The settings of the run to continue.
    pub fn settings<S: DeserializeOwned>(&self) -> Result<S, Failure> {
        let file = self.file("settings.json");
        let text = fs::read(&file).map_err(|error| format!("nothing to resume, {}: {error}", file.display()))?;
        Ok(serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))?)
    }

    /// The lines of the curve's log.
    pub fn points<P: DeserializeOwned>(&self) -> Result<Vec<P>, Failure> {
        let text = fs::read_to_string(self.file("curve.jsonl"))?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}
