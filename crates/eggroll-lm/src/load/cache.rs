//! Where a model is kept that was fetched.

use std::path::PathBuf;

/// Where the repository's `scripts/smollm2` keeps SmolLM2-135M-Instruct: `eggroll/smollm2-135m-instruct-q4_1.gguf` in `$XDG_CACHE_HOME`, or
/// in `$HOME/.cache` where that is not set to an absolute path. `None` without either; the file need not be there.
pub fn smollm2_path() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|cache| cache.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("eggroll/smollm2-135m-instruct-q4_1.gguf"))
}
