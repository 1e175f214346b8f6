//! The way of WGSL to Metal, which wgpu takes where CubeCL does not write Metal's language itself.

use naga::back::msl;
use naga::front::wgsl;
use naga::valid::{ValidationFlags, Validator};

/// Checks WGSL and writes it in Metal's language, with what that language has.
///
/// # Errors
///
/// Says what the parser, the validator or the writer refuses.
pub fn msl_of_wgsl(source: &str) -> Result<String, String> {
    let capabilities = msl::supported_capabilities();
    let mut options = wgsl::Options::new();
    options.capabilities = capabilities;
    let parsed = wgsl::Frontend::new_with_options(options).parse(source);
    let module = parsed.map_err(|error| error.emit_to_string(source))?;
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    let info = validator.validate(&module).map_err(|error| error.emit_to_string(source))?;
    let options = msl::Options { lang_version: (3, 1), ..Default::default() };
    let (text, _) = msl::write_string(&module, &info, &options, &msl::PipelineOptions::default())
        .map_err(|error| error.to_string())?;
    Ok(text)
}
