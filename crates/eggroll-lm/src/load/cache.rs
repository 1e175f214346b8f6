//! The location of a downloaded model.

use std::path::PathBuf;

/// The location of SmolLM2-135M-Instruct from the repository's `scripts/smollm2`: `eggroll/smollm2-135m-instruct-q4_1.gguf` in
/// `$XDG_CACHE_HOME`, or in `$HOME/.cache` if that is not set to an absolute path. `None` without either; the file need not exist.
pub fn smollm2_path() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|cache| cache.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("eggroll/smollm2-135m-instruct-q4_1.gguf"))
}
