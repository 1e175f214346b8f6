//! llama.cpp on the same file.

use crate::args::LlmSettings;
use eggroll::run::print_line;
use eggroll_examples::Failure;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `benches/peers/llama_cpp_prefill.py`.
pub struct LlamaCpp {
    python: PathBuf,
    script: PathBuf,
    model: PathBuf,
}

/// Tokens per second of llama.cpp.
#[derive(Deserialize)]
pub struct LlamaCppSpeed {
    /// Of a prompt of 512 tokens.
    pub prefill: f64,
    /// Of one text.
    pub generation: f64,
}

impl LlamaCpp {
    /// Refuses what cannot be compared before anything is measured.
    pub fn new(python: &Path, settings: &LlmSettings) -> Result<Self, Failure> {
        let model = settings.model()?;
        if model.extension().is_none_or(|extension| extension != "gguf") {
            return Err(format!("llama.cpp reads GGUF files, but the model is {}", model.display()).into());
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/peers/llama_cpp_prefill.py");
        let peer = Self { python: python.to_owned(), script, model };
        let output = Command::new(&peer.python).args(["-c", "import llama_cpp"]).output();
        match output {
            Ok(output) if output.status.success() => Ok(peer),
            Ok(_) => Err(peer.refusal("it has no module llama_cpp")),
            Err(error) => Err(peer.refusal(&error.to_string())),
        }
    }

    pub fn measure(&self) -> Result<LlamaCppSpeed, Failure> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).to_string();
        let run = |options: &[&str]| {
            let mut command = Command::new(&self.python);
            command.arg(&self.script).arg(&self.model).args(["--threads", &threads]).args(options).output()
        };
        let mut output = run(&[])?;
        if output.status.code().is_none() {
            print_line!("llama.cpp: {}; again with weights in the file's order", output.status);
            output = run(&["--no-extra-buffers"])?;
        }
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            let last = error.lines().rfind(|line| !line.trim().is_empty());
            let reason = last.map_or_else(|| output.status.to_string(), str::to_owned);
            return Err(format!("{}: {reason}", self.script.display()).into());
        }
        Ok(serde_json::from_slice(&output.stdout).map_err(|error| format!("{}: {error}", self.script.display()))?)
    }

    fn refusal(&self, reason: &str) -> Failure {
        let python = self.python.display();
        format!("the peer is not installed: {python}: {reason} (benches/peers/README.md says how)").into()
    }
}
