//! What tests read that the repository does not have everywhere: SmolLM2-135M-Instruct, which `scripts/smollm2` fetches, and what another
//! implementation makes of it, which packages leave out.

use eggroll_lm::load::smollm2_path;
use std::path::PathBuf;

/// Where this is set, as by `.ci/run`, a test fails that would be skipped.
const REQUIRED: &str = "EGGROLL_REQUIRE_SMOLLM2";

/// The model's file; without it nothing, and a line that says that the test is skipped.
pub fn model() -> Option<PathBuf> {
    let path = smollm2_path().unwrap_or_else(|| PathBuf::from("the model's file"));
    or_skipped(path, "scripts/smollm2 fetches it")
}

/// A file that a test reads; without it nothing, and a line that says so.
pub fn or_skipped(path: PathBuf, advice: &str) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path);
    }
    let missing = format!("{} is missing: {advice}", path.display());
    assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, and {missing}");
    eprintln!("skipped: {missing}");
    None
}
